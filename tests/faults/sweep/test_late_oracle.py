"""The oracle of late rows: an honest history holds, and each broken one is seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.faults.sweep import late
from tests.faults.sweep.late_oracle import JOBS, Batch, Tables, account, unread
from tests.faults.sweep.oracle import Row

_S = 1_000_000
_FUTURE = 4_133_980_800 * _S


def _row(time: int, price: int, event: str = "a") -> Row:
    time_us = _FUTURE if time < 0 else time * _S
    return {"event_id": event, "auction": 1, "bidder": 1, "price": price, "date_time": time_us}


def _batch(first: int, end: int, late_until: int, watermark: int, **counts: int) -> Batch:
    names = ("late", "from the future", "rejected", "output")
    figures = {"read": end - first, **{name: counts.get(name.split()[0], 0) for name in names}}
    return Batch({0: (first, end)}, late_until * _S, watermark * _S, figures)


def _rejected(
    index: int, source: Row, missed: list[str] | None = None, of: int = 1, reason: str = ""
) -> Row:
    note = {"$late": {"watermark": _text(30), "missed": missed, "of": of}} if missed else {}
    reason = reason or ("late" if missed else "from the future")
    time = datetime.fromtimestamp(source["date_time"] // _S, UTC)
    text = json.dumps({**source, "date_time": time.isoformat(), **note})
    return {"tablet_index": 0, "row_index": index, "reason": reason, "row": text}


def _text(*times: int) -> str:
    return "/".join(f"1970-01-01T00:{at // 60:02}:{at % 60:02}.000000Z" for at in times)


def _window(start: int, length: int, bids: int, total: int) -> Row:
    times = {"window_start": start * _S, "window_end": (start + length) * _S}
    return {"auction": 1, **times, "bids": bids, "total": total}


_QUEUE = (_row(5, 10), _row(40, 1), _row(7, 100), _row(38, 2), _row(-1, 0), _row(100, 4))
"""The third one is late for its window of ten seconds, and the fifth one is rejected."""
_HISTORY = Tables(
    {(0, index): row for index, row in enumerate(_QUEUE)},
    [
        _batch(0, 2, 0, 0),
        _batch(2, 2, 0, 30, output=1),
        _batch(2, 5, 30, 30, late=1, rejected=2, **{"from": 1}),
        _batch(5, 6, 30, 30),
        _batch(6, 6, 30, 90, output=2),
    ],
    [_rejected(2, _QUEUE[2], [_text(0, 10)]), _rejected(4, _QUEUE[4])],
    [_window(0, 10, 1, 10), _window(30, 10, 1, 2), _window(40, 10, 1, 1)],
    late=1,
)


def test_each_row_is_used_rejected_or_late() -> None:
    found = account(JOBS["tumbling"](), _HISTORY)
    assert found.problems == []
    assert (found.read, found.used, found.rejected, found.lost, found.partly) == (6, 4, 1, 1, 0)
    assert unread(_HISTORY) == []


def test_a_row_is_late_for_some_of_its_windows_and_in_the_others() -> None:
    tables = Tables(
        {(0, 0): _row(25, 1)},
        [_batch(0, 1, 30, 60, late=1, rejected=1, output=2)],
        [_rejected(0, _row(25, 1), [_text(0, 30)], of=3)],
        [_window(10, 30, 1, 1), _window(20, 30, 1, 1)],
        late=1,
    )
    found = account(JOBS["sliding"](), tables)
    assert found.problems == []
    assert (found.used, found.lost, found.partly) == (1, 0, 1)


def test_a_late_repeat_is_late_and_one_in_time_is_used() -> None:
    rows = (_row(1, 1), _row(1, 1), _row(1, 1))
    tables = Tables(
        {(0, index): row for index, row in enumerate(rows)},
        [_batch(0, 2, 0, 30, output=1), _batch(2, 3, 30, 30, late=1, rejected=1)],
        [_rejected(2, rows[2], [_text(1)])],
        [rows[0]],
        late=1,
    )
    found = account(JOBS["deduplicate"](), tables)
    assert found.problems == []
    assert (found.used, found.lost) == (2, 1)


def test_rows_of_one_session_are_added_however_they_come() -> None:
    rows = (_row(1_801, 1), _row(1, 2), _row(4_000, 4))
    session = {"bidder": 1, "first_bid": _S, "last_bid": 1_801 * _S, "bids": 2, "total": 3}
    tables = Tables(
        {(0, index): row for index, row in enumerate(rows)},
        [_batch(0, 3, 0, 0), _batch(3, 3, 0, 3_602, output=1)],
        [],
        [session],
        late=0,
    )
    assert account(JOBS["sessions"](), tables).problems == []


def _changed(tables: Tables, name: str, rows: Any) -> Tables:
    return replace(tables, **{name: rows})


def _without(name: str, index: int) -> Callable[[Tables], Tables]:
    def broken(tables: Tables) -> Tables:
        rows = [*getattr(tables, name)]
        del rows[index]
        return _changed(tables, name, rows)

    return broken


def _with(name: str, row: Any) -> Callable[[Tables], Tables]:
    return lambda tables: _changed(tables, name, [*getattr(tables, name), row])


_LATE_IS_USED = _window(0, 10, 2, 110)
_BROKEN: dict[str, Callable[[Tables], Tables]] = {
    "a late row is nowhere": _without("rejected", 0),
    "a late row is also used": lambda t: replace(t, output=[_LATE_IS_USED, *t.output[1:]]),
    "a late row is kept without its reason": lambda t: replace(
        t, rejected=[_rejected(2, _QUEUE[2], [_text(0, 10)], reason="unknown"), t.rejected[1]]
    ),
    "a late row has missed something else": lambda t: replace(
        t, rejected=[_rejected(2, _QUEUE[2], [_text(10, 20)]), t.rejected[1]]
    ),
    "a late row is kept with another value": lambda t: replace(
        t, rejected=[_rejected(2, _row(7, 101), [_text(0, 10)]), t.rejected[1]]
    ),
    "a row from the future is kept with another time": lambda t: replace(
        t, rejected=[t.rejected[0], _rejected(4, {**_QUEUE[4], "date_time": _FUTURE + _S})]
    ),
    "a late row is kept with a text for a number": lambda t: replace(
        t, rejected=[_rejected(2, {**_QUEUE[2], "price": "100"}, [_text(0, 10)]), t.rejected[1]]
    ),
    "a late row is kept with one column more": lambda t: replace(
        t, rejected=[_rejected(2, {**_QUEUE[2], "more": 1}, [_text(0, 10)]), t.rejected[1]]
    ),
    "a late row is kept twice": _with("rejected", _rejected(2, _QUEUE[2], [_text(0, 10)])),
    "a row in time is kept as late, too": _with(
        "rejected", _rejected(3, _QUEUE[3], [_text(30, 40)])
    ),
    "the ledger counts a late row twice": lambda t: replace(
        t, batches=[*t.batches[:2], replace(t.batches[2], figures={
            **t.batches[2].figures, "late": 2}), *t.batches[3:]]
    ),
    "the ledger's head counts a late row twice": lambda t: replace(t, late=2),
    "a row that was used is in no window": _without("output", 1),
    "a window is written twice": _with("output", _HISTORY.output[0]),
    "a batch is read twice": _with("batches", _HISTORY.batches[2]),
    "late rows are kept before their batch happens": lambda t: replace(t, batches=t.batches[:2]),
}  # fmt: skip


@pytest.mark.parametrize("name", _BROKEN)
def test_what_breaks_the_account_is_seen(name: str) -> None:
    assert account(JOBS["tumbling"](), _BROKEN[name](_HISTORY)).problems


def test_at_least_once_may_repeat_what_is_right() -> None:
    twice = _with("output", _HISTORY.output[0])(_HISTORY)
    assert account(JOBS["tumbling"](), twice, repeats=1).problems == []
    wrong = _with("output", _LATE_IS_USED)(_HISTORY)
    assert account(JOBS["tumbling"](), wrong, repeats=1).problems
    kept = _with("rejected", _HISTORY.rejected[0])(_HISTORY)
    assert account(JOBS["tumbling"](), kept, repeats=1).problems == []


def test_at_least_once_repeats_no_more_than_a_batch_for_each_fault() -> None:
    """The largest batch has written two rows."""
    thrice = replace(_HISTORY, output=[*_HISTORY.output, *[_HISTORY.output[0]] * 3])
    (said,) = account(JOBS["tumbling"](), thrice, repeats=1).problems
    assert said == "output repeats 3 rows, not 2"
    assert account(JOBS["tumbling"](), thrice, repeats=2).problems == []
    kept = replace(_HISTORY, rejected=[*_HISTORY.rejected, *[_HISTORY.rejected[0]] * 3])
    (said,) = account(JOBS["tumbling"](), kept, repeats=1).problems
    assert said == "`rejected` repeats 3 rows, not 2"


def test_a_batch_whose_former_watermark_is_not_in_the_log_is_an_error() -> None:
    row = {"state": {}, "rows_written": {}, "queues": [], "rows_read": 0}
    assert late._batch({**row, "batch": 0}, {0: 5}).late_until == 0
    assert late._batch({**row, "batch": 3}, {2: 7, 3: 9}).late_until == 7
    with pytest.raises(KeyError):
        late._batch({**row, "batch": 3}, {3: 9})


def test_rows_that_no_batch_has_read_are_named() -> None:
    assert unread(replace(_HISTORY, batches=_HISTORY.batches[:3])) == [(0, 5)]
