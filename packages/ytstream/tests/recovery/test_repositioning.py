"""The commands of an operator, on the cluster: `rewind` and `migrate`."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest

from minicluster.testing import Running
from tests.support.archives import COLUMNS, DAY, HOUR, declared
from tests.support.helpers import (
    MIGRATED,
    STRIDES,
    DriverOf,
    cut_off_at_writes,
    refusal,
    refusal_code,
    sampled,
)
from tests.support.simulated_driver import Driver
from tests.support.verdict import EXACT
from ytstream import Hourly
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import positions
from ytstream.provisioning import job_objects
from ytstream.recovery.epoch import raise_epoch
from ytstream.recovery.migration import rehearse_migrate
from ytstream.recovery.repositioning import rehearse_rewind
from ytstream.recovery.start import preview
from ytstream.schema.periods import group_of, named
from ytstream.sealing.archive_tables import piece_name
from ytstream.staging import staged_tables
from ytstream.staging.staged_tables import StagedTable

pytestmark = pytest.mark.spark  # it needs Spark's JVM, though no session

for_each = pytest.mark.parametrize("guarantee", ["transactional", "idempotent", "at_least_once"])

MIGRATIONS = [
    *(("transactional", "idempotent", "map"), ("transactional", "at_least_once", "map")),
    *(("idempotent", "transactional", "map"), ("idempotent", "at_least_once", "map")),
    *(("at_least_once", "transactional", "map"), ("at_least_once", "idempotent", "map")),
    ("transactional", "at_least_once", "window"),
    ("at_least_once", "transactional", "window"),
]
"""(guarantee before, guarantee after, processing)"""
_NOT_ALL = (
    "some rows that it was made of are trimmed, or of a queue that was recreated or that the "
    "configuration does not name; `rewind earliest` reads all others"
)
"""Said of a state some of whose rows cannot be read again."""
DEATHS = ("state", "head", None)
"""The last step of a batch before a driver's death; None: it lives on."""


def _is_at(driver: Driver, rows: dict[int, int]) -> bool:
    """Return whether ledger, consumer and the next batch begin at ``rows`` of the first queue."""
    path = driver.settings.queues[0]
    driver.start(new_process=True)
    found = positions.read(driver.client, driver.settings)
    assert found.head is not None
    ends = found.head.ends[path]
    consumed = {p: row for p, row in found.queues[0].consumed.items() if row}
    before = len(driver.read())
    driver.send(1)
    driver.batch()
    begins = {p: first for q, p, first, _ in driver.read()[before:] if q == path}
    return rows == ends == begins and consumed == {p: row for p, row in rows.items() if row}


def _recreate_queue(driver: Driver, rows: int, tablets: int = 2) -> None:
    queue = driver.settings.queues[0]
    schema = driver.client.get(f"{queue}/@schema")
    driver.client.remove(queue)
    attributes = {"dynamic": True, "schema": schema, "tablet_count": tablets}
    driver.client.create("table", queue, attributes=attributes)
    driver.client.mount_table(queue, sync=True)
    job_objects.provision(driver.context)
    driver.send(rows)


def _lose_ledger(driver: Driver) -> None:
    driver.client.remove(driver.settings.ledger)
    job_objects.provision(driver.context)


def _lose_head(driver: Driver) -> None:
    client: Any = driver.client
    client.delete_rows(driver.settings.ledger, [{"kind": "head", "number": 0}])


def _damage_ledger(driver: Driver) -> None:
    row = {"kind": "head", "number": 0, "epoch": driver.epoch.number, "batch": 0, "ended": 0}
    driver.client.insert_rows(driver.settings.ledger, [{**row, "queues": 5, "state": {}}])


def _twice(driver: Driver) -> list[str]:
    """Return what `rewind` says of rows that come out again; a key replaces them."""
    if driver.context.guarantee.name == "idempotent":
        return []
    output = driver.settings.output
    if driver.context.job.kind.is_stateful:
        return [
            "a result that was written is duplicated if its rows are read again: it is twice in "
            f"{output} then. One that was open is written once"
        ]
    return [f"rows that are read again are duplicated in {output}"]


def _printed(said: str) -> list[str]:
    """Return the rows of the `rewind` that a message tells to run."""
    command = re.search(r"`rewind rows (.*?)`", said)
    assert command is not None
    return command[1].split()


def _everything(driver: Driver) -> tuple[Any, ...]:
    """Return where ledger, consumer and checkpoint are."""
    found = positions.read(driver.client, driver.settings)
    return found, driver.client.get(driver.settings.checkpoint)


