"""`replay-rejected`: rejected rows go through transform() again."""

import argparse

from ytstream import log
from ytstream.commands.command import Command
from ytstream.job import JobContext
from ytstream.provisioning import job_objects


def _run(context: JobContext, given: argparse.Namespace) -> None:
    from ytstream.query import pipeline, supervisor
    from ytstream.spark import session

    from ..replay import rejected_replay, reread

    rejected_replay.verify_job(context.job)  # before Spark's start
    reread.head_of(context)
    if not given.dry_run:
        rejected_replay.verify_keys(context, replace=given.replace)
        rejected_replay.verify_alone(context)
    context = job_objects.sized(context)
    with session.opened(context) as spark:
        known = supervisor.read_reference(spark, context)
        flow = pipeline.flow_of(spark, context, known)
        if given.dry_run:
            said = rejected_replay.rehearse(
                spark, context, flow, log.say, remove_dropped=given.remove_dropped
            )
            print(*said, sep="\n")
        else:
            chosen = {"replace": given.replace, "remove_dropped": given.remove_dropped}
            print(rejected_replay.replay(spark, context, flow, log.say, **chosen))


def _arguments(parser: argparse.ArgumentParser) -> None:
    may = "rejected rows may replace rows with the same key"
    parser.add_argument("--replace", action="store_true", help=may)
    leave = "rows that transform() or outputs() drops leave `rejected`"
    parser.add_argument("--remove-dropped", action="store_true", help=leave)


COMMAND = Command(
    name="replay-rejected",
    help=(
        "Move rejected rows that transform.py now accepts into the outputs. The job can run, "
        "unless it has totals in tables, MERGE or archives."
    ),
    run=_run,
    arguments=_arguments,
    starts_jvm=True,
    changes="the outputs and `rejected`",
)
