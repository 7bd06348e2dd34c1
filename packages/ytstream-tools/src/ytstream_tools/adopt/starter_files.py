"""The texts of the files that `adopt` writes: they work as they are, and are there to be edited."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ytstream.job import Job
from ytstream.schema.columns import Column, spelled
from ytstream.schema.spark_types import never_written
from ytstream.text_table import counted

from ..demo.event_times import text as time_text
from ..testing.approved_outputs import TEST
from . import owned_files
from .proposals import EventTime, Proposals, seconds_of
from .source_rows import SourceRows

#: Processing types of which a first transform() can be written without knowing what it is for.
KNOWN = ("map", "window", "deduplicate", "aggregate")
_WIDTH = 100
#: The most characters of a path, or of a name, in a docstring.
_SHORT = 50

_TABLES = '''"""YOURS. The columns of the queue and of each output, in order.

A type is a YTsaurus name ("int64", "utf8", "timestamp", ...) or, for lists, structs and dicts, a
yt.type_info type (``ti.List[ti.Utf8]``). A column that is not required may hold null. A table with
key columns is sorted by them, and a row replaces the one with the same key. Other tables are
ordered. `make tables` shows the tables that `make provision` creates. It alters no existing ones.
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
'''

_TRANSFORM = '''"""YOURS. The job's logic: a first version by `make adopt`, for you to edit."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
{constants}
#: Rows that never reach transform(): a SQL condition on the columns of QUEUE for each reason. The
#: first condition that is true sends the row to the output "rejected". Null counts as false. Use
#: try_cast and try_to_timestamp for a text that may not be a number or a time: cast would end the
#: job.
REJECT: dict[str, str] = {reject}


def transform(events: DataFrame) -> DataFrame:
    """{doc}"""
{body}
'''

_ROWS = '''"""YOURS. Sample rows that `make adopt` has saved in rows.yson.

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


def rows(count: int, seed: int = 1, start_us: int = START_US) -> Iterator[dict[str, Any]]:
    """Yield ``count`` of the saved rows, repeated, with event times from ``start_us`` on."""
    return SAVED.repeated(count, seed, start_us)
'''

_SAMPLE = '''"""The sample rows and their expected outputs: the demo and the tests use both.

The expected outputs are those that the job computes from the rows without a failure. `make approve`
writes those of rows.yson to expected/, for you to review. To compute them in plain Python, write a
module with expected(rows) and rejected(rows), and name these functions here.
"""

from ytstream.demo.sample import Sample
from ytstream.testing.computed import Computed

from {package}.job import JOB

from . import rows

