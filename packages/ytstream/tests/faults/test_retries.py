"""Tasks that Spark starts again inside a transaction: with the job's fixes, and without them.

A failed attempt has sent part of its rows into the batch's transaction already.
"""

from __future__ import annotations

import pytest

from tests.support.task_retries import play

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.mark.thorough
def test_a_write_fails_once() -> None:
    """``local[2,4]`` overrides the limit in the settings, so the fence is the only fix left."""
    fenced, bare = play("write", "fence", "none")
    assert "fence" in fenced["failure"]
    assert (fenced["lost"], fenced["duplicated"]) == (0, 0)
    assert (bare["lost"], bare["failure"]) == (0, "")
    assert bare["duplicated"] > 0


@pytest.mark.journey  # in `make test`: a failed write, above, and what happens without the fence
@pytest.mark.parametrize("fault", ["executor", "worker"])
@pytest.mark.parametrize("fix", ["all", "fence", "none"])
def test_executors_die_while_they_write(fault: str, fix: str) -> None:
    """Of processes. Where a machine is gone, Spark starts its task again whatever it may fail."""
    (result,) = play(fault, fix)
    assert result["lost"] == 0
    if fix == "none":
        assert not result["failure"]
        assert result["duplicated"] > 0
    else:
        assert result["failure"]
        assert result["duplicated"] == 0


@pytest.mark.journey
@pytest.mark.parametrize(("fix", "said"), [("all", "shuffle_"), ("fence", "fence: ")])
def test_rows_prepared_for_other_tasks_are_gone(fix: str, said: str) -> None:
    """Spark calls it a fetch failure, and runs both stages again unless a setting forbids it."""
    (result,) = play("fetch", fix)
    assert said in result["failure"]
    assert (result["lost"], result["duplicated"]) == (0, 0)
