"""Every setting that a job emits is one that the pinned Spark or SPYT knows, with its reason."""

from __future__ import annotations

import re
import zipfile
from functools import cache
from pathlib import Path

import pytest

from local_extensions import versions
from local_extensions.versions import SPARK
from tests.support.sparks import SPARKS
from ytstream.settings import spark_conf

SPARK_JARS = (
    "spark-core", "spark-sql", "spark-catalyst", "spark-sql-api", "spark-common-utils",
    "spark-network-common", "spark-launcher",
)  # fmt: skip
SPYT_PREFIXES = ("spark.hadoop.yt.", "spark.ytsaurus.", "spark.yt.")
"""SPYT names a setting without its prefix and reads it under each of these."""
ROCKSDB_PREFIX = "spark.sql.streaming.stateStore.rocksdb."
ENVIRONMENT_PREFIX = "spark.executorEnv."
FOLKLORE = (
    "spark.streaming.stopGracefullyOnShutdown",
    "spark.streaming.gracefulStopTimeout",
    "spark.sql.streaming.adaptiveExecution.enabled",
)
"""Settings of the documentation that do nothing."""
_LISTED = (
    *spark_conf.COMMON,
    *spark_conf.STATELESS,
    *spark_conf.STATEFUL,
    *(conf for listed in spark_conf.GUARANTEES.values() for conf in listed),
    *(conf for listed in spark_conf.STATE_STORES.values() for conf in listed),
    *spark_conf.LOCAL,
    *spark_conf.SUBMIT,
)
EMITTED = {conf.key: conf for conf in reversed(_LISTED)}
"""Every setting that a job emits, as its first Spark version knows it; options of SPYT's reader and
writer are not settings."""
SCALA = {spark.name: spark.scala for spark in versions.SPARKS}


@cache
def _words(folder: Path, pattern: str) -> bytes:
    """Return all class files of the jars of ``folder`` that match, one after another."""
    pieces = []
    for jar in sorted(folder.glob(pattern)):
        with zipfile.ZipFile(jar) as archive:
            pieces += [
                archive.read(name)
                for name in archive.namelist()
                if re.search(r"(?i)conf|setting|package|scheduler|submit|launcher|ytsaurus", name)
                and name.endswith(".class")
            ]
    return b"".join(pieces)


def _is_known(key: str, packages: Path, scala: str) -> bool:
    for prefix in SPYT_PREFIXES:
        if key.startswith(prefix):
            classes = _words(packages / "spyt" / "jars" / f"scala-{scala}", "tech.*.jar")
            name = key.removeprefix(prefix)
            # A name put together at run time leaves its last part behind the place of the first
            # (a recipe of StringConcatFactory from Scala 2.13 on).
            last = "." + name.rpartition(".")[2]
            return any(_constant(text) in classes for text in (key, name, last, f"\x01{last}"))
    jars = packages / "pyspark" / "jars"
    if key.startswith(ENVIRONMENT_PREFIX):  # what follows is the name of a variable
        key = ENVIRONMENT_PREFIX
    if key.startswith(ROCKSDB_PREFIX):  # RocksDBConf puts prefix and name together
        words = _words(jars, "spark-sql_*.jar")
        names = (ROCKSDB_PREFIX.removesuffix("."), key.removeprefix(ROCKSDB_PREFIX))
        return all(_constant(text) in words for text in names)
    return any(_constant(key) in _words(jars, f"{name}_*.jar") for name in SPARK_JARS)


def _constant(text: str) -> bytes:
    """Return a text as a class file holds it: its length, then its bytes."""
    return len(text).to_bytes(2, "big") + text.encode()


@pytest.mark.parametrize("spark", SPARKS)
@pytest.mark.parametrize("key", sorted(EMITTED))
def test_the_setting_exists(environments: dict[str, Path], key: str, spark: str) -> None:
    packages = next((environments[spark] / "lib").glob("python3.*")) / "site-packages"
    is_emitted = spark >= EMITTED[key].since
    assert _is_known(key, packages, SCALA[spark]) == is_emitted


@pytest.mark.parametrize("spark", SPARKS)
@pytest.mark.parametrize("store", [*spark_conf.STATE_STORES, None])
def test_the_class_that_a_setting_names_exists(
    environments: dict[str, Path], spark: str, store: str | None
) -> None:
    packages = next((environments[spark] / "lib").glob("python3.*")) / "site-packages"
    (jar,) = packages.glob(f"pyspark/jars/spark-sql_{SCALA[spark]}*.jar")
    values = [
        conf.value
        for conf in spark_conf.of_session("transactional", state_store=store, spark=spark)
    ]
    named = [value for value in values if value.startswith("org.apache.spark.")]
    with zipfile.ZipFile(jar) as archive:
        found = {*archive.namelist()}
    assert named
    assert [name for name in named if f"{name.replace('.', '/')}.class" not in found] == []


def test_a_word_that_nobody_knows_is_found_out(environments: dict[str, Path]) -> None:
    packages = next((environments[SPARK] / "lib").glob("python3.*")) / "site-packages"
    assert not _is_known("spark.sql.streaming.adaptiveExecution.enabled", packages, SCALA[SPARK])
    assert not _is_known("spark.yt.write.dynBatchSizes", packages, SCALA[SPARK])


def test_each_has_its_reason() -> None:
    assert [key for key, conf in EMITTED.items() if len(conf.reason) < 20] == []


@pytest.mark.parametrize("key", FOLKLORE)
def test_what_does_nothing_is_left_out(key: str) -> None:
    assert key not in EMITTED
