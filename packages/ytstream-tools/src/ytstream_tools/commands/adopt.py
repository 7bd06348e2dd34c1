"""`adopt`: from a queue that exists to the columns, sample rows and first logic of the job."""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ytstream.commands.command import Command, RequiredTables, positive
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.settings.job_settings import DEFAULT_CONFIG

from ..repository import root_of
from .capture import names

if TYPE_CHECKING:
    from ..adopt.reference_source import Reference
    from ..adopt.source_rows import SourceRows

_COUNT = 1_000


def _run(context: JobContext, given: argparse.Namespace) -> int:
    from ..adopt import queue_source, reference_source

    paths = [given.queue] if given.queue else context.settings.queues
    if not paths[0].startswith("//"):
        raise JobError(
            f"QUEUE={paths[0]} is not a Cypress path",
            "e.g. //home/shop/orders",
            code=ErrorCode.USAGE,
        )
    take = queue_source.Take(given.take)
    source = queue_source.read_all(context.client, paths, given.count, take)
    references, notes = reference_source.read_all(context, source, given.mask)
    code = _adopt(context, given, replace(source, notes=[*source.notes, *notes]), references)
    if code == 0 and paths[0] not in context.settings.queues:
        print(f"{given.config} does not name {paths[0]}: write it into `queues` there")
    return code


def _without_cluster(context: JobContext, given: argparse.Namespace) -> int | None:
    if given.file is None:
        return None
    if given.queue is not None:
        raise JobError("QUEUE and FROM: give one of them", code=ErrorCode.USAGE)
    from ..adopt import file_source, queue_source, reference_source

    source = file_source.read(given.file, given.count, queue_source.Take(given.take))
    paths = context.settings.references
    references = reference_source.all_unread(context.job, paths, "FROM asks no cluster for it")
    return _adopt(context, given, source, references)


def _adopt(
    context: JobContext,
    given: argparse.Namespace,
    source: "SourceRows",
    references: "Sequence[Reference]" = (),
) -> int:
    from rich.console import Console

    from ..adopt import adoption

    starter = adoption.starter_of(context.job, source, given.mask, given.without, references)
    starter = replace(starter, more_by="" if source.is_whole else _more_by(given))
    ask = adoption.ask_at_terminal()
    root = root_of(context.job.package)
    return adoption.adopt(root, starter, Console(), overwrite=given.overwrite, ask=ask)


def _more_by(given: argparse.Namespace) -> str:
    """Return the command that takes other rows: from all of the queue or, after that, more."""
    is_spread = given.take == "spread"
    options = {
        "QUEUE": given.queue,
        "FROM": given.file,
        "CONFIG": given.config if not given.file and given.config != DEFAULT_CONFIG else None,
        "COUNT": given.count * (10 if is_spread else 1),
        "TAKE": "spread",
        "MASK": ",".join(given.mask),
        "WITHOUT": ",".join(given.without),
    }
    if options["COUNT"] == _COUNT:
        del options["COUNT"]
    words = (f"{name}={shlex.quote(str(value))}" for name, value in options.items() if value)
    return f"make adopt {' '.join(words)}"


def _arguments(parser: argparse.ArgumentParser) -> None:
    said = "default: all of `queues` in the configuration, some rows of each"
    parser.add_argument("--queue", metavar="PATH", help=said)
    said = "read a file instead of a queue: .jsonl, .yson, .parquet, .csv"
    parser.add_argument("--from", dest="file", type=Path, metavar="FILE", help=said)
    said = f"rows to take (default: {_COUNT})"
    parser.add_argument("--count", type=positive, default=_COUNT, help=said)
    said = "which rows; default: newest"
    parser.add_argument("--take", choices=("newest", "spread"), default="newest", help=said)
    said = "hide the values of these columns: equal ones stay equal"
    parser.add_argument("--mask", type=names, default=(), metavar="COLUMN,...", help=said)
    said = "columns to leave out"
    parser.add_argument("--without", type=names, default=(), metavar="COLUMN,...", help=said)
    said = "overwrite files that you have edited, without asking"
    parser.add_argument("--overwrite", action="store_true", help=said)


COMMAND = Command(
    name="adopt",
    help="Write tables.py, sample rows and a first transform() from a queue. Only reads the queue.",
    run=_run,
    arguments=_arguments,
    tables=RequiredTables.NONE,
    writes_tables=True,
    without_cluster=_without_cluster,
    names_cluster=lambda given: given.file is None,
)
