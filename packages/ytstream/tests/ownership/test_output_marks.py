"""The marks on outputs: two jobs do not share one, and no row replaces one of a former queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.helpers import MIGRATED, ContextOf, DriverOf, StreamOf, recreate, refusal
from tests.support.simulated_driver import Driver
from tests.support.static_outputs import static
from ytstream.job import REJECTED
from ytstream.ledger import ledger_rows, positions
from ytstream.ledger.ledger_rows import Head
from ytstream.ledger.positions import MARKER
from ytstream.ownership import job_marker, output_marks
from ytstream.provisioning import job_objects
from ytstream.recovery import checkpoint_repair
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark  # it needs Spark's JVM, though no session

KEYED = {
    "transactional": [REJECTED],
    "at_least_once": [REJECTED],
    "idempotent": ["output", REJECTED],
}
"""The guarantee, and its outputs whose keys are positions."""
for_each = pytest.mark.parametrize("guarantee", KEYED)


def _recreate(driver: Driver) -> None:
    recreate(driver.settings.queues[0], driver.client)
    job_objects.provision(driver.context)


def _fill(driver: Driver, *names: str) -> list[str]:
    """Write a row of the first position into these outputs; return their paths."""
    client, settings = driver.client, driver.settings
    values = {"int64": 0, "uint64": 0, "timestamp": 0, "string": "old", "utf8": "old"}
    for name in names:
        schema = client.get(f"{settings.outputs[name]}/@schema")
        row = {column["name"]: values[column["type"]] for column in schema}
        client.insert_rows(settings.outputs[name], [row])
    return [settings.outputs[name] for name in names]


def _rows(driver: Driver, path: str) -> list[Any]:
    return [*driver.client.select_rows(f"* from [{path}]")]


def _standing(driver: Driver) -> positions.Snapshot:
    return positions.read(driver.client, driver.settings)


def _mark(driver: Driver, path: str) -> Any:
    return driver.client.get_attribute(path, MARKER, None)


def _unmark(driver: Driver) -> None:
    """Make the outputs as a version without marks has left them."""
    for path in driver.settings.outputs.values():
        driver.client.remove(f"{path}/@{MARKER}")


def _new_paths(driver: Driver, names: list[str]) -> None:
    """Follow the advice: give these outputs new paths."""
    new = {name: f"{driver.settings.outputs[name]}-2" for name in names}
    driver.configure(outputs={**driver.settings.outputs, **new})
    job_objects.provision(driver.context)


# -- a queue is recreated --------------------------------------------------------------------------

TARGETS: dict[str, Callable[[str], list[str]]] = {
    "earliest": lambda queue: [],
    "latest": lambda queue: [],
    "rows": lambda queue: [f"{queue}:0=1", f"{queue}:1=0"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("to", TARGETS)
@for_each
def test_rows_of_a_recreated_queue_replace_none_of_the_former(
    driver_of: DriverOf, guarantee: str, to: str
) -> None:
    """Refused before anything is changed; new paths are the way on, and `rewind` takes them."""
    driver = driver_of(guarantee, rejects=True)
    driver.run(3)
    paths = _fill(driver, *KEYED[guarantee])
    _recreate(driver)
    driver.send(2)
    said = refusal(lambda: driver.start(new_process=True))
    assert f"before that give {' and '.join(paths)} new paths in [outputs]" in said
    before, words = _standing(driver), TARGETS[to](driver.settings.queues[0])
    said = refusal(lambda: driver.rewind(to, *words))
    assert said.startswith(f"{', '.join(paths)}: rows there are stored under their positions in a")
    assert _standing(driver) == before
    old = [_rows(driver, path) for path in paths]
    _new_paths(driver, KEYED[guarantee])
    done = driver.rewind(to, *words)
    assert [line.split()[0] for line in done if "keeps this job's mark" in line] == paths
    driver.start(new_process=True)
    driver.send(1)
    driver.batch()
    assert [_rows(driver, path) for path in paths] == old
    (queue,) = positions.read(driver.client, driver.settings).queues
    for name in KEYED[guarantee]:
        assert _mark(driver, driver.settings.outputs[name])["queues"] == {queue.path: queue.id}


@for_each
def test_rows_are_replaced_by_consent(driver_of: DriverOf, guarantee: str) -> None:
    driver = driver_of(guarantee, rejects=True)
    driver.run(3)
    _fill(driver, *KEYED[guarantee])
    _recreate(driver)
    driver.send(2)
    assert "--overwrite" in refusal(lambda: driver.rewind("earliest"))
    driver.rewind("earliest", overwrite=True)
    driver.start(new_process=True)
    driver.batch()
    driver.rewind("earliest")  # it has those queues' positions now


@pytest.mark.parametrize("written", [0, 1])
def test_a_rewind_that_dies_before_the_marks_asks_again_and_loses_nothing(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """The head has the new queue already; the second consent reads it from its first row, once."""
    driver = driver_of("idempotent", rejects=True)
    driver.run(3)
    paths = _fill(driver, *KEYED["idempotent"])
    _recreate(driver)
    driver.send(2)
    marked: list[str] = []
    write = driver.client.set

    def dying(path: str, value: Any) -> None:
        if path.removesuffix(f"/@{MARKER}") in paths:
            if len(marked) == written:
                raise KeyboardInterrupt
            marked.append(path)
        write(path, value)

    with monkeypatch.context() as patch:
        patch.setattr(driver.client, "set", dying)
        with pytest.raises(KeyboardInterrupt):
            driver.rewind("earliest", overwrite=True)
    said = refusal(lambda: driver.start(new_process=True))
    assert said.startswith(f"{', '.join(paths[written:])}: rows there are stored under")
    driver.rewind("earliest", overwrite=True)
    driver.start(new_process=True)
    driver.batch()
    (queue,) = positions.read(driver.client, driver.settings).queues
    assert driver.read()[-2:] == [(queue.path, 0, 0, 2), (queue.path, 1, 0, 2)]
    driver.rewind("earliest")  # no more consent


@pytest.mark.thorough
@for_each
def test_outputs_without_a_row_stay_where_they_are(driver_of: DriverOf, guarantee: str) -> None:
    driver = driver_of(guarantee, rejects=True)
    driver.run(3)
    _recreate(driver)
    driver.send(2)
    driver.rewind("latest")
    driver.start(new_process=True)


@pytest.mark.thorough
@for_each
def test_an_unchanged_queue_is_read_again_into_the_same_positions(
    driver_of: DriverOf, guarantee: str
) -> None:
    driver = driver_of(guarantee, rejects=True)
    driver.run(3)
    _fill(driver, *KEYED[guarantee])
    driver.rewind("earliest")
    driver.start(new_process=True)


@pytest.mark.parametrize("queues", [1, 2])
def test_the_ledger_knows_the_positions_of_an_output_that_has_no_mark_yet(
    driver_of: DriverOf, queues: int
) -> None:
    driver = driver_of("idempotent", "map", queues, rejects=True)
    driver.run(3)
    paths = _fill(driver, *KEYED["idempotent"])
    _unmark(driver)
    _recreate(driver)
    assert ", ".join(paths) in refusal(lambda: driver.rewind("earliest"))


def test_the_mark_knows_the_positions_when_the_ledger_is_lost(driver_of: DriverOf) -> None:
    driver = driver_of("idempotent")
    driver.run(3)
    (path,) = _fill(driver, "output")
    driver.client.remove(driver.settings.ledger)
    _recreate(driver)
    assert path in refusal(lambda: driver.rewind("earliest"))


@pytest.mark.thorough
def test_another_queue_in_the_place_of_the_only_one_has_its_positions(driver_of: DriverOf) -> None:
    """Without `queue_id` in the key its rows would replace those of the former queue."""
    driver = driver_of("idempotent")
    driver.run(3)
    (path,) = _fill(driver, "output")
    for has_mark in (True, False):
        former = driver.settings
        driver.configure(queues=(f"{former.queues[0]}-2",))
        job_objects.provision(driver.context)
        if not has_mark:
            _unmark(driver)
        assert path in refusal(driver.migrate)
        driver.configure(queues=former.queues)
    driver.configure(queues=(f"{former.queues[0]}-2",))
    _new_paths(driver, ["output"])
    assert driver.migrate()[-1] == MIGRATED
    driver.start(new_process=True)


@pytest.mark.thorough
def test_queues_come_and_go_where_the_key_has_their_paths(driver_of: DriverOf) -> None:
    """And a queue that was recreated meanwhile is noticed by the mark when it comes back."""
    driver = driver_of("idempotent", "map", 2)
    driver.run(3)
    (path,) = _fill(driver, "output")
    both = driver.settings.queues
    driver.configure(queues=(both[1], f"{both[1]}-2"))
    job_objects.provision(driver.context)
    driver.migrate()
    driver.start(new_process=True)
    assert set(_mark(driver, path)["queues"]) == {*both, f"{both[1]}-2"}
    driver.configure(queues=both)
    recreate(both[0], driver.client)
    job_objects.provision(driver.context)
    driver.client.remove(driver.settings.ledger)  # whatever it knows of removed queues
    job_objects.provision(driver.context)
    assert path in refusal(lambda: driver.rewind("earliest"))


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("is_advised", [True, False])
def test_every_row_of_both_queues_is_there_with_new_paths_alone(
    stream_of: StreamOf, *, is_advised: bool
) -> None:
    """Without the fix (`--overwrite` here) those of the new queue replace those of the former."""
    stream: Stream = stream_of("idempotent", rejects=True)
    stream.send(300)
    stream.drain()
    former, client = stream.settings.outputs, stream.client
    before = sum(len([*client.select_rows(f"* from [{path}]")]) for path in former.values())
    recreate(stream.settings.queues[0], client)
    job_objects.provision(stream.context)
    stream.send(200)
    driver = Driver(stream.context, stream.tablets)
    if is_advised:
        refusal(lambda: driver.rewind("earliest"))
        stream.configure(outputs={name: f"{path}-2" for name, path in former.items()})
        job_objects.provision(stream.context)
        driver = Driver(stream.context, stream.tablets)
    driver.rewind("earliest", overwrite=not is_advised)
    stream = replace(stream, epoch=type(stream.epoch)())
    stream.drain()
    paths = {*former.values(), *stream.settings.outputs.values()}
    rows = sum(len([*client.select_rows(f"* from [{path}]")]) for path in paths)
    assert before == 300
    assert (rows == 500) == is_advised


# -- ledger and consumer are lost ------------------------------------------------------------------


def _lose(driver: Driver, *names: str) -> None:
    for name in names:
        driver.client.remove(getattr(driver.settings, name), recursive=True)
    job_objects.provision(driver.context)


def _without_ledger_and_consumer(driver: Driver, *, has_checkpoint: bool) -> None:
    driver.run(3)
    _lose(driver, "ledger", "consumer", *(() if has_checkpoint else ("checkpoint",)))


@pytest.mark.thorough
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_job_without_ledger_and_consumer_is_not_a_new_one(
    driver_of: DriverOf, *, has_checkpoint: bool
) -> None:
    """Its checkpoint has its mark, and so have its outputs."""
    driver = driver_of("transactional", "window")
    _without_ledger_and_consumer(driver, has_checkpoint=has_checkpoint)
    said = refusal(lambda: driver.start(new_process=True))
    assert "has no head row, though the job has run; the consumer" in said
    queue = driver.settings.queues[0]
    said = refusal(lambda: driver.rewind("rows", f"{queue}:1=3"))
    assert f"neither the ledger nor the consumer knows where the job was in {queue}:0\n" in said
    driver.rewind("rows", f"{queue}:0=3", f"{queue}:1=3")
    driver.run(1)
    assert driver.read() == [(queue, 0, 3, 4), (queue, 1, 3, 4)]


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_job_without_ledger_and_consumer_reads_everything_again_if_marks_mean_nothing(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch, *, has_checkpoint: bool
) -> None:
    monkeypatch.setattr(job_marker, "is_nowhere", lambda *_: False)
    driver = driver_of("transactional", "window")
    _without_ledger_and_consumer(driver, has_checkpoint=has_checkpoint)
    assert "from its earliest rows, by partition 0, 0" in driver.start(new_process=True)[0]


def test_a_job_whose_objects_are_all_gone_is_a_new_one(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", "window")
    driver.run(3)
    for path in driver.settings.outputs.values():
        driver.client.remove(path)
    _lose(driver, "ledger", "consumer", "checkpoint")
    assert "first read" in driver.start(new_process=True)[0]


@pytest.mark.thorough
def test_a_head_that_is_lost_is_followed_by_a_later_epoch(driver_of: DriverOf) -> None:
    """Checkpoint folders and static tables are named by epochs: none is used twice."""
    driver = driver_of("transactional", "window")
    driver.run(3)
    driver.start(new_process=True)
    last = driver.epoch.number
    _lose(driver, "ledger")
    driver.rewind("latest")
    head = positions.read(driver.client, driver.settings).head
    assert head is not None
    assert (head.epoch, head.number) == (last + 1, 1)
    assert driver.client.exists(checkpoint_repair.path_of(driver.settings, head.epoch))


# -- another job -----------------------------------------------------------------------------------


def _copied(driver: Driver) -> Driver:
    """Copy the project: everything of its own but the outputs, which were forgotten."""
    settings = driver.settings
    own = {name: f"{getattr(settings, name)}-2" for name in ("ledger", "consumer", "checkpoint")}
    copy = Driver(driver.context, driver.tablets)
    copy.configure(**own)
    return replace(copy, tablets=replace(driver.tablets, settings=copy.settings))


def _provision_all_but_outputs(copy: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(output_marks, "foreign", lambda *_: None)
        job_objects.provision(copy.context)


COMMANDS: dict[str, Callable[[Driver], object]] = {
    "provision": lambda copy: job_objects.provision(copy.context),
    "check": lambda copy: job_objects.check(copy.context),
    "start": lambda copy: copy.start(new_process=True),
    "rewind": lambda copy: copy.rewind("latest"),
    "rewind, with consent to something else": lambda copy: copy.rewind("latest", overwrite=True),
}


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("processing", ["map", "aggregate"])
def test_two_jobs_do_not_write_one_output(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch, processing: str, command: str
) -> None:
    driver = driver_of("transactional", processing)
    driver.run(3)
    copy = _copied(driver)
    _provision_all_but_outputs(copy, monkeypatch)
    said = refusal(lambda: COMMANDS[command](copy))
    owner = f"belongs to the job '{processing}-of-bids' with the ledger {driver.settings.ledger}"
    assert f"{driver.settings.output}" in said
    assert owner in said
    assert positions.read(copy.client, copy.settings).head is None
    with monkeypatch.context() as patch:  # without the fix it is admitted
        patch.setattr(output_marks, "foreign", lambda *_: None)
        COMMANDS[command](copy)


@pytest.mark.thorough
def test_a_job_does_not_migrate_to_the_output_of_another(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_of("transactional")
    driver.run(3)
    copy, output = _copied(driver), driver.settings.outputs
    copy.configure(outputs={"output": f"{driver.settings.output}-2"})
    job_objects.provision(copy.context)
    copy.start()
    copy.configure(outputs=output)
    assert "belongs to the job" in refusal(copy.migrate)
    copy.configure(outputs={"output": f"{driver.settings.output}-2"})
    assert copy.start() == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["output", REJECTED])
def test_an_ordered_output_alone_may_be_shared(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Both jobs run; the mark stays the first one's."""
    driver = driver_of("transactional", rejects=True)
    driver.run(3)
    other = REJECTED if name == "output" else "output"
    copy = _copied(driver)
    copy.configure(
        outputs={**driver.settings.outputs, other: f"{driver.settings.outputs[other]}-2"},
        accept=(output_marks.SHARED,),
    )
    if name == REJECTED:
        said = refusal(lambda: job_objects.provision(copy.context))
        assert driver.settings.outputs[name] in said
        assert output_marks.SHARED not in said
        return
    job_objects.provision(copy.context)
    for has_mark in (True, False):
        if not has_mark:
            driver.client.remove(f"{driver.settings.output}/@{MARKER}")
        copy.run(3)
        assert copy.migrate()[0].startswith("nothing to do")
        driver.run(3)
        assert _mark(driver, driver.settings.output)["ledger"] == driver.settings.ledger


