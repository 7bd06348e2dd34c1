"""One minicluster and one Spark session for the folder; objects of its own for each test.

Imports nothing that only the template's environment has: the tests run under Spark 3.5 as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
import yt.wrapper.common
import yt.wrapper.default_config
from py4j.java_gateway import JavaClass, JVMView
from pyspark.sql import SparkSession

from minicluster import testing as minicluster
from tests.support.examples import CONNECTOR, example, settings_of
from tests.support.helpers import ContextOf, DriverOf, StreamOf, adopt
from tests.support.jvm import SHARED, submit_args
from tests.support.simulated_driver import Driver
from ytstream.cluster.client import Client, connect
from ytstream.connector.tablet_transactions import Tablets
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream_tools.demo.demo_tables import fill_reference
from ytstream_tools.testing.job_stream import Stream

# ytsaurus-client looks for a module with its version in all of sys.path, before each request.
yt.wrapper.common.get_version = cache(yt.wrapper.common.get_version)
# And it resolves all types of its configuration for each client, of which a transaction makes one.
yt.wrapper.default_config.get_type_hints = cache(yt.wrapper.default_config.get_type_hints)
# The proxies of whoever runs the tests are not for a cluster on this machine; so it looks for none.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"


def _remember_classes() -> None:
    """Let py4j ask the JVM for a class once, which looks for it in all jars, not at each use."""
    look_up = JVMView.__getattr__

    def look_up_once(view: JVMView, name: str) -> object:
        found = look_up(view, name)
        if isinstance(found, JavaClass):
            setattr(view, name, found)
        return found

    JVMView.__getattr__ = look_up_once


_remember_classes()


@pytest.fixture(scope="session")
def cluster() -> Iterator[minicluster.Running]:
    """Start a minicluster; ``.client`` holds its faults, journal and clock."""
    with minicluster.start() as running:
        yield running


@pytest.fixture(scope="session")
def client(cluster: minicluster.Running) -> Client:
    """Connect a ytsaurus-client to the minicluster."""
    return connected_to(cluster)


def connected_to(cluster: minicluster.Running) -> Client:
    """Return a client of that minicluster."""
    job = example("transactional", "map").job
    connected = connect(settings_of(job, "//home/none", proxy=cluster.http))
    # It asks for them before each heavy request. The minicluster has one.
    connected.config["proxy"]["enable_proxy_discovery"] = False  # type: ignore[attr-defined]
    return connected


@pytest.fixture
def root(request: pytest.FixtureRequest) -> str:
    """Name the test's own folder on the cluster."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", f"{request.node.path.stem}/{request.node.name}")
    return f"//home/tests/{name.strip('-')}"


@pytest.fixture
def connector(request: pytest.FixtureRequest) -> str:
    """Name the connector of the test's jobs: the run's, or parametrize(..., indirect=True)."""
    return getattr(request, "param", CONNECTOR)


@pytest.fixture
def context_of(
    client: Client, cluster: minicluster.Running, root: str, connector: str
) -> Iterator[ContextOf]:
    """Connect a job to a folder with nothing in it; no fault outlives the test."""

    def connected(
        guarantee: str, processing: str = "map", queues: int = 1, *, rejects: bool = False
    ) -> JobContext:
        job = example(guarantee, processing, queues, rejects=rejects).job
        settings = settings_of(job, root, proxy=cluster.http, queues=queues)
        settings = replace(settings, connector=connector)
        return JobContext(client, settings, job, guarantee_of(job))

    yield connected
    cluster.client.faults.clear()


@pytest.fixture
def provisioned_of(context_of: ContextOf) -> ContextOf:
    """Connect a job whose objects all exist."""

    def provisioned(
        guarantee: str, processing: str = "map", queues: int = 1, *, rejects: bool = False
    ) -> JobContext:
        context = context_of(guarantee, processing, queues, rejects=rejects)
        job_objects.provision(context)
        fill_reference(context, example(guarantee, processing, queues).sample)
        return context

    return provisioned


@pytest.fixture(scope="session")
def tablets(client: Client, cluster: minicluster.Running) -> Tablets:
    """Start the JVM with SPYT's jars, without Spark; a session that is opened later is in it."""
    from ytstream.spark import session

    others = os.environ.setdefault("YTSTREAM_SUBMIT_ARGS", submit_args())
    with pytest.MonkeyPatch.context() as here:  # not in a process that a later test starts
        here.setenv("YTSTREAM_SUBMIT_ARGS", f"{SHARED} {others}")
        here.setenv("TZ", "Asia/Kolkata")  # as on a machine that is far from Spark's zone
        return session.open_tablets(_of_a_transactional_job(client, cluster))


@pytest.fixture
def driver_of(
    provisioned_of: ContextOf, tablets: Tablets, monkeypatch: pytest.MonkeyPatch
) -> DriverOf:
    """Provision a job whose batches need no Spark."""
    monkeypatch.setattr(job_objects, "LOCAL_QUEUE_TABLETS", 2)

    def driving(
        guarantee: str, processing: str = "map", queues: int = 1, *, rejects: bool = False
    ) -> Driver:
        context = provisioned_of(guarantee, processing, queues, rejects=rejects)
        return Driver(context, replace(tablets, settings=context.settings))

    return driving


@pytest.fixture(scope="session")
def spark(client: Client, cluster: minicluster.Running, tablets: Tablets) -> Iterator[SparkSession]:
    """Open the session of a transactional job, with SPYT in it: the strictest Spark context."""
    from ytstream.spark import session

    opened = session.open_session(_of_a_transactional_job(client, cluster))
    yield opened
    opened.stop()


@pytest.fixture
def stream_of(provisioned_of: ContextOf, spark: SparkSession) -> StreamOf:
    """Provision a job and give the session its settings."""

    def streaming(
        guarantee: str, processing: str = "map", queues: int = 1, *, rejects: bool = False
    ) -> Stream:
        context = provisioned_of(guarantee, processing, queues, rejects=rejects)
        adopt(spark, context)
        made = example(guarantee, processing, queues, rejects=rejects)
        return Stream(context, made.sample, spark)

    return streaming


def _of_a_transactional_job(client: Client, cluster: minicluster.Running) -> JobContext:
    job = example("transactional", "map").job
    settings = settings_of(job, "//home/none", proxy=cluster.http)
    return JobContext(client, settings, job, guarantee_of(job))
