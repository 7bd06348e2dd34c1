"""Tables of static outputs: staged, published once the ledger names them, else removed.

SPYT writes a static table in master transactions, which commit apart from the batch's tablet
transaction. So a batch writes its table into a folder of the job's own and names it in its row of
the ledger; only when that row has committed is the table moved into the output's folder. A move is
one master transaction: a reader finds the whole table, or none. A table that was moved is not
staged any more, so it is never moved twice, whatever its readers do with it.

The folder is next to the ledger and named after it. A checkpoint may be removed or replaced without
it.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from yt.common import YtError

from ..cluster.client import Client, first_line
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..ledger import ledger_rows
from ..log import warn
from ..settings.job_settings import Settings

NAME = re.compile(r"(\d{8,})-(\d{10,})")
"""The names of our tables: epoch and batch."""
FORGOTTEN = (
    "the ledger does not know any more whether its batch has happened: move it into the output's "
    "folder, or remove it"
)
"""Said of a table that forgotten() returns."""
_CHUNK = 1_000
"""Batches that one query asks for."""
AT_ONCE = 200
"""Tables moved per call; signals are checked between calls."""


@dataclass(frozen=True, order=True)
class StagedTable:
    """The rows of one micro-batch in one static output. No batch runs twice in one epoch."""

    output: str
    epoch: int
    batch: int

    @property
    def name(self) -> str:
        """The table's name, staged and in the output's folder: names sort by time."""
        return f"{self.epoch:08}-{self.batch:010}"

    def path_in(self, settings: Settings) -> str:
        """Return where the table is until it is published."""
        return f"{settings.staging}/{self.output}/{self.name}"


def written(client: Client, settings: Settings) -> list[StagedTable]:
    """Return all staged tables; those of one output are in the order of time."""
    try:
        found = client.get(settings.staging)
    except YtError as error:
        if error.is_resolve_error():
            return []
        raise
    folders = found if isinstance(found, Mapping) else {}  # a job without STATIC does not look
    return sorted(
        StagedTable(str(output), int(match[1]), int(match[2]))
        for output, names in folders.items()
        for name in (names if isinstance(names, Mapping) else ())
        if (match := NAME.fullmatch(str(name)))
    )


def named(
    client: Client, settings: Settings, tables: Sequence[StagedTable]
) -> dict[StagedTable, str]:
    """Return those of the tables that a batch of the ledger names, with the path it gives them."""
    batches = sorted({(table.epoch, table.batch) for table in tables})
    chunks = [batches[start : start + _CHUNK] for start in range(0, len(batches), _CHUNK)]
    paths = {
        StagedTable(str(output), int(row["epoch"]), int(row["batch"])): str(path)
        for chunk in chunks
        for row in client.select_rows(ledger_rows.tables_query(settings.ledger, chunk))
        for output, path in ledger_rows.tables_of(row).items()
    }
    return {table: paths[table] for table in tables if table in paths}


def forgotten(
    client: Client, settings: Settings, tables: Iterable[StagedTable], last: int
) -> set[StagedTable]:
    """Return the tables whose batches may have had a row in the ledger that is gone by now.

    Batches are numbered from 1 to ``last``, the head's, in the order of epoch and batch. So a batch
    has not happened if the rows around its place have successive numbers. The job itself removes
    the oldest rows; a person may have removed any.
    """
    if not (tables := set(tables)):
        return set()
    counts = [*client.select_rows(ledger_rows.count_query(settings.ledger))]
    is_whole = any(int(row["rows"]) == last - int(row["first"]) + 1 for row in counts)
    query = ledger_rows.first_query if is_whole else ledger_rows.numbers_query
    edges = [((0, -1), 0)]
    for row in client.select_rows(query(settings.ledger)):
        edges.append(((int(row["epoch"]), int(row["batch"])), int(row["number"])))
    if not is_whole:
        edges.append(((sys.maxsize, 0), last + 1))
    gaps = [(low, high) for (low, was), (high, now) in pairwise(edges) if now > was + 1]
    return {t for t in tables if any(low < (t.epoch, t.batch) < high for low, high in gaps)}


class NameTakenError(JobError):
    """Something else has the name of a table that is to be published: only a person can decide."""


def publish(
    client: Client, settings: Settings, tables: Mapping[StagedTable, str]
) -> tuple[set[StagedTable], list[JobError]]:
    """Move the tables to their paths; return those that are published, and why others are not.

    In the order of time: after a table that has to wait, later ones of its output wait, too. A
    reader that remembers the last name it has seen misses none. No more than AT_ONCE.
    """
    done: set[StagedTable] = set()
    problems: dict[str, JobError] = {}
    for table, path in sorted(tables.items()):
        if len(done) == AT_ONCE:
            break
        if table.output in problems:
            continue
        problem = _move(client, table.path_in(settings), path)
        if problem is None:
            done.add(table)
        else:
            problems[table.output] = problem
    return done, [*problems.values()]


def _move(client: Client, source: str, target: str) -> JobError | None:
    try:
        client.move(source, target)
    except (YtError, OSError) as error:
        if isinstance(error, YtError) and error.is_already_exists():
            return NameTakenError(
                f"{target} exists already, and this job did not write it",
                f"move it away: {source} takes its place",
            )
        with suppress(YtError, OSError):
            if not client.exists(source):
                _verify_published(client, source, target)
                return None
        return JobError(
            f"{target} cannot be published yet: {first_line(error)}", code=ErrorCode.NOT_PUBLISHED
        )
    return None


def _verify_published(client: Client, source: str, target: str) -> None:
    """Say so when a table is neither staged nor published, without a move of this process.

    The reply to that move was lost, or another process was faster; then the table is published.
    """
    if not client.exists(target):
        warn(
            f"{source} is gone, and {target} is not there: unless a reader has removed it "
            "just now, its rows are lost; the ledger's row of that epoch and batch names the rows "
            "of the queues, and `rewind` reads them again"
        )


def remove(client: Client, settings: Settings, tables: Iterable[StagedTable]) -> None:
    """Remove tables that no batch names; one that an older driver still writes stays for now."""
    for table in tables:
        try:
            client.remove(table.path_in(settings), force=True)
        except YtError:
            continue
