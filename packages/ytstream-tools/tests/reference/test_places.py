"""Which tables of a reference nobody needs any more: without a cluster."""

from __future__ import annotations

from ytstream_tools.reference.places import KEEP_SECONDS, Places

LINK = "//home/titles"
NOW = 1_000_000 << 30


def _ago(seconds: int) -> int:
    return NOW - (seconds << 30)


def _gone(target: str | None, **tables: int | None) -> list[str]:
    return [table for table, _ in Places(LINK, target, tables).leftovers(NOW)]


def test_the_table_of_the_link_and_one_that_was_replaced_just_now_stay() -> None:
    assert _gone("b", a=_ago(9 * KEEP_SECONDS), b=_ago(60)) == []
    found = Places(LINK, "b", {"a": _ago(9 * KEEP_SECONDS), "b": _ago(60)})
    assert [*found.kept(NOW)] == ["a"]


def test_a_table_goes_an_hour_after_the_next_one_has_replaced_it() -> None:
    assert _gone("b", a=_ago(9 * KEEP_SECONDS), b=_ago(KEEP_SECONDS)) == ["a"]


def test_references_that_are_built_each_minute_do_not_pile_up() -> None:
    tables = {f"{number}": _ago(60 * number) for number in range(100)}
    assert _gone("0", **tables) == [f"{number}" for number in range(61, 100)]


def test_what_a_killed_building_has_left_goes_at_once() -> None:
    """Without a mark it was not finished; newer than the link's, it was never linked."""
    assert _gone("a", a=_ago(60), unfinished=None, unlinked=_ago(30)) == ["unfinished", "unlinked"]
    assert _gone(None, unlinked=_ago(30)) == ["unlinked"]


def test_of_a_link_to_a_table_of_somebody_else_the_own_ones_stay_for_an_hour() -> None:
    assert _gone("//home/by-hand", a=_ago(60), b=_ago(9 * KEEP_SECONDS)) == []
    assert _gone("//home/by-hand", a=_ago(KEEP_SECONDS), b=_ago(9 * KEEP_SECONDS)) == ["a", "b"]