@pytest.mark.thorough
@pytest.mark.parametrize("to", [("earliest",), ("latest",), ("rows", "{queue}:1=2")])
def test_a_rehearsed_rewind_says_what_it_does_and_changes_nothing(
    driver_of: DriverOf, to: tuple[str, ...]
) -> None:
    driver = driver_of("transactional", "window")
    driver.run(4)
    driver.send(2)
    where, *rows = (word.format(queue=driver.settings.queues[0]) for word in to)
    before = _everything(driver)
    said = rehearse_rewind(driver.context, where, rows)
    assert _everything(driver) == before
    counts = {
        "earliest": "8 rows would be read again, 0 skipped",
        "latest": "0 rows would be read again, 4 skipped",
        "rows": "2 rows would be read again, 0 skipped",
    }
    assert said[-1] == "nothing was changed"
    said.remove(counts[where])
    assert said[:-1] == driver.rewind(where, *rows)


@pytest.mark.thorough
def test_a_rehearsed_migration_says_what_it_does_and_changes_nothing(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", "window")
    driver.run(4)
    assert rehearse_migrate(driver.context)[0].startswith("nothing to do")
    driver.redeclare(guarantee="at_least_once")
    before = _everything(driver)
    said = rehearse_migrate(driver.context)
    assert _everything(driver) == before
    assert said[-1] == "nothing was changed"
    assert [*said[:-1], MIGRATED] == driver.migrate()


# -- rewind --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("to", "rows"), [("earliest", {0: 0, 1: 2}), ("latest", {0: 6, 1: 6})])
@pytest.mark.parametrize(
    ("guarantee", "processing"),
    [("transactional", "window"), ("at_least_once", "window"), ("idempotent", "map")],
)
def test_rewind_moves_ledger_and_consumer_and_empties_the_state(
    driver_of: DriverOf, guarantee: str, processing: str, to: str, rows: dict[int, int]
) -> None:
    driver = driver_of(guarantee, processing)
    queue = driver.settings.queues[0]
    driver.run(4)
    driver.send(2)
    driver.client.trim_rows(queue, 1, 2)
    said = [f"{queue}, partition {p}: from row 4 to row {row}" for p, row in rows.items()]
    if processing == "window":
        said += [
            "the state is dropped: groups in open windows, 2 of them",
            "what comes out from now on is made only of the rows that are read from now on",
            _NOT_ALL,
        ]
    if to == "earliest":
        said += _twice(driver)
    assert driver.rewind(to) == said
    assert driver.rewind(to) == ["the job was there already; its checkpoint is empty now"]
    assert _is_at(driver, rows)


@pytest.mark.thorough
def test_rewind_says_from_which_rows_on_no_state_is_lost(driver_of: DriverOf) -> None:
    """The state is empty in the beginning, and again after a batch that has closed all windows."""
    driver = driver_of("transactional", "window")
    queue = driver.settings.queues[0]
    driver.run(2)
    dropped = "the state is dropped: groups in open windows, 2 of them"
    alone = "what comes out from now on is made only of the rows that are read from now on"
    first = f"`rewind rows {queue}:0=0 {queue}:1=0` loses nothing of it"
    said = ["the job was there already; its checkpoint is empty now", dropped, alone, first]
    assert driver.rewind("latest") == said
    driver.run(2, new_process=True)
    second = f"`rewind rows {queue}:0=2 {queue}:1=2` loses nothing of it"
    assert driver.rewind("rows", f"{queue}:0=3")[1:] == [dropped, alone, second, *_twice(driver)]
    driver.watermark = 1_704_067_200_000
    driver.run(1, new_process=True)
    assert driver.rewind("rows", f"{queue}:0=3", f"{queue}:1=2")[2:] == [
        "the state is dropped: groups in open windows, 2 of them",
        "its watermark was at 2024-01-01 00:00:00 UTC: it was made of rows with later event times, "
        "and of earlier ones as far as a window, a session or `WITHIN` is long",
        "all rows that it was made of are read again",
        *_twice(driver),
    ]
    driver.start(new_process=True)
    driver.is_emptied = True
    driver.batch()
    assert driver.rewind("latest") == ["the job was there already; its checkpoint is empty now"]


@pytest.mark.thorough
def test_rewind_does_not_promise_rows_of_a_recreated_queue(driver_of: DriverOf) -> None:
    """They went with the former one, though the rows of the new one have their numbers."""
    driver = driver_of("transactional", "window", 2)
    driver.run(4)
    _recreate_queue(driver, 2)
    said = driver.rewind("earliest")
    assert _NOT_ALL in said
    assert "all rows that it was made of are read again" not in said


@pytest.mark.thorough
def test_a_removed_queue_that_the_state_does_not_know_is_not_missed(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", "window", 2)
    both = driver.settings.queues
    driver.run(4)
    driver.configure(queues=both[1:])
    driver.migrate()
    driver.is_emptied = True
    driver.run(2, new_process=True)
    driver.is_emptied = False
    driver.run(2)
    again = [f"{both[1]}:{partition}=6" for partition in (0, 1)]
    places = " ".join(again)
    assert f"`rewind rows {places}` loses nothing of it" in driver.rewind("latest")
    driver.run(2, new_process=True)
    again = [f"{both[1]}:{partition}=8" for partition in (0, 1)]
    assert "all rows that it was made of are read again" in driver.rewind("rows", *again)


@pytest.mark.thorough
@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_rows_of_a_recreated_queue_do_not_come_out_again(
    driver_of: DriverOf, guarantee: str
) -> None:
    driver = driver_of(guarantee)
    queue = driver.settings.queues[0]
    driver.run(4)
    _recreate_queue(driver, 2)
    moved = [f"{queue}, partition {p}: from row 4 to row 0" for p in (0, 1)]
    assert driver.rewind("earliest") == moved


@pytest.mark.thorough
def test_rewind_before_the_first_start_counts_before_start_from(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.configure(start_from="latest")
    driver.send(3)
    assert "latest rows" in preview(driver.context)[0]
    assert driver.rewind("earliest") == ["the job was there already; its checkpoint is empty now"]
    assert preview(driver.context) == ()
    assert _is_at(driver, {0: 0, 1: 0})


@pytest.mark.thorough
@for_each
def test_rewind_moves_the_partitions_that_are_named(driver_of: DriverOf, guarantee: str) -> None:
    driver = driver_of(guarantee)
    queue = driver.settings.queues[0]
    driver.run(4)
    said = [f"{queue}, partition 1: from row 4 to row 2", *_twice(driver)]
    assert driver.rewind("rows", f"{queue}:1=2") == said
    assert _is_at(driver, {0: 4, 1: 2})


@pytest.mark.thorough
def test_rewind_leaves_other_partitions_after_a_batch_that_has_just_committed(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut-off driver's commit is applied between the first look and the new epoch."""
    driver = driver_of("transactional")
    queue = driver.settings.queues[0]
    driver.run(4)
    driver.send(3)

    def late(*given: Any, **more: Any) -> Any:
        driver.batch()
        return raise_epoch(*given, **more)

    monkeypatch.setattr("ytstream.recovery.repositioning.raise_epoch", late)
    said = [f"{queue}, partition 1: from row 7 to row 2", *_twice(driver)]
    assert driver.rewind("rows", f"{queue}:1=2") == said
    assert _is_at(driver, {0: 7, 1: 2})


@pytest.mark.thorough
@for_each
def test_a_batch_that_commits_during_the_look_is_no_moved_consumer(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    """`check` beside a running job: the head is of before the batch, the consumer of after it."""
    driver = driver_of(guarantee)
    driver.run(4)
    driver.send(3)
    queues = positions.queues

    def later(*given: Any) -> Any:
        monkeypatch.setattr(positions, "queues", queues)
        driver.batch()
        return queues(*given)

    monkeypatch.setattr(positions, "queues", later)
    assert preview(driver.context) == ()


@pytest.mark.parametrize(
    ("to", "rows", "said"),
    [
        ("earliest", ["{queue}:0=1"], "rows go with `rewind rows`"),
        ("latest", ["{queue}:0=1"], "rows go with `rewind rows`"),
        ("rows", ["nonsense"], "cannot read 'nonsense'"),
        ("rows", ["//home/other:0=1"], "the job does not read //home/other"),
        ("rows", ["{queue}:0=100000"], "is not in the queue"),
        ("rows", ["{queue}:0=1", "{queue}:9=0"], "is not in the queue"),
        ("rows", ["{queue}:0=1", "{queue}:0=3"], "is named more than once: rows 1 and 3"),
    ],
)
def test_a_wrong_target_of_rewind_is_refused_before_any_change(
    driver_of: DriverOf, to: str, rows: list[str], said: str
) -> None:
    driver = driver_of("at_least_once")
    driver.run(4)
    before = driver.standing()
    given = [row.format(queue=driver.settings.queues[0]) for row in rows]
    assert said in refusal(lambda: driver.rewind(to, *given))
    assert driver.standing() == before


BREAKS = (_lose_ledger, _lose_head, _damage_ledger)
TARGETS = {"earliest": 0, "latest": 6, "rows": 4}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("break_ledger", "to"), sampled(product(BREAKS, TARGETS), [*zip(BREAKS, TARGETS, strict=True)])
)
def test_rewind_writes_a_new_head_for_one_that_is_lost(
    driver_of: DriverOf, break_ledger: Callable[[Driver], None], to: str
) -> None:
    """`rewind rows` alone: where the consumer is."""
    driver = driver_of("transactional", "window")
    driver.run(4)
    driver.send(2)
    break_ledger(driver)
    assert "`rewind" in refusal(lambda: driver.start(new_process=True))
    driver.rewind(to)
    assert _is_at(driver, dict.fromkeys((0, 1), TARGETS[to]))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("partitions", "to"),
    sampled(product((1, 2, 3), TARGETS), [(1, "earliest"), (2, "latest"), (3, "rows")]),
)
def test_rewind_is_the_way_out_for_a_recreated_queue(
    driver_of: DriverOf, partitions: int, to: str
) -> None:
    driver = driver_of("transactional", "window")
    queue = driver.settings.queues[0]
    driver.run(4)
    _recreate_queue(driver, 9, partitions)
    assert refusal_code(lambda: driver.start(new_process=True)) == ErrorCode.QUEUE_RECREATED
    named = [f"{queue}:{partition}=5" for partition in range(partitions)]
    if to == "rows":
        assert refusal_code(lambda: driver.rewind(to, *named[1:])) == ErrorCode.PARTITIONS_CHANGED
    driver.rewind(to, *(named if to == "rows" else ()))
    row = {"earliest": 0, "latest": 9, "rows": 5}[to]
    assert _is_at(driver, dict.fromkeys(range(partitions), row))


@pytest.mark.thorough
def test_a_queue_under_another_path_is_continued_where_the_job_was(driver_of: DriverOf) -> None:
    """By the command that the start prints; `migrate` would read it from `start_from`."""
    driver = driver_of("transactional")
    driver.run(3)
    (was,) = driver.settings.queues
    now = f"{was}-moved"
    client: Any = driver.client
    client.unmount_table(was, sync=True)
    client.move(was, now)
    client.mount_table(now, sync=True)
    driver.configure(queues=(now,))
    job_objects.provision(driver.context)
    said = refusal(lambda: driver.start(new_process=True))
    driver.rewind("rows", *_printed(said))
    driver.start(new_process=True)
    driver.send(1)
    driver.batch()
    read = [(first, end) for queue, _, first, end in driver.read() if queue == now]
    assert read == [(3, 4), (3, 4)]


@pytest.mark.thorough
def test_a_rewind_behind_an_older_copy_of_the_ledger_forgets_no_batch(
    driver_of: DriverOf,
) -> None:
    """The copy does not know the batches after it: their tables and pieces may hold rows."""
    driver = driver_of("transactional")
    driver.run(2)
    client, path = driver.client, driver.settings.ledger
    rows = [*client.select_rows(f"* from [{path}]")]
    driver.run(2)
    happened = StagedTable("output", driver.epoch.number, 1)
    written = [*client.select_rows(f"kind, number from [{path}]")]
    client.delete_rows(path, written)
    client.insert_rows(path, rows)
    said = refusal(lambda: driver.start(new_process=True))
    driver.redeclare(static=("output",))
    driver.rewind("rows", *_printed(said))
    driver.redeclare(static=())
    driver.run(1)
    head = positions.read_head(path, client.select_rows)
    assert head is not None
    assert staged_tables.forgotten(client, driver.settings, [happened], head.number) == {happened}
    read = [(first, end) for _, _, first, end in driver.read()]
    assert read == [(0, 2), (0, 2), (4, 5), (4, 5)]  # what the copy knows, and what came after


@pytest.mark.thorough
def test_pieces_of_archives_are_named_where_a_lost_ledger_named_them(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.run(2)
    _lose_ledger(driver)
    archive = declared(driver.context, Hourly("date_time"), COLUMNS).job
    driver.redeclare(static=archive.static)
    folder = f"{driver.settings.staging}/output/{group_of(DAY, HOUR, 0).folder}"
    piece = piece_name(1, 0)
    driver.client.create("table", f"{folder}/{piece}", recursive=True)
    said = f"{folder}: 1 piece of {named(DAY)} up to {piece} that the new ledger does not name"
    assert said in refusal(lambda: driver.start(new_process=True))
    assert any(said in line for line in rehearse_rewind(driver.context, "rows", []))
    assert any(said in line for line in driver.rewind("rows"))


def test_what_belongs_to_another_job_is_not_rewound(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.run(4)
    before = driver.standing()
    driver.redeclare(name="another")
    assert "belongs to another job" in refusal(lambda: driver.rewind("latest"))
    _lose_ledger(driver)
    assert "belongs to the job 'map-of-bids'" in refusal(lambda: driver.rewind("latest"))
    assert positions.read(driver.client, driver.settings).queues == before[1]


# -- migrate -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("was", "is_now", "processing", "step"),
    sampled(
        [(*migration, step) for migration in MIGRATIONS for step in DEATHS],
        [(*migration, step) for migration, step in zip(MIGRATIONS, cycle(DEATHS), strict=False)],
    ),
)
def test_migrate_takes_a_job_over_wherever_it_died(
    driver_of: DriverOf, was: str, is_now: str, processing: str, step: str | None
) -> None:
    driver = driver_of(was, processing)
    for last_step in (None, step):
        driver.start()
        driver.send(3)
        driver.batch(last_step)
    driver.redeclare(guarantee=is_now)
    said = f"the job's guarantee was {was} and is {is_now} now"
    assert said in refusal(lambda: driver.start(new_process=True))
    assert driver.migrate() == [said, MIGRATED]
    assert driver.migrate() == [f"nothing to do: the job's guarantee is {is_now}"]
    assert driver.start(new_process=True) == []
    driver.send(3)
    for _ in range(2):
        driver.batch()
    assert driver.outcome() == EXACT


@pytest.mark.thorough
def test_migrate_takes_other_outputs_over(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", "window")
    driver.run(3)
    former = driver.settings.output
    driver.configure(outputs={"output": f"{former}-2"})
    job_objects.provision(driver.context)
    assert refusal_code(lambda: driver.start(new_process=True)) == ErrorCode.JOB_CHANGED
    assert driver.migrate() == [
        "the job's outputs now match the configuration",
        f"{former} keeps this job's mark: before another job writes there, yt remove "
        f"{former}/@ytstream_job",
        MIGRATED,
    ]
    driver.run(3)
    assert driver.outcome() == EXACT


def test_migrate_before_the_first_start_says_so(driver_of: DriverOf) -> None:
    driver = driver_of("at_least_once")
    assert driver.migrate() == ["nothing to do: the job has not started yet"]
    assert positions.read(driver.client, driver.settings).head is None


@pytest.mark.thorough
def test_migrate_refuses_what_a_start_refuses(driver_of: DriverOf) -> None:
    driver = driver_of("at_least_once", "window")
    driver.run(3)
    before = driver.standing()
    driver.redeclare(guarantee="transactional")
    driver.client.trim_rows(driver.settings.queues[0], 0, 3)
    driver.send(3)
    driver.client.trim_rows(driver.settings.queues[0], 0, 5)
    assert refusal_code(driver.migrate) == ErrorCode.ROWS_TRIMMED
    assert driver.standing()[0] == before[0]


# -- cut off -------------------------------------------------------------------------------------


def _rewind(driver: Driver) -> None:
    driver.rewind("earliest")


def _rewind_a_damaged_ledger(driver: Driver) -> None:
    driver.rewind("rows", f"{driver.settings.queues[0]}:0=1")


def _migrate(driver: Driver) -> None:
    driver.migrate()


@STRIDES
@pytest.mark.parametrize("command", [_rewind, _rewind_a_damaged_ledger, _migrate])
def test_a_command_cut_off_at_any_write_can_be_repeated(
    driver_of: DriverOf,
    cluster: Running,
    tmp_path: Path,
    command: Callable[[Driver], None],
    stride: int,
) -> None:
    driver = driver_of("transactional", "window")
    driver.run(3)
    driver.send(3)
    driver.batch("commits")
    if command is _rewind_a_damaged_ledger:
        _damage_ledger(driver)
    if command is _migrate:
        driver.redeclare(guarantee="at_least_once")

    def standing(_: int) -> tuple[Any, ...]:
        command(driver)
        driver.start(new_process=True)
        return driver.standing()

    cut_off_at_writes(cluster, driver, tmp_path, lambda: command(driver), standing, stride)
