"""What is said of a cluster that has another Spark, or a SPYT without an adapter for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.helpers import unconnected
from ytstream.cluster.client import Client
from ytstream.provisioning import cluster_spark
from ytstream.settings.job_settings import Settings

WANTED = "4.2.1"


@pytest.fixture
def settings(client: Client, root: str) -> Settings:
    """A job on Spark 4.2.1 whose cluster has no distribution yet."""
    client.create("map_node", root, recursive=True, ignore_existing=True)
    confs = {
        "spark.ytsaurus.distributives.path": f"{root}/distrib",
        "spark.ytsaurus.spark.version": WANTED,
    }
    return replace(unconnected("transactional").settings, spark=confs)


def _publish(client: Client, root: str, *versions: str) -> None:
    for version in versions:
        path = f"{root}/distrib/{version.replace('.', '/')}/spark-{version}-bin-hadoop3.tgz"
        client.create("file", path, recursive=True)


@pytest.mark.parametrize(
    ("there", "spyt", "answer"),
    [
        (["4.1.4", WANTED], "2.11.2", None),
        (["4.2.0", "4.1.4"], "2.11.2", '"spark.ytsaurus.spark.version" = "4.2.0"'),
        (["3.5.7", "4.1.2", "4.1.10"], "2.11.2", '{"spark_version": "4.1"}'),
        (["3.3.4", "4.0.1"], "2.11.2", "ask the cluster's administrators"),
        ([WANTED, "4.1.4"], "2.10.0", '{"spark_version": "4.1"}'),
        ([WANTED], "2.9.3", '{"spark_version": "3.5"}'),
    ],
)
def test_the_answer_that_fits_is_named(
    client: Client, root: str, settings: Settings, there: list[str], spyt: str, answer: str | None
) -> None:
    _publish(client, root, *there)
    found = [*cluster_spark.problems(client, replace(settings, spyt_version=spyt))]
    assert [remedy for _, remedy in found if answer and answer in remedy] == [
        remedy for _, remedy in found
    ]
    assert bool(found) == (answer is not None)


def test_a_cluster_without_any_distribution_says_nothing(
    client: Client, settings: Settings
) -> None:
    assert not cluster_spark.is_told(client, settings)
    (problem,) = cluster_spark.problems(client, settings)
    assert "ask the cluster's administrators" in problem[1]


def test_an_empty_folder_is_no_distribution(client: Client, root: str, settings: Settings) -> None:
    client.create("map_node", f"{root}/distrib/4/2/1", recursive=True)
    assert cluster_spark.is_told(client, settings)
    assert [*cluster_spark.problems(client, settings)]
