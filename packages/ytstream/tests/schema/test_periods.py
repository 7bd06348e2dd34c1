"""Periods of archives: which one a row is of, when it is complete, and its name; pure values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ytstream import Daily, Every, Hourly, days, minutes
from ytstream.schema.periods import (
    Archive,
    Group,
    Piece,
    Staged,
    begin_of,
    group_in,
    group_of,
    grouped,
    moment,
    named,
    problems,
    second_of,
)

HOUR = 3_600


def at(text: str) -> int:
    return second_of(datetime.fromisoformat(text).replace(tzinfo=UTC))


def test_a_period_is_named_by_its_beginning_in_utc() -> None:
    hourly = Hourly("date_time")
    assert named(hourly.begin(at("2026-11-29T19:59:59"))) == "2026-11-29T19:00:00Z"
    assert named(hourly.begin(at("2026-11-29T20:00:00"))) == "2026-11-29T20:00:00Z"
    assert named(hourly.begin(-1)) == "1969-12-31T23:00:00Z"
    assert named(Daily("date_time").begin(at("2026-11-29T23:59:59"))) == "2026-11-29T00:00:00Z"
    quarter = Every(minutes(15), "date_time")
    assert named(quarter.begin(at("2026-11-29T19:44:59"))) == "2026-11-29T19:30:00Z"


def test_names_sort_as_the_periods_and_can_be_read() -> None:
    names = [named(begin, part) for begin in (0, HOUR, at("2026-11-29T19:00:00")) for part in
             (1, 2, 3)]  # fmt: skip
    assert sorted(names) == names
    assert begin_of("2026-11-29T19:00:00Z-2") == (at("2026-11-29T19:00:00"), 2)
    for other in ("by-hand", "2026-13-29T19:00:00Z", "00000007-0000000012", "2026-11-29"):
        assert begin_of(other) is None


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25", "2026-11-01"])
def test_a_day_on_which_clocks_change_has_24_periods(day: str) -> None:
    """In Europe and in America; all is in UTC."""
    first = at(f"{day}T00:00:00")
    hours = {Hourly("date_time").begin(second) for second in range(first, first + 24 * HOUR, 60)}
    assert len({named(hour) for hour in hours}) == 24
    assert Daily("date_time").begin(first + 24 * HOUR - 1) == first


def test_a_period_is_complete_once_its_late_rows_can_come_no_more() -> None:
    archive = Hourly("date_time", lateness=minutes(10))
    assert archive.closed_by(at("2026-11-29T20:09:59")) == at("2026-11-29T19:00:00")
    assert archive.closed_by(at("2026-11-29T20:10:00")) == at("2026-11-29T20:00:00")
    exact = Hourly("date_time", lateness=minutes(0))
    assert exact.closed_by(at("2026-11-29T20:00:00")) == at("2026-11-29T20:00:00")


def test_a_bad_clock_makes_no_tables() -> None:
    archive, now = Hourly("date_time", keep=days(30)), at("2026-11-29T19:30:00")
    assert archive.newest(now) == at("2026-11-29T20:00:00")
    assert archive.oldest(now) == at("2026-10-30T19:00:00")
    assert Hourly("date_time").oldest(now) == 0
    assert archive.expires(archive.begin(now) + 3_600) == datetime(2026, 12, 29, 20, tzinfo=UTC)
    assert Hourly("date_time").expires(0) is None


def test_late_rows_go_with_the_period_that_is_open() -> None:
    in_time = group_of(2 * HOUR, HOUR, closed=2 * HOUR)
    assert in_time == Group(3 * HOUR, 2 * HOUR, HOUR)
    late = group_of(HOUR, HOUR, closed=2 * HOUR)
    assert late == Group(3 * HOUR, HOUR, HOUR)
    assert group_in(late.folder) == late
    assert not late.is_due(2 * HOUR, 0)
    assert late.is_due(3 * HOUR, 0)
    assert late.is_due(0, 1)  # the columns have changed: no batch adds to it
    early = group_of(5 * HOUR, HOUR, closed=2 * HOUR)
    assert early.due == 6 * HOUR


def test_tables_are_made_in_order() -> None:
    def staged(due: int, begin: int, number: int) -> Staged:
        return Staged("output", Group(due, begin, HOUR), Piece("//p", "1-2", 1, 1), number)

    pieces = [staged(7200, 3600, 3), staged(7200, 0, 4), staged(3600, 0, 1), staged(7200, 3600, 2)]
    found = [(g.due, g.begin, [one.number for one in own]) for g, own in grouped(pieces).items()]
    assert found == [(3600, 0, [1]), (7200, 0, [4]), (7200, 3600, [2, 3])]


@pytest.mark.parametrize(
    ("archive", "said"),
    [
        (Hourly(7), "by=7: wanted the name of a column"),  # type: ignore[arg-type]
        (Hourly("t", late="drop"), "late='drop': wanted"),
        (Hourly("t", keep=30), "keep=30: wanted minutes(...) or days(...)"),  # type: ignore[arg-type]
        (Every(60, "t"), "period=60: wanted minutes"),  # type: ignore[arg-type]
        (Every(minutes(7), "t"), "periods must divide a day"),
        (Every(minutes(0.5), "t"), "less than a minute"),
        (Every(days(1.5), "t"), "periods must divide a day"),
        (Hourly("t", lateness=minutes(-1)), "lateness is negative"),
        (Daily("t", keep=minutes(30)), "keep is shorter than a period"),
    ],
)
def test_what_an_archive_may_not_be(archive: Archive, said: str) -> None:
    assert any(said in problem for problem in problems(archive))


@pytest.mark.parametrize("given", [minutes(15), timedelta(hours=6), days(1), days(7)])
def test_what_an_archive_may_be(given: Any) -> None:
    assert [*problems(Every(given, "t", keep=days(30), late="reject"))] == []
    assert [*problems(Hourly(keep=days(30)))] == []
    assert moment(0) == datetime(1970, 1, 1, tzinfo=UTC)
