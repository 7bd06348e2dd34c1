"""Which tables of a reference nobody needs any more: without a cluster."""

from __future__ import annotations

from typing import Any

from ytstream.cluster.built_reference import TIMESTAMP, UNUSED
from ytstream_tools.reference.places import KEEP_SECONDS, Places

LINK = "//home/titles"
NOW = 1_000_000 << 30
BUILT = {TIMESTAMP: 1}


def _unused(seconds: int) -> dict[str, Any]:
    return {**BUILT, UNUSED: NOW - (seconds << 30)}


def _gone(target: str | None, *, by_hand: bool = False, **tables: Any) -> list[str]:
    return [table for table, _ in Places(LINK, target, not by_hand, tables).leftovers(NOW)]


def test_a_table_goes_an_hour_after_its_use_has_ended() -> None:
    tables: Any = {f"{number}": _unused(60 * number) for number in range(100)}
    assert _gone("0", **tables) == [f"{number}" for number in range(60, 100)]


def test_the_table_of_the_link_stays() -> None:
    """Somebody has switched the link to it again."""
    assert _gone("a", a=_unused(9 * KEEP_SECONDS)) == []


def test_a_table_that_was_not_finished_goes_at_once() -> None:
    assert _gone("a", a=BUILT, unfinished={}) == ["unfinished"]
    assert _gone(None, by_hand=True, unfinished={}) == ["unfinished"]


def test_after_a_switch_by_hand_no_finished_table_goes() -> None:
    for target in ("a", "//home/by-hand", None):
        assert _gone(target, by_hand=True, a=BUILT, b=_unused(9 * KEEP_SECONDS), c=BUILT) == []


def test_a_switch_ends_the_use_of_the_former_table() -> None:
    tables: Any = {"a": _unused(60), "b": BUILT, "new": {}}
    assert [*Places(LINK, "b", True, tables).freed()] == ["b"]
    assert [*Places(LINK, "a", True, tables).freed()] == ["a", "b"]


def test_after_a_switch_by_hand_the_next_one_may_end_the_use_of_all() -> None:
    tables: Any = {"a": _unused(9 * KEEP_SECONDS), "b": BUILT, "new": {}}
    for target in ("a", "b", "//home/by-hand", None):
        assert [*Places(LINK, target, False, tables).freed()] == ["a", "b"]
