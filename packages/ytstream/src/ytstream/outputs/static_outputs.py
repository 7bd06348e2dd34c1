"""Static outputs: each micro-batch is a table of its own, for readers that do not stream.

The thread of the batches writes tables into the staging folder. The thread that follows the query
publishes them, under every guarantee, once the head of the ledger says that their batch has
happened. So it trusts neither the reply to a commit nor Spark's progress.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from yt import yson
from yt.common import YtError

from ..cluster.client import Client
from ..errors import JobError
from ..job import JobContext
from ..ledger.positions import read_head
from ..log import say, warn
from ..recovery.epoch import Epoch
from ..schema.columns import Column
from ..schema.table_schema import table_schema
from ..settings.job_settings import Settings
from ..staging import staged_tables
from ..staging.staged_tables import NameTakenError, StagedTable
from .output_frames import Frames

PAUSE_SECONDS = 15.0
"""After a table that cannot be published the next try is so much later."""


@dataclass
class StaticTables:
    """The tables that one query has staged and not published yet."""

    epoch: Epoch
    waiting: dict[StagedTable, str] = field(default_factory=dict)
    """Their batch has happened."""
    _written: dict[StagedTable, str] = field(default_factory=dict)
    """Their batch is under way, or its outcome is not known yet."""
    _next: float = 0.0
    _said: frozenset[str] = frozenset()

    def settle(self, client: Client, settings: Settings) -> None:
        """Before the query: publish what the ledger names, and remove the rest.

        No older epoch can commit any more, so what the ledger does not name by now it never will. A
        table that cannot be published yet, for instance since a reader has locked the folder, waits
        in the running job. One that the ledger cannot judge stays. Raises NameTakenError for one
        whose name something else has.
        """
        found = staged_tables.written(client, settings)
        self.waiting = staged_tables.named(client, settings, found)
        # Only of older epochs: a newer driver may be writing its first table.
        orphans = {table for table in found if table.epoch < self.epoch.number}
        orphans -= self.waiting.keys()
        head = read_head(settings.ledger, client.select_rows)
        forgotten = staged_tables.forgotten(client, settings, orphans, head.number if head else 0)
        for table in sorted(forgotten):
            warn(f"{table.path_in(settings)}: {staged_tables.FORGOTTEN}")
        staged_tables.remove(client, settings, orphans - forgotten)
        for problem in self._publish(client, settings):
            if isinstance(problem, NameTakenError):
                raise problem

    def write(self, context: JobContext, frames: Frames, number: int) -> dict[str, int]:
        """Write the rows of each static output into the staging folder; return their numbers.

        A batch that fails after this leaves tables that no row of the ledger names.
        """
        job, settings = context.job, context.settings
        counts = {}
        for output in [name for name in job.outputs if name in job.snapshots and name in frames]:
            table = StagedTable(output, self.epoch.number, number)
            path = table.path_in(settings)
            rows = context.guarantee.fenced(frames[output])
            _write(context.client, rows, path, job.output_columns[output])
            # An observation would count what a second attempt of a task has read, too.
            counts[output] = int(context.client.get(f"{path}/@row_count"))
            if counts[output]:
                self._written[table] = f"{settings.outputs[output]}/{table.name}"
            else:
                context.client.remove(path, force=True)
        return counts

    def tables(self, number: int) -> dict[str, str]:
        """Return the paths that the batch's tables will have, by output."""
        written = dict(self._written)  # the other thread removes what it publishes
        return {table.output: path for table, path in written.items() if table.batch == number}

    def publish(self, client: Client, settings: Settings, now: float) -> None:
        """Publish the tables whose batch has happened, unless the last try was a moment ago.

        A failure is logged once, and tried again.
        """
        if now < self._next or not (self.waiting or self._written):
            return
        self._next = now + PAUSE_SECONDS
        with suppress(YtError, OSError):  # the watch tells of an outage
            head = read_head(settings.ledger, client.select_rows)
            if head is None or head.folder != self.epoch.number:
                return  # a newer driver publishes them all
            for table in [table for table in dict(self._written) if table.batch <= head.batch]:
                self.waiting[table] = self._written.pop(table)
            if not self._publish(client, settings):
                self._next = now

    def _publish(self, client: Client, settings: Settings) -> Sequence[JobError]:
        done, problems = staged_tables.publish(client, settings, self.waiting)
        for table in done:
            del self.waiting[table]
        lines = frozenset(map(str, problems))
        for line in sorted(lines - self._said):
            warn(f"{line}; trying again")
        if self._said and not lines:
            say("tables are published again")
        self._said = lines
        return problems


def _write(client: Client, rows: DataFrame, path: str, columns: Sequence[Column]) -> None:
    """Write a new table with the columns of OUTPUTS; SPYT's rows are in it all at once, or none.

    SPYT would make each text a string, so the table is made first. Hints tell SPYT the types of the
    values, which it takes from Spark's otherwise: an unsigned number would go as a signed one. It
    knows no timestamp without a time zone; the session's zone is UTC.
    """
    schema = table_schema(columns).to_yson_type()
    client.create("table", path, recursive=True, attributes={"schema": schema})
    bare = table_schema([replace(column, required=True) for column in columns]).to_yson_type()
    hints = {c["name"]: yson.dumps(c["type_v3"], yson_format="text").decode() for c in bare}
    for name in [name for name, kind in rows.dtypes if kind == "timestamp_ntz"]:
        rows = rows.withColumn(name, rows[f"`{name}`"].cast("timestamp"))
    writer = rows.write.format("yt").mode("append").option("write_type_v3", "true")
    writer.option("write_schema_hint", json.dumps(hints)).save(f"ytTable:/{path}")
