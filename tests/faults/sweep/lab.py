"""A lab: one minicluster and one JVM, in which cases are played one after the other."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from pyspark.sql import SparkSession

from minicluster import testing
from tests.faults.variants import Variant
from tests.support import state_stores
from tests.support.examples import Example, example, played, settings_of
from tests.support.helpers import adopt
from tests.support.jvm import submit_args
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.sealing import completeness
from ytstream_tools.demo.demo_tables import fill_reference
from ytstream_tools.demo.job_sample import Sample

PARTITION_ROWS, WRITE_ROWS, PARTITIONS = 20, 12, 2
"""Rows of one partition in a batch; a task makes two writes of them."""
ODD = 8
"""One row in so many is rejected, so each batch of each queue has some."""
TRIGGER_SECONDS = 0.1
_OF_LOCAL_CHECKPOINTS = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.streaming.minBatchesToRetain",
)


@dataclass
class Lab:
    """What the cases of one worker share."""

    cluster: testing.Running
    spark: SparkSession
    folder: Path
    _empty: str

    def provisioned(
        self, variant: Variant, changed: Callable[[JobContext], JobContext] | None = None
    ) -> tuple[JobContext, Sample]:
        """Empty the cluster, make the variant's objects, and give the session its settings.

        ``changed`` edits the job before.
        """
        testing.empty(self.cluster, self._empty)
        context, sample = context_of(variant, self.cluster.http)
        # It asks for them before each heavy request. The drivers have clients of their own.
        context.client.config["proxy"]["enable_proxy_discovery"] = False  # type: ignore[attr-defined]
        context = changed(context) if changed else context
        with patch.object(job_objects, "LOCAL_QUEUE_TABLETS", PARTITIONS):
            job_objects.provision(context)
        fill_reference(context, sample)
        self.adopt(context)
        if variant.is_listing and not variant.is_stateful:
            # A job has them for a checkpoint on the driver's disk, and that of the listing is on
            # Cypress.
            for key in _OF_LOCAL_CHECKPOINTS:
                self.spark.conf.unset(key)
        return context, sample

    def adopt(self, context: JobContext) -> None:
        """Give the session the settings of a job."""
        adopt(self.spark, context)


def context_of(variant: Variant, proxy: str) -> tuple[JobContext, Sample]:
    """Connect the variant's job to a cluster."""
    made = made_of(variant)
    settings = replace(
        settings_of(made.job, variant.root, proxy=proxy, queues=variant.queues),
        max_rows_per_partition=PARTITION_ROWS,
        dyn_batch_size=WRITE_ROWS,
        trigger_seconds=TRIGGER_SECONDS,
        connector=variant.connector,
        state_store=variant.store if variant.is_stateful else None,
    )
    return JobContext(connect(settings), settings, made.job, guarantee_of(made.job)), made.sample


def made_of(variant: Variant) -> Example:
    """Return the job and its sample; the listing has one output and rejects nothing."""
    rejects = not variant.is_listing
    processing = played(variant.processing)
    return example(variant.guarantee, processing, variant.queues, rejects=rejects, odd=ODD)


@contextmanager
def opened() -> Iterator[Lab]:
    """Start a minicluster and a JVM for the length of the block."""
    from ytstream.spark import session

    os.environ.setdefault("YTSTREAM_SUBMIT_ARGS", submit_args())
    # Once a minute, so only a slow machine would have its requests in a recording.
    with (
        patch.object(completeness, "PERIOD_SECONDS", math.inf),
        testing.start(rpc_proxies=2) as cluster,
        TemporaryDirectory(prefix="proof-") as folder,
    ):
        empty = str(Path(folder, "empty.state"))
        cluster.client.save(empty)
        job = example("transactional", "map").job
        settings = settings_of(job, "//home/none", proxy=cluster.http)
        context = JobContext(connect(settings), settings, job, guarantee_of(job))
        spark = session.open_session(context)
        state_stores.do_not_wait(spark)
        try:
            yield Lab(cluster, spark, Path(folder), empty)
        finally:
            spark.stop()
