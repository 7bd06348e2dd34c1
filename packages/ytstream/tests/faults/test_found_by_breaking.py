"""Mistakes that were accepted or badly reported once: each is refused in words now."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yt.type_info as ti

from tests.support.examples import example
from tests.support.helpers import refusal, unconnected
from ytstream import Column, Job, JobError
from ytstream.declaration.archive import verify_imports
from ytstream.declaration.user_errors import imported, user_code
from ytstream.declaration.validation import verify, verify_configuration
from ytstream.job import own_confs
from ytstream.settings import spark_conf
from ytstream.settings.addresses import is_loopback
from ytstream.settings.job_settings import load
from ytstream.version import version_of
from ytstream_tools.demo import demo_tables

PROTECTED = [
    "spark.ytsaurus.streaming.transactional",
    "spark.hadoop.spark.yt.streaming.transactional",
    "spark.ytsaurus.write.dynBatchSize",
    "spark.ytsaurus.proxy",
    "spark.hadoop.yt.token",
    "spark.master",
    "spark.submit.pyFiles",
    "spark.sql.streaming.unsupportedOperationCheck",
    "spark.sql.streaming.internal.stateStore.partitions",
]


@pytest.mark.parametrize("key", PROTECTED)
def test_a_protected_setting_is_known_under_every_prefix(key: str) -> None:
    assert spark_conf.is_protected(key)


@pytest.mark.parametrize("key", ["spark.executor.memory", "spark.ytsaurus.pool", "spark.yt.x"])
def test_other_settings_are_the_users(key: str) -> None:
    assert not spark_conf.is_protected(key)


DEPENDED_ON = {
    "spark.sql.streaming.stateStore.checkpointFormatVersion": 2,
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": False,
    "spark.sql.streaming.stateStore.stateSchemaCheck": False,
    "spark.sql.streaming.stateStore.formatValidation.enabled": False,
    "spark.sql.streaming.stateStore.commitValidation.enabled": False,
    "spark.sql.streaming.stateStore.forceSnapshotUploadOnLag": True,
    "spark.sql.streaming.statefulOperator.allowMultiple": False,
    "spark.sql.streaming.statefulOperator.checkCorrectness.enabled": False,
    "spark.sql.streaming.statefulOperator.useStrictDistribution": False,
    "spark.sql.streaming.noDataMicroBatches.enabled": False,
    "spark.sql.streaming.numRecentProgressUpdates": 1,
    "spark.sql.streaming.metadataCache.enabled": False,
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": True,
    "spark.sql.error.messageFormat": "MINIMAL",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parser.quotedRegexColumnNames": True,
    "spark.sql.jsonGenerator.ignoreNullFields": False,
    "spark.decommission.enabled": True,
}
"""Settings of Spark that the runtime depends on, with a value that breaks it."""


def _refusal_of(confs: dict[str, object]) -> str:
    """Return why the configuration of a window is refused; empty if it is not."""
    context = unconnected("transactional", "window")
    settings = replace(context.settings, spark=confs)
    try:
        verify_configuration(context.job, settings, context.guarantee)
    except JobError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("key", DEPENDED_ON)
def test_a_setting_that_the_runtime_depends_on_is_refused_by_name(key: str) -> None:
    assert f"[spark] sets {key}: " in _refusal_of({key: DEPENDED_ON[key]})


def test_the_jobs_own_values_may_be_given() -> None:
    """They change nothing, and a team may have one file of settings for several jobs."""
    context = unconnected("transactional", "window")
    own = own_confs(context.job, context.settings, version_of("pyspark"))
    assert {*DEPENDED_ON} <= {*own}
    assert _refusal_of({**own}) == ""
    assert _refusal_of({"spark.sql.ansi.enabled": True}) == ""
    assert _refusal_of({"spark.sql.error.messageFormat": "pretty"}) == ""


def test_spyts_other_names_of_a_setting_are_known() -> None:
    assert "spark.ytsaurus.streaming.transactional" in spark_conf.aliases(
        "spark.yt.streaming.transactional"
    )
    assert spark_conf.aliases("spark.speculation") == []


@pytest.mark.parametrize(
    "proxy",
    [
        "127.0.0.1:80@127.0.0.2",
        "localhost:x@evil.example",
        "localhost:80/../evil.example",
        "http://127.0.0.1:x@evil.example/",
        "localhost:80#",
        "localhost:99999",
        "localhost:abc",
    ],
)
def test_an_address_with_more_than_a_host_and_a_port_is_not_this_machine(proxy: str) -> None:
    assert not is_loopback(proxy)


@pytest.mark.parametrize(
    "line",
    ['proxy = "ftp://x"', 'proxy = "a b"', 'proxy = "http://"', 'consumer = "//home/../job"'],
)
def test_an_address_or_a_path_that_cannot_be_is_refused(tmp_path: Path, line: str) -> None:
    (path := tmp_path / "job.toml").write_text(f'{line}\n[outputs]\noutput = "//a/b"\n')
    assert f"{line.split()[0]} = " in refusal(lambda: load(path, {}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"outputs": [1]}, "outputs: wanted a dict"),
        ({"outputs": {1: []}}, "the name 1 is not a text"),
        ({"queue": None}, "queue=None: wanted a list"),
        ({"reference": 5}, "reference=5: wanted a list"),
        ({"name": None}, "name=None: wanted one line"),
        ({"processing": []}, "processing=[]: wanted one line"),
        ({"name": "a\nb"}, "wanted one line"),
        ({"shuffle_partitions": -3}, "shuffle_partitions=-3: wanted a positive number"),
        ({"most_failures": 0}, "most_failures=0: wanted a positive number"),
        ({"first_pause_seconds": "x"}, "first_pause_seconds='x': wanted a positive number"),
        ({"transform": int}, "transform is not a function"),
        ({"transform": partial(max)}, "transform is not a function"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(changes: dict[str, Any], said: str) -> None:
    job = replace(example("transactional", "map").job, **changes)
    assert said in refusal(lambda: verify(job))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (Column("", "utf8"), "not a column name"),
        (Column("$timestamp", "uint64"), "not a column name"),
        (Column("x" * 300, "utf8"), "not a column name"),
        (Column("Event_ID", "utf8"), "duplicate column name"),
        (Column("x", ti.Optional[ti.Utf8]), "may be null"),
    ],
)
def test_a_column_that_no_table_can_have_is_refused(column: Column, said: str) -> None:
    job = example("transactional", "map").job
    assert said in refusal(lambda: verify(replace(job, queue=[*job.queue, column])))


def test_keys_where_no_key_can_be_are_refused() -> None:
    job = example("transactional", "map").job
    keyed = [Column("a", "int64", key=True)]
    assert "QUEUE cannot be a key" in refusal(lambda: verify(replace(job, queue=keyed)))
    outputs = {"output": keyed}
    assert "has only key columns" in refusal(lambda: verify(replace(job, outputs=outputs)))


def test_an_exit_during_the_import_is_an_error() -> None:
    def leave() -> Job:
        raise SystemExit(0)

    assert "SystemExit" in refusal(lambda: imported(leave))


def test_a_refusal_of_the_users_passes_unchanged() -> None:
    with pytest.raises(JobError, match="mine"), user_code("it failed"):
        raise JobError("mine")


def test_a_broken_file_of_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "broken_job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "old.py").write_text("def x(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "old.py is not valid Python" in refusal(lambda: verify_imports("broken_job"))


def test_sample_rows_stay_out_of_other_clusters() -> None:
    context = unconnected("transactional")
    settings = replace(context.settings, proxy="cluster.example.net")
    sample = example("transactional", "map").sample
    elsewhere = replace(context, settings=settings)
    assert "is not this machine" in refusal(lambda: demo_tables.fill(elsewhere, sample, 1))
