"""The Python packages that a processing type needs in addition to SPYT's, on all nodes."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from ..declaration.user_errors import BRING
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..log import warn
from .spark_errors import cause

# A worker that is asked for its packages imports nothing of this runtime.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class ProcessPackages(NamedTuple):
    """The packages as one Python process has them: a line of versions, a line of problems."""

    host: str
    versions: str
    problems: str


def found(packages: Sequence[str]) -> ProcessPackages:
    """Import the packages in this process, in versions that its PySpark takes."""
    versions, problems = [], []
    for name in packages:
        try:
            versions.append(f"{name} {import_module(name).__version__}")
            utils = import_module("pyspark.sql.pandas.utils")
            getattr(utils, f"require_minimum_{name}_version")()
        except Exception as error:  # a package built for another one raises anything
            problems.append(str(error) if name in str(error).lower() else f"{name}: {error}")
    return ProcessPackages(socket.gethostname(), ", ".join(versions), "; ".join(problems))


def verify_packages(spark: SparkSession, packages: Sequence[str]) -> None:
    """Raise JobError unless the driver and the executors have the packages.

    One task for each core that is known now: an executor that comes later is not asked.
    """
    if not packages:
        return
    context, here = spark.sparkContext, found(packages)
    tasks = context.defaultParallelism
    try:
        everywhere = context.parallelize(range(tasks), tasks).map(lambda _: found(packages))
        there = sorted({*everywhere.collect()})
    except Py4JJavaError as error:  # a broken package may end a worker while it starts
        raise JobError(
            f"Python does not work on an executor: {cause(str(error))}",
            BRING,
            code=ErrorCode.PACKAGES,
        ) from error
    problems = [f"the driver: {here.problems}"] if here.problems else []
    problems += [f"the executor on {one.host}: {one.problems}" for one in there if one.problems]
    if problems:
        raise JobError(
            f"this processing needs {' and '.join(packages)}:\n  " + "\n  ".join(problems),
            BRING,
            code=ErrorCode.PACKAGES,
        )
    for one in there:
        if one.versions != here.versions:
            warn(
                f"the executor on {one.host} has {one.versions}, the driver has "
                f"{here.versions}: give both what pyproject.toml names"
            )
