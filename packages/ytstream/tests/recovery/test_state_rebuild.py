"""A damaged state comes back: what the job says of each kind of file, and how it is repaired.

Each case damages the checkpoint of the same job, after 15 batches of which the last ten have their
files. In none of them is a row of the output lost or repeated.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from minicluster.client import Entry
from minicluster.testing import Running
from tests.faults.sweep.points import WRITES
from tests.support.helpers import StreamOf, adopt, another_process, fails_with, head_of
from ytstream import JobError, RestartableError
from ytstream.connector.java import jvm_of
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import batch_history
from ytstream.query import state_rebuild
from ytstream.spark.spark_errors import explained_spark
from ytstream.version import version_of
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, settle, wait

pytestmark = pytest.mark.spark

BATCHES = 15
STORE = "org.apache.spark.sql.execution.streaming.state.StateStore"
REPAIRS = version_of("pyspark") >= "4.2"
"""Spark 4.2 takes an older snapshot by itself (SPARK-54121)."""
Damage = Callable[[bytes], bytes | None]
"""Changes a stored file."""


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x5A]) + data[middle + 1 :]


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _gone(_: bytes) -> None:
    return None


@dataclass(frozen=True)
class Case:
    """A damaged file, and how many batches `rewind state` then executes again; None: it cannot."""

    name: str
    of: str
    """A file of partition 0: "changes", "snapshot" or "sst", and how many newer ones there are."""
    damage: Damage
    again: int | None
    newer: int = 0
    is_harmless: bool = False
    """Whether Spark itself copes with it."""


CASES = (
    Case("a byte of the newest changes", "changes", _flipped, 1),
    Case("the newest changes cut off", "changes", _cut, 1),
    Case("the newest changes gone", "changes", _gone, 1),
    Case("a byte of older changes", "changes", _flipped, 3, newer=2),
    Case("a byte of a snapshot", "snapshot", _flipped, 0, is_harmless=REPAIRS),
    Case("a snapshot cut off", "snapshot", _cut, 0, is_harmless=REPAIRS),
    Case("a snapshot gone", "snapshot", _gone, 0, is_harmless=True),
    Case("a byte of a file of RocksDB", "sst", _flipped, 0, is_harmless=REPAIRS),
    Case("a file of RocksDB gone", "sst", _gone, 0, is_harmless=REPAIRS),
)


@pytest.fixture
def stream(stream_of: StreamOf, store: str) -> Iterator[Stream]:
    """Run a job with so many batches, and a snapshot some batches before the last one."""
    made = stream_of("transactional", "window")
    made.configure(state_store=store)
    adopt(made.spark, made.context)
    conf = made.spark._jsparkSession.sessionState().conf()
    more = {
        "maintenanceInterval": "500ms",
        "maintenanceShutdownTimeout": "5s",
        "minDeltasForSnapshot": "4",
    }
    for key, value in more.items():
        conf.setConfString(f"spark.sql.streaming.stateStore.{key}", value)
    with made.running() as query:
        while head_of(made).batch < BATCHES:
            made.send(40)
            wait(drained(made.context), query)
            settle(query)
        wait(lambda: len(_files(made, "snapshot")) > 2, query)
    # Spark needs the last changes: no snapshot is as new, and none is uploaded any more.
    jvm = jvm_of(made.spark)
    jvm.java.lang.Class.forName(STORE).getMethod("stop", None).invoke(None, None)
    for partition in made.client.list(f"{made.folder}/state/0"):
        for path in _files(made, "snapshot", str(partition)):
            if _version(path) > head_of(made).batch - 3:
                made.client.remove(path)
    yield made
    for key in more:
        conf.unsetConf(f"spark.sql.streaming.stateStore.{key}")


def _files(stream: Stream, of: str, partition: str = "0") -> list[str]:
    """Return the files of a partition, the newest first."""
    path = f"{stream.folder}/state/0/{partition}"
    if of == "sst":  # of the newest snapshot
        data = bytes(stream.client.read_file(_files(stream, "snapshot")[0]).read())
        with zipfile.ZipFile(io.BytesIO(data)) as files:
            listed = json.loads(files.read("metadata").decode().partition("\n")[2])
        return [f"{path}/SSTs/{one['dfsSstFileName']}" for one in listed["sstFiles"]]
    kinds = {"changes": (".changelog", ".delta"), "snapshot": (".zip", ".snapshot")}[of]
    names = [f"{path}/{one}" for one in stream.client.list(path) if str(one).endswith(kinds)]
    # The query may have begun another batch when it was stopped.
    last = head_of(stream).batch + 1
    return sorted((n for n in names if _version(n) <= last), key=_version, reverse=True)


def _version(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0])


def _start(stream: Stream) -> ErrorCode | None:
    """Start the job once; return the code of the error that ends it."""
    try:
        with explained_spark():
            stream.drain()
    except (JobError, RestartableError) as error:
        return error.code
    return None


@pytest.mark.journey
@pytest.mark.parametrize("store", ["rocksdb", "memory"])
def test_each_kind_of_damage(
    stream: Stream, cluster: Running, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cluster.client.save(str(tmp_path / "state"))
    for case in CASES:
        if case.of == "sst" and stream.settings.state_store == "memory":
            continue
        cluster.client.load(str(tmp_path / "state"))
        job = another_process(stream)
        job.sent = list(stream.sent)
        path = _files(stream, case.of)[case.newer]
        data = case.damage(bytes(job.client.read_file(path).read()))
        job.client.remove(path)
        if data is not None:
            job.client.write_file(path, data)
        job.send(40)
        said = _start(job)
        record_property(f"{case.name}: the job", str(said or "goes on"))
        assert said == (None if case.is_harmless else ErrorCode.STATE_DAMAGED), (case.name, path)
        if not case.is_harmless:
            lines = [*state_rebuild.rebuild(job.context, job.spark, job.tablets)]
            record_property(f"{case.name}: rewind state", " | ".join(lines))
            assert sum(": as the ledger has it" in line for line in lines) == case.again, lines
        later = another_process(job)
        later.close()
        outcome = later.outcome()
        record_property(f"{case.name}: rows", f"{outcome.lost} lost, {outcome.duplicated} repeated")
        assert (outcome.lost, outcome.duplicated) == (0, 0), case.name


@pytest.mark.journey
@pytest.mark.parametrize("store", ["rocksdb", "memory"])
def test_a_repair_that_is_killed_is_started_again(
    stream: Stream, cluster: Running, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """At each class of its writes: the first one and the last one."""
    path, control = _files(stream, "changes")[2], cluster.client
    data = bytes(stream.client.read_file(path).read())
    stream.client.write_file(path, _flipped(data))
    control.journal.clear()
    control.record(str(tmp_path), sorted(WRITES))
    list(state_rebuild.rebuild(stream.context, stream.spark, stream.tablets))
    control.record(None)
    killed = _killed_at(control.journal(), tmp_path)
    assert any("rebuilt" in name for name in killed)
    said: Counter[str] = Counter()
    for name, state in killed.items():
        control.load(str(state))
        control.clock.advance(_EXPIRED_SECONDS)
        job = another_process(stream)
        job.sent = list(stream.sent)
        job.send(40)
        # It has either damaged state or that of the repair.
        started = _start(job)
        assert started in (None, ErrorCode.STATE_DAMAGED), name
        if started is not None:
            lines = [*state_rebuild.rebuild(job.context, job.spark, job.tablets)]
            assert sum(": as the ledger has it" in line for line in lines) == 3, name
        later = another_process(job)
        later.close()
        assert later.is_exact(), name
        said[str(started or "goes on")] += 1
    record_property("killed at", len(killed))
    record_property("the job's next start", dict(said))


#: The longest life of a transaction: of SPYT's.
_EXPIRED_SECONDS = 310.0


def _killed_at(entries: Sequence[Entry], folder: Path) -> dict[str, Path]:
    """Return the state after the first and the last write of each class."""
    states = {int(path.stem): path for path in folder.iterdir()}
    found: dict[str, list[int]] = {}
    for entry in entries:
        if entry.n in states:
            where = [entry.args.get(key) for key in ("path", "source_path", "destination_path")]
            about = re.sub(r"[-\d]+|[0-9a-f-]{8,}", "N", " ".join(map(str, filter(None, where))))
            found.setdefault(f"{entry.method} {about}", []).append(entry.n)
    return {
        f"{name} {n}": states[n]
        for name, numbers in found.items()
        for n in {*numbers[:: len(numbers) - 1 or 1]}
    }


@pytest.mark.journey
@pytest.mark.parametrize("store", ["rocksdb", "memory"])
def test_a_partition_without_files_is_left_to_a_person(stream: Stream) -> None:
    """The oldest batches of the checkpoint are not kept any more, so nothing can build it again."""
    stream.client.remove(f"{stream.folder}/state/0/0", recursive=True)
    stream.send(40)
    assert _start(another_process(stream)) == ErrorCode.STATE_DAMAGED
    before = head_of(stream)
    with fails_with(ErrorCode.STATE_DAMAGED) as caught:
        list(state_rebuild.rebuild(stream.context, stream.spark, stream.tablets))
    assert "/state/0/0: the changes of version " in str(caught.value)
    assert head_of(stream) == before


@pytest.mark.thorough
def test_a_batch_that_would_write_other_rows_changes_nothing(stream_of: StreamOf) -> None:
    """Of another transform(): its state would not be the one that the output has come from."""
    stream = stream_of("transactional", "window")
    stream.send(400)
    stream.drain()
    with stream.running() as query:  # a batch without rows writes the windows
        stream.publish([*stream.sample.closing(stream.context.job, stream.sent)])
        wait(lambda: stream.found().total() == stream.wanted().total(), query)
    head = head_of(stream)
    rows = batch_history.newest(stream.client, stream.settings.ledger, head, head.number)
    wrote = [int(row["batch"]) for row in rows if row["rows_written"]["output"]]
    path = f"{stream.folder}/state/0/0/{wrote[-1] + 1}.changelog"
    data = bytes(stream.client.read_file(path).read())
    stream.client.write_file(path, _flipped(data))
    inner = stream.context.job.transform
    stream.redeclare(transform=lambda events: inner(events).where("bids > 1000000"))
    with fails_with(ErrorCode.STATE_DAMAGED):
        list(state_rebuild.rebuild(stream.context, stream.spark, stream.tablets))
    assert bytes(stream.client.read_file(path).read()) == _flipped(data)
    stream.redeclare(transform=inner)
    assert list(state_rebuild.rebuild(stream.context, stream.spark, stream.tablets))
    another_process(stream).close()
    assert stream.is_exact()
