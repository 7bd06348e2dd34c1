"""`replay-rejected`: rejected rows go through transform() again."""

import argparse

from ytstream import log
from ytstream.commands.command import Command
from ytstream.job import Connection
from ytstream.provisioning import job_objects


def _run(connection: Connection, given: argparse.Namespace) -> None:
    from ytstream.query import pipeline, supervisor
    from ytstream.spark import session

    from ..replay import rejected_replay

    rejected_replay.verify_job(connection.job)  # before Spark's start
    if not given.dry_run:
        rejected_replay.verify_keys(connection, replace=given.replace)
    connection = job_objects.sized(connection)
    with session.opened(connection) as spark:
        known = supervisor.read_reference(spark, connection)
        flow = pipeline.flow_of(spark, connection, known)
        if given.dry_run:
            said = rejected_replay.rehearse(
                spark, connection, flow, remove_dropped=given.remove_dropped
            )
            print(*said, sep="\n")
        else:
            chosen = {"replace": given.replace, "remove_dropped": given.remove_dropped}
            print(rejected_replay.replay(spark, connection, flow, log.say, **chosen))


def _arguments(parser: argparse.ArgumentParser) -> None:
    may = "rejected rows may replace rows with the same key"
    parser.add_argument("--replace", action="store_true", help=may)
    leave = "rows that transform() drops leave `rejected`"
    parser.add_argument("--remove-dropped", action="store_true", help=leave)


COMMAND = Command(
    name="replay-rejected",
    help="Put rejected rows that transform.py accepts now into the outputs; the job may run.",
    run=_run,
    arguments=_arguments,
    starts_jvm=True,
    changes="the outputs and `rejected`",
)
