"""Static outputs as their readers see them, and as the ledger says that they are."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from yt.common import YtError

from ytstream import Job
from ytstream.cluster.client import connect
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import tables_of
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import Settings
from ytstream_tools.demo.demo_tables import snapshots
from ytstream_tools.testing.job_stream import Stream


def static(job: Job, *names: str) -> Job:
    """Make outputs static, as edits of tables.py would: a key column becomes an ordinary one."""
    plain = {
        name: [replace(column, key=False, required=column.key or column.required) for column in own]
        if name in names
        else own
        for name, own in job.output_columns.items()
    }
    return replace(job, outputs=plain, static=names)


def make_static(stream: Stream, *names: str) -> Stream:
    """Make outputs of the stream's job static, and provision it again."""
    job, root = static(stream.context.job, *names), stream.settings.ledger.rpartition("/")[0]
    outputs = {
        name: f"{root}/{name}-tables" if name in names else path
        for name, path in stream.settings.outputs.items()
    }
    stream.redeclare(outputs=job.outputs, static=job.static)
    stream.configure(outputs=outputs)
    job_objects.provision(stream.context)
    return stream


def published(context: JobContext) -> dict[str, int]:
    """Return the tables of "output" that are in its folder, and the rows of each."""
    client = context.client
    paths = snapshots(client, context.settings.output)
    return {path: int(client.get(f"{path}/@row_count")) for path in paths}


def named(context: JobContext) -> dict[str, int]:
    """Return the tables of "output" that the ledger names, and the rows it says of each."""
    batches = context.client.select_rows(
        f'rows_written, state from [{context.settings.ledger}] where kind = "batch"'
    )
    return {
        str(tables_of(batch)["output"]): int(batch["rows_written"]["output"])
        for batch in batches
        if tables_of(batch)
    }


class Reader:
    """Polls the folder of "output"; reads each table as soon as it is there."""

    def __init__(self, settings: Settings) -> None:
        # The rows of each table when it was first seen.
        self.tables: dict[str, list[Mapping[str, Any]]] = {}
        self._client, self._folder = connect(settings), settings.output
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._look()

    def _poll(self) -> None:
        while not self._is_over.wait(0.02):
            with suppress(YtError, OSError):  # the faults of the test are its own, too
                self._look()

    def _look(self) -> None:
        for path in snapshots(self._client, self._folder):
            if path not in self.tables:
                self.tables[path] = self._rows(path)

    def changed(self) -> list[str]:
        """Return the tables that by now differ from what was seen of them, or were not seen."""
        now = {path: self._rows(path) for path in snapshots(self._client, self._folder)}
        return sorted(
            path
            for path in now.keys() | self.tables.keys()
            if now.get(path) != self.tables.get(path)
        )

    def _rows(self, path: str) -> list[Mapping[str, Any]]:
        return [*self._client.read_table(path)]
