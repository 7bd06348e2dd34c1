"""What the runtime knows of a job, too: the data of its file job_rules.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).parent.parent / "packages/ytstream/src/ytstream/settings/job_rules.toml"
RULES = tomllib.loads(_FILE.read_text(encoding="utf-8"))
_STATELESS = ("map", "join")


class Conf(NamedTuple):
    """One setting; ``since`` is the first Spark version that knows it so."""

    key: str
    value: str
    reason: str
    since: str = "3.5"


def pair_problem(guarantee: str, processing: str) -> str:
    """Return why this guarantee cannot hold for this processing; "" when it can."""
    impossible = RULES["impossible"].get(guarantee, {"reasons": {}})
    reason = impossible["reasons"].get(processing, "")
    return impossible["message"].format(processing=processing, reason=reason) if reason else ""


def confs(guarantee: str, processing: str, spark: str) -> Iterator[Conf]:
    """Yield the settings of a job's session and the options of its reader and writer."""
    state = "stateless" if processing in _STATELESS else "stateful"
    table = RULES["conf"]
    listed = [*table["common"], *table[state], *table["guarantee"][guarantee]]
    session = {conf.key: conf for entry in listed if (conf := Conf(*entry)).since <= spark}
    yield from session.values()
    for part in ("reader", f"writer_{state}", "sink"):
        yield from (Conf(*entry) for entry in table[part])
