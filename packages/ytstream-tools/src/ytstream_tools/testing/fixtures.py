"""One minicluster and one Spark session for all tests; objects of its own for each test."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import replace

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from minicluster import testing as minicluster
from ytstream import log
from ytstream.cluster.client import Client, connect
from ytstream.declaration.user_errors import place
from ytstream.declaration.validation import verify, verify_configuration
from ytstream.errors import JobError
from ytstream.guarantees import guarantee_of
from ytstream.job import Connection, Job
from ytstream.provisioning import job_objects
from ytstream.settings import environment
from ytstream.settings.job_settings import Settings, load
from ytstream.spark import session
from ytstream.spark.spark_errors import cause

from ..demo.demo_tables import fill_reference
from ..demo.sample import Sample
from ..repository import root_of
from .stream import Stream


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Tell a mistake of the user's files in one line: Spark's traces are long, and hide where."""
    try:
        return (yield)
    except JobError as error:
        problem = str(error)
    except (PySparkException, Py4JJavaError) as error:
        problem = f"{cause(str(error))}{place(error)}\n  -> correct that line"
    except Exception as error:
        where = place(error)
        if isinstance(error, AssertionError) or not where or item.path.name in where:
            raise
        problem = f"{type(error).__name__}: {error}{where}\n  -> correct that line"
    pytest.fail(problem, pytrace=False)


pytest_runtest_setup = pytest_runtest_call


@pytest.fixture(scope="session")
def cluster() -> Iterator[minicluster.Running]:
    """Start a minicluster; ``.client`` holds its faults, journal and clock."""
    environment.leave_clusters()
    with minicluster.start() as running:
        yield running


@pytest.fixture(scope="session")
def base_settings(cluster: minicluster.Running, job: Job) -> Settings:
    """Read config/local.toml, for the minicluster of the tests.

    Raises JobError for a declaration that the commands refuse.
    """
    verify(job)
    settings = load(root_of(job.package) / "config" / "local.toml", {"YT_PROXY": cluster.http})
    verify_configuration(job, settings, guarantee_of(job))
    return settings


@pytest.fixture(scope="session")
def client(base_settings: Settings) -> Client:
    """Connect a ytsaurus-client to the minicluster."""
    return connect(base_settings)


@pytest.fixture(scope="session")
def spark(job: Job, client: Client, base_settings: Settings) -> Iterator[SparkSession]:
    """Open the job's own Spark session, with SPYT in it."""
    log.set_up()  # PySpark's own logger repeats every error with the JVM's whole trace
    connection = Connection(client, base_settings, job, guarantee_of(job))
    opened = session.open_session(job_objects.sized(connection))
    yield opened
    opened.stop()


@pytest.fixture
def connection(
    client: Client, base_settings: Settings, job: Job, request: pytest.FixtureRequest
) -> Connection:
    """Give the test a folder of its own on the cluster; nothing is in it yet."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", request.node.name).strip("-")
    return Connection(
        client, in_folder(base_settings, f"//home/tests/{name}"), job, guarantee_of(job)
    )


@pytest.fixture
def stream(
    connection: Connection, sample: Sample, spark: SparkSession, cluster: minicluster.Running
) -> Iterator[Stream]:
    """Provision a job for the test; no fault outlives it."""
    job_objects.provision(connection)
    fill_reference(connection, sample)
    yield Stream(connection, sample, spark)
    cluster.client.faults.clear()


def in_folder(settings: Settings, root: str) -> Settings:
    """Return the settings with all objects in ``root``, and frequent triggers."""
    return replace(
        settings,
        trigger_seconds=0.2,
        queues=tuple(f"{root}/queue-{number}" for number in range(len(settings.queues))),
        consumer=f"{root}/consumer",
        checkpoint=f"{root}/checkpoint",
        ledger=f"{root}/ledger",
        outputs={name: f"{root}/{name}" for name in settings.outputs},
        reference=settings.reference and f"{root}/reference",
    )
