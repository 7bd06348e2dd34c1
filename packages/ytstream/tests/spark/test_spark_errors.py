"""Spark's exceptions become one line, and some of them a reason to start again."""

from __future__ import annotations

import subprocess
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import (
    AnalysisException,
    PySparkRuntimeError,
    SparkRuntimeException,
    StreamingQueryException,
)
from pyspark.sql import SparkSession

from tests.support.helpers import (
    fails_with,
    refusal,
    unconnected,
)
from ytstream import JobError, RestartableError
from ytstream.connector import early_jvm
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees.transactional import FENCE, FENCED
from ytstream.spark import jvm_process, session
from ytstream.spark.spark_errors import cause, explained_spark

TRACE = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
=== Streaming Query ===
Caused by: org.apache.spark.SparkException: outer
\tat somewhere(Some.scala:1)
Caused by: java.lang.IllegalStateException: the tablet is not mounted
\tat elsewhere(Else.scala:2)
"""


IN_A_WORKER = (
    'PythonException: Traceback (most recent call last):\n  File "worker.py", line 1, in main\n'
)


def test_the_innermost_cause_is_the_line() -> None:
    assert cause(TRACE) == "java.lang.IllegalStateException: the tablet is not mounted"


def test_an_error_of_the_cluster_is_said_once() -> None:
    said = "YTsaurusError: 'the tablet is on strike'"
    assert cause(f'{said}; full error: {{"code"=1;"message"="the tablet is on strike";}}') == said


def test_a_text_without_causes_is_itself() -> None:
    assert cause("simply wrong\n  at x") == "simply wrong"


def test_a_python_worker_that_was_killed_is_named() -> None:
    text = (
        "Job aborted due to stage failure: Lost task 0.0 in stage 3.0: SparkException: Python "
        "worker exited unexpectedly (crashed)\n\tat somewhere(Some.scala:1)\n"
        "Caused by: java.io.EOFException\n\tat elsewhere(Else.scala:2)\n"
    )
    assert cause(text) == "Python worker exited unexpectedly (crashed)"


def test_a_message_without_content_is_passed_over() -> None:
    text = "[STREAM_FAILED] Query [id = 1] terminated with exception: SQLSTATE: XXKST\nreason\n"
    assert cause(text) == "reason"
    assert cause("SQLSTATE: XXKST") == "Spark has given no reason"
    assert cause("[X] no column. SQLSTATE: 42703") == "[X] no column. SQLSTATE: 42703"


def test_a_python_function_is_quoted_by_its_last_line_and_the_users_line() -> None:
    trace = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Task failed: PythonException: "
        'Traceback (most recent call last):\n  File "jobs.zip/bids/transform.py", line 9, in f\n'
        '  File "jobs.zip/ytstream/user_errors.py", line 1, in g\n'
        "ZeroDivisionError: division by zero\n\n\tat org.apache.spark.Some(Some.scala:1)"
    )
    assert cause(trace) == "ZeroDivisionError: division by zero (transform.py:9)"


def test_a_stream_that_ends_may_be_started_again() -> None:
    with pytest.raises(RestartableError, match="the tablet is not mounted"), explained_spark():
        raise StreamingQueryException(TRACE)


@pytest.mark.parametrize("kind", [StreamingQueryException, SparkRuntimeException])
def test_a_task_that_the_fence_kept_out_may_be_started_again(kind: type[Exception]) -> None:
    """As Spark 4 gives it, of the query or of a batch's own call: no mistake of transform()."""
    assert FENCED in FENCE
    said = f"[USER_RAISED_EXCEPTION] {FENCED}, its first attempt may have written rows"
    with pytest.raises(RestartableError, match="a second time"), explained_spark():
        raise kind(said)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("[CAST_INVALID_INPUT] 'x' is not a number", r"correct transform\.py"),
        ("[USER_RAISED_EXCEPTION] wrong row", r"correct transform\.py"),
        ("IllegalArgumentException: json_of: broken YSON, no key", r"correct transform\.py"),
        (f"{IN_A_WORKER}ModuleNotFoundError: No module named 'pandas'", "come to a cluster"),
        (f"{IN_A_WORKER}ImportError: Pandas >= 2 must be installed", "come to a cluster"),
        (
            'Error validating column "at" <== Value 18384576854509551616 is out of allowed range',
            "between 1970 and 2105; `capture failed`",
        ),
        (
            'Value of type "string" is too long for dynamic data: length 2, limit 1',
            "shorten the value in transform.py, or keep such rows out",
        ),
    ],
)
def test_a_failure_that_every_try_repeats_ends_the_job(said: str, remedy: str) -> None:
    with (
        pytest.raises(JobError, match=rf"the job cannot continue: [\s\S]*{remedy}"),
        explained_spark(),
    ):
        raise StreamingQueryException(said)


