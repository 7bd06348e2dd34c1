"""A state store that fails: the cause at the bottom decides, not Spark's condition around it.

The traces are what Spark 4.1 and SPYT's client gave on a minicluster, without most of the frames.
"""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException

from tests.support.helpers import fails_with
from ytstream import JobError, RestartableError
from ytstream.errors import FullAccountError, OutageError
from ytstream.errors.error_codes import ErrorCode
from ytstream.spark import state_damage
from ytstream.spark.spark_errors import explained_spark

_STATE = "org.apache.spark.sql.execution.streaming.state"
_ANSWERED = (
    "\tat tech.ytsaurus.client.rpc.DefaultRpcBusClient$Session.onMessage(DefaultRpcBus:185)\n"
)
_CLOSED = "\tat tech.ytsaurus.client.bus.DefaultBusChannel.channelDisconnected(DefaultBus:150)\n"

BEGUN = (
    "An error occurred while calling z:ytstream.Output.write.\n"
    ": org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred "
    "during loading state.  SQLSTATE: 58030\n"
    f"\tat {_STATE}.RocksDBStateStoreProvider.loadStateStore(RocksDBStateStoreProvider.scala:764)\n"
    f"Caused by: {_STATE}.StateStoreFailedToGetChangelogWriter: "
    "[CANNOT_LOAD_STATE_STORE.FAILED_TO_GET_CHANGELOG_WRITER] An error occurred during loading "
    "state. Failed to get the changelog writer for state store at version 5. SQLSTATE: 58030\n"
    f"\tat {_STATE}.StateStoreErrors$.failedToGetChangelogWriter(StateStoreErrors.scala:244)\n"
)
"""Of a changelog that cannot be begun, and of one that cannot be finished."""
FINISHED = (
    "An error occurred while calling z:ytstream.Output.write.\n"
    ": org.apache.spark.SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing "
    "state store files for provider RocksDBStateStore[stateStoreId=StateStoreId[ operatorId=0, "
    "partitionId=1, storeName=default ], version=4]. Cannot perform commit during state "
    "checkpoint. SQLSTATE: 58030\n"
    f"\tat {_STATE}.RocksDBStateStoreProvider$RocksDBStateStore.commit(RocksDBStateStorePr:451)\n"
)
_TASK = (
    "An error occurred while calling z:ytstream.Output.write.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 71.0 "
    "failed 1 times, most recent failure: Lost task 0.0 in stage 71.0 (TID 198) (localhost "
    "executor driver): {0}"
)
"""Of the store in memory, whose errors Spark passes on as those of a task."""
_UNANSWERED = (
    "java.util.concurrent.TimeoutException\n"
    "\tat java.base/java.util.concurrent.CompletableFuture.timedGet(CompletableFuture.java:1886)\n"
    "\tat java.base/java.util.concurrent.CompletableFuture.get(CompletableFuture.java:2021)\n"
    "\tat {0}\n"
    "\tat ytstream.Rows.write(Rows.java:90)\n"
)
"""Of a task that has waited for a reply, in the frame that is left out."""
LOADED = (
    "An error occurred while calling z:ytstream.Output.write.\n"
    ": org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred "
    "during loading state.  SQLSTATE: 58030\n"
    f"\tat {_STATE}.RocksDBStateStoreProvider.loadStateStore(RocksDBStateStoreProvider.scala:764)\n"
)
"""Of a store that cannot be read."""


def _answer(code: int, message: str) -> str:
    quoted = message.replace('"', '\\"')
    return (
        f"tech.ytsaurus.core.common.YTsaurusError: '{message}'; full error: "
        f'{{"code"={code};"message"="{quoted}";}}\n{_ANSWERED}'
    )


UNAVAILABLE = _answer(105, "RPC service is unavailable")
FULL = 'Account "tmp" is over disk space limit in medium "default"'
DENIED = 'Access denied for user "robot": "write" permission is not allowed by any matching ACE'
_AROUND = (
    "java.util.concurrent.CompletionException: java.lang.RuntimeException: "
    "java.nio.channels.ClosedChannelException\n\tat tech.ytsaurus.client.rpc.RpcUtil.relayApply"
    "(RpcUtil.java:199)\nCaused by: "
)


def _judged(trace: str) -> Exception:
    with pytest.raises((JobError, RestartableError)) as caught, explained_spark("batch 3-7: "):
        raise StreamingQueryException(trace)
    return caught.value


@pytest.mark.parametrize(
    "trace",
    [
        f"{BEGUN}Caused by: {UNAVAILABLE}",
        f"{BEGUN}Caused by: java.nio.channels.ClosedChannelException\n{_CLOSED}",
        f"{FINISHED}Caused by: {_AROUND}java.nio.channels.ClosedChannelException\n\t... 27 more\n",
        f"{FINISHED}Caused by: {UNAVAILABLE}",
        _TASK.format(f"java.nio.channels.ClosedChannelException\n{_CLOSED}"),
        _TASK.format(UNAVAILABLE),
        _TASK.format(
            "tech.ytsaurus.client.rpc.AcknowledgementTimeoutException: Request acknowledgement "
            f"timed out; requestId: 1-2; proxy: 127.0.0.1:1\n{_ANSWERED}"
        ),
        f"{LOADED}Caused by: {UNAVAILABLE}",
        f"{LOADED}Caused by: {_answer(2100, 'Proxy is banned')}",
        _TASK.format(_UNANSWERED.format("ytstream.Flight.result(Flight.java:42)")),
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: java.lang."
        "RuntimeException: Cannot get rpc proxies; DataCenter: 127.0.0.1 SQLSTATE: XXKST\n",
    ],
)
def test_a_cluster_that_is_away_is_waited_for(trace: str) -> None:
    assert type(_judged(trace)) is OutageError


