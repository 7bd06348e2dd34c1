"""An object of a running job is deleted, or made again: the error names it, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.helpers import (
    StreamOf,
    has_said,
)
from tests.support.job_thread import end_of
from ytstream.errors.error_codes import ErrorCode
from ytstream.log import Event
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark


def _without_head(stream: Stream) -> None:
    client: Any = stream.client
    client.delete_rows(stream.context.settings.ledger, [{"kind": "head", "number": 0}])


def _without_consumer(stream: Stream) -> None:
    client: Any = stream.client
    client.remove(stream.context.settings.consumer)


def _with_other_output(stream: Stream) -> None:
    client: Any = stream.client
    path = stream.context.settings.output
    client.remove(path)
    schema = [{"name": "event_id", "type": "int64"}, {"name": "more", "type": "int64"}]
    client.create("table", path, attributes={"dynamic": True, "schema": schema})
    client.mount_table(path, sync=True)


def _with_output_that_is_not_atomic(stream: Stream) -> None:
    client: Any = stream.client
    path = stream.context.settings.output
    client.unmount_table(path, sync=True)
    client.set(f"{path}/@atomicity", "none")
    client.mount_table(path, sync=True)


HEAD = (ErrorCode.HEAD_LOST, "`rewind rows`")
CONSUMER = (ErrorCode.NOT_PROVISIONED, "/consumer: missing\n  -> run `provision`")
OUTPUT = (
    ErrorCode.NOT_PROVISIONED,
    "the table has int64, tables.py says utf8\n  -> correct OUTPUTS in tables.py, or",
)
NOT_ATOMIC = (ErrorCode.NOT_PROVISIONED, "/output: has @atomicity = none")


@pytest.mark.parametrize(
    ("guarantee", "deed", "is_idle", "said"),
    [
        ("transactional", _without_head, True, HEAD),
        ("at_least_once", _without_head, False, HEAD),
        ("transactional", _without_consumer, True, CONSUMER),
        ("transactional", _without_consumer, False, CONSUMER),
        ("at_least_once", _without_consumer, False, CONSUMER),
        ("transactional", _with_other_output, False, OUTPUT),
        ("at_least_once", _with_output_that_is_not_atomic, False, NOT_ATOMIC),
    ],
)
def test_the_error_names_the_object_and_what_to_do(
    stream_of: StreamOf,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    guarantee: str,
    deed: Callable[[Stream], None],
    is_idle: bool,
    said: tuple[ErrorCode, str],
) -> None:
    monkeypatch.setattr("ytstream.query.stall_watchdog.LOOK_SECONDS", 0.5)
    caplog.set_level("INFO", logger="job")
    stream = stream_of(guarantee)

    def do() -> None:
        deed(stream)
        if not is_idle:
            stream.send(50)

    error = end_of(stream, lambda: has_said(caplog, Event.RUNNING), do)
    code, text = said
    assert error.code == code
    assert text in str(error)
