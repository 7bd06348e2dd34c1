"""before_start.decide(): every state that a start can find, and the decision; no cluster."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

import pytest

from tests.ytstream.helpers import refusal, unconnected
from ytstream.job import Connection
from ytstream.positions import Checkpoint, Planned, Queue, Snapshot
from ytstream.recovery.before_start import decide
from ytstream.recovery.decision import Decision
from ytstream.recovery.ownership import marker_of, verify_owner

QUEUE = "//home/job/queue-0"

#: (guarantee, processing) that decide alike; those of one guarantee differ in state alone.
TRANSACTIONAL = [("transactional", "map"), ("transactional", "window")]
REPLAYING = [("at_least_once", "map"), ("at_least_once", "window"), ("idempotent", "map")]
ALL = [*TRANSACTIONAL, *REPLAYING]
STATELESS = [("transactional", "map"), ("at_least_once", "map"), ("idempotent", "map")]

for_transactional = pytest.mark.parametrize(("guarantee", "processing"), TRANSACTIONAL)
for_replaying = pytest.mark.parametrize(("guarantee", "processing"), REPLAYING)
for_all = pytest.mark.parametrize(("guarantee", "processing"), ALL)
for_stateless = pytest.mark.parametrize(("guarantee", "processing"), STATELESS)


def _found(
    *,
    lower: tuple[int, ...] = (0, 0),
    upper: tuple[int, ...] = (100, 100),
    consumed: Mapping[int, int] | None = None,
    planned: Mapping[int, Mapping[int, int]] | None = None,
    committed: Set[int] = frozenset(),
    has_run: bool = True,
) -> Snapshot:
    marker = {"job": "x"} if has_run else None
    return Snapshot(
        (Queue(QUEUE, "1-2-3-4", lower, upper, consumed or {}),),
        Checkpoint(
            tuple(Planned(number, (ends,), {}) for number, ends in (planned or {}).items()),
            frozenset(committed),
        ),
        marker,
        marker,
    )


def _connection(guarantee: str, processing: str, **changes: Any) -> Connection:
    connection = unconnected(guarantee, processing)
    return replace(connection, settings=replace(connection.settings, **changes))


def _decide(pair: tuple[str, str], found: Snapshot, **changes: Any) -> Decision:
    return decide(_connection(*pair, **changes), found)


def _refusal(pair: tuple[str, str], found: Snapshot, **changes: Any) -> str:
    return refusal(lambda: _decide(pair, found, **changes))


@for_all
def test_a_new_consumer_starts_at_the_first_rows_there_are(guarantee: str, processing: str) -> None:
    decision = _decide((guarantee, processing), _found(lower=(10, 0), has_run=False))
    assert decision.advance == {(QUEUE, 0): 10}
    assert decision.rebase is None
    assert decision.notes == (f"new consumer: {QUEUE} from its earliest rows, by partition 10, 0",)


@for_all
def test_a_new_consumer_may_start_at_the_end(guarantee: str, processing: str) -> None:
    found = _found(upper=(70, 0), has_run=False)
    decision = _decide((guarantee, processing), found, start_from="latest")
    assert decision.advance == {(QUEUE, 0): 70}


@for_all
def test_start_from_is_for_new_consumers_alone(guarantee: str, processing: str) -> None:
    found = _found(consumed={0: 5}, has_run=False)
    assert _decide((guarantee, processing), found, start_from="latest").advance == {}


@pytest.mark.parametrize(
    ("guarantee", "consumed"), [("transactional", 20), ("idempotent", 10), ("at_least_once", 10)]
)
def test_a_clean_stop_needs_nothing(guarantee: str, consumed: int) -> None:
    found = _found(consumed={0: consumed}, planned={0: {0: 10}, 1: {0: 20}}, committed={0, 1})
    assert _decide((guarantee, "map"), found) == Decision()


@for_all
def test_a_batch_that_never_committed_needs_nothing_since_spark_runs_it_again(
    guarantee: str, processing: str
) -> None:
    found = _found(consumed={0: 10}, planned={0: {0: 10}, 1: {0: 20}}, committed={0})
    assert _decide((guarantee, processing), found) == Decision()


@for_transactional
def test_a_commit_without_its_transaction_is_removed(guarantee: str, processing: str) -> None:
    found = _found(consumed={0: 10}, planned={0: {0: 10}, 1: {0: 20}}, committed={0, 1})
    decision = _decide((guarantee, processing), found)
    assert decision.uncommit == 1
    assert decision.advance == {}
    assert "the batch will run again" in decision.notes[0]


@for_transactional
def test_a_transaction_without_its_commit_is_added(guarantee: str, processing: str) -> None:
    found = _found(consumed={0: 20}, planned={0: {0: 10}, 1: {0: 20}}, committed={0})
    decision = _decide((guarantee, processing), found)
    assert decision.commit is not None
    assert decision.commit.batch == 1
    assert decision.uncommit is None
    assert "it will not run again" in decision.notes[0]


@for_transactional
@pytest.mark.parametrize(
    ("planned", "consumed"),
    [({0: {}}, {}), ({0: {0: 0, 1: 0}}, {}), ({0: {0: 10}, 1: {0: 10}}, {0: 10})],
    ids=["no queue has rows", "no rows yet", "windows alone"],
)
def test_an_empty_batch_is_not_added_to_the_log(
    guarantee: str,
    processing: str,
    planned: dict[int, dict[int, int]],
    consumed: dict[int, int],
) -> None:
    """Nothing on the cluster shows whether such a batch committed."""
    found = _found(consumed=consumed, planned=planned, committed={*planned} - {max(planned)})
    assert _decide((guarantee, processing), found) == Decision()


@for_transactional
@pytest.mark.parametrize("committed", [{0}, {0, 1}])
@pytest.mark.parametrize("row", [5, 15, 25])
def test_a_consumer_at_neither_end_of_the_batch_is_refused(
    guarantee: str, processing: str, committed: set[int], row: int
) -> None:
    found = _found(consumed={0: row}, planned={0: {0: 10}, 1: {0: 20}}, committed=committed)
    assert f"is at row {row}" in _refusal((guarantee, processing), found)


@for_replaying
def test_a_consumer_ahead_of_the_checkpoint_is_refused(guarantee: str, processing: str) -> None:
    found = _found(consumed={0: 30}, planned={1: {0: 20}}, committed={1})
    text = _refusal((guarantee, processing), found)
    assert "partition 0: consumer at row 30, checkpoint at 20" in text


@for_all
def test_trimmed_rows_are_refused_with_the_exact_gap(guarantee: str, processing: str) -> None:
    consumed = 20 if guarantee == "transactional" else 10
    found = _found(lower=(25, 0), consumed={0: consumed}, planned={1: {0: 20}}, committed={1})
    text = _refusal((guarantee, processing), found)
    assert "5 rows" in text
    assert "partition 0, rows 20 to 24" in text
    assert 'they cannot be recovered; set on_data_loss = "skip"' in text


@for_transactional
def test_trimmed_rows_are_skipped_on_demand_in_consumer_and_checkpoint(
    guarantee: str, processing: str
) -> None:
    found = _found(lower=(25, 0), consumed={0: 20, 1: 7}, planned={1: {0: 20, 1: 7}}, committed={1})
    decision = _decide((guarantee, processing), found, on_data_loss="skip")
    assert decision.advance == {(QUEUE, 0): 25, (QUEUE, 1): 7}
    assert decision.rebase is not None
    planned, ends = decision.rebase
    assert (planned.batch, list(ends)) == (1, [{0: 25, 1: 7}])


@for_replaying
def test_trimmed_rows_are_skipped_on_demand_and_nothing_repeats(
    guarantee: str, processing: str
) -> None:
    found = _found(lower=(25, 0), consumed={0: 10, 1: 3}, planned={1: {0: 20, 1: 7}}, committed={1})
    decision = _decide((guarantee, processing), found, on_data_loss="skip")
    # Partition 1 goes to where the checkpoint was, not to the consumer's older row.
    assert decision.advance == {(QUEUE, 0): 25, (QUEUE, 1): 7}
    assert decision.rebase is not None


@pytest.mark.parametrize(
    ("guarantee", "committed"),
    [("transactional", {0, 1}), ("transactional", {0}), ("at_least_once", {0})],
    ids=["removed from the log", "transactional", "at_least_once"],
)
def test_a_gap_inside_a_batch_that_was_cut_off_has_it_planned_anew(
    guarantee: str, committed: set[int]
) -> None:
    found = _found(
        lower=(15, 0), consumed={0: 10}, planned={0: {0: 10}, 1: {0: 20}}, committed=committed
    )
    decision = _decide((guarantee, "map"), found, on_data_loss="skip")
    assert decision.unplan == 1
    assert decision.rebase is not None
    assert decision.rebase[0].batch == 0


@for_replaying
def test_the_batch_that_was_cut_off_counts_from_its_beginning(
    guarantee: str, processing: str
) -> None:
    found = _found(lower=(15, 0), consumed={0: 10}, planned={0: {0: 10}, 1: {0: 20}}, committed={0})
    assert "partition 0, rows 10 to 14" in _refusal((guarantee, processing), found)


@for_replaying
def test_a_queue_shorter_than_the_offsets_is_refused(guarantee: str, processing: str) -> None:
    found = _found(upper=(15, 0), planned={1: {0: 20}}, committed={1})
    text = _refusal((guarantee, processing), found)
    assert "ends at row 15" in text
    assert "the queue or its tablets were recreated" in text


@for_replaying
def test_a_partition_that_came_later_starts_at_its_first_row(
    guarantee: str, processing: str
) -> None:
    found = _found(lower=(0, 0, 0), upper=(20, 20, 5), planned={1: {0: 20, 1: 20}}, committed={1})
    assert _decide((guarantee, processing), found) == Decision()


@for_all
def test_a_queue_with_fewer_tablets_than_were_read_is_refused(
    guarantee: str, processing: str
) -> None:
    found = _found(
        lower=(0,),
        upper=(40,),
        consumed={0: 20, 1: 20},
        planned={1: {0: 20, 1: 20}},
        committed={1},
    )
    assert "partition 1 ends at row 0" in _refusal((guarantee, processing), found)


@for_all
def test_a_checkpoint_without_its_offset_log_is_refused(guarantee: str, processing: str) -> None:
    assert "no offset log" in _refusal((guarantee, processing), _found(committed={0}))


@for_stateless
def test_a_lost_checkpoint_without_state_is_said(guarantee: str, processing: str) -> None:
    decision = _decide((guarantee, processing), _found(consumed={0: 10}))
    assert "is gone: continuing from the consumer" in decision.notes[0]


@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_a_lost_checkpoint_with_state_is_refused(guarantee: str) -> None:
    text = _refusal((guarantee, "window"), _found(consumed={0: 10}))
    assert "the state with it, after 10 rows" in text
    assert "rewind" in text


@for_all
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"job": "another"}, "belongs to another job"),
        ({"output": "//home/other"}, "belongs to another job"),
        ({"processing": "another"}, "belongs to another job"),
        ({"guarantee": "another"}, "was written under guarantee"),
        ({"queues": [{"path": "//home/other", "id": "1-2-3-4"}]}, "the configuration names"),
        ({"queues": [{"path": QUEUE, "id": "9-9-9-9"}]}, "was dropped and recreated"),
    ],
)
@pytest.mark.parametrize("where", ["checkpoint", "consumer"])
def test_objects_of_another_job_are_refused(
    guarantee: str, processing: str, change: dict[str, Any], said: str, where: str
) -> None:
    connection, found = _connection(guarantee, processing), _found()
    mine = marker_of(connection, found.queues)
    owned = replace(found, checkpoint_marker=mine, consumer_marker=mine)
    verify_owner(connection, owned)
    marked: dict[str, Any] = {f"{where}_marker": {**mine, **change}}
    assert said in refusal(lambda: verify_owner(connection, replace(owned, **marked)))
