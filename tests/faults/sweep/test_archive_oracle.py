"""The oracle of archives: an honest archive holds, and each broken one is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.faults.sweep.archive_oracle import (
    HOUR,
    LATE,
    MAIN,
    TOO_LATE,
    TOO_OLD,
    Entry,
    Rules,
    Sent,
    problems,
)
from tests.faults.sweep.oracle import Row


def _expected(rows: Sequence[Row]) -> Iterator[Row]:
    yield from ({"event_id": row["event_id"], "euros": row["price"] * 2} for row in rows)


def _rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    yield from (("no price", row) for row in rows if not row["price"])


def _row(name: str, hour: int, price: int = 3) -> Row:
    return {"event_id": name, "price": price, "date_time": (hour * HOUR + 5) * 1_000_000}


COLUMNS = ("event_id", "euros", "date_time")
RULES = Rules(
    COLUMNS, ("event_id", "price", "date_time"), _expected, _rejected, 10 * HOUR, 20 * HOUR, False
)
SENT = {
    "a": Sent(_row("a", 12), 11 * HOUR, 11 * HOUR),
    "late": Sent(_row("late", 12), 13 * HOUR, 13 * HOUR),
    "either": Sent(_row("either", 12), 12 * HOUR, 13 * HOUR),
    "old": Sent(_row("old", 9), 11 * HOUR, 11 * HOUR),
    "odd": Sent(_row("odd", 12, 0), 11 * HOUR, 11 * HOUR),
}


def _table(name: str, place: str = MAIN, hour: int = 12, euros: int = 6) -> Entry:
    return RULES.entry((place, hour * HOUR), {**_row(name, hour), "euros": euros})


def _kept_out(name: str, reason: str) -> Entry:
    return RULES.kept_out(SENT[name].row, reason)


HONEST = Counter(
    [
        _table("a"), _table("late", LATE), _table("either", LATE),
        _kept_out("old", TOO_OLD), _kept_out("odd", "no price"),
    ]
)  # fmt: skip


def test_a_row_is_in_its_table_in_that_of_late_rows_or_rejected() -> None:
    assert [*problems(RULES, SENT, HONEST)] == []
    # While an hour is closed, a row of it may come in time.
    other = HONEST - Counter([_table("either", LATE)]) + Counter([_table("either")])
    assert [*problems(RULES, SENT, other)] == []


def test_a_late_row_may_have_to_be_rejected() -> None:
    rules = Rules(**{**vars(RULES), "late_is_rejected": True})
    sent = {"late": SENT["late"]}
    assert [*problems(rules, sent, Counter([_kept_out("late", TOO_LATE)]))] == []
    assert [*problems(rules, sent, Counter([_table("late", LATE)]))]


@pytest.mark.parametrize(
    ("name", "moved"),
    [
        pytest.param("a", lambda: _kept_out("a", TOO_LATE), id="rejected for no reason"),
        pytest.param("a", lambda: _table("a", LATE), id="in time, and with the late ones"),
        pytest.param("late", lambda: _table("late"), id="late, and in the table that was shown"),
        pytest.param("a", lambda: _table("a", euros=7), id="with another value"),
        pytest.param("a", lambda: _table("a", hour=13), id="in the table of another hour"),
        pytest.param("old", lambda: _table("old", hour=9), id="of no period, in a table"),
        pytest.param("old", lambda: _kept_out("old", TOO_LATE), id="for another reason"),
        pytest.param("odd", lambda: _table("odd", euros=0), id="to be rejected, in a table"),
    ],
)
def test_a_row_that_is_elsewhere_is_seen(name: str, moved: Callable[[], Entry]) -> None:
    own = [entry for entry in HONEST if f"'{name}'" in entry[1]]
    found = HONEST - Counter(own) + Counter([moved()])
    lacking, extra = problems(RULES, SENT, found)
    assert lacking.startswith(f"{name} is not where")
    assert extra.startswith("1 rows are where none")


def test_rows_that_are_lost_or_repeated_are_seen() -> None:
    (said,) = problems(RULES, SENT, HONEST - Counter([_table("a")]))
    assert said.startswith("a is not where")
    (said,) = problems(RULES, SENT, HONEST + Counter([_table("a")]))
    assert said.startswith("1 rows are where none")
