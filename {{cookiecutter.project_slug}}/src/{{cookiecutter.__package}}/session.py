"""The Spark session: every setting beside the reason for it.

Left out on purpose, because Structured Streaming does not read them although SPYT's pages name
them: ``spark.streaming.stopGracefullyOnShutdown`` and its timeout (old DStreams; see supervisor.py
for what stops this job) and ``spark.sql.streaming.adaptiveExecution.enabled`` (exists in no Spark).
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession
from spyt.version import __version__ as SPYT_VERSION

from .errors import JobError
from .guarantee import CONFS as GUARANTEE_CONFS
from .guarantee import NAME as GUARANTEE
from .settings import Settings, token
from .state import CONFS as STATE_CONFS

APP_NAME = "{{ cookiecutter.project_slug }}"

#: A driver that this process starts, on this machine. On a cluster SPYT chooses master and ports.
LOCAL_CONFS: Mapping[str, str] = {
    # Nobody else needs to reach a local driver.
    "spark.driver.host": "127.0.0.1",
    # Nobody else needs to reach a local driver.
    "spark.driver.bindAddress": "127.0.0.1",
    # Any free port: SPYT's defaults name 27001 for every session.
    "spark.driver.port": "0",
    # Any free port, as above.
    "spark.blockManager.port": "0",
    # `status` and the log tell what the local UI would.
    "spark.ui.enabled": "false",
    # What ends the query is said in one line; ERROR for traces.
    "spark.log.level": "OFF",
}


def confs(settings: Settings) -> dict[str, str]:
    """All settings of the job's session on a cluster."""
    common = {
        # The cluster of the configuration.
        "spark.hadoop.yt.proxy": settings.proxy,
        # SPYT 2.11 ships 30s, which one slow tablet exceeds; a request over it ends the query.
        "spark.hadoop.yt.timeout": "300s",
        # RPC proxies of one's own: a restarted proxy ends the batches that it serves.
        "spark.hadoop.yt.proxyRole": settings.proxy_role,
        # Rows per modify_rows; SPYT's 50 000 is half of what a transaction may hold.
        "spark.yt.write.dynBatchSize": str(settings.dyn_batch_size),
        # Else the machine's zone decides about times.
        "spark.sql.session.timeZone": "UTC",
        # A value that cannot be cast stops the job and names itself; SPYT's default (false) writes
        # null instead. Use try_cast where null is what you want.
        "spark.sql.ansi.enabled": "true",
        # Milliseconds; 0, Spark's default, waits for ever for a query that hangs.
        "spark.sql.streaming.stopTimeout": "60000",
        # A speculative copy of a task writes its rows again.
        "spark.speculation": "false",
    }
    chosen = {key: value for key, value in common.items() if value is not None}
    return {**chosen, **STATE_CONFS, **GUARANTEE_CONFS}


def open_session(settings: Settings) -> SparkSession:
    """Start (or, under spark-submit, join) the JVM with SPYT in it, and verify it.

    Raises JobError when Java, SPYT, its patch or a setting is missing or too old.
    """
    # Set by spark-submit, which has started a JVM already.
    local = "PYSPARK_GATEWAY_PORT" not in os.environ
    if local:
        _require_java()
        _prepare_local_environment(settings)
    builder = SparkSession.builder.appName(APP_NAME)
    wanted = confs(settings)
    for key, value in {**wanted, **(LOCAL_CONFS if local else {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    verify(spark, wanted)
    return spark


def verify(spark: SparkSession, wanted: Mapping[str, str]) -> None:
    """Raise JobError unless this session is one in which the guarantee can hold."""
    problems = [
        f"{key} is {found!r}, wanted {value!r}"
        for key, value in wanted.items()
        if (found := spark.conf.get(key, None)) != value
    ]
    if problems:
        raise JobError(
            "the Spark session has other settings: " + "; ".join(problems),
            "remove them from the command line and from the cluster's defaults; beside each stands "
            "its reason, in session.py, guarantee.py or state.py",
        )
    for what, version, least in (("Spark", spark.version, "3.5"), ("SPYT", SPYT_VERSION, "2.11")):
        if _version(version) < _version(least):
            raise JobError(f"{what} {version} is too old", f"{GUARANTEE} needs {what} {least}")
    if not is_patched(spark):
        raise JobError(
            "SPYT's patch of Spark is not in effect: the Java agent is missing",
            "start through `python -m`, make or `make submit`, which set SPARK_CONF_DIR",
        )


def is_patched(spark: SparkSession) -> bool:
    """Whether SPYT's Java agent has rewritten Spark's micro-batch execution.

    The agent renames the original ``runBatch`` (SPYT, MicroBatchExecutionDecorators); without it
    the session works and ``spark.yt.streaming.transactional`` silently does nothing.
    """
    jvm = spark._jvm
    assert jvm is not None
    package = "org.apache.spark.sql.execution.streaming"
    if _version(spark.version) >= (4, 1):
        package += ".runtime"
    cls = jvm.java.lang.Class.forName(f"{package}.MicroBatchExecution")
    return "__runBatch" in {method.getName() for method in cls.getDeclaredMethods()}


def _version(text: str) -> tuple[int, int]:
    numbers = re.findall(r"\d+", text)
    return int(numbers[0]), int(numbers[1])


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    hint = "install Java 17 (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    try:
        command = [java, "-version"]
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    except OSError as error:
        raise JobError(f"no Java: {java} cannot be run: {error.strerror}", hint) from error
    match = re.search(r'version "(\d+)', printed)
    if not match or match[1] not in ("17", "21"):
        found = match[1] if match else printed.strip()[:80]
        raise JobError(f"{java} is Java {found}; Spark with SPYT runs on 17 or 21", hint)


def _prepare_local_environment(settings: Settings) -> None:
    """What must stand before the JVM starts, because only its start script reads it."""
    spyt, pyspark = find_spec("spyt"), find_spec("pyspark")
    if not (spyt and spyt.origin and pyspark and pyspark.origin):
        raise JobError("pyspark and ytsaurus-spyt are not installed here", "run `make setup`")
    # Brings SPYT's jars, its Java agent and its file systems (spark-env.sh, spark-defaults.conf).
    os.environ["SPARK_CONF_DIR"] = str(Path(spyt.origin).parent / "conf")
    # Another Spark in the shell's SPARK_HOME would be started instead of this environment's.
    os.environ["SPARK_HOME"] = str(Path(pyspark.origin).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Not as a conf: PySpark would put it on the JVM's command line for everybody to see.
    os.environ["YT_TOKEN"] = token(settings)
    os.environ.setdefault("YT_USER", os.environ.get("USER", "root"))
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")
