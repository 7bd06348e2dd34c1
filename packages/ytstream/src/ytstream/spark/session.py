"""The Spark session: opened with the settings of job_rules.toml, and verified."""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ..connector import early_jvm, local_environment
from ..connector.java_home import require_java
from ..connector.local_environment import QUICK, ZONE
from ..connector.python_functions import make_safe
from ..connector.spyt import is_patched
from ..connector.tablet_transactions import Tablets
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..log import warn
from ..settings import os_user, spark_conf
from ..version import __version__, version_of
from . import jvm_process
from .jvm_process import ended_by_interrupt, explained_jvm, within
from .node_packages import verify_packages
from .spark_errors import cause, explained_spark

CLOSE_SECONDS = 30.0
"""How long Spark may take to close."""
STARTING = f"ytstream {__version__}: starting Spark with SPYT (10 to 20 s)"


def open_session(
    context: JobContext,
    java: str = spark_conf.COLLECTOR,
    begun: Callable[[Any], object] = lambda jvm: None,
) -> SparkSession:
    """Start (or, under spark-submit, join) the JVM with SPYT in it, and verify it.

    ``java`` has the options of a JVM that is started. ``begun`` is called with it before Spark
    starts in it.

    Raises JobError when Java, SPYT, its patch, a setting or a Python package that the job needs is
    missing or too old.
    """
    _live_in_utc()
    make_safe(version_of("pyspark"))
    # Set by spark-submit, which has started a JVM already.
    local = "PYSPARK_GATEWAY_PORT" not in os.environ
    if local and not early_jvm.has_begun():
        require_java()
        local_environment.prepare(context.settings, java)
    # It logs the whole trace of a batch that fails; the supervisor says why in one line.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName(context.job.name)
    wanted = context.session_settings(version_of("pyspark"))
    more = spark_conf.filled(iter(spark_conf.LOCAL if local else ()), {})
    for key, value in {**wanted, **more}.items():
        builder = builder.config(key, value)
    if local:
        begun(_prepared_jvm())
    try:
        with explained_jvm():
            spark = builder.getOrCreate()
    except (Py4JJavaError, PySparkException) as error:
        raise JobError(
            f"Spark does not start: {cause(str(error))}",
            "correct `[spark]` in the configuration",
            code=ErrorCode.SPARK_CONF,
        ) from error
    verify_session(spark, wanted)
    verify_packages(spark, context.job.kind.packages)
    return spark


@contextmanager
def opened(context: JobContext, java: str = spark_conf.COLLECTOR) -> Iterator[SparkSession]:
    """Give a session to a command, with Spark's errors explained."""
    print(STARTING, flush=True)
    spark = open_session(context, java)
    try:
        with ended_by_interrupt(), explained_spark():
            yield spark
    finally:
        if java != QUICK or not jvm_process.tell_to_end():
            close(spark)


def close(spark: SparkSession, beside: Executor | None = None) -> None:
    """End the session, unless the JVM is gone, and the threads that call it ``beside``.

    SparkContext.stop waits for a thread of its own without a limit (ContextCleaner.stop), and that
    one for as long as a request of a dead task hangs. What has not ended in time is left to
    jvm.leave_if_hung(): nothing is written any more.
    """

    def end() -> None:
        spark.stop()
        if beside is not None:
            beside.shutdown()

    if not within(CLOSE_SECONDS, end):
        warn(f"Spark does not close within {CLOSE_SECONDS:.0f} s; this process ends anyway")


def open_tablets(context: JobContext) -> Tablets:
    """Start the JVM with SPYT's jars and no Spark in it, for tablet transactions.

    Raises JobError without Java.
    """
    require_java()
    local_environment.prepare(context.settings)
    return Tablets(jvm_process.started(), context.settings)


def verify_session(spark: SparkSession, wanted: Mapping[str, str]) -> None:
    """Raise JobError unless this session is one in which the guarantee can hold."""
    problems = [
        f"{key} is {found!r}, wanted {value!r}"
        for key, value in wanted.items()
        if (found := spark.conf.get(key, None)) != value
    ]
    # SPYT reads a setting under several prefixes, and one of them wins over ours.
    problems += [
        f"{alias} is {found!r}, but {key} is {value!r}"
        for key, value in wanted.items()
        for alias in spark_conf.aliases(key)
        if alias not in wanted and (found := spark.conf.get(alias, None)) not in (None, value)
    ]
    if problems:
        raise JobError(
            "the Spark session has other settings: " + "; ".join(problems),
            "remove them from the command line and from the cluster's defaults; `make confs` shows "
            "the reason for each",
            code=ErrorCode.SPARK_CONF,
        )
    spyt = version_of("spyt")
    for what, version, least in (("Spark", spark.version, "3.5"), ("SPYT", spyt, "2.11")):
        if _version(version) < _version(least):
            raise JobError(
                f"{what} {version} is too old",
                f"this runtime needs {what} {least}",
                code=ErrorCode.SPYT_VERSION,
            )
    if not is_patched(spark, is_before_4_1=_version(spark.version) < (4, 1)):
        raise JobError(
            "SPYT's patch of Spark is not in effect: the Java agent is missing",
            "start through `python -m`, make or `make submit`, which set SPARK_CONF_DIR",
            code=ErrorCode.SPYT_PATCH,
        )


def _live_in_utc() -> None:
    """Give this process the session's zone: PySpark takes a datetime of transform() for local."""
    os.environ["TZ"] = ZONE
    time.tzset()


def _prepared_jvm() -> Any:
    """Start the JVM, and do what must be done in it before Spark starts. Raises JobError."""
    started = jvm_process.started()
    jvm_process.verify_native_libraries(started)
    if name := os_user.missing_name():
        jvm_process.log_in(started, name)
    return started


def _version(text: str) -> tuple[int, int]:
    numbers = re.findall(r"\d+", text)
    return int(numbers[0]), int(numbers[1])