@pytest.mark.thorough
def test_migrate_does_not_advise_to_remove_the_mark_of_the_other_job(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.run(3)
    copy = _copied(driver)
    copy.configure(accept=(output_marks.SHARED,))
    job_objects.provision(copy.context)
    copy.run(3)
    _new_paths(copy, ["output"])
    assert copy.migrate() == ["the job's outputs now match the configuration", MIGRATED]
    _new_paths(driver, ["output"])
    driver.configure(outputs={"output": f"{driver.settings.outputs['output']}-3"})
    job_objects.provision(driver.context)
    assert "keeps this job's mark" in driver.migrate()[1]


def test_keys_and_folders_are_not_shared(context_of: ContextOf) -> None:
    for processing, names in (("aggregate", ()), ("map", ("output",))):
        context = context_of("transactional", processing)
        job = static(context.job, *names)
        settings = replace(context.settings, accept=(output_marks.SHARED,))
        context = replace(context, job=job, settings=settings)
        problem = output_marks.foreign(context, "output", {"job": "another", "ledger": "//home/x"})
        assert problem is not None
        assert output_marks.SHARED not in problem[1]


@pytest.mark.thorough
def test_the_folder_of_a_static_output_is_of_one_job(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_of("transactional")
    job, path = static(driver.context.job, "output"), f"{driver.settings.output}-tables"
    driver.redeclare(outputs=job.outputs, static=job.static)
    driver.configure(outputs={"output": path})
    job_objects.provision(driver.context)
    driver.run(3)
    copy = _copied(driver)
    assert f"output {path}: belongs to the job" in refusal(
        lambda: job_objects.provision(copy.context)
    )


def test_an_output_without_a_mark_is_adopted(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", rejects=True)
    driver.run(3)
    _fill(driver, REJECTED)
    _unmark(driver)
    driver.start(new_process=True)
    ours = {"job": driver.context.job.name, "ledger": driver.settings.ledger}
    (queue,) = positions.read(driver.client, driver.settings).queues
    assert _mark(driver, driver.settings.output) == ours
    assert _mark(driver, driver.settings.outputs[REJECTED]) == {
        **ours,
        "queues": {queue.path: queue.id},
    }


@pytest.mark.thorough
def test_a_removed_output_goes_to_another_job_by_the_command_that_is_printed(
    driver_of: DriverOf,
) -> None:
    driver = driver_of("transactional")
    driver.run(3)
    former = driver.settings.outputs
    _new_paths(driver, ["output"])
    (said,) = [line for line in driver.migrate() if "keeps this job's mark" in line]
    copy = _copied(driver)
    copy.configure(outputs=former)
    assert "belongs to the job" in refusal(lambda: job_objects.provision(copy.context))
    driver.client.remove(said.rpartition("yt remove ")[2])
    job_objects.provision(copy.context)
    copy.run(3)
    assert _mark(copy, former["output"])["ledger"] == copy.settings.ledger


@pytest.mark.parametrize("mark", ["text", {}, {"job": 5}])
def test_a_mark_that_was_damaged_by_hand_is_another_jobs(driver_of: DriverOf, mark: Any) -> None:
    driver = driver_of("transactional")
    driver.client.set(f"{driver.settings.output}/@{MARKER}", mark)
    said = refusal(lambda: job_objects.require(driver.context))
    assert f"yt remove {driver.settings.output}/@{MARKER}" in said
    assert "belongs to the job" in refusal(driver.start)


# -- how many batch rows stay ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partitions", "rows"),
    [(0, 500_000), (1, 500_000), (20, 500_000), (100, 100_000), (1_000, 10_000)],
)
def test_a_ledger_of_many_partitions_keeps_fewer_batches(partitions: int, rows: int) -> None:
    """About 25 bytes a partition: 250 MB at most, however many there are."""
    halves = [range(partitions // 2), range(partitions - partitions // 2)]
    ends = {f"//home/{i}": dict.fromkeys(half, 0) for i, half in enumerate(halves)}
    assert ledger_rows.kept(Head(ends=ends)) == rows


def _numbers(driver: Driver) -> list[int]:
    rows = driver.client.select_rows(f'number from [{driver.settings.ledger}] where kind = "batch"')
    return sorted(int(row["number"]) for row in rows)


@pytest.mark.thorough
def test_the_oldest_rows_go(driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """One with each batch; a start removes those that are too many since there are more tablets."""
    monkeypatch.setattr(ledger_rows, "KEPT", 4)
    monkeypatch.setattr(ledger_rows, "RANGES_KEPT", 8)
    driver = driver_of("transactional", "window")
    for _ in range(6):
        driver.run(1)
    assert _numbers(driver) == [3, 4, 5, 6]
    monkeypatch.setattr(ledger_rows, "RANGES_KEPT", 5)
    monkeypatch.setattr("ytstream.recovery.start._ROWS_AT_ONCE", 1)
    driver.start()
    assert _numbers(driver) == [5, 6]
