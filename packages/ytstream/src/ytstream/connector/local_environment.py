"""The environment and the options of a JVM with Spark on this machine. Loads no PySpark."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..settings import environment, os_user, spark_conf
from ..settings.job_settings import Settings, token
from ..settings.plain_path import plain

ZONE = "UTC"
"""The zone of the session and of Python (job_rules.toml): results do not depend on the machine's.
"""
QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:-UseParallelGC -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""For a JVM that computes a few rows for somebody who waits: it has no use for its second compiler,
for a collector with threads of its own, or for verifying the classes of released jars."""
METASPACE = "-XX:MetaspaceSize=256m"
"""Spark's classes fill 150 MiB. Java's own first limit is 21 MiB, and at each limit up to there it
collects all of its memory: four times until the first batch has ended. Nothing is reserved."""


def folders_of_sources() -> list[str]:
    """Return where this process finds modules that are not installed: its Python workers must too.

    pytest, for instance, is told so in a file, and a worker is another process.
    """
    installed = (sys.prefix, sys.base_prefix)
    return [
        path for path in sys.path if path and not any(map(Path(path).is_relative_to, installed))
    ]


def prepare(settings: Settings, java: str = spark_conf.COLLECTOR) -> None:
    """Set the variables that the JVM's start script reads."""
    spyt, pyspark = find_spec("spyt"), find_spec("pyspark")
    if not (spyt and spyt.origin and pyspark and pyspark.origin):
        raise JobError(
            "pyspark and ytsaurus-spyt are not installed here",
            "run `make setup`",
            code=ErrorCode.NOT_INSTALLED,
        )
    given = token(settings)
    ours = {
        # Brings SPYT's jars, its Java agent and its file systems (spark-env.sh,
        # spark-defaults.conf).
        "SPARK_CONF_DIR": str(plain(Path(spyt.origin).parent) / "conf"),
        "SPARK_HOME": str(plain(Path(pyspark.origin).parent)),
        "PYSPARK_PYTHON": sys.executable,
        "TZ": ZONE,
        "PYTHONPATH": os.pathsep.join(folders_of_sources()),
        # Not as a conf: PySpark would put it on the JVM's command line, which every user can read.
        # Under both names: SPYT prefers the second (YtClientConfiguration), ytsaurus-client the
        # first.
        "YT_TOKEN": given,
        "YT_SECURE_VAULT_YT_TOKEN": given,
    }
    # spark-class starts a JVM that prints the command of the other one. SPYT's spark-env.sh gives
    # it the agent, unless the variable is set.
    agents = Path(spyt.origin).parent.glob("jars/common/*spyt-patch-agent*.jar")
    launcher = " ".join((*(f"-javaagent:{plain(agent)}" for agent in agents), QUICK))
    ours["SPARK_LAUNCHER_OPTS"] = launcher
    if name := os_user.missing_name():
        ours["SPARK_USER"] = name
        java = f"{java} {os_user.java_options(name)}"
    local = f"--driver-java-options '{java} {METASPACE}' --master local[2] pyspark-shell"
    environment.prepare_spark(os.environ, ours, local)
    # SPYT's own warns of the machine's name and native libraries, and writes a folder logs/. In the
    # archive of a cluster this is not a file, which log4j would call an error.
    if (quiet := Path(__file__).with_name("log4j2.properties")).is_file():
        os.environ.setdefault("LOG4J_CONFIGURATION_FILE", str(plain(quiet.parent) / quiet.name))
