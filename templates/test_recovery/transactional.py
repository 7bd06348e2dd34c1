"""recovery.decide(): every state a start can find, and what it does about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from conftest import CONFIG, Module

QUEUE = "//home/q"


def _settings(module: Module, **changes: Any) -> Any:
    paths = {"consumer": "//home/c", "output": "//home/o", "checkpoint": "//home/k"}
    return replace(module("settings").load(CONFIG, {}), queues=(QUEUE,), **paths, **changes)


def _positions(
    module: Module,
    *,
    lower: tuple[int, ...] = (0, 0),
    upper: tuple[int, ...] = (100, 100),
    consumed: dict[int, int] | None = None,
    planned: dict[int, dict[int, int]] | None = None,
    committed: set[int] = frozenset(),  # type: ignore[assignment]
    has_run: bool = True,
) -> Any:
    positions, checkpoint = module("positions"), module("checkpoint")
    marker = {"job": "x"} if has_run else None
    return positions.Positions(
        (positions.Queue(QUEUE, "1-2-3-4", lower, upper, consumed or {}),),
        checkpoint.Checkpoint(
            tuple(checkpoint.Planned(n, (ends,), {}) for n, ends in (planned or {}).items()),
            frozenset(committed),
        ),
        marker,
        marker,
    )


def _decide(module: Module, positions: Any, **changes: Any) -> Any:
    return module("recovery").decide(positions, _settings(module, **changes))


def _refusal(module: Module, positions: Any, **changes: Any) -> str:
    with pytest.raises(module("errors").JobError) as caught:
        _decide(module, positions, **changes)
    return str(caught.value)


def test_a_new_consumer_starts_at_the_first_rows_there_are(module: Module) -> None:
    decision = _decide(module, _positions(module, lower=(10, 0), has_run=False))
    assert decision.advance == {(QUEUE, 0): 10}


def test_a_clean_stop_needs_nothing(module: Module) -> None:
    positions = _positions(
        module, consumed={0: 20}, planned={0: {0: 10}, 1: {0: 20}}, committed={0, 1}
    )
    assert _decide(module, positions) == module("repairs").Decision()


def test_a_commit_without_its_transaction_is_taken_back(module: Module) -> None:
    positions = _positions(
        module, consumed={0: 10}, planned={0: {0: 10}, 1: {0: 20}}, committed={0, 1}
    )
    decision = _decide(module, positions)
    assert decision.uncommit == 1
    assert decision.advance == {}


def test_a_transaction_without_its_commit_is_entered(module: Module) -> None:
    positions = _positions(
        module, consumed={0: 20}, planned={0: {0: 10}, 1: {0: 20}}, committed={0}
    )
    decision = _decide(module, positions)
    assert decision.commit.batch == 1
    assert decision.uncommit is None


def test_a_batch_that_never_committed_runs_again(module: Module) -> None:
    positions = _positions(
        module, consumed={0: 10}, planned={0: {0: 10}, 1: {0: 20}}, committed={0}
    )
    assert _decide(module, positions) == module("repairs").Decision()


@pytest.mark.parametrize(
    ("planned", "consumed"),
    [({0: {}}, {}), ({0: {0: 0, 1: 0}}, {}), ({0: {0: 10}, 1: {0: 10}}, {0: 10})],
    ids=["no queue has rows", "no rows yet", "windows alone"],
)
def test_a_batch_without_rows_is_not_entered_nobody_knows_whether_it_happened(
    module: Module, planned: dict[int, dict[int, int]], consumed: dict[int, int]
) -> None:
    positions = _positions(
        module, consumed=consumed, planned=planned, committed={*planned} - {max(planned)}
    )
    assert _decide(module, positions) == module("repairs").Decision()


@pytest.mark.parametrize("committed", [{0}, {0, 1}])
@pytest.mark.parametrize("row", [5, 15, 25])
def test_a_consumer_moved_by_hand_is_refused(module: Module, committed: set[int], row: int) -> None:
    positions = _positions(
        module, consumed={0: row}, planned={0: {0: 10}, 1: {0: 20}}, committed=committed
    )
    assert f"is at row {row}" in _refusal(module, positions)


def test_trimmed_rows_are_refused_with_the_exact_gap(module: Module) -> None:
    positions = _positions(
        module, lower=(25, 0), consumed={0: 20}, planned={1: {0: 20}}, committed={1}
    )
    assert "partition 0, rows 20 to 24" in _refusal(module, positions)


def test_trimmed_rows_are_skipped_on_demand_in_the_checkpoint_too(module: Module) -> None:
    positions = _positions(
        module, lower=(25, 0), consumed={0: 20, 1: 7}, planned={1: {0: 20, 1: 7}}, committed={1}
    )
    decision = _decide(module, positions, on_data_loss="skip")
    assert decision.advance == {(QUEUE, 0): 25, (QUEUE, 1): 7}
    planned, ends = decision.rebase
    assert (planned.batch, list(ends)) == (1, [{0: 25, 1: 7}])


def test_a_queue_with_fewer_tablets_than_were_read_is_refused(module: Module) -> None:
    positions = _positions(
        module,
        lower=(0,),
        upper=(40,),
        consumed={0: 20, 1: 20},
        planned={1: {0: 20, 1: 20}},
        committed={1},
    )
    assert "partition 1 ends at row 0" in _refusal(module, positions)


def test_a_checkpoint_without_its_offset_log_is_refused(module: Module) -> None:
    assert "no offset log" in _refusal(module, _positions(module, committed={0}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"job": "another"}, "belongs to another job"),
        ({"guarantee": "another"}, "was written under guarantee"),
        ({"queues": [{"path": "//home/other", "id": "1-2-3-4"}]}, "the configuration names"),
        ({"queues": [{"path": QUEUE, "id": "9-9-9-9"}]}, "was dropped and made again"),
    ],
)
def test_what_belongs_elsewhere_is_refused(
    module: Module, change: dict[str, Any], said: str
) -> None:
    marker, settings = module("marker"), _settings(module)
    positions = _positions(module)
    mine = marker.wanted(positions.queues, settings)
    marker.verify(replace(positions, checkpoint_marker=mine, consumer_marker=mine), settings)
    with pytest.raises(module("errors").JobError, match=said):
        marker.verify(
            replace(positions, checkpoint_marker={**mine, **change}, consumer_marker=mine), settings
        )
