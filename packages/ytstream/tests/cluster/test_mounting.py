"""A table is unmounted for a while, as in a maintenance: a running job waits, and says for what."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from minicluster.testing import Running
from tests.support.helpers import (
    ContextOf,
    StreamOf,
    has_said,
)
from tests.support.job_thread import supervised
from tests.support.server_errors import error
from ytstream import JobError, RestartableError, cli
from ytstream.cluster.client import explained
from ytstream.commands import run
from ytstream.commands.registry import Registry
from ytstream.connector.java_trace import cluster_error
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors import OutageError, UnmountedError
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.log import Event
from ytstream.query import supervisor
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner
from ytstream.recovery import start
from ytstream.recovery.epoch import Epoch
from ytstream.spark.spark_errors import explained_spark
from ytstream_tools.demo.crash_scenario import drained

ROOT = "An error occurred while calling o27.join.\n: java.util.concurrent.CompletionException: x\n"
CODES = (1701, 1702, 1704, 1706, 1707, 1721)
"""A tablet that is not mounted, or between two states."""


def _trace(code: int) -> str:
    return (
        f"{ROOT}Caused by: tech.ytsaurus.core.common.YTsaurusError: 'outer' <== 'inner'; full "
        f'error: {{"code"=1;"message"="outer";"inner_errors"=[{{"code"={code};}};];}}\n'
    )


@pytest.mark.parametrize(
    "cause",
    [
        "java.nio.channels.ClosedChannelException",
        "java.net.ConnectException: Connection refused: /127.0.0.1:1",
        "java.net.UnknownHostException: yt.example.net",
        "io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: /::1",
        "java.io.IOException: Connection reset by peer",
        "javax.net.ssl.SSLHandshakeException: Remote host terminated the handshake",
        "java.util.concurrent.TimeoutException: Request timed out",
        "java.util.concurrent.CancellationException",
        "java.lang.RuntimeException: Cannot get rpc proxies; DataCenter: yt.example.net",
        "tech.ytsaurus.client.rpc.AcknowledgementTimeoutException: Request has timed out",
        "tech.ytsaurus.core.common.YTsaurusError: 'm'; full error: {\"code\"=105;}",
        "java.lang.IllegalStateException: Failed to set transaction into 'CLOSED' state; expected "
        "state: 'ACTIVE'; current state (maybe outdated): 'CLOSED'",
    ],
)
def test_a_cluster_that_cannot_be_reached_is_an_outage(cause: str) -> None:
    assert type(cluster_error(f"{ROOT}Caused by: {cause}\n\tat a.b(C.java:1)\n")) is OutageError


@pytest.mark.parametrize(
    "cause",
    [
        'java.lang.NullPointerException: Cannot invoke "x.build()" because "x" is null',
        "java.lang.ClassCastException: class a cannot be cast to class b",
        "java.lang.IllegalArgumentException: Illegal value 5 for type STRING",
        "java.lang.IllegalStateException: closed",
        "java.lang.NoSuchMethodError: 'void a.b.c()'",
        "java.lang.NoClassDefFoundError: io/netty/channel/Channel",
        "scala.MatchError: None (of class scala.None$)",
        "java.lang.OutOfMemoryError: Java heap space",
        "tech.ytsaurus.core.common.YTsaurusError: 'java.net.x'; full error: {\"code\"=1;}",
    ],
)
def test_an_error_of_a_program_is_no_outage(cause: str) -> None:
    frame = "\tat io.netty.channel.AbstractChannel.close(AbstractChannel.java:1)\n"
    assert cluster_error(f"{ROOT}Caused by: {cause}\n{frame}") is None


@pytest.mark.parametrize("code", CODES)
def test_codes_of_a_table_that_is_not_mounted(code: int) -> None:
    assert type(cluster_error(_trace(code))) is UnmountedError
    with pytest.raises(UnmountedError, match="inner"), explained_spark():
        raise StreamingQueryException(_trace(code))


@pytest.mark.parametrize("code", [1712, 1713, 1725, 1735, 1739, 1740])
def test_codes_of_a_tablet_that_serves_no_requests_now(code: int) -> None:
    """It has too many, a row of it is being committed, or it moves: the job waits."""
    assert type(cluster_error(_trace(code))) is OutageError
    with pytest.raises(OutageError, match="does not serve a tablet now: inner"), explained_spark():
        raise StreamingQueryException(_trace(code))


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        ("java.util.concurrent.TimeoutException\n\tat java.base/java.util.X.y(X.java:1)\n"
         "\tat ytstream.Call.landed(Call.java:1)", OutageError),
        ("YTsaurusError: 'o' <== 'i'; full error: {\"code\"=1702;}", UnmountedError),
        ("YTsaurusError: 'o' <== 'i'; full error: {\"code\"=1725;}", OutageError),
        ("YTsaurusError: 'o' <== 'i'; full error: {\"code\"=901;}", JobError),
        ("YTsaurusError: 'o' <== 'i'; full error: {\"code\"=500;}", RestartableError),
    ],
)  # fmt: skip
def test_a_lookup_that_fails_names_its_reference(cause: str, kind: type[Exception]) -> None:
    what = "cannot look up 41 keys of the reference auctions (//home/auctions)"
    said = f"Task 0 failed (TID 3) (host executor driver): java.lang.RuntimeException: {what}"
    trace = f"{said}\n\tat ytstream.Call.landed(Call.java:1)\nCaused by: {cause}\n"
    with pytest.raises(kind, match=re.escape(f"{what}: ")), explained_spark():
        raise StreamingQueryException(trace)


@pytest.mark.parametrize("code", [1, 1700, 1717])
def test_codes_of_other_failures(code: int) -> None:
    assert cluster_error(_trace(code)) is None


@pytest.mark.thorough
@pytest.mark.spark
def test_a_mistake_in_a_call_of_the_client_is_counted_and_not_waited_for(
    provisioned_of: ContextOf, tablets: Tablets
) -> None:
    context = provisioned_of("transactional")
    own = replace(tablets, settings=context.settings)
    wrong = [{"kind": 5}]
    with pytest.raises(RestartableError, match="Illegal value 5") as caught, own.transaction() as t:
        t.modify(context.settings.ledger, ledger_rows.COLUMNS, wrong)
    assert not isinstance(caught.value, OutageError)


@pytest.mark.spark
@pytest.mark.parametrize("code", CODES)
def test_a_tablet_that_is_not_mounted_is_told_by_both_clients(
    provisioned_of: ContextOf, tablets: Tablets, cluster: Running, code: int
) -> None:
    context = provisioned_of("transactional")
    own = replace(tablets, settings=context.settings)
    said = error(1, "outer", error(code, "inner"))
    for method in ("SelectRows", "select_rows"):
        cluster.client.faults.add(method=method, times=None, action="fail", error=said)
    path = context.settings.ledger
    with pytest.raises(UnmountedError, match="inner"), own.transaction() as transaction:
        transaction.select(f"* from [{path}]")
    with pytest.raises(UnmountedError, match="inner"), explained(context.settings):
        list(context.client.select_rows(f"* from [{path}]"))


@pytest.mark.spark
@pytest.mark.parametrize("name", ["queue", "ledger", "consumer", "output"])
def test_a_start_waits_and_raises_no_epoch(
    provisioned_of: ContextOf, tablets: Tablets, name: str
) -> None:
    context = provisioned_of("transactional")
    own = replace(tablets, settings=context.settings)
    epoch, _ = start.prepare(context, own, Epoch())
    path = _path(context, name)
    client: Any = context.client
    client.unmount_table(path, sync=True)
    runner = QueryRunner(context, None, own, StopSignal(), epoch)  # type: ignore[arg-type]
    with pytest.raises(UnmountedError, match=f"{path} is unmounted, run: yt mount-table {path}"):
        runner.run()
    assert runner.epoch == epoch
    client.mount_table(path, sync=True)


def _path(context: JobContext, name: str) -> str:
    settings = context.settings
    return settings.queues[0] if name == "queue" else str(getattr(settings, name))


@pytest.mark.parametrize("is_operation", [True, False])
def test_a_driver_that_ytsaurus_starts_again_waits_and_a_person_is_told_at_once(
    provisioned_of: ContextOf,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    is_operation: bool,
) -> None:
    context = provisioned_of("transactional")
    client: Any = context.client
    path = context.settings.ledger
    ran: list[JobContext] = []
    monkeypatch.delenv("YT_OPERATION_ID", raising=False)
    if is_operation:
        monkeypatch.setenv("YT_OPERATION_ID", "1-2-3-4")
    monkeypatch.setattr(cli, "load", lambda _: context.settings)
    monkeypatch.setattr(cli, "connect", lambda _: client)
    command = replace(run.COMMAND, run=lambda found, _: ran.append(found))
    monkeypatch.setattr(cli, "registry", lambda: Registry({"run": command}, {}))

    def sleep(_: float) -> None:
        client.mount_table(path, sync=True)

    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    client.unmount_table(path, sync=True)
    code = cli.run("bids", lambda: context.job, ["run"])
    assert (code, len(ran)) == ((0, 1) if is_operation else (1, 0))
    assert ("is unmounted, run: yt mount-table" in caplog.text) == is_operation
    assert ("is unmounted\n  -> run `provision`" in capsys.readouterr().err) != is_operation


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize(
    ("guarantee", "name"),
    [("transactional", "output"), ("transactional", "ledger"), ("at_least_once", "output")],
)
def test_a_running_job_outlives_the_unmount_of_a_table(
    stream_of: StreamOf, caplog: pytest.LogCaptureFixture, guarantee: str, name: str
) -> None:
    caplog.set_level("INFO", logger="job")
    stream = stream_of(guarantee)
    context = stream.context
    client: Any = stream.client
    path = _path(context, name)
    with supervised(stream) as wait:
        wait(lambda: has_said(caplog, Event.RUNNING))
        client.unmount_table(path, sync=True)
        stream.send(50)
        said = f"{path} is unmounted, run: yt mount-table {path} --sync"
        wait(lambda: said in caplog.text)
        client.mount_table(path, sync=True)
        wait(drained(context))
    assert not has_said(caplog, Event.FAILURE)
    assert stream.is_exact() or guarantee == "at_least_once"
