"""A start on the cluster: from wherever a driver died, each row is read exactly once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from minicluster.testing import Running
from tests.support import without_fix
from tests.support.helpers import (
    MIGRATED,
    STRIDES,
    DriverOf,
    cut_off_at_writes,
    refusal,
    refusal_code,
    sampled,
)
from tests.support.simulated_driver import STEPS, Driver, write
from tests.support.verdict import EXACT, Verdict
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import positions
from ytstream.ledger.positions import MARKER
from ytstream.provisioning import job_objects
from ytstream.recovery.state_check import with_state_store

pytestmark = pytest.mark.spark  # it needs Spark's JVM, though no session

KINDS = [
    *(("transactional", "map"), ("transactional", "window")),
    *(("at_least_once", "map"), ("at_least_once", "window"), ("idempotent", "map")),
]
for_all = pytest.mark.parametrize(("guarantee", "processing"), KINDS)
for_stateful = pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
for_each = pytest.mark.parametrize("guarantee", ["transactional", "idempotent", "at_least_once"])


def _consumed(driver: Driver) -> list[dict[int, int]]:
    return [dict(q.consumed) for q in positions.read(driver.client, driver.settings).queues]


def _move(driver: Driver, rows: int) -> None:
    """Move the consumer by hand on the first queue."""
    for partition, row in _consumed(driver)[0].items():
        driver.client.advance_queue_consumer(
            driver.settings.consumer, driver.settings.queues[0], partition, None, row + rows
        )


def _trim(driver: Driver, left: int) -> None:
    """Trim partition 1 of the first queue to its last rows."""
    queue = positions.read(driver.client, driver.settings).queues[0]
    driver.client.trim_rows(queue.path, 1, queue.upper[1] - left)


# -- the first start, and the next ones ----------------------------------------------------------


@pytest.mark.parametrize(("start_from", "rows"), [("earliest", {1: 2}), ("latest", {0: 3, 1: 3})])
@for_each
def test_a_first_start_begins_where_the_configuration_says(
    driver_of: DriverOf, guarantee: str, start_from: str, rows: dict[int, int]
) -> None:
    driver = driver_of(guarantee)
    driver.send(3)
    _trim(driver, 1)
    driver.configure(start_from=start_from)
    assert f"from its {start_from} rows" in driver.start()[0]
    assert _consumed(driver) == [rows]
    assert driver.client.get(f"{driver.settings.consumer}/@{MARKER}") == {
        "job": "map-of-bids",
        "ledger": driver.settings.ledger,
    }
    assert driver.start(new_process=True) == []


@for_all
def test_wherever_a_driver_died_each_row_is_read_once(
    driver_of: DriverOf, guarantee: str, processing: str
) -> None:
    """SPYT removes ``commits/N`` when it has no answer to the commit ("reply lost")."""
    driver = driver_of(guarantee, processing)
    driver.start()
    for step in (None, *STEPS[True], "offsets", "reply lost", *reversed(STEPS[True])):
        assert driver.start(new_process=True) == []
        driver.send(2)
        driver.batch(step if step in STEPS[True] else None)
        if step == "reply lost":
            newest = max(driver.client.list(f"{driver.folder}/commits"), key=int)
            driver.client.remove(f"{driver.folder}/commits/{newest}")
    driver.start(new_process=True)
    for _ in range(2):
        driver.batch()
    assert driver.outcome() == EXACT


@for_all
def test_trimmed_rows_are_refused_or_skipped_and_nothing_repeats(
    driver_of: DriverOf, guarantee: str, processing: str
) -> None:
    driver = driver_of(guarantee, processing)
    driver.run(3)
    driver.send(3)
    driver.batch("state")
    if processing == "window":  # Spark may have made a snapshot of the state that it had reached
        newest = f"{driver.folder}/state/0/0/2"
        driver.client.copy(f"{newest}.delta", f"{newest}.snapshot")
    _trim(driver, 1)
    text = refusal(lambda: driver.start(new_process=True))
    assert "2 rows of" in text
    assert "partition 1, rows 3 to 4" in text
    driver.configure(on_data_loss="skip")
    assert any("were trimmed" in note for note in driver.start(new_process=True))
    assert driver.start() == []
    driver.send(1)
    for _ in range(2):
        driver.batch()
    assert driver.outcome() == Verdict(lost=2)


@pytest.mark.thorough
@for_stateful
def test_a_gap_before_the_first_batch_is_skipped(driver_of: DriverOf, guarantee: str) -> None:
    driver = driver_of(guarantee, "window")
    driver.send(3)
    driver.start()
    _trim(driver, 1)
    driver.configure(on_data_loss="skip")
    assert any("were trimmed" in note for note in driver.start())
    driver.batch()
    assert driver.outcome() == Verdict(lost=2)


# -- cut off -------------------------------------------------------------------------------------


def _first(driver: Driver) -> None:
    driver.send(3)
    _trim(driver, 1)


def _died_in_a_batch(driver: Driver) -> None:
    driver.run(3)
    driver.send(3)
    driver.batch("commits")


def _trimmed(driver: Driver) -> None:
    driver.run(3)
    driver.send(3)
    driver.batch("state")
    _trim(driver, 1)
    driver.configure(on_data_loss="skip")


def _joined(driver: Driver) -> None:
    driver.configure(queues=driver.settings.queues[1:])
    driver.run(3)
    driver.send(3)
    driver.batch("commits")
    driver.configure(
        queues=(driver.settings.queues[0].replace("e-1", "e-0"), *driver.settings.queues)
    )


def _moved_back(driver: Driver) -> None:
    driver.run(3)
    _move(driver, -2)


@STRIDES
@pytest.mark.parametrize(
    ("guarantee", "processing", "scene"),
    [
        ("at_least_once", "map", _first),
        ("transactional", "window", _died_in_a_batch),
        pytest.param("transactional", "window", _trimmed, marks=pytest.mark.journey),
        ("transactional", "window", _joined),
        ("transactional", "map", _moved_back),
    ],
)
def test_a_start_cut_off_at_any_write_is_made_good_by_the_next(
    driver_of: DriverOf,
    cluster: Running,
    tmp_path: Path,
    guarantee: str,
    processing: str,
    scene: Callable[[Driver], None],
    stride: int,
) -> None:
    driver = driver_of(guarantee, processing, 2 if scene is _joined else 1)
    scene(driver)

    def standing(writes: int) -> tuple[Any, ...]:
        driver.start(new_process=writes % 2 == 0)  # by turns another process and the same one
        return driver.standing()

    cut_off_at_writes(cluster, driver, tmp_path, driver.start, standing, stride)


# -- the consumer --------------------------------------------------------------------------------


@pytest.mark.thorough
@for_each
def test_a_consumer_that_was_moved_forward(driver_of: DriverOf, guarantee: str) -> None:
    """Refused where the consumer moves with the head: a person has moved it then."""
    driver = driver_of(guarantee)
    driver.run(3)
    driver.start()
    driver.send(3)
    _move(driver, 2)
    place = "partition 0: row 5, the ledger has 3"
    if guarantee == "transactional":
        text = refusal(driver.start)
        assert "was moved forward" in text
        assert place in text
        return
    (note,) = driver.start()
    assert f"ahead of the ledger on {driver.settings.queues[0]}, {place}" in note
    assert _consumed(driver) == [{0: 3, 1: 3}]
    driver.batch()
    assert driver.outcome() == EXACT


@for_each
def test_a_consumer_behind_the_ledger_is_moved_there(driver_of: DriverOf, guarantee: str) -> None:
    """Only under `transactional` this is odd: elsewhere an older driver can move it."""
    driver = driver_of(guarantee)
    driver.run(3)
    driver.start()
    _move(driver, -2)
    notes = driver.start(new_process=True)
    assert ["was behind the ledger" in note for note in notes] == [True][: len(notes)]
    assert bool(notes) == (guarantee == "transactional")
    assert _consumed(driver) == [{0: 3, 1: 3}]


@for_each
def test_a_recreated_consumer_is_put_where_the_ledger_is(
    driver_of: DriverOf, guarantee: str
) -> None:
    driver = driver_of(guarantee)
    driver.run(3)
    driver.client.remove(driver.settings.consumer)
    job_objects.provision(driver.context)
    driver.start(new_process=True)
    driver.send(3)
    driver.batch()
    assert driver.outcome() == EXACT


def test_the_consumer_of_another_job_is_refused(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.start()
    driver.redeclare(name="another")
    outputs = {"output": f"{driver.settings.output}-2"}
    driver.configure(ledger=f"{driver.settings.ledger}-2", outputs=outputs)
    job_objects.provision(driver.context)
    assert "belongs to the job 'map-of-bids'" in refusal(lambda: driver.start(new_process=True))


# -- the ledger ----------------------------------------------------------------------------------


def test_a_lost_ledger_is_refused(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.run(3)
    driver.client.remove(driver.settings.ledger)
    job_objects.provision(driver.context)
    for _ in range(2):  # nothing was written that a second look takes for a head
        assert refusal_code(lambda: driver.start(new_process=True)) == ErrorCode.HEAD_LOST


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["consumer", "checkpoint"])
def test_a_job_from_before_1_0_0_is_refused_and_rewind_takes_it_over(
    driver_of: DriverOf, place: str
) -> None:
    """The first versions kept no ledger, and marked consumer and checkpoint without one."""
    driver = driver_of("transactional", "window")
    driver.run(3)
    driver.client.remove(driver.settings.ledger)
    for name in ("consumer", "checkpoint"):
        driver.client.remove(f"{getattr(driver.settings, name)}/@{MARKER}")
    path = getattr(driver.settings, place)
    driver.client.set(f"{path}/@{MARKER}", {"job": driver.context.job.name, "queues": []})
    job_objects.provision(driver.context)
    wanted = f"{path} is of a job that ran before ytstream 1.0.0, without a ledger"
    assert wanted in refusal(lambda: driver.start(new_process=True))
    assert wanted in refusal(driver.migrate)
    places = [f"{q}:{p}=3" for q in driver.settings.queues for p in range(2)]
    driver.rewind("rows", *places)
    driver.start(new_process=True)
    driver.send(1)
    driver.batch()
    assert [(first, end) for _, _, first, end in driver.read()] == [(3, 4), (3, 4)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "another"}, "its job is 'map-of-bids'"),
        ({"guarantee": "at_least_once"}, "guarantee was transactional and is at_least_once now"),
    ],
)
def test_the_ledger_of_another_job_is_refused(
    driver_of: DriverOf, changes: dict[str, Any], said: str
) -> None:
    driver = driver_of("transactional")
    driver.start()
    driver.redeclare(**changes)
    assert said in refusal(lambda: driver.start(new_process=True))


# -- the queues ----------------------------------------------------------------------------------


@pytest.mark.thorough
@for_each
def test_a_new_queue_is_taken_as_it_comes(driver_of: DriverOf, guarantee: str) -> None:
    driver = driver_of(guarantee, "map", 2)
    both = driver.settings.queues
    driver.configure(queues=both[1:])
    driver.run(3)
    driver.configure(queues=both)
    driver.send(3)
    assert driver.start(new_process=True) == [
        f"first read of {both[0]}: from its earliest rows, by partition 0, 0"
    ]
    for _ in range(2):
        driver.batch()
    assert driver.outcome() == EXACT


@pytest.mark.thorough
@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "bare"])
@pytest.mark.parametrize("rows", [0, 3], ids=["empty", "read"])
@for_all
def test_a_removed_queue_is_refused_and_continues_where_it_was_once_it_is_back(
    driver_of: DriverOf,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
    processing: str,
    rows: int,
    fixed: bool,
) -> None:
    """An older driver may move its consumer, which has no offset of a queue that was empty."""
    if not fixed:
        without_fix.forget_removed_queues(monkeypatch)
    driver = driver_of(guarantee, processing, 2)
    both = driver.settings.queues
    driver.configure(start_from="latest")
    driver.run(rows)
    if rows and guarantee != "transactional":
        driver.confirm([{0: 0, 1: 0}] * 2)
    driver.configure(queues=both[1:])
    assert refusal_code(lambda: driver.start(new_process=True)) == ErrorCode.QUEUE_REMOVED
    gone = f"{both[0]} is not read any more; back, it continues where it was"
    assert driver.migrate() == [gone, MIGRATED]
    assert driver.migrate()[0].startswith("nothing to do")
    driver.run(3)
    driver.send(2, both[0])
    driver.configure(queues=both)
    notes = driver.start(new_process=True)
    driver.send(3)
    for _ in range(2):
        driver.batch()
    if fixed:
        assert notes == []
        assert driver.outcome() == EXACT
    else:
        is_exact = rows > 0 and guarantee == "transactional"
        assert (driver.by_ledger() == EXACT) == is_exact


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS[True])
@for_each
def test_a_queue_goes_and_comes_back_wherever_a_driver_died(
    driver_of: DriverOf, guarantee: str, step: str
) -> None:
    driver = driver_of(guarantee, "map", 2)
    both = driver.settings.queues
    driver.run(2)
    driver.send(2)
    driver.batch(step)
    driver.configure(queues=both[1:])
    driver.migrate()
    driver.start(new_process=True)
    driver.send(2)
    driver.batch(step)
    driver.configure(queues=both, start_from="latest")
    driver.start(new_process=True)
    for _ in range(2):
        driver.batch()
    assert driver.outcome() == EXACT


@pytest.mark.thorough
@for_each
def test_a_removed_queue_that_was_recreated_is_refused_once_it_is_back(
    driver_of: DriverOf, guarantee: str
) -> None:
    driver = driver_of(guarantee, "map", 2)
    both = driver.settings.queues
    driver.run(3)
    driver.configure(queues=both[1:])
    driver.migrate()
    driver.client.remove(both[0])
    driver.configure(queues=both)
    job_objects.provision(driver.context)
    driver.send(9, both[0])
    assert refusal_code(lambda: driver.start(new_process=True)) == ErrorCode.QUEUE_RECREATED
    driver.rewind("rows", *(f"{both[0]}:{partition}=0" for partition in (0, 1)))
    driver.start(new_process=True)
    driver.batch()
    assert driver.read()[-2:] == [(both[0], 0, 0, 9), (both[0], 1, 0, 9)]


@pytest.mark.thorough
def test_a_removed_queue_is_none_of_a_batchs_business(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", "map", 2)
    both = driver.settings.queues
    driver.run(3)
    driver.configure(queues=both[1:])
    driver.migrate()
    for partition in (0, 1):
        driver.client.advance_queue_consumer(driver.settings.consumer, both[0], partition, 3, 1)
    driver.run(3, new_process=True)
    driver.configure(queues=both)
    assert "was behind the ledger" in driver.start(new_process=True)[0]
    driver.batch()
    assert driver.outcome() == EXACT


@pytest.mark.thorough
def test_a_removed_queue_comes_back_to_a_job_that_was_at_least_once_when_it_read_it(
    driver_of: DriverOf,
) -> None:
    """There an older driver's late move may leave the consumer beyond a head that was rewound."""
    driver = driver_of("at_least_once", "map", 2)
    both = driver.settings.queues
    driver.run(4)
    driver.rewind("earliest")
    driver.confirm([{0: 4, 1: 4}] * 2)
    driver.redeclare(guarantee="transactional")
    driver.configure(queues=both[1:])
    driver.migrate()
    driver.run(2, new_process=True)
    driver.configure(queues=both)
    assert "the consumer was ahead of the ledger" in driver.start(new_process=True)[0]
    driver.batch()
    assert driver.read()[-2:] == [(both[0], 0, 0, 4), (both[0], 1, 0, 4)]


