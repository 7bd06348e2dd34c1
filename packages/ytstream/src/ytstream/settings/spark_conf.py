"""Every Spark, SPYT and checkpoint setting of a job, each with its reason: see job_rules.toml."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .job_rules import RULES

SPYT_CONF, SPYT_RELEASES = "//home/spark/conf/global", "//home/spark/conf"
"""What SPYT looks for where [spark] names no other path: the global configuration, the releases,
the Spark distributions."""
SPARK_DISTRIBUTIONS = "//home/spark/distrib"


class ResourceConf(NamedTuple):
    """A size of driver or executors: its name under [submit], Spark's key, the default."""

    name: str
    key: str
    default: str


class Conf(NamedTuple):
    """One setting; ``since`` is the first Spark version that knows it so. A later entry wins."""

    key: str
    value: str
    reason: str
    since: str = "3.5"


def _listed(entries: Sequence[Sequence[str]]) -> tuple[Conf, ...]:
    return tuple(Conf(*entry) for entry in entries)


_CONF = RULES["conf"]
COMMON = _listed(_CONF["common"])
STATELESS = _listed(_CONF["stateless"])
STATEFUL = _listed(_CONF["stateful"])
GUARANTEES: Mapping[str, Sequence[Conf]] = {
    name: _listed(entries) for name, entries in _CONF["guarantee"].items()
}
"""By guarantee."""
STATE_STORES: Mapping[str, Sequence[Conf]] = {
    name: _listed(entries) for name, entries in _CONF["state_store"].items()
}
"""By ``state_store``, for jobs with state."""
LOCAL = _listed(_CONF["local"])
"""A driver that this process starts, on this machine."""
SUBMIT = _listed(_CONF["submit"])
"""Given to spark-submit in addition to the session's."""
COLLECTOR = next(conf.value for conf in SUBMIT if conf.key == "spark.driver.defaultJavaOptions")
"""What every JVM is started with."""
SIZES = (
    ResourceConf("driver_cores", "spark.driver.cores", "1"),
    ResourceConf("driver_memory", "spark.driver.memory", "2g"),
    ResourceConf("executors", "spark.executor.instances", "2"),
    ResourceConf("executor_cores", "spark.executor.cores", "1"),
    ResourceConf("executor_memory", "spark.executor.memory", "4g"),
)
"""What driver and executors get; a user may write each under [submit] or under [spark]. The
defaults are SPYT's (its spark-defaults.conf), but for the driver's memory: the limit of a driver
with 1g is 1.4 GiB, the Python beside the JVM included, and public streaming jobs ran into it."""
READER = _listed(_CONF["reader"])
"""Options of SPYT's reader, one for each queue."""
WRITER: Mapping[bool, Sequence[Conf]] = {
    True: _listed(_CONF["writer_stateful"]),
    False: _listed(_CONF["writer_stateless"]),
}
"""Options of the query, by whether it has state."""
SINK = _listed(_CONF["sink"])
"""Parameters of SPYT's sink, for each micro-batch."""


STATE_MEMORY = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"
"""What a user may give under [spark] although the job has a value for it."""
EXECUTOR_OVERHEAD = "spark.executor.memoryOverhead"
TUNABLE = {STATE_MEMORY, EXECUTOR_OVERHEAD}

ALIASES = ("spark.ytsaurus.", "spark.yt.", "spark.hadoop.yt.")
"""Prefixes under which SPYT reads one setting (SparkConfYsonable, config/package.scala); the first
wins over the others."""
_NEVER = (
    "spark.master", "spark.app.name", "spark.submit.", "spark.sql.streaming.unsupported",
    "spark.sql.streaming.internal.",
)  # fmt: skip
"""Settings that would undo the job's own, and where secrets would be readable."""
_SECRET = ("token", "secret", "password")


def is_protected(key: str) -> bool:
    """Return whether the configuration may not set ``key``, whatever prefix it is written with."""
    tables = (
        COMMON,
        STATELESS,
        STATEFUL,
        *GUARANTEES.values(),
        *STATE_STORES.values(),
        LOCAL,
        SUBMIT,
    )
    ours = {_bare(conf.key) for listed in tables for conf in listed} - TUNABLE
    return (
        _bare(key) in ours or key.startswith(_NEVER) or any(word in key.lower() for word in _SECRET)
    )


def aliases(key: str) -> list[str]:
    """Return the other keys under which SPYT reads the setting ``key``."""
    bare = _bare(key)
    return [] if bare == key else [prefix + bare for prefix in ALIASES if prefix + bare != key]


def _bare(key: str) -> str:
    whole = key.removeprefix("spark.hadoop.") if key.startswith("spark.hadoop.spark.") else key
    for prefix in ALIASES:
        if whole.startswith(prefix):
            return whole.removeprefix(prefix)
    return whole


def of_session(guarantee: str, *, state_store: str | None, spark: str) -> Iterator[Conf]:
    """Yield the settings of a job's session that the Spark version ``spark`` knows.

    ``state_store`` is None for a job without state.
    """
    state = (*STATEFUL, *STATE_STORES[state_store]) if state_store is not None else STATELESS
    listed = (*COMMON, *state, *GUARANTEES[guarantee])
    yield from {conf.key: conf for conf in listed if conf.since <= spark}.values()


def filled(confs: Iterator[Conf], values: Mapping[str, object]) -> dict[str, str]:
    """Return key -> value with the braces filled in; a setting whose value is None is skipped."""
    found: dict[str, str] = {}
    for conf in confs:
        if conf.value.startswith("{"):
            value = values[conf.value.strip("{}")]
            if value is not None:
                found[conf.key] = str(value)
        else:
            found[conf.key] = conf.value
    return found
