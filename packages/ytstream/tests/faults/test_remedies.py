"""What a refusal advises, followed to its end: the job runs again, and every row is accounted for.

Each case has a mistake, the refusal with its whole remedy, and what a person does who follows it.
test_start.py and test_repositioning.py follow more of them: `rewind` for a recreated queue,
`migrate` wherever the job has died, and commands that were cut off half-way.
"""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from minicluster.testing import Running
from packages.minicluster.tests.support.yt_process import Shell, running_shell
from tests.support.helpers import MIGRATED, DriverOf, StreamOf, another_process, refusal
from tests.support.simulated_driver import Driver
from tests.support.verdict import EXACT, Verdict
from tests.support.waiting import eventually
from ytstream.cluster.client import connect
from ytstream.errors import SupersededError
from ytstream.instance import lock as locking
from ytstream.instance import stop_request
from ytstream.instance.lock import alone
from ytstream.ledger import positions
from ytstream.provisioning import job_objects
from ytstream.recovery import migration
from ytstream.recovery.epoch import Epoch
from ytstream.settings.job_settings import late_rows_of

pytestmark = pytest.mark.spark  # it needs Spark's JVM, though no session

Deed = Callable[[Driver], None]
"""What a person does by hand to a job that is stopped."""


@pytest.fixture(scope="module")
def yt(cluster: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Serve the official `yt`."""
    with running_shell(cluster.http, tmp_path_factory.mktemp("yt")) as shell:
        yield shell


def _start(driver: Driver) -> list[str]:
    """Start the job in another process, as `run` does."""
    job_objects.require(driver.context)
    return driver.start(new_process=True)


def _provision(driver: Driver) -> None:
    job_objects.provision(driver.context)


def _ends(driver: Driver) -> dict[int, int]:
    """Return where the ledger is on the first queue."""
    head = positions.read(driver.client, driver.settings).begun
    assert head is not None
    return dict(head.ends[driver.settings.queues[0]])


# -- mistakes, and what undoes them ----------------------------------------------------------------


def _another_ledger(driver: Driver) -> None:
    driver.configure(ledger=f"{driver.settings.ledger}-2")
    assert "belongs to the job 'map-of-bids'" in refusal(lambda: _provision(driver))


def _another_ledger_and_output(driver: Driver) -> None:
    _another_ledger(driver)
    _own_output(driver)


def _former_ledger(driver: Driver) -> None:
    driver.configure(ledger=driver.settings.ledger.removesuffix("-2"))


def _former_ledger_and_output(driver: Driver) -> None:
    _former_ledger(driver)
    driver.configure(outputs={"output": driver.settings.output.removesuffix("-2")})


def _another_job(driver: Driver) -> None:
    driver.redeclare(name="another")


def _former_name(driver: Driver) -> None:
    driver.redeclare(name="map-of-bids")


def _another_job_with_its_own_ledger(driver: Driver) -> None:
    _another_job(driver)
    _another_ledger(driver)
    _own_output(driver)


def _own_output(driver: Driver) -> None:
    driver.configure(outputs={"output": f"{driver.settings.output}-2"})
    _provision(driver)


def _another_job_with_this_output(driver: Driver) -> None:
    _another_job(driver)
    settings, own = driver.settings, ("ledger", "consumer", "checkpoint")
    driver.configure(**{name: f"{getattr(settings, name)}-2" for name in own})
    assert "belongs to the job 'map-of-bids'" in refusal(lambda: _provision(driver))


def _share_the_output(driver: Driver) -> None:
    driver.configure(accept=("output:shared",))


def _give_the_output_up(driver: Driver) -> None:
    driver.client.remove(f"{driver.settings.output}/@ytstream_job")


def _another_job_with_this_consumer(driver: Driver) -> None:
    _another_job_with_its_own_ledger(driver)
    _own_checkpoint(driver)


def _own_consumer(driver: Driver) -> None:
    driver.configure(consumer=f"{driver.settings.consumer}-2")
    _provision(driver)


def _another_job_with_this_checkpoint(driver: Driver) -> None:
    _another_job_with_its_own_ledger(driver)
    _own_consumer(driver)


def _own_checkpoint(driver: Driver) -> None:
    driver.configure(checkpoint=f"{driver.settings.checkpoint}-2")
    _provision(driver)


def _own_consumer_and_checkpoint(driver: Driver) -> None:
    _own_consumer(driver)
    _own_checkpoint(driver)


def _own_everything(driver: Driver) -> None:
    _another_ledger(driver)
    _own_output(driver)
    _own_consumer_and_checkpoint(driver)


def _lose_ledger_and_consumer(driver: Driver) -> None:
    for path in (driver.settings.ledger, driver.settings.consumer):
        driver.client.remove(path)
    _provision(driver)


def _rewind_to_named_rows(driver: Driver) -> None:
    queue = driver.settings.queues[0]
    assert "partitions stay" not in refusal(lambda: driver.rewind("rows", f"{queue}:0=3"))
    driver.rewind("rows", f"{queue}:0=3", f"{queue}:1=3")


def _another_guarantee(driver: Driver) -> None:
    driver.redeclare(guarantee="at_least_once")


def _former_guarantee(driver: Driver) -> None:
    driver.redeclare(guarantee="transactional")


def _fewer_queues(driver: Driver) -> None:
    driver.configure(queues=driver.settings.queues[1:])


def _former_queues(driver: Driver) -> None:
    (queue,) = driver.settings.queues
    driver.configure(queues=(queue.replace("queue-1", "queue-0"), queue))


def _one_more_queue(driver: Driver) -> None:
    """Name a queue with older rows in front of the first one, which has moved the watermark."""
    driver.watermark = 1_704_067_200_000
    driver.run(1)
    (queue,) = driver.settings.queues
    more = queue.replace("queue-0", "queue-")
    driver.configure(queues=(more, queue))
    job_objects.provision(driver.context)
    driver.send(3, more)


def _accept_late_rows(driver: Driver) -> None:
    driver.configure(accept=(late_rows_of(driver.settings.queues[0]),))


def _begin_with_the_latest(driver: Driver) -> None:
    driver.configure(start_from="latest")


def _lose_the_checkpoint(driver: Driver) -> None:
    client, path = driver.client, driver.settings.checkpoint
    client.copy(path, f"{path}-saved")
    client.remove(path, recursive=True)
    _provision(driver)


def _restore_the_checkpoint(driver: Driver) -> None:
    client, path = driver.client, driver.settings.checkpoint
    client.remove(path, recursive=True)
    client.copy(f"{path}-saved", path)


def _head_row(driver: Driver) -> dict[str, Any]:
    (row,) = driver.client.select_rows(f'* from [{driver.settings.ledger}] where kind = "head"')
    return dict(row)


def _damage_the_head(driver: Driver) -> None:
    row = _head_row(driver)
    driver.client.set(f"{driver.settings.checkpoint}/@saved", row)
    driver.client.insert_rows(driver.settings.ledger, [{**row, "queues": 5}])


def _restore_the_head(driver: Driver) -> None:
    row = driver.client.get(f"{driver.settings.checkpoint}/@saved")
    driver.client.insert_rows(driver.settings.ledger, [row])


def _lose_the_head(driver: Driver) -> None:
    _damage_the_head(driver)
    client: Any = driver.client
    client.delete_rows(driver.settings.ledger, [{"kind": "head", "number": 0}])


def _other_partitions_of_the_state(driver: Driver) -> None:
    driver.redeclare(shuffle_partitions=3)


def _former_partitions_of_the_state(driver: Driver) -> None:
    driver.redeclare(shuffle_partitions=2)


def _trim(driver: Driver) -> None:
    driver.send(3)
    driver.client.trim_rows(driver.settings.queues[0], 1, 5)


def _skip(driver: Driver) -> None:
    driver.configure(on_data_loss="skip")


def _rewind(*words: str) -> Deed:
    def rewind(driver: Driver) -> None:
        driver.rewind(*words)

    return rewind


def _migrate(driver: Driver) -> None:
    assert driver.migrate()[-1] == MIGRATED


ANEW = (
    "restore 'map-of-bids' in job.py, or give this job its own: configure a new consumer, "
    "checkpoint, ledger and [outputs]"
)
OUTPUT = (
    "name another path in [outputs]{}\n     if that job writes there no more: yt remove "
    '{output}/@ytstream_job\n     if both are to write there: accept = ["output:shared"] in the '
    "configuration"
)
OWN = "give this job a {} of its own, or correct `ledger` in the configuration"
FORMER = (
    "stop the job, run `migrate`, and start it again: it continues with its next row{}, rows "
    "written before stay as they are, and from then on a crash may repeat the rows of a batch\n"
    "     or restore the previous one: nothing has changed yet"
)
ANOTHER_OUTPUT = (
    "stop the job, run `migrate`, and start it again: it continues with its next row, and rows go "
    "to the new paths; those written before stay where they are, nothing is copied\n"
    "     or restore the previous one: nothing has changed yet"
)
PUT_BACK = "put it back, or run `migrate`, which leaves its further rows unread until it is back"
JOINS = (
    'to read what is not late: accept = ["late:{queues[0]}"] in the configuration, and start; the '
    "state is kept, and late rows are counted in the ledger and not read again (more of them than "
    "reject_limit end the job: then it names a higher one)\n"
    '     to begin with its next rows: start_from = "latest" in the configuration, and start; the '
    "state is kept, and these 6 rows are not read\n"
    "     to count all rows: `rewind earliest`, and start; the state is dropped, and the rows of "
    "all queues that are left are read again: a result that was written is duplicated if "
    "its rows are read again: it is twice in {output} then. One that was open is written once"
)
PARTITIONS = (
    "set shuffle_partitions=2 in job.py, or use `rewind`, which starts a new checkpoint with an "
    "empty state"
)
STATE = (
    "restore the checkpoint as it was, or use `rewind`: `earliest` reads all rows again into an "
    "empty state (and writes their results again), `latest` begins with the next row"
)
LOST = (
    "restore the table; or use `rewind rows`, which writes a new head where the consumer is: at "
    "most one micro-batch behind, with an empty state"
)
SAME_JOB = "\n     if this is that job: correct `ledger` in the configuration"
NOWHERE = (
    "restore both; or use `rewind`, which writes a new head, with an empty state: `earliest` reads "
    "all rows again, `latest` the next ones, `rows` all from those on that you name"
)
DAMAGED = "restore the row, or use `rewind`, which writes a new one"
TRIMMED = 'they cannot be recovered; set on_data_loss = "skip" to continue after the gap'


class Case(NamedTuple):
    """A job that has read three rows of each of two partitions, and stopped."""

    mistake: Deed
    said: str
    remedy: str
    follow: Deed
    outcome: Verdict = EXACT
    """Once it runs again, by the ledger."""
    processing: str = "map"
    queues: int = 1


# A table, an entry a case.
# fmt: off
CASES = {
    "another ledger, corrected": Case(
        _another_ledger_and_output, "belongs to the job 'map-of-bids' with the ledger",
        OWN.format("consumer and a checkpoint"), _former_ledger_and_output),
    "another ledger, corrected before an output is given up": Case(
        _another_ledger, "output {output}: belongs to the job 'map-of-bids' with the ledger",
        OUTPUT.replace("{}", SAME_JOB), _former_ledger),
    "another job, an output of its own": Case(
        _another_job_with_this_output, "output {output}: belongs to the job 'map-of-bids'",
        OUTPUT.replace("{}", ""), _own_output),
    "another job, the output shared": Case(
        _another_job_with_this_output, "output {output}: belongs to the job 'map-of-bids'",
        OUTPUT.replace("{}", ""), _share_the_output),
    "another job, the output given up": Case(
        _another_job_with_this_output, "output {output}: belongs to the job 'map-of-bids'",
        OUTPUT.replace("{}", ""), _give_the_output_up),
    "another job, by its former name": Case(
        _another_job, "the ledger {ledger} belongs to another job: its job is 'map-of-bids'", ANEW,
        _former_name),
    "another job, a consumer of its own": Case(
        _another_job_with_this_consumer, "the consumer {consumer} belongs to the job 'map-of-bids'",
        OWN.format("consumer"), _own_consumer),
    "another job, a checkpoint of its own": Case(
        _another_job_with_this_checkpoint, "the checkpoint {checkpoint} belongs to the job",
        OWN.format("checkpoint"), _own_checkpoint),
    "another job, both of its own": Case(
        _another_job_with_its_own_ledger, "; this is 'another' with {ledger}",
        OWN.format("consumer and a checkpoint"), _own_consumer_and_checkpoint),
    "another job, everything of its own": Case(
        _another_job, "the ledger {ledger} belongs to another job: its job is 'map-of-bids'", ANEW,
        _own_everything),
    "another guarantee, taken back": Case(
        _another_guarantee, "guarantee was transactional and is at_least_once now",
        FORMER.format(""), _former_guarantee),
    "another guarantee, migrated": Case(
        _another_guarantee, "guarantee was transactional and is at_least_once now",
        FORMER.format(", its state is kept"), _migrate, processing="window"),
    "a queue removed, put back": Case(
        _fewer_queues, "which the configuration does not name any more", PUT_BACK, _former_queues,
        queues=2),
    "a queue removed, migrated": Case(
        _fewer_queues, "which the configuration does not name any more", PUT_BACK, _migrate,
        queues=2),
    "a queue of a state removed, put back": Case(
        _fewer_queues, "which the configuration does not name any more", PUT_BACK, _former_queues,
        processing="window", queues=2),
    "a queue of a state removed, migrated": Case(
        _fewer_queues, "which the configuration does not name any more", PUT_BACK, _migrate,
        processing="window", queues=2),
    "older rows of a queue that joins a state, accepted": Case(
        _one_more_queue, "and has 6 rows that the job has not read", JOINS, _accept_late_rows,
        processing="window"),
    "older rows of a queue that joins a state, left out": Case(
        _one_more_queue, "and has 6 rows that the job has not read", JOINS, _begin_with_the_latest,
        Verdict(lost=6), "window"),
    "older rows of a queue that joins a state, all rows read again": Case(
        _one_more_queue, "and has 6 rows that the job has not read", JOINS, _rewind("earliest"),
        Verdict(repeated=8), "window"),
    "the checkpoint lost, restored": Case(
        _lose_the_checkpoint, "the ledger is at batch 1-0, after 6 rows, and the checkpoint", STATE,
        _restore_the_checkpoint, processing="window"),
    "the checkpoint lost, from the first row": Case(
        _lose_the_checkpoint, "it is gone, or older, and the state with it", STATE,
        _rewind("earliest"), Verdict(repeated=6), "window"),
    "the checkpoint lost, from the next row": Case(
        _lose_the_checkpoint, "it is gone, or older, and the state with it", STATE,
        _rewind("latest"), processing="window"),
    "the head damaged, restored": Case(
        _damage_the_head, "is malformed", DAMAGED, _restore_the_head),
    "the head damaged, rewound": Case(
        _damage_the_head, "is malformed", DAMAGED, _rewind("rows")),
    "the head lost, restored": Case(
        _lose_the_head, "has no head row, though the job has run", LOST, _restore_the_head),
    "the head lost, rewound": Case(
        _lose_the_head, "has no head row, though the job has run", LOST, _rewind("rows"),
        processing="window"),
    "ledger and consumer lost, from the first row": Case(
        _lose_ledger_and_consumer, "the consumer {consumer} was recreated and does not know where",
        NOWHERE, _rewind("earliest"), processing="window"),
    "ledger and consumer lost, from the next row": Case(
        _lose_ledger_and_consumer, "the consumer {consumer} was recreated and does not know where",
        NOWHERE, _rewind("latest"), Verdict(lost=6), "window"),
    "ledger and consumer lost, from the rows that are named": Case(
        _lose_ledger_and_consumer, "the consumer {consumer} was recreated and does not know where",
        NOWHERE, _rewind_to_named_rows, Verdict(lost=6)),
    "other partitions of the state, taken back": Case(
        _other_partitions_of_the_state, "the state in the checkpoint has 2 partitions", PARTITIONS,
        _former_partitions_of_the_state, processing="window"),
    "other partitions of the state, rewound": Case(
        _other_partitions_of_the_state, "the state in the checkpoint has 2 partitions", PARTITIONS,
        _rewind("latest"), processing="window"),
    "trimmed rows, skipped": Case(
        _trim, "partition 1, rows 3 to 4", TRIMMED, _skip, Verdict(lost=2), "window"),
}
# fmt: on


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_remedy_leads_to_a_job_that_runs(driver_of: DriverOf, case: Case) -> None:
    driver = driver_of("transactional", case.processing, case.queues)
    driver.run(3)
    case.mistake(driver)
    message, _, remedy = refusal(lambda: _start(driver)).partition("\n  -> ")
    names = vars(driver.settings) | {"output": driver.settings.output}
    assert case.said.format(**names) in message
    assert remedy == case.remedy.format(**names)
    case.follow(driver)
    _start(driver)
    driver.send(3)
    for _ in range(2):
        driver.batch()
    assert driver.by_ledger() == case.outcome


# -- remedies that are commands --------------------------------------------------------------------


def _printed(text: str) -> list[list[str]]:
    """Return the words of each `yt` command that a refusal prints."""
    return [shlex.split(line)[1:] for line in re.findall(r"yt [a-z]+-[^\n;`]+", text)]


def _move_forward(driver: Driver) -> str:
    """Move the consumer over two rows of each partition by hand; return what a start says."""
    driver.run(3)
    driver.start()
    driver.send(3)
    settings = driver.settings
    for partition, row in _ends(driver).items():
        driver.client.advance_queue_consumer(
            settings.consumer, settings.queues[0], partition, None, row + 2
        )
    return refusal(lambda: _start(driver))


@pytest.mark.thorough
def test_rows_before_a_moved_consumer_are_skipped_by_the_command_that_is_printed(
    driver_of: DriverOf,
) -> None:
    driver = driver_of("transactional", "window")
    (words,) = re.findall("`rewind (.*)`", _move_forward(driver))
    driver.rewind(*words.split())
    _start(driver)
    driver.batch()
    assert driver.by_ledger() == Verdict(lost=4)


@pytest.mark.thorough
def test_rows_before_a_moved_consumer_are_read_after_the_commands_that_are_printed(
    driver_of: DriverOf, yt: Shell
) -> None:
    driver = driver_of("transactional", "window")
    commands = _printed(_move_forward(driver))
    assert len(commands) == 2  # one for each partition
    for command in commands:
        yt(*command)
    assert _start(driver) == []
    driver.batch()
    assert driver.outcome() == EXACT


def _unmount(driver: Driver) -> None:
    client: Any = driver.client
    client.unmount_table(driver.settings.queues[0], sync=True)


def _freeze(driver: Driver) -> None:
    client: Any = driver.client
    client.freeze_table(driver.settings.queues[0], sync=True)


def _register_without_vital(driver: Driver) -> None:
    client, settings = driver.client, driver.settings
    client.register_queue_consumer(settings.queues[0], settings.consumer, vital=False)


@pytest.mark.thorough
@pytest.mark.parametrize("mistake", [_unmount, _freeze, _register_without_vital])
def test_the_command_that_the_queues_owner_is_asked_for_is_the_fix(
    driver_of: DriverOf, yt: Shell, mistake: Deed
) -> None:
    driver = driver_of("transactional")
    driver.run(3)
    driver.configure(create_queues=False)
    mistake(driver)
    text = refusal(lambda: _start(driver))
    assert "let its owner run: yt " in text
    for command in _printed(text):
        yt(*command)
    _start(driver)
    driver.send(3)
    driver.batch()
    assert driver.outcome() == EXACT


# -- other instances, and locks --------------------------------------------------------------------


@pytest.mark.thorough
def test_a_start_beside_a_job_that_runs_works_once_that_one_was_stopped(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "PING_SECONDS", 0.05)
    driver = driver_of("transactional")
    context = driver.context
    started = threading.Event()

    def run_until_stopped() -> None:
        with alone(context):
            driver.run(3)
            started.set()
            eventually(lambda: _stopped(driver) == driver.epoch.number, what="what `stop` asks for")
            stop_request.tell_end(context, driver.epoch, "stopped")

    job = threading.Thread(target=run_until_stopped)
    job.start()
    assert started.wait(60)
    text = refusal(lambda: _alone(driver))
    assert "another instance of this job is running" in text
    assert text.endswith("stop it first (`make stop`, or SIGTERM); nothing was started")
    assert stop_request.stop(context, print) == "the job has ended: stopped"
    job.join()
    with alone(context):
        _start(driver)
        driver.send(3)
        driver.batch()
    assert driver.outcome() == EXACT


def _stopped(driver: Driver) -> int:
    """Return the epoch that `stop` has asked to end."""
    head = positions.read(driver.client, driver.settings).head
    return head.stopped if head is not None else 0


def _alone(driver: Driver) -> None:
    with alone(driver.context):
        pytest.fail("two instances run")


@pytest.mark.thorough
def test_a_start_works_once_the_transaction_that_locks_the_folder_was_ended(
    driver_of: DriverOf, yt: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "WAIT_SECONDS", 0.3)
    driver, client = driver_of("transactional"), connect(driver_of("transactional").settings)
    folder = driver.settings.consumer.rpartition("/")[0]
    other = client.start_transaction(timeout=600_000, attributes={})
    yt("lock", folder, "--tx", str(other))
    text = refusal(lambda: _alone(driver))
    (locked,) = re.findall(r"locked: transaction (\S+) \(exclusive\)", text)
    assert text.endswith("have that transaction ended (yt abort-tx), then start again")
    yt("abort-tx", locked)
    with alone(driver.context):
        _start(driver)
        driver.send(3)
        driver.batch()
    assert driver.outcome() == EXACT


def test_of_two_instances_the_newer_one_runs_and_the_older_one_ends(driver_of: DriverOf) -> None:
    older = driver_of("transactional", "window")
    older.run(3)
    newer = replace(older, epoch=Epoch())
    newer.start()
    newer.send(3)
    for use in (older.batch, older.start):
        with pytest.raises(SupersededError) as caught:
            use()
        assert caught.value.remedy == "this one ends; let one instance run"
    newer.batch()
    assert newer.outcome() == EXACT


# -- with Spark ------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_new_output_is_provisioned_migrated_and_filled(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    stream.send(100)
    stream.drain()
    stream.configure(outputs={"output": f"{stream.settings.output}-2"})
    text = refusal(lambda: job_objects.require(stream.context))
    assert f"output {stream.settings.output}: missing\n  -> " in text
    assert text.endswith(
        "new one under this very path run `provision`"
    )  # the former one is like it
    job_objects.provision(stream.context)
    text = refusal(another_process(stream).recover)
    assert text.endswith(ANOTHER_OUTPUT)
    assert migration.migrate(stream.context, stream.tablets)[-1] == MIGRATED
    stream.sent.clear()  # they are in the former output
    after = another_process(stream)
    after.send(100)
    after.drain()
    assert after.is_exact()