COMPUTED = Computed(JOB)
SAMPLE = Sample(
    rows=rows.rows,
    event_time=rows.EVENT_TIME,
    expected=COMPUTED.output,
    others={{"rejected": COMPUTED.rejected}},
    approved=len(rows.SAVED),
    # Columns that differ from run to run, such as the time of processing.
    ignored=(),
)
'''


@dataclass(frozen=True)
class Starter:
    """The job, what it reads, and what its rows suggest."""

    job: Job
    source: SourceRows
    found: Proposals
    #: Names of the columns that were masked.
    masked: Sequence[str]
    #: Where the sample's event times begin; the first one unless that would reach the future.
    start_us: int
    #: How many times faster than in the queue the sample's event times go on.
    pace: int = 1

    @property
    def has_logic(self) -> bool:
        """Whether a first transform() and its OUTPUTS can be written."""
        if self.job.processing not in KNOWN:
            return False
        needs_time = self.job.processing in ("window", "deduplicate")
        needs_group = self.job.processing == "aggregate"
        needs_key = self.job.processing == "deduplicate"
        return not (
            (needs_time and self.found.event_time is None)
            or (needs_group and self.found.group is None)
            or (needs_key and not self.found.unique)
        )

    @property
    def lacks(self) -> str:
        """Why no first transform() can be written."""
        if self.job.processing not in KNOWN:
            return f"the logic of the type {self.job.processing} is yours to write"
        return "no column of the rows looks like " + {
            "window": "an event time",
            "deduplicate": "an event time, or none has values that differ from row to row",
            "aggregate": "a group",
        }.get(self.job.processing, "what it needs")

    @property
    def passing(self) -> list[Column]:
        """The columns of the queue that an output may have."""
        return [column for column in self.source.columns if never_written(column) is None]

    def tables(self) -> str:
        """Return the text of tables.py."""
        made = _TABLES.format(
            more="{more}",
            origin=_short(self.source.origin),
            queue=self.queue(),
            output=self.output(),
        )
        uses_ti = owned_files.uses_type_info(made)
        return made.replace("{more}", "\nimport yt.type_info as ti\n" if uses_ti else "", 1)

    def queue(self) -> str:
        """Return the list QUEUE, with what was left out as comments."""
        return _listed([*map(_line, self.source.columns), *self._left_out()], 0)

    def _left_out(self) -> Iterator[str]:
        for column in self.source.left_out:
            text = _plain(f"Left out: {column.name}, {column.type}: {column.why}.")
            yield from textwrap.wrap(text, _WIDTH - 5, initial_indent="# ", subsequent_indent="# ")

    def output(self) -> str:
        """Return the list of the output's columns."""
        keys = self.job.guarantee == "idempotent"
        first = [Column("queue_id", "utf8", key=True)] if self.job.queue_count > 1 and keys else []
        if keys:
            first += [Column(name, "int64", key=True) for name in ("tablet_index", "row_index")]
        group = self.found.group
        columns = self.passing
        if self.job.processing == "window":
            columns = [
                *([Column(group.name, group.type)] if group is not None else []),
                Column("window_start", "timestamp", required=True),
                Column("window_end", "timestamp", required=True),
                Column("rows", "int64", required=True),
            ]
        if self.job.processing == "aggregate" and group is not None:
            columns = [Column(group.name, group.type, key=True), Column("rows", "int64")]
        return _listed(map(_line, [*first, *columns]), 4)

    def transform(self) -> str:
        """Return the text of transform.py."""
        made = {
            "map": self._map,
            "window": self._window,
            "deduplicate": self._deduplicate,
            "aggregate": self._aggregate,
        }[self.job.processing]()
        return (
            made if "F." in made else made.replace("from pyspark.sql import functions as F\n", "")
        )

    def _map(self) -> str:
        places = ["tablet_index", "row_index"] if self.job.guarantee == "idempotent" else []
        queue = ["queue_id"] if places and self.job.queue_count > 1 else []
        names = [*queue, *places, *(column.name for column in self.passing)]
        doc = 'One row in, one row out; the columns of QUEUE become those of OUTPUTS["output"].'
        hints = self._hints()
        return _TRANSFORM.format(
            constants=hints and f"\n{hints}\n",
            reject=self._without(),
            doc=doc,
            body=_indented(f"return events.select({', '.join(map(_quoted, names))})"),
        )

    def _window(self) -> str:
        times, group = self.found.event_time, self.found.group
        assert times is not None
        name = self._time_name(times)
        by, selected, hint = "", "", ""
        if group is not None:
            by, selected = f", {_quoted(group.name)}", f"        {_quoted(group.name)},\n"
            many = f"{self.found.groups} values in the sample"
            hint = f"#: Groups are by {_plain(group.name)}: {many}.\n"
        body = (
            f"return (\n    events{self._with_time(times)}.withWatermark({name}, LATENESS)\n"
            f"    .groupBy(F.window({name}, WINDOW){by})\n"
            f'    .agg(F.count(F.lit(1)).alias("rows"))\n    .select(\n{selected}'
            '        F.col("window.start").alias("window_start"),\n'
            '        F.col("window.end").alias("window_end"),\n        "rows",\n    )\n)'
        )
        windows = counted(self.found.windows, "window")
        length = f"#: The length of a window. A proposal: the sample is about {windows} long.\n"
        return _TRANSFORM.format(
            constants=f'\n{self._hints()}\n\n{hint}{length}WINDOW = "{self.found.window}"\n'
            + self._watermark(times),
            reject=self._rejected(times),
            doc=(
                f"One row per {'group and ' if group else ''}window; the columns are those of "
                'OUTPUTS["output"].'
            ),
            body=_indented(body),
        )

    def _deduplicate(self) -> str:
        times, key = self.found.event_time, self.found.unique[0]
        assert times is not None
        names = ", ".join(_quoted(column.name) for column in self.passing)
        body = (
            f"return (\n    events{self._with_time(times)}"
            f".withWatermark({self._time_name(times)}, LATENESS)\n"
            f"    .dropDuplicatesWithinWatermark([{_quoted(key.name)}])\n    .select({names})\n)"
        )
        return _TRANSFORM.format(
            constants=f"\n{self._hints()}\n\n" + self._watermark(times),
            reject=self._rejected(times),
            doc=f"One row per {_short(key.name)}.",
            body=_indented(body),
        )

    def _aggregate(self) -> str:
        group = self.found.group
        assert group is not None
        return _TRANSFORM.format(
            constants=f"\n{self._hints()}\n",
            reject=self._without(),
            doc="One row per group, given again whenever it changes.",
            body=_indented(
                f'return events.groupBy({_quoted(group.name)}).agg(F.count(F.lit(1)).alias("rows"))'
            ),
        )

    def _with_time(self, times: EventTime) -> str:
        """Return the call that adds the event time as a timestamp, where it is of another type."""
        if times.kind == "timestamp":
            return ""
        return f".withColumn({self._time_name(times)}, F.expr({_quoted(times.expression)}))"

    def _time_name(self, times: EventTime) -> str:
        """Return the name of a column with the event time as a timestamp."""
        if times.kind == "timestamp":
            return _quoted(times.column.name)
        taken = {column.name.lower() for column in self.source.columns}
        names = ("event_time", "event_timestamp", "watermark_time")
        return _quoted(next(name for name in names if name not in taken))

    def _watermark(self, times: EventTime) -> str:
        late = self.found.lateness
        ahead = max(1, seconds_of(late) // 2)
        return (
            "#: How far a row may lie behind the newest one, by event time. A proposal: in the\n"
            f"#: sample a row is at most {times.behind_us / 1_000_000:.0f} s behind.\n"
            f'LATENESS = "{late}"\n'
            "#: How far a row may lie ahead of the batch's clock, not more than LATENESS: a wrong\n"
            "#: date would move the watermark to the future, and right rows would be late.\n"
            f'AHEAD = "{ahead} seconds"\n'
        )

    def _rejected(self, times: EventTime) -> str:
        lines = _quoted(f"{times.expression} IS NULL")
        later = f"{times.expression} > current_timestamp() + INTERVAL "
        quote = _quoted(later)[:-1]
        return (
            f'{{\n    "without event time": {lines},\n'
            f'    "from the future": f{quote}{{AHEAD}}",\n}}'
        )

    def _without(self) -> str:
        """Return a first condition: what names or groups the rows is missing."""
        named = [*self.found.unique, *([self.found.group] if self.found.group else [])]
        if self.job.processing == "aggregate":
            named.reverse()
        may_be_null = (column for column in named if not column.required)
        column = next(may_be_null, named[0] if named else self.source.columns[0])
        condition = _quoted(f"`{column.name}` IS NULL")
        return f"{{{_quoted(f'without {_plain(column.name)}')}: {condition}}}"

    def _hints(self) -> str:
        """Return what the rows suggest, as comments."""
        lines = ["What `make adopt` has seen in the sample:"]
        times = self.found.event_time
        if times is not None:
            lines.append(
                f"- event time: {_plain(times.column.name)}, from {time_text(times.first_us)} to "
                f"{time_text(times.last_us)}; {times.growing:.0%} of the rows are not earlier than "
                "the row before."
            )
        if self.found.unique:
            names = ", ".join(_plain(column.name) for column in self.found.unique[:5])
            lines.append(f"- a key: {names} differs from row to row.")
        if self.found.group is not None:
            lines.append(
                f"- a group: {_plain(self.found.group.name)} has {self.found.groups} different "
                "values."
            )
        if len(lines) == 1:
            return ""
        wrapped = [
            part
            for line in lines
            for part in textwrap.wrap(
                line, _WIDTH - 2, initial_indent="# ",
                subsequent_indent="#   " if line.startswith("-") else "# ",
            )
        ]  # fmt: skip
        return "\n".join(wrapped)

    def rows(self) -> str:
        """Return the text of sample/rows.py."""
        times, has_time = self.found.event_time, self.uses_time
        name = _quoted(times.column.name) if times is not None and has_time else "None"
        about = "#: The column of the event time, which goes forward from one row to the next.\n"
        if times is not None and not has_time:
            about += (
                "#: None is enough for this processing type; "
                f"{_plain(times.column.name)} looks like one.\n"
            )
        saved = ""
        if times is not None and has_time:
            saved = (
                f"    event_time=EVENT_TIME,\n    event_time_type={_quoted(times.kind)},\n"
                f"    first_us={times.first_us:_},  # {time_text(times.first_us)}\n"
                f"    last_us={times.last_us:_},  # {time_text(times.last_us)}\n"
            )
        if self.pace > 1 and has_time:
            saved += (
                "    # Faster than in the queue: the rows are repeated, and none may be of the "
                f"future.\n    pace={self.pace},\n"
            )
        if self.found.unique and has_time:
            names = ", ".join(_quoted(column.name) for column in self.found.unique)
            saved += f"    unique=({names},),\n"
        return _ROWS.format(
            origin=_short(self.source.origin),
            warning="\n".join(textwrap.wrap(self.warning, _WIDTH - 1)),
            event_time=f"{about}EVENT_TIME: str | None = {name}",
            start=f", {time_text(self.start_us)}" if has_time else "",
            start_us=f"{self.start_us:_}",
            saved=saved.rstrip("\n"),
        )

    @property
    def uses_time(self) -> bool:
        """Whether the sample has to move its event times on: where there is a watermark."""
        has_watermark = self.job.processing in ("window", "deduplicate", "sessions")
        return has_watermark and self.found.event_time is not None

    @property
    def warning(self) -> str:
        """What a person has to know about the rows."""
        masked = f"Masked: {', '.join(self.masked)}." if self.masked else "Nothing is masked."
        return f"The rows are real data: look at rows.yson before you commit it. {masked}"

    def sample(self) -> str:
        """Return the text of sample/__init__.py."""
        return _SAMPLE.format(package=self.job.package)

    def test(self) -> str:
        """Return the text of tests/test_transform.py."""
        return TEST


def _plain(text: str) -> str:
    """Return text for a comment: the name of a column may have any character."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _short(text: str) -> str:
    """Return a path or a name for a docstring of one line."""
    plain = re.sub(r"[^\w/.:@, -]", "?", text)
    return plain if len(plain) <= _SHORT else f"...{plain[-_SHORT:]}"


def _line(column: Column) -> str:
    type_ = column.type if isinstance(column.type, str) else spelled(column.type)
    named = type_ if type_.startswith("ti.") else _quoted(type_)
    more = (", required=True" if column.required else "") + (", key=True" if column.key else "")
    return f"Column({_quoted(column.name)}, {named}{more}),"


def _listed(lines: Iterator[str] | Sequence[str], indent: int) -> str:
    space = " " * (indent + 4)
    inside = "".join(f"{_fitting(space + line)}\n" for line in lines)
    return f"[\n{inside}{' ' * indent}]"


def _fitting(line: str) -> str:
    """Return the line; one that the formatter cannot break is marked for the linter."""
    is_one_name = len(line) > _WIDTH and line.count("Column(") == 1 and '"' in line
    return (
        f"{line}  # noqa: E501" if is_one_name and len(line.split('"')[1]) > _WIDTH - 30 else line
    )


def _quoted(text: str) -> str:
    """Return a Python string in double quotes, of which every letter can be read."""
    return json.dumps(text, ensure_ascii=False)


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")
