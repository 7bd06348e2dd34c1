"""`submit`: starts the job as an operation of the cluster."""

import argparse
from functools import partial

from ytstream.commands.command import Command, RequiredTables
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext


def _before(context: JobContext) -> None:
    from ..submitting import preflight

    preflight.verify_operations(context.client, context.settings.proxy)


def _without_cluster(context: JobContext, given: argparse.Namespace) -> int | None:
    if not given.dry_run:
        return None
    from ..submitting import submission

    print(submission.rehearse(context, given.config, given.words))
    return 0


def _run(context: JobContext, given: argparse.Namespace) -> int:
    from ..submitting import launch_checks, replacement, version_history
    from ..submitting.submission import submit

    say = partial(print, flush=True)
    if given.replace:
        return replacement.run(context, given.config, given.words, say, force=given.force)
    if given.force:
        raise JobError(
            "--force goes with --replace",
            "FORCE=1 with REPLACE=1; nothing was started",
            code=ErrorCode.USAGE,
        )
    kept = version_history.VersionHistory(context.client, context.settings)
    record = version_history.StoredStartRecord(kept)
    print(submit(context, given.config, given.words, say, launch_checks.LOOKS, record))
    kept.replace(None)
    return 0


def _arguments(parser: argparse.ArgumentParser) -> None:
    back = "replace the running version; roll back if the new one completes no batch"
    parser.add_argument("--replace", action="store_true", help=back)
    again = "with --replace: also replace the same version, or try one that was rolled back"
    parser.add_argument("--force", action="store_true", help=again)
    parser.add_argument("words", nargs="*", metavar="-- WORD", help="arguments of spark-submit")


COMMAND = Command(
    name="submit",
    help="Start the job on the cluster and wait for its first batch.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.NONE,
    changes="the cluster's operations, the job's files and its history of versions",
    before=_before,
    without_cluster=_without_cluster,
)