@pytest.mark.thorough
def test_a_rewind_keeps_a_removed_queue_in_mind(driver_of: DriverOf) -> None:
    driver = driver_of("at_least_once", "map", 2)
    both = driver.settings.queues
    driver.run(3)
    driver.configure(queues=both[1:])
    driver.rewind("latest")
    driver.run(3, new_process=True)
    driver.configure(queues=both, start_from="latest")
    driver.run(3)
    assert driver.outcome() == EXACT


_CHANGES = {
    "one added behind": ("first", "first second"),
    "one added in front": ("second", "first second"),
    "one removed": ("first second", "second"),
    "one renamed": ("first", "second"),
}
"""The queues of a job, before and after; the harness has two, the first in front of the second."""


_DEATHS = (*STEPS[True], None)
_CASES = [*product(("transactional", "at_least_once"), _CHANGES)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "change", "step"),
    sampled(
        [(*case, step) for case in _CASES for step in _DEATHS],
        [(*case, step) for case, step in zip(_CASES, cycle(_DEATHS), strict=False)],
    ),
)
def test_a_state_goes_on_with_other_queues(
    driver_of: DriverOf, guarantee: str, change: str, step: str | None
) -> None:
    """Wherever the driver died: a batch was planned of the queues that it had."""
    driver = driver_of(guarantee, "window", 2)
    names = dict(zip(("first", "second"), driver.settings.queues, strict=True))
    before, after = (tuple(map(names.__getitem__, names_.split())) for names_ in _CHANGES[change])
    driver.configure(queues=before)
    for last_step in (None, None, step):
        driver.start()
        driver.send(2)
        driver.batch(last_step)
    driver.configure(queues=after)
    if not set(before) <= set(after):
        assert refusal_code(lambda: driver.start(new_process=True)) == ErrorCode.QUEUE_REMOVED
        assert driver.migrate()[-1] == MIGRATED
    driver.send(3)
    driver.start(new_process=True)
    driver.batch()
    for _ in range(2):
        driver.start(new_process=True)
        driver.send(1)
        driver.batch()
    assert driver.outcome() == EXACT


