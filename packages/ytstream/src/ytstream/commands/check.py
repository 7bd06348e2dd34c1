"""`check`: verifies the job before it runs."""

import argparse
from itertools import chain

from ..declaration import archive, reject_conditions
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..provisioning import (
    archives,
    capacity,
    cluster_spark,
    job_objects,
    permissions,
    retention,
)
from ..recovery import start
from ..version import version_of
from .command import Command, RequiredTables


def _run(context: JobContext, given: argparse.Namespace) -> None:
    if given.user is not None and given.permissions is None:
        raise JobError(
            "--user goes with --permissions", "add it, or leave --user out", code=ErrorCode.USAGE
        )
    if given.permissions is not None:
        print(permissions.check(context, given.permissions, given.user))
        return
    from ..connector import choose_connector
    from ..query import pipeline, supervisor
    from ..spark import node_packages, session

    print(job_objects.check(context))
    for remark in chain(
        retention.remarks(context.client, context.settings),
        capacity.remarks(context),
        archives.remarks(context),
        reject_conditions.remarks(context.job.reject, context.settings.spark_confs),
        reject_conditions.remarks(context.job.warn, context.settings.spark_confs, "WARN"),
    ):
        print(f"remark: {remark}")
    if cluster_spark.is_told(context.client, context.settings):
        for problem, remedy in cluster_spark.problems(context.client, context.settings):
            print(f"remark: {problem}\n  -> {remedy}")
    for note in start.preview(context):
        print(f"at the next start: {note}")
    archive.verify_data_files(context.job.package)
    if not context.settings.submit.brings_packages:
        archive.verify_imports(context.job.package, context.job.kind.packages)
    context = job_objects.sized(context)
    with session.opened(context) as spark:
        flow = pipeline.flow_of(spark, context, supervisor.read_reference(spark, context))
        version, connector = spark.version, choose_connector.line(spark, context.settings)
    for remark in flow.remarks():
        print(f"remark: {remark}")
    if wanted := context.job.kind.packages:
        found = node_packages.found(wanted).versions
        print(f"\npackages ok: {found}, here and on the executors")
    print(
        f"\nsession ok: Spark {version}, SPYT {version_of('spyt')}, patch in effect, "
        f"checkpoint {context.values['checkpoint_uri']}\n{connector}\n"
        f"{'outputs()' if context.job.split else 'transform()'} ok: the columns of OUTPUTS"
    )


def _arguments(parser: argparse.ArgumentParser) -> None:
    roles = ("job", "operator", "rehearsal", "on-call")
    parser.add_argument(
        "--permissions", nargs="?", choices=roles, const="job", metavar="|".join(roles),
        help="check only the permissions of this role (default: job)",
    )  # fmt: skip
    whose = "whose permissions (default: the user of the token)"
    parser.add_argument("--user", metavar="NAME", help=whose)


COMMAND = Command(
    name="check",
    help="Check tables, offsets, session and the plan of transform(). Changes nothing.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.NONE,
    starts_jvm=True,
)
