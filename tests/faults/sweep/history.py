"""Histories: what went in, what went wrong, what was answered, what was read. JSON lines.

The checker needs nothing but the file: `python -m tests.faults.sweep.history FILE...`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.faults.sweep import oracle
from tests.faults.sweep.jobs import variant_of
from tests.faults.sweep.lab import made_of
from tests.faults.variants import Variant
from tests.support.verdict import Verdict
from ytstream.schema.columns import type_name
from ytstream_tools.demo.job_sample import compared

_NAME_CHARACTERS = "-_."


def columns_of(variant: Variant) -> dict[str, list[str]]:
    """Return the columns in which each output is compared: all but the guarantee's position."""
    job = made_of(variant).job
    return {
        name: [column.name.removeprefix("$") for column in compared(job, name)]
        for name in job.outputs
    }


def times_of(variant: Variant) -> set[str]:
    """Return the columns of its queues that hold times."""
    columns = made_of(variant).job.queue_columns
    return {column.name for column in columns if type_name(column.type) == "timestamp"}


def expected_of(variant: Variant, sent: Sequence[oracle.Row]) -> dict[str, Counter[str]]:
    """Return what must come out of the rows ``sent``, by plain Python."""
    sample = made_of(variant).sample
    rejected = sample.others["rejected"]
    return oracle.expected_of(columns_of(variant), sample.expected, rejected, sent)


def lines(
    head: Mapping[str, Any],
    sent: Iterable[oracle.Row],
    requests: Iterable[Mapping[str, Any]],
    found: Mapping[str, Counter[str]],
) -> Iterable[dict[str, Any]]:
    """Yield a history: what it is of, the rows sent, the requests with faults, the rows read."""
    yield {"of": dict(head)}
    for row in sent:
        yield {"sent": {name: oracle.plain(value) for name, value in row.items()}}
    for request in requests:
        yield {"fault" if request.get("fault") else "answered": dict(request)}
    for output, rows in found.items():
        for text, count in rows.items():
            yield {"read": output, "row": text, "times": count}


def write(folder: Path, name: str, history: Iterable[Mapping[str, Any]]) -> Path:
    """Write a history; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{''.join(c if c.isalnum() or c in _NAME_CHARACTERS else '_' for c in name)}"
    path = path.with_name(f"{path.name}.jsonl")
    text = "".join(f"{json.dumps(one, default=str, ensure_ascii=False)}\n" for one in history)
    path.write_text(text, encoding="utf-8")
    return path


def check(path: Path) -> tuple[Variant, Verdict]:
    """Return the variant of a history, and what the history alone says."""
    history = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    variant = variant_of(str(history[0]["of"]["case"]).partition(":")[0])
    sent = [one["sent"] for one in history if "sent" in one]
    found: dict[str, Counter[str]] = {name: Counter() for name in columns_of(variant)}
    for one in history:
        if "read" in one:
            found[one["read"]][one["row"]] += one["times"]
    return variant, oracle.compared(expected_of(variant, sent), found)


def main(names: Sequence[str]) -> int:
    """Print what each history says; return 1 if one breaks what its guarantee promises."""
    is_broken = False
    for name in names:
        variant, verdict = check(Path(name))
        is_broken |= not verdict.holds(may_repeat=variant.may_repeat)
        print(
            f"lost {verdict.lost}, repeated {verdict.repeated}, wrong {verdict.wrong}, "
            f"{variant.guarantee}: {name}"
        )
        print(*(f"  {text}" for text in verdict.examples), sep="\n")
    return int(is_broken)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
