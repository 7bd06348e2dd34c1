"""`rehearse`: the deployed commit and the working tree over the same rows, outputs compared.

Of the real cluster it reads ledger, queues and reference, and writes nothing there.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ytstream.cluster.client import Client
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger import batch_history, ledger_rows
from ytstream.text_table import counted

from ..demo.guard import guarded
from ..repository import root_of
from . import batch_rows, captured_references, differences, revisions
from .batch_rows import CapturedBatch
from .version_run import ClusterInput, RehearsedVersion, replay, source, spark_of

DIFFERS = 5
"""The exit code when an output differs."""
MOST_BATCHES = 1_000

Say = Callable[[str], None]


@dataclass(frozen=True)
class RehearsalRequest:
    """What to rehearse, and with which versions."""

    config: Path
    batches: int = 20
    """How many of the last batches, or those that ended after a time."""
    since: datetime | None = None
    commit: str | None = None
    """The commit to compare with; None: the one that is deployed."""
    without: Collection[str] = ()
    """Columns that do not count."""
    python: str = sys.executable
    """The interpreter that runs the commit."""


def rehearse(context: JobContext, wanted: RehearsalRequest, say: Say) -> int:
    """Compare and tell; return the exit code. Raises JobError where that is not possible."""
    root = root_of(context.job.package)
    sparks = spark_of(wanted.python), spark_of(sys.executable)
    numbers = _numbers(context, wanted)
    commit = revisions.resolved(root, wanted.commit or revisions.deployed(context))
    given = _taken(context, numbers, say)
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as name, guarded(folder=name):
        folder = Path(name)
        before = folder / "before"
        revisions.extract(root, commit, before)
        if not (before / "src" / context.job.package).is_dir():
            raise JobError(
                f"commit {commit[:12]} has no src/{context.job.package}",
                "name a commit of this job: --commit REVISION",
                code=ErrorCode.COMMIT_UNKNOWN,
            )
        config, package = wanted.config, context.job.package
        versions = [
            RehearsedVersion(
                f"commit {commit[:12]}",
                package,
                before,
                _config(root, before, config),
                wanted.python,
            ),
            RehearsedVersion("the working tree", package, root, config.resolve()),
        ]
        found = []
        for version, spark in zip(versions, sparks, strict=True):
            batches = counted(len(given.parts), "batch")
            say(f"{version.name}: {batches} on a minicluster, Spark {spark}")
            found.append(replay(version, given, context, folder))
    return _told(found[0], found[1], wanted.without, say)


def _numbers(context: JobContext, wanted: RehearsalRequest) -> range:
    """Return the numbers of the batches."""
    head, (client, path) = batch_rows.head_of(context), _ledger(context)
    first = max(1, head.number - wanted.batches + 1)
    if wanted.since is not None:
        last = batch_history.at(client, path, head, wanted.since)
        oldest = max(1, head.number - ledger_rows.kept(head) + 1)
        first = int(last["number"]) + 1 if last is not None else oldest
    if (count := head.number + 1 - first) > MOST_BATCHES:
        raise JobError(
            f"those are {count} batches, and all their rows would be in memory at once",
            f"name a later time, or --batches N with at most {MOST_BATCHES}",
            code=ErrorCode.USAGE,
        )
    if first > head.number:
        raise JobError(
            "the ledger has no batch of that time",
            "`status` lists the last batches",
            code=ErrorCode.NO_BATCH,
        )
    return range(first, head.number + 1)


def _taken(context: JobContext, numbers: range, say: Say) -> ClusterInput:
    """Read the rows of the batches. Raises JobError if none is left."""
    parts, trimmed = list[CapturedBatch](), list[str]()
    for row in batch_history.batches(*_ledger(context), numbers):
        rows, lines = batch_rows.rows_of(context, ledger_rows.ranges_of(row))
        trimmed += lines
        if rows:
            parts.append(
                CapturedBatch(ledger_rows.batch_name(int(row["epoch"]), int(row["batch"])), rows)
            )
    for line in trimmed:
        say(f"not rehearsed: {line}")
    if not parts:
        raise JobError(
            f"no row of {counted(len(numbers), 'batch')} is left in the queues",
            "name more batches, or let the queues keep their rows longer",
            code=ErrorCode.NO_ROWS,
        )
    rows_read = sum(len(part.rows) for part in parts)
    say(f"read {counted(rows_read, 'row')} of {counted(len(parts), 'batch')}, "
        f"{parts[0].name} to {parts[-1].name}")  # fmt: skip
    rows = [row for part in parts for row in part.rows]
    at = batch_rows.looked_up_in(context, parts[-1].name)
    if at and len(parts) > 1:
        say(f"lookup() reads the references as of the last of them, {parts[-1].name}")
    looked_up = captured_references.of(context, rows, at, say)
    return source(context, parts, batch_rows.reference_of(context), looked_up)


def _told(
    before: dict[str, differences.OutputRows],
    after: dict[str, differences.OutputRows],
    without: Collection[str],
    say: Say,
) -> int:
    is_equal = True
    for name in {**before, **after}:
        if name not in before or name not in after:
            say(f"{name}: an output only {'after' if name in after else 'before'}")
            is_equal = False
            continue
        found = differences.difference(before[name], after[name], without)
        is_equal &= found.is_equal
        for line in differences.lines(name, found, before[name].key):
            say(line)
    say("equal" if is_equal else "not equal")
    return 0 if is_equal else DIFFERS


def _ledger(context: JobContext) -> tuple[Client, str]:
    return context.client, context.settings.ledger


def _config(root: Path, before: Path, config: Path) -> Path:
    """Return the configuration as the commit has it, else that of the working tree."""
    config = config.resolve()
    if config.is_relative_to(root.resolve()):
        own = before / config.relative_to(root.resolve())
        return own if own.is_file() else config
    return config