@pytest.mark.thorough
@for_stateful
def test_older_rows_of_a_queue_that_joins_a_state_need_consent(
    driver_of: DriverOf, guarantee: str
) -> None:
    driver = driver_of(guarantee, "window", 2)
    first, second = driver.settings.queues
    driver.configure(queues=(second,))
    driver.watermark = 1_704_067_200_000
    driver.run(3)
    driver.send(4, first)
    driver.configure(queues=(first, second))
    before = driver.standing()
    text = refusal(driver.start)
    assert f"{first} joins a state whose watermark is at 2024-01-01 00:00:00 UTC, and " in text
    assert "has 8 rows that the job has not read" in text
    assert driver.standing() == before
    driver.configure(accept=(f"late:{first}",))
    notes = driver.start(new_process=True)
    assert "first read of" in notes[0]
    assert "has 8 rows" in notes[1]
    assert driver.start() == []
    driver.batch()
    assert driver.outcome() == EXACT


def test_a_queue_that_was_read_before_cannot_join_at_its_latest_rows(driver_of: DriverOf) -> None:
    """Earlier versions forgot a removed queue, and its consumer did not."""
    driver = driver_of("transactional", "window", 2)
    first, second = driver.settings.queues
    driver.configure(queues=(second,))
    driver.watermark = 1_704_067_200_000
    driver.run(3)
    driver.send(4, first)
    driver.client.advance_queue_consumer(driver.settings.consumer, first, 0, None, 1)
    driver.configure(queues=(first, second), start_from="latest")
    text = refusal(driver.start)
    assert "has 7 rows that the job has not read" in text
    assert "start_from" not in text