@pytest.mark.thorough
def test_a_command_names_the_jvm_that_ended_under_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the cluster, nor the error of the session's end."""

    def refuse() -> None:
        raise ConnectionRefusedError("no")

    monkeypatch.setattr(session, "open_session", lambda *_: SimpleNamespace(stop=refuse))
    with (
        fails_with(ErrorCode.JVM_ENDED),
        session.opened(unconnected("transactional")),
    ):
        refuse()


def test_a_jvm_that_has_begun_and_failed_is_explained_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PySpark tries again: it says why."""

    def fail(gateway: object) -> None:
        assert gateway is None
        raise PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")

    begun = early_jvm.Begun(subprocess.Popen(["false"]), TemporaryDirectory())
    monkeypatch.setattr(early_jvm, "_BEGUN", [begun])
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", fail)
    with fails_with(ErrorCode.JVM_ENDED):
        jvm_process.started()
    assert not early_jvm.has_begun()


def test_a_session_that_does_not_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class WrongConfError(Py4JJavaError):  # type: ignore[misc]
        def __init__(self) -> None:
            said = "An error occurred while calling None.\n: java.lang.Error: 8 cores\n\tat a.B"
            Exception.__init__(self, said)

        def __str__(self) -> str:
            return str(self.args[0])

    def refuse(_: object) -> None:
        raise WrongConfError

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse)
    said = refusal(lambda: session.open_session(unconnected("transactional")))
    assert said.startswith("Spark does not start: java.lang.Error: 8 cores\n")
    assert said.endswith("correct `[spark]` in the configuration")


def test_a_plan_that_spark_refuses_ends_the_job() -> None:
    with pytest.raises(JobError, match="committed rows are kept"), explained_spark():
        raise AnalysisException("[UNRESOLVED_COLUMN] price")


def test_a_jvm_that_is_gone_ends_the_job() -> None:
    with fails_with(ErrorCode.JVM_ENDED), explained_spark():
        raise ConnectionRefusedError("no")


def test_the_description_of_the_query_is_not_taken_for_the_cause() -> None:
    text = "=== Streaming Query ===\nIdentifier: [id = 1]\n"
    assert cause(f"\n{text}") == "Identifier: [id = 1]"
    assert cause(f"java.lang.ExceptionInInitializerError\n{text}").startswith("java.lang.Exception")


@pytest.mark.parametrize(
    "said",
    [
        "java.lang.UnsatisfiedLinkError: libsnappyjava.so: failed to map segment",
        "java.lang.NoClassDefFoundError: Could not initialize class org.xerial.snappy.Snappy",
        "java.lang.NoClassDefFoundError: Could not initialize class org.rocksdb.RocksDB",
    ],
)
def test_a_native_library_that_cannot_be_loaded_names_the_folder(said: str) -> None:
    with fails_with(ErrorCode.TEMPORARY_FOLDER) as caught, explained_spark():
        raise StreamingQueryException(f"{said}\n=== Streaming Query ===\n")
    assert "-Djava.io.tmpdir=FOLDER" in caught.value.remedy


def test_an_executor_without_the_connector_is_named() -> None:
    """No start gives it the jar, and SPYT's writer would replace totals."""
    said = "Caused by: java.lang.ClassNotFoundException: ytstream.Adding\n\tat java.base/java.net\n"
    with fails_with(ErrorCode.PACKAGES), explained_spark():
        raise StreamingQueryException(said)
