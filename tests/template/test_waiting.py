"""The wait of all tests: when it ends, and what it says."""

from __future__ import annotations

import pytest

from tests.support.waiting import eventually


def test_what_ends_may_bring_it_about_by_its_end() -> None:
    done: list[str] = []

    def runs() -> bool:
        done.append("the last line")
        return False

    assert eventually(lambda: done, meanwhile=runs) == ["the last line"]


def test_a_wait_for_what_has_ended_fails_at_once_and_says_what_it_said() -> None:
    with pytest.raises(SystemExit, match=r"cannot come any more: a batch\nexit code 1$"):
        eventually(
            lambda: False,
            what="a batch",
            meanwhile=lambda: False,
            said=lambda: "exit code 1",
            error=SystemExit,
        )


def test_a_wait_is_over_in_time() -> None:
    with pytest.raises(AssertionError, match=r"^not in 0 s: a batch$"):
        eventually(lambda: False, 0, what="a batch", pause=0)