@pytest.mark.thorough
@pytest.mark.parametrize("sent", [0, 4])
def test_a_queue_without_older_rows_joins_a_state_as_it_comes(
    driver_of: DriverOf, sent: int
) -> None:
    driver = driver_of("transactional", "window", 2)
    first, second = driver.settings.queues
    driver.configure(queues=(second,))
    driver.watermark = 1_704_067_200_000
    driver.run(3)
    driver.configure(queues=(first, second))
    if sent:
        driver.send(sent, first)
        driver.configure(start_from="latest")
    assert len(driver.start(new_process=True)) == 1
    driver.send(1)
    driver.batch()
    assert driver.outcome() == Verdict(lost=2 * sent)


@for_all
def test_a_recreated_queue_is_refused(driver_of: DriverOf, guarantee: str, processing: str) -> None:
    driver = driver_of(guarantee, processing)
    driver.run(3)
    driver.client.remove(driver.settings.queues[0])
    job_objects.provision(driver.context)
    driver.send(9)
    assert refusal_code(lambda: driver.start(new_process=True)) == ErrorCode.QUEUE_RECREATED


@pytest.mark.thorough
def test_a_partition_that_came_later_is_read_from_its_first_row(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", "window")
    client: Any = driver.client
    driver.run(3)
    queue = driver.settings.queues[0]
    client.unmount_table(queue, sync=True)
    client.reshard_table(queue, tablet_count=3, sync=True)
    client.mount_table(queue, sync=True)
    driver.run(3)
    assert driver.outcome() == EXACT


# -- the checkpoint ------------------------------------------------------------------------------


@for_each
def test_a_lost_checkpoint_without_state_loses_nothing(driver_of: DriverOf, guarantee: str) -> None:
    driver = driver_of(guarantee)
    driver.run(3)
    driver.client.remove(driver.settings.checkpoint, recursive=True)
    job_objects.provision(driver.context)
    driver.run(3)
    assert driver.outcome() == EXACT


def _lose(driver: Driver) -> None:
    driver.client.remove(driver.folder, recursive=True)


def _restore_an_older_one(driver: Driver) -> None:
    for log in ("offsets", "commits"):
        driver.client.remove(f"{driver.folder}/{log}/1")


@pytest.mark.thorough
@pytest.mark.parametrize("damage", [_lose, _restore_an_older_one])
@for_stateful
def test_a_lost_state_is_refused_and_rewind_is_the_way_out(
    driver_of: DriverOf, guarantee: str, damage: Callable[[Driver], None]
) -> None:
    driver = driver_of(guarantee, "window")
    for _ in range(2):
        driver.run(3)
    damage(driver)
    text = refusal(lambda: driver.start(new_process=True))
    assert "the ledger is at batch 2-1, after 12 rows" in text
    assert "`rewind`" in text
    driver.rewind("latest")
    assert driver.start(new_process=True) == []
    driver.send(3)
    driver.batch()


@pytest.mark.thorough
def test_a_state_of_another_number_of_partitions_is_refused(driver_of: DriverOf) -> None:
    driver = driver_of("at_least_once", "window")
    driver.run(3)
    driver.redeclare(shuffle_partitions=3)
    text = refusal(lambda: driver.start(new_process=True))
    assert "has 2 partitions" in text
    assert "set shuffle_partitions=2 in job.py" in text


@pytest.mark.thorough
@pytest.mark.parametrize(("was", "now"), [("memory", "rocksdb"), ("rocksdb", "memory")])
def test_a_state_of_another_store_is_refused(driver_of: DriverOf, was: str, now: str) -> None:
    driver = driver_of("at_least_once", "window")
    driver.configure(state_store=was)
    driver.run(3)
    driver.configure(state_store=now)
    text = refusal(lambda: driver.start(new_process=True))
    assert f'was written with state_store = "{was}"' in text
    assert f'set state_store = "{was}" or leave the key out' in text
    driver.rewind("latest")
    driver.run(3)


@pytest.mark.parametrize("was", ["memory", "rocksdb"])
def test_a_state_stays_in_its_store_where_the_configuration_names_none(
    driver_of: DriverOf, was: str
) -> None:
    driver = driver_of("at_least_once", "window")
    assert with_state_store(driver.context).settings.state_store is None
    driver.configure(state_store=was)
    driver.run(3)
    driver.configure(state_store=None)
    assert with_state_store(driver.context).settings.state_store == was
    driver.rewind("latest")
    assert with_state_store(driver.context).settings.state_store is None


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    ["garbage", "v1\n{}\n{}", "v1\n{oops\n[1]", "v1\n[]\n-"],
    ids=["short", "no partitions", "not JSON", "not a map"],
)
def test_a_damaged_log_is_refused_and_rewind_is_the_way_out(driver_of: DriverOf, text: str) -> None:
    driver = driver_of("at_least_once", "window")
    driver.run(3)
    write(driver.client, f"{driver.folder}/offsets/0", text)
    assert "rewind" in refusal(lambda: driver.start(new_process=True))
    driver.rewind("latest")
    driver.run(3)


def test_changed_columns_are_said_once(driver_of: DriverOf) -> None:
    driver = driver_of("idempotent")
    driver.start()
    driver.redeclare(queue=driver.context.job.queue[:-1])
    said = ["tables.py has changed: existing rows stay as they are"]
    assert [driver.start(new_process=True), driver.start(new_process=True)] == [said, []]
