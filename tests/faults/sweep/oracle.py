"""The oracle: which rows go in, which must come out, and which did, without a line of the runtime.

The rows come from a seeded generator, the expected ones from plain Python (sample/expected.py of
the template). The tables are read as they are, by a client of their own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from yt.yson import YsonUint64

from tests.faults.variants import Variant
from tests.support.examples import MERGE, Example
from tests.support.verdict import Verdict

Row = Mapping[str, Any]
T = TypeVar("T")
_AGAIN = 6
"""Rows that are published again, in the next batch."""
_CUT_OFF = ("hang_up", "proxy_down")
"""Faults of a request in the journal that was never applied, and has no error (the minicluster's
control/gate.py)."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def batches_of(
    variant: Variant,
    make: Callable[[int, int, int], Iterable[Row]],
    start_us: int,
    seed: int,
    count: int,
    first: int,
    size: int,
) -> list[list[dict[str, Any]]]:
    """Return ``count`` lists of ``size`` rows, each a step of event time after the one before.

    Jobs with state find in each what they know of the one before: see published_again() and
    _coming_back(). Where ``make`` publishes some rows twice, it gives a few more: they are left
    out.
    """

    def made(number: int) -> list[dict[str, Any]]:
        rows = make(size, seed * 1_000 + number, start_us + number * variant.step_us)
        return [{**row} for row in islice(rows, size)]

    before, found = made(first - 1) if first else [], []
    for number in range(first, first + count):
        rows = made(number)
        known = published_again(variant, before)
        found.append([*known, *_coming_back(variant, before, rows)[len(known) :]])
        before = rows
    return found


