"""The texts of the files that `adopt` writes, with gaps for what the rows suggest."""

TABLES = '''"""YOURS. The columns of the queue and of each output, in order.

A type is a YTsaurus name ("int64", "utf8", "any", which ``json_of`` reads, ...) or, for lists,
structs and dicts, a yt.type_info type (``ti.List[ti.Utf8]``). A column that is not required may
hold null. A table with key columns is sorted by them, and a row replaces the one with the same
key, or adds to its columns with ``aggregate``. Other tables are ordered. `make tables` shows what
`make provision` creates. It alters no existing ones.
"""
{more}
from ytstream import REJECTED, Column

#: By `make adopt`, from {origin}.
#: All queues have these columns. The job ignores other columns of a queue.
QUEUE = {queue}

#: The columns of each output by its name. The configuration has its path.
OUTPUTS = {{
    "output": {output},
    # The rows that REJECT in transform.py rejects, with their position and as JSON.
    "rejected": REJECTED,
}}
{reference}'''

REFERENCE = """
#: The reference table, by `make adopt`: {about}.
#: A row of the queue joins at most one row of it, so its key must be unique.
REFERENCE = {columns}
"""

TRANSFORM = '''"""YOURS. The job's logic: a first version by `make adopt`, for you to edit."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
{imports}{constants}
#: Rows that never reach transform(): a SQL condition on the columns of QUEUE for each reason. The
#: first condition that is true sends the row to the output "rejected". Null counts as false. Use
#: try_cast and try_to_timestamp for a text that may not be a number or a time: cast would end the
#: job.
REJECT: dict[str, str] = {reject}


def transform({frames}) -> DataFrame:
    """{doc}"""
{body}
'''

NAMELESS = """

    A row without a value cannot be told from another one: it passes, under an id of its own, and
    the log of each batch counts it (``observe``).
    """

ROWS = '''"""YOURS. Sample rows that `make adopt` has saved in rows.yson.

They are from {origin}.
{warning}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ytstream.demo.saved import SavedRows

{event_time}
#: Where the event times of the sample begin, in microseconds{start}.
START_US = {start_us}
SAVED = SavedRows(
    Path(__file__).with_name("rows.yson"),
{saved}
)
{reference}

def rows(count: int, seed: int = 1, start_us: int = START_US) -> Iterator[dict[str, Any]]:
    """Yield ``count`` of the saved rows, repeated, with event times from ``start_us`` on."""
    return SAVED.repeated(count, seed, start_us)
'''

REFERENCE_ROWS = """
#: The rows of the reference table. {about}
REFERENCE: list[dict[str, Any]] = {rows}
"""

REFERENCES_ROWS = """
#: The rows of each reference that lookup() reads, for the keys of the sample.
REFERENCES: dict[str, list[dict[str, Any]]] = {rows}
"""

SAMPLE = '''"""The sample rows and their expected outputs: the demo and the tests use both.

The expected outputs are those that the job computes from the rows without a failure. `make approve`
writes those of rows.yson to expected/, for you to review. To compute them in plain Python, write a
module with expected(rows) and rejected(rows), and name these functions here.
"""

from ytstream.demo.sample import Sample
from ytstream.testing.computed import Computed

from {package}.job import JOB

from . import rows

COMPUTED = Computed(JOB{reference})
SAMPLE = Sample(
    rows=rows.rows,
    event_time=rows.EVENT_TIME,
    expected=COMPUTED.output,
    others={{"rejected": COMPUTED.rejected}},
    approved=len(rows.SAVED),
    more_by=rows.SAVED.more_by,
{given}    # Columns that differ from run to run, such as the time of processing.
    ignored=(),
)
'''
