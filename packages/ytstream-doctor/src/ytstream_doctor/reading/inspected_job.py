"""A job as it was read: the one value that the checks are handed."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode

from ..rules import spellings
from . import files, lost_positions, queries, spark_settings
from .dataframes import LOADS, QueueReader, batch_read
from .files import Files, TextFile
from .name_resolution import Code
from .queries import Query
from .syntax import BoundExpression, Context, Step, called


@dataclass(frozen=True)
class CreatedTable:
    """A table that the job's code creates."""

    path: Any
    attributes: ast.expr
    context: Context
    file: str
    line: int
    path_at: BoundExpression | None = None


@dataclass(frozen=True)
class InspectedJob:
    """The files, settings and queries of a job."""

    files: Files
    code: Code
    settings: spark_settings.SparkSettings
    queries: Sequence[Query]
    not_followed: Sequence[tuple[str, int]] = ()
    """The places of stream writers that nothing starts."""

    @property
    def is_known(self) -> bool:
        """Whether all queries were found: else it says nothing that nothing was found."""
        is_read = not any(file.endswith(".py") for file, _ in self.files.unread)
        return is_read and not self.not_followed and bool(self.queries or self.is_of_ytstream)

    @property
    def texts(self) -> Sequence[TextFile]:
        """The files that are not Python."""
        return self.files.texts

    @cached_property
    def is_transactional(self) -> bool:
        """Whether SPYT's transactional mode is switched on."""
        return "true" in self.settings.values(*spellings("spark.yt.streaming.transactional"))

    @cached_property
    def is_of_ytstream(self) -> bool:
        """Whether a job is declared here that the runtime of this package runs."""
        return any(
            isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ytstream"
            for _, node in self.code.walk()
        )

    @property
    def sources(self) -> list[QueueReader]:
        """The readers of all queries."""
        found = {source.key: source for query in self.queries for source in query.flow.sources}
        return list(found.values())

    @cached_property
    def batch_reads(self) -> list[QueueReader]:
        """The tables that are read whole in addition to the stream."""
        found = (
            batch_read(self.code, BoundExpression(call, context))
            for name in LOADS
            for call, module in self.code.calls.get(name, [])
            for context in self.code.called_from(call, module)
        )
        return list({read.key: read for read in found if read}.values())

    @property
    def outputs(self) -> set[str]:
        """The paths of outputs that are known."""
        return {query.path for query in self.queries if isinstance(query.path, str)}

    def is_idempotent(self, query: Query) -> bool:
        """Whether rows are written with their position in the queue."""
        return self.has_positions(query) and self.lost_at(query) is None

    def has_positions(self, query: Query) -> bool:
        """Whether rows are read with their position in the queue."""
        return any(s.options.is_true("include_service_columns") for s in query.flow.sources)

    def lost_at(self, query: Query) -> Step | None:
        """Return the step that drops the positions, if one does."""
        return self._lost[id(query)] if self.has_positions(query) else None

    @cached_property
    def _lost(self) -> dict[int, Step | None]:
        return {id(query): lost_positions.lost_at(self.code, query) for query in self.queries}

    def is_output(self, table: CreatedTable, query: Query) -> bool:
        """Whether a query writes into a table, by a path that may be known only by its name."""
        own = self.code.identity(table.path_at)
        return own is not None and own == self.code.identity(query.path_at)

    @cached_property
    def tables(self) -> list[CreatedTable]:
        """The tables that are created in Python, by ``create("table", path, attributes=...)``."""
        found = []
        for call, module in self.code.calls.get("create", []):
            for context in self.code.called_from(call, module):
                step = Step("create", call, context, call)
                given = step.argument(4, "attributes")
                if self.code.value(step.argument(0, "type")) != "table" or given is None:
                    continue
                at = step.argument(1, "path")
                path = self.code.value(at)
                found.append(
                    CreatedTable(path, given.node, given.context, module.file, call.lineno, at)
                )
        return found

    def entry(self, node: ast.expr, context: Context, name: str) -> BoundExpression | None:
        """Return an entry of a dictionary, by its name."""
        found: BoundExpression | None = BoundExpression(node, context)
        while found and not isinstance(found.node, ast.Dict | ast.Call):
            found = self.code.resolved(found.node, found.context)
        if found and isinstance(found.node, ast.Call) and called(found.node) == "dict":
            words = {word.arg: word.value for word in found.node.keywords}
            return BoundExpression(words[name], found.context) if name in words else None
        if not found or not isinstance(found.node, ast.Dict):
            return None
        for key, value in zip(found.node.keys, found.node.values, strict=True):
            if key and self.code.value(BoundExpression(key, found.context)) == name:
                return BoundExpression(value, found.context)
        return None

    def keys(self, table: CreatedTable) -> set[str] | None:
        """Return the key columns of a table's schema; None if it is not written as a list."""
        found = self.entry(table.attributes, table.context, "schema")
        while found and not isinstance(found.node, ast.List):
            if isinstance(found.node, ast.Call) and found.node.args:
                found = BoundExpression(found.node.args[0], found.context)
            else:
                found = self.code.resolved(found.node, found.context)
        if not found or not isinstance(found.node, ast.List):
            return None
        columns = [item for item in found.node.elts if isinstance(item, ast.Dict)]
        if len(columns) != len(found.node.elts):
            return None
        return {
            str(self.code.value(self.entry(column, found.context, "name")))
            for column in columns
            if self.entry(column, found.context, "sort_order")
        }

    def keys_of(self, query: Query) -> tuple[CreatedTable, set[str]] | None:
        """Return the table that a query writes into with its key, if the job's code creates it."""
        for table in self.tables:
            if self.is_output(table, query):
                keys = self.keys(table)
                return None if keys is None else (table, keys)
        return None

    def commands(self, pattern: str) -> Iterator[tuple[str, int, str]]:
        """Yield file, line and text of the command lines that match."""
        for text in self.texts:
            for number, line in text.lines:
                if re.search(pattern, line):
                    yield text.file, number, line


def read(path: Path) -> InspectedJob:
    """Read the job. Raises JobError for a path without one."""
    found = files.read(path)
    code = Code(found.modules)
    job = InspectedJob(found, code, spark_settings.read(code, found.texts), *queries.read(code))
    is_a_job = job.is_of_ytstream or job.not_followed or job.is_transactional
    if not job.queries and not is_a_job:
        if found.unread:
            unread = "\n".join(f"{file} was not read: {why}" for file, why in found.unread)
            raise JobError(
                f"{path} has no streaming query that could be read\n{unread}",
                code=ErrorCode.NO_STREAM,
            )
        raise JobError(
            f"{path} has no streaming query of the format yt: {len(found.modules)} Python files, "
            f"{len(found.texts)} others",
            "name the folder with the job's Python files; Scala and notebooks are not read",
            code=ErrorCode.NO_STREAM,
        )
    return job