@pytest.mark.parametrize("trace", [f"{BEGUN}Caused by: ", f"{FINISHED}Caused by: ", _TASK[:-3]])
def test_a_full_account_is_named_and_waited_for(trace: str) -> None:
    error = _judged(f"{trace}{_answer(902, FULL)}")
    assert isinstance(error, FullAccountError)
    assert (error.account, error.code, str(error)) == ("tmp", ErrorCode.QUOTA, FULL)


@pytest.mark.parametrize(
    ("code", "message", "wanted"),
    [
        (900, "User token has expired", ErrorCode.TOKEN),
        (111, "Token is invalid", ErrorCode.TOKEN),
        (901, DENIED, ErrorCode.PERMISSION),
    ],
)
@pytest.mark.parametrize("trace", [BEGUN, FINISHED])
def test_a_token_or_a_permission_ends_the_job_in_its_own_words(
    trace: str, code: int, message: str, wanted: ErrorCode
) -> None:
    error = _judged(f"{trace}Caused by: {_answer(code, message)}")
    assert isinstance(error, JobError)
    assert error.code == wanted
    assert message in error.message


def test_a_connection_between_sparks_own_processes_is_not_the_clusters() -> None:
    """An executor that was lost, or a Python worker that was killed: they are counted."""
    lost = (
        "java.net.ConnectException: Connection refused: n7/10.0.0.7:7079\n\tat io.netty.channel."
        "nio.NioEventLoop.run(NioEventLoop.java:1)\n\tat org.apache.spark.network.client."
        "TransportClientFactory.createClient(TransportClientFactory.java:294)\n"
    )
    worker = (
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n"
        f"{_ANSWERED}Caused by: java.io.EOFException\n\tat java.io.DataInputStream.readInt(D:1)\n"
    )
    # Whoever called it.
    slow = _UNANSWERED.format("org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils:310)")
    for text in (_TASK.format(lost), _TASK.format(worker), _TASK.format(slow)):
        assert type(_judged(text)) is RestartableError


_OF_0 = "//home/job/checkpoint/4/state/0/0"


@pytest.mark.parametrize(
    ("cause", "where"),
    [
        ("java.io.IOException: Stream is corrupted\n", ""),
        ("net.jpountz.lz4.LZ4Exception: Error decoding offset 389 of input buffer\n", ""),
        ("java.io.EOFException: Stream ended prematurely\n", ""),
        ("java.io.EOFException: Unexpected end of ZLIB input stream\n", ""),
        ("java.util.zip.ZipException: invalid entry size (expected 7613 but got 7592 bytes)\n", ""),
        (
            "java.nio.file.NoSuchFileException: /disk/spark-bae4/StateStoreId(opId=0,partId=0,name="
            "default)-99a2/workingDir-81de/metadata\n",
            "partition 0 of operator 0",
        ),
        (
            "org.rocksdb.RocksDBException: block checksum mismatch: stored = 2297023934, computed "
            "= 962183554, type = 4  in /disk/spark-bae4/StateStoreId(opId=0,partId=1,name=default)-"
            "1a27/workingDir-f217/000027.sst offset 938 size 932\n",
            "partition 1 of operator 0",
        ),
        (
            f"java.io.FileNotFoundException: File yt:{_OF_0[1:]}/SSTs/000027-5c14.sst is not found"
            "\n",
            f"{_OF_0}/SSTs/000027-5c14.sst, partition 0 of operator 0",
        ),
    ],
)
def test_a_damaged_file_ends_the_job(cause: str, where: str) -> None:
    damage = state_damage.found_in(f"{LOADED}Caused by: {cause}")
    assert damage is not None
    assert damage.where == where
    error = _judged(f"{LOADED}Caused by: {cause}")
    assert isinstance(error, JobError)
    assert error.code == ErrorCode.STATE_DAMAGED
    assert "transform" not in str(error)
    assert ("--dry-run` names" in error.remedy) == ("/state/" not in where)


@pytest.mark.parametrize("kind", ["changelog", "delta"])
def test_a_missing_file_is_named_with_its_partition(kind: str) -> None:
    condition = {"changelog": "STREAMING_STATE_FILE", "delta": "DELTA_FILE_NOT_EXISTS"}[kind]
    said = f"Node {_OF_0} has no child with key"
    trace = (
        f"{LOADED}Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_"
        f"{condition}] Error reading streaming state file of yt:{_OF_0[1:]}/30.{kind} does not "
        f"exist.\nCaused by: tech.ytsaurus.spyt.fs.YtFileSystemBase$FileNotFound$$anon$1: {_OF_0}\n"
        f"Caused by: {_answer(500, said)}"
    )
    error = _judged(trace)
    assert isinstance(error, JobError)
    assert f"({_OF_0}/30.{kind}, partition 0 of operator 0): {said}" in str(error)


@pytest.mark.parametrize(
    "said",
    [
        "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match existing one.",
        "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] The operator's name differs.",
    ],
)
def test_a_state_of_another_transform_names_transform(said: str) -> None:
    with fails_with(ErrorCode.STATE_DAMAGED) as caught, explained_spark():
        raise StreamingQueryException(said)
    assert "restore the previous transform.py" in caught.value.remedy


@pytest.mark.parametrize(
    "cause",
    [
        "java.io.IOException: No space left on device\n",
        "java.lang.OutOfMemoryError: Java heap space\n",
        "org.rocksdb.RocksDBException: While open a file for random read: Too many open files\n",
        f"{_STATE}.StateStoreUnreleasedThreadError: [CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_"
        "ERROR] RocksDB instance could not be acquired\n",
    ],
)
def test_what_is_not_known_to_be_damage_is_tried_again(cause: str) -> None:
    assert type(_judged(f"{LOADED}Caused by: {cause}")) is RestartableError