def published_again(variant: Variant, sent: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows that are published twice: for a deduplication, the newest of those ``sent``.

    Their ids are in the state, and none of them is late.
    """
    count = _AGAIN if variant.processing == "deduplicate" else 0
    return [{**row} for row in sent[max(0, len(sent) - count) :]]


def _coming_back(
    variant: Variant, before: Sequence[Row], rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows. For windows and sessions, half of them are older, and of the last batch's.

    So a window, or a session, has rows of two batches. The watermark has not passed them.
    """
    if not variant.back_us:
        return [*rows]
    found = []
    for number, row in enumerate(rows):
        if number % 4 >= 2:  # of both partitions
            keys = {name: before[number - 2][name] for name in ("auction", "bidder") if before}
            row = {**row, **keys, "date_time": YsonUint64(row["date_time"] - variant.back_us)}
        found.append(row)
    return found


def arriving(
    variant: Variant, made: Example, seed: int, count: int, sent: Sequence[Row]
) -> list[dict[str, Any]]:
    """Return rows that arrive after those ``sent``, a little newer: none is late.

    Those that contend with the recorded rows would replace all of them, and hide what is lost.
    """
    newest = made.sample.newest(made.job, sent)
    later = variant.step_us if variant.processing == MERGE else 0
    rows = islice(made.sample.make(count, seed, newest + later), count)
    return [*published_again(variant, sent), *({**row} for row in rows)]


def difference(
    must: Counter[T], found: Counter[T], may: Counter[T] | None = None
) -> tuple[Counter[T], Counter[T]]:
    """Return what is lost, and what is there too often; what ``may`` be there is neither."""
    return must - found, found - must - (may or Counter())


def compared(expected: Mapping[str, Counter[str]], found: Mapping[str, Counter[str]]) -> Verdict:
    """Compare the rows of each output, as texts, by how often each is there."""
    lost = repeated = wrong = 0
    examples: list[str] = []
    for name in expected:
        missing, more = difference(expected[name], found[name])
        lost += missing.total()
        repeated += more.total()
        wrong += sum(count for text, count in more.items() if text not in expected[name])
        examples += [f"{name}: lost {text}" for text in [*missing][:2]]
        examples += [f"{name}: too many {text}" for text in [*more][:2]]
    rows = {name: counter.total() for name, counter in found.items()}
    return Verdict(lost, 0, repeated, wrong, tuple(examples[:4]), rows)


def counted(rows: Iterable[Row], columns: Sequence[str]) -> Counter[str]:
    """Return how often each row is there, by the columns that are compared."""
    return Counter(repr([plain(row.get(name)) for name in columns]) for row in rows)


def plain(value: Any) -> Any:
    """Return a value without the types of YSON: numbers, texts, bytes, lists."""
    if value is None or isinstance(value, bool):
        return value
    kinds: tuple[type[Any], ...] = (int, float, str, bytes)
    for kind in kinds:
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return sorted((str(name), plain(item)) for name, item in value.items())
    return [plain(item) for item in value]


def expected_of(
    outputs: Mapping[str, Sequence[str]],
    expected: Callable[[Sequence[Row]], Iterable[Row]],
    rejected: Callable[[Sequence[Row]], Iterable[tuple[str, Row]]],
    sent: Sequence[Row],
) -> dict[str, Counter[str]]:
    """Return the rows that must be in each output; ``outputs`` names the columns compared."""
    found = {"output": counted(expected(sent), outputs["output"])}
    if "rejected" in outputs:
        rows = ({**row, "reason": reason} for reason, row in rejected(sent))
        found["rejected"] = counted(rows, outputs["rejected"])
    return found


def read(
    client: Any, root: str, outputs: Mapping[str, Sequence[str]], times: Collection[str]
) -> dict[str, Counter[str]]:
    """Read each output from its table; a rejected row is the queue's row at its place.

    An event of an idempotent output is at the position that it has in its queue, or says so.
    ``times`` are the queue's columns of the type timestamp: the JSON of a rejected row has texts.
    """
    found = {}
    for name, columns in outputs.items():
        rows: Sequence[Row] = [*client.select_rows(f"* from [{root}/{name}]")]
        if name == "rejected":
            rows = _with_sources(client, root, rows, times)
        elif any("row_index" in row for row in rows):
            rows = _at_their_positions(client, root, rows)
        found[name] = counted(rows, columns)
    return found


def _with_sources(
    client: Any, root: str, rejected: Sequence[Row], times: Collection[str]
) -> list[Row]:
    sources = _sources(client, root, rejected)
    return [_with_source(row, sources[_position(row, root)], times) for row in rejected]


def _at_their_positions(client: Any, root: str, rows: Sequence[Row]) -> list[Row]:
    sources = _sources(client, root, rows)
    events = (sources.get(_position(row, root), {}).get("event_id") for row in rows)
    return [
        row if row["event_id"] == event else {**row, "event_id": f"{row['event_id']} elsewhere"}
        for row, event in zip(rows, events, strict=True)
    ]


def _sources(client: Any, root: str, rows: Sequence[Row]) -> dict[tuple[str, int, int], Row]:
    """Return the rows of the queues that these rows name, by their position."""
    sources: dict[tuple[str, int, int], Row] = {}
    for queue in sorted({_queue_of(row, root) for row in rows}):
        for row in client.select_rows(f"* from [{queue}]"):
            sources[queue, row["$tablet_index"], row["$row_index"]] = row
    return sources


def _position(row: Row, root: str) -> tuple[str, int, int]:
    return _queue_of(row, root), row["tablet_index"], row["row_index"]


def _queue_of(row: Row, root: str) -> str:
    return str(row.get("queue_id") or f"{root}/queue-0")


def _with_source(row: Row, source: Row, times: Collection[str]) -> Row:
    """Return the queue's row with the reason, which says so where the JSON has other values."""
    has_its_values = is_source(row["row"], source, times)
    return {
        **source,
        "reason": row["reason"] if has_its_values else f"{row['reason']}: another row",
    }


def is_source(text: str, source: Row, times: Collection[str]) -> bool:
    """Whether the JSON of a rejected row has the values of the queue's row, and no others.

    Spark's to_json() leaves out a null. A name that begins with $ is a note, not a column.
    """
    given = {name: value for name, value in json.loads(text).items() if not name.startswith("$")}
    must = {
        name: plain(value)
        for name, value in source.items()
        if value is not None and not name.startswith("$")
    }
    return given.keys() == must.keys() and all(
        _time_of(given[name]) == value
        if name in times
        else type(given[name]) is type(value) and given[name] == value
        for name, value in must.items()
    )


def _time_of(text: Any) -> int | None:
    """Return the microseconds of a time in JSON; None if it is not one with its time zone."""
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
    except (TypeError, ValueError):  # no text, no time, or none with a zone
        return None


def written_rows(entries: Iterable[Any], path: str) -> int:
    """Return how many rows the journal says were committed into a table, repeats included.

    The key of an idempotent output hides a row that is written twice; the journal does not. A
    request whose connection was cut off has no error, and was never applied.
    """
    known = [entry for entry in entries if entry.error is None and entry.fault not in _CUT_OFF]
    committed = {
        entry.args.get("transaction") for entry in known if entry.method == "CommitTransaction"
    }
    return sum(
        int(entry.args.get("rows", 0))
        for entry in known
        if entry.method == "ModifyRows"
        and entry.args.get("path") == path
        and entry.args.get("transaction") in committed
    )
