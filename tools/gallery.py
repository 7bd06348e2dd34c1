"""`python -m tools.gallery`: docs/gallery.md, the logic of each example as it is generated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from tools.example import ROOT

PAGE = ROOT / "docs" / "gallery.md"
TEMPLATES = ROOT / "templates"
TOP = """\
# Gallery

`python -m tools.gallery` writes this page from the templates. Do not edit it.

Each example is the `transform.py` of a generated repository, with the guarantee `transactional`
and one queue. All of them read bids of auctions. Only the comments that begin with `#:` are not
shown here: they explain each constant in your own file. Copy the example that is nearest to your
job, or try it:

```sh
make demo PROCESSING=window
```

[Choose a processing type](choosing.md) shows what each of them keeps and costs."""
ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "map": """\
Dollars become euros, and two conditions reject rows. Choose it to convert, filter or clean rows
that do not depend on each other. It keeps no state, and it is the only one that all three
guarantees allow.""",
        "window": """\
It counts the bids of each auction in windows of ten seconds. Choose it for counts and sums per
fixed time. Each window is written once, when it is complete, so later rows are dropped.""",
        "join": """\
Each bid gets the category and the seller of its auction from a reference table. Choose it to add
columns from a table that fits into memory. A bid without a match gets nulls. For larger tables, or
in another processing type, use [`lookup()`](lookup.md).""",
        "deduplicate": """\
An event that was published twice passes once. Choose it if your publisher repeats events and each
has an id. Repeats that are further apart than `WITHIN` pass.""",
        "aggregate": """\
It keeps running totals for each auction, one row per key in a sorted table. Each row says what it
contributes, and the table adds (`aggregate=` in `tables.py`). Choose it if readers want the newest
total at any time. The reader divides for an average.""",
        "merge": """\
It keeps the newest bid of each auction, one row per key in a sorted table, in whatever order bids
come. `MERGE` says which row of a key stays: `newest()`, which can remove rows too, or a function of
your own over the table's row and the batch's rows. Choose it for tables that change.""",
        "sessions": """\
It groups the bids of a bidder until a pause of 30 minutes. Choose it for what a window cannot
express: your own Python function decides what to keep for each key and when to write it. It needs
pandas.""",
    }
)
"""What each example does, and when to choose it."""
_COMMENTS = re.compile(r"^ *#: .*\n", re.MULTILINE)


def page() -> str:
    """Return the page."""
    return "\n\n".join([TOP, *(_section(name) for name in ABOUT)]) + "\n"


def _section(processing: str) -> str:
    code = (TEMPLATES / processing / "transform.py").read_text(encoding="utf-8")
    shown = _COMMENTS.sub("", code).strip()
    return f"## `{processing}`\n\n{ABOUT[processing]}\n\n```python\n{shown}\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
