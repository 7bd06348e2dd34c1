"""Checks of what a job reads whole in addition to its stream: the reference of a join."""

import ast
from collections.abc import Iterator

from ..reading.dataframes import QueueReader
from ..reading.inspected_job import CreatedTable, InspectedJob
from ..rules import Finding

_MEMORY = "enable_dynamic_store_read"


def findings(job: InspectedJob) -> Iterator[Finding]:
    """Yield the reads of dynamic tables that the job's own files make without that attribute."""
    if _is_mentioned(job):
        return
    for read in job.batch_reads:
        for table in job.tables:
            dynamic = job.entry(table.attributes, table.context, "dynamic")
            if dynamic and job.code.value(dynamic) is True and _is_read(job, table, read):
                what = f"the table is created as a dynamic one, without {_MEMORY}"
                yield Finding(read.file, read.line, "unflushed-rows", what)


def _is_mentioned(job: InspectedJob) -> bool:
    """Return whether something sets the attribute, of whatever table."""
    texts = (line for text in job.texts for _, line in text.lines)
    constants = (str(node.value) for _, node in job.code.walk() if isinstance(node, ast.Constant))
    return any(_MEMORY in text for each in (texts, constants) for text in each)


def _is_read(job: InspectedJob, table: CreatedTable, read: QueueReader) -> bool:
    own = job.code.identity(table.path_at)
    is_named = own is not None and own == job.code.identity(read.path_at)
    return is_named or (isinstance(table.path, str) and table.path in read.paths)
