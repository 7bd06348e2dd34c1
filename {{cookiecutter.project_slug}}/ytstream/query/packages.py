"""The Python packages that a kind of job needs besides SPYT's, on the driver and on executors."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas import utils

from ..blame import BRING
from ..errors import JobError
from ..log import say
from .spark_errors import explained_spark


class Found(NamedTuple):
    """What one Python process has of the packages: a line of versions, a line of problems."""

    host: str
    versions: str
    problems: str


def found(packages: Sequence[str]) -> Found:
    """Import the packages here, in the versions that Spark takes."""
    versions, problems = [], []
    for name in packages:
        try:
            versions.append(f"{name} {import_module(name).__version__}")
            getattr(utils, f"require_minimum_{name}_version")()
        except (ImportError, PySparkException) as error:
            problems.append(f"{name}: {str(error) or type(error).__name__}")
    return Found(socket.gethostname(), ", ".join(versions), "; ".join(problems))


def verify_packages(spark: SparkSession, packages: Sequence[str]) -> None:
    """Raise JobError unless the driver and the executors have the packages.

    One task for each core that is known now: an executor that comes later is not asked.
    """
    if not packages:
        return
    context, here = spark.sparkContext, found(packages)
    tasks = context.defaultParallelism
    with explained_spark():
        everywhere = context.parallelize(range(tasks), tasks).map(lambda _: found(packages))
        there = sorted({*everywhere.collect()})
    problems = [f"the driver: {here.problems}"] if here.problems else []
    problems += [f"the executor on {one.host}: {one.problems}" for one in there if one.problems]
    if problems:
        raise JobError(
            "processing needs Python packages that are missing:\n  " + "\n  ".join(problems), BRING
        )
    for one in there:
        if one.versions != here.versions:
            say(
                f"WARNING: the executor on {one.host} has {one.versions}, the driver has "
                f"{here.versions}: take the same, those of pyproject.toml"
            )
