"""A cluster that runs operations, and a job that can be submitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from minicluster import testing as minicluster
from tests.support.examples import example, settings_of
from tests.support.waiting import eventually
from ytstream.cluster import operation
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.provisioning import cluster_spark, job_objects
from ytstream.settings.resources import sizes_of
from ytstream_tools.submitting import preflight
from ytstream_tools.submitting.launch_plan import LaunchPlan

ME = "//home/spark"


@pytest.fixture(scope="module")
def running() -> Iterator[minicluster.Running]:
    """Start a minicluster that runs operations."""
    with minicluster.start(operations=True) as cluster:
        yield cluster


@pytest.fixture
def context(running: minicluster.Running, request: pytest.FixtureRequest) -> Iterator[JobContext]:
    """Connect a job whose objects all exist, on a cluster with SPYT: a map, or as a test says."""
    job = example("transactional", getattr(request, "param", "map")).job
    root = f"//home/{abs(hash(request.node.name))}"
    settings = settings_of(job, root, proxy=running.http)
    made = JobContext(connect(settings), settings, job, guarantee_of(job))
    job_objects.provision(made)
    _publish_spyt(made)
    yield made
    running.client.faults.clear()
    for found in made.client.list_operations(limit=100)["operations"]:
        if found["state"] not in operation.FINAL:
            made.client.abort_operation(found["id"], message="the test is over")


@pytest.fixture(autouse=True)
def _of_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example's package has no files of its own, whose imports would be looked at."""
    monkeypatch.setattr(preflight, "_imports", lambda _: None)


def ended(context: JobContext, id_: str) -> operation.Operation:
    """Wait for the end of an operation."""

    def final() -> operation.Operation | None:
        found = operation.get(context.client, id_)
        return found if found is not None and found.is_final else None

    return cast(operation.Operation, eventually(final))


def _publish_spyt(made: JobContext) -> None:
    """Make what a submit looks for: configurations, a release, a distribution."""
    client: Any = made.client
    version = cluster_spark.spark_version(made.settings).replace(".", "/")
    package = f"{ME}/spyt/releases/2.11.2/spyt-package.zip"
    release = f"{ME}/conf/releases/{made.settings.spyt_version}/spark-launch-conf"
    for path in (package, f"{ME}/distrib/{version}/spark.tgz"):
        client.create("file", path, recursive=True, ignore_existing=True)
    for path, value in (
        (f"{ME}/conf/global", {"environment": {}}),
        (release, {"file_paths": [package]}),
    ):
        client.create("document", path, recursive=True, ignore_existing=True)
        client.set(path, value)


def plan_of(context: JobContext, folder: Path, *words: str) -> LaunchPlan:
    """Plan a submit from a repository in ``folder``."""
    config = folder / "config" / "production.toml"
    config.parent.mkdir(exist_ok=True)
    (folder / "main.py").touch()
    sizes = sizes_of(context.settings, words)
    dist = folder / "dist"
    dist.mkdir(exist_ok=True)
    package = dist / "job.zip"
    return LaunchPlan(
        context,
        sizes,
        dist,
        folder / "main.py",
        dist / config.name,
        package,
        words,
        "1.2",
        "abc",
    )
