"""The texts of the files that `adopt` writes: they work as they are, and are there to be edited."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yt.type_info as ti

from ytstream.job import Job
from ytstream.schema.columns import Column, is_comparable, spelled, type_name
from ytstream.schema.spark_types import never_written
from ytstream.text_table import counted

from ..demo.event_times import text as time_text
from ..testing.approved_outputs import TEST
from . import owned_files, payloads
from .payloads import Part
from .proposals import EventTime, Named, Proposals, seconds_of
from .reference_source import Reference
from .source_rows import SourceRows

KNOWN = ("map", "window", "join", "deduplicate", "aggregate", "merge")
"""Processing types with a first transform() that needs no knowledge of what the job is for."""
_WIDTH = 100
_EVENTS = "events: DataFrame"
_NOTHING, _REPLACE = '"example": "false",', "An example, which rejects nothing: replace it."
"""A condition that no row meets: which rows are wrong, a person knows."""
_SHORT = 50
"""The most characters of a path, or of a name, in a docstring."""

_TABLES = '''"""YOURS. The columns of the queue and of each output, in order.

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

_REFERENCE = """
#: The reference table, by `make adopt`: {about}.
#: A row of the queue joins at most one row of it, so its key must be unique.
REFERENCE = {columns}
"""

_TRANSFORM = '''"""YOURS. The job's logic: a first version by `make adopt`, for you to edit."""

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

_NAMELESS = """

    A row without a value cannot be told from another one: it passes, under an id of its own, and
    the log of each batch counts it (``observe``).
    """

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
{reference}

def rows(count: int, seed: int = 1, start_us: int = START_US) -> Iterator[dict[str, Any]]:
    """Yield ``count`` of the saved rows, repeated, with event times from ``start_us`` on."""
    return SAVED.repeated(count, seed, start_us)
'''

_REFERENCE_ROWS = """
#: The rows of the reference table. {about}
REFERENCE: list[dict[str, Any]] = {rows}
"""

_REFERENCES_ROWS = """
#: The rows of each reference that lookup() reads, for the keys of the sample.
REFERENCES: dict[str, list[dict[str, Any]]] = {rows}
"""

#: Where the rows of a join's reference are, next to those of the queue.
REFERENCE_FILE = "reference.yson"

_SAMPLE = '''"""The sample rows and their expected outputs: the demo and the tests use both.

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


@dataclass(frozen=True)
class Starter:
    """The job, what it reads, and what its rows suggest."""

    job: Job
    source: SourceRows
    found: Proposals
    masked: Sequence[str]
    """Names of the columns that were masked."""
    start_us: int
    """Where the sample's event times begin; the first one unless that would reach the future."""
    pace: int = 1
    """How many times faster than in the queue the sample's event times go on."""
    parts: Sequence[Part] = ()
    """The fields of columns of type `any`, which become columns of their own."""
    references: Sequence[Reference] = ()
    """The tables on the cluster that the job joins or looks up."""
    more_by: str = ""
    """The command that takes other rows; empty if there are none."""

    @property
    def origin(self) -> str:
        """Where the rows are from, for a docstring or a comment."""
        return _short(self.source.origin)

    @property
    def has_logic(self) -> bool:
        """Whether a first transform() and its OUTPUTS can be written."""
        if self.job.processing not in KNOWN:
            return False
        needs_time = self.job.processing in ("window", "deduplicate", "merge")
        needs_group = self.job.processing in ("aggregate", "merge") or (
            self.job.processing == "join" and self.joined is None
        )
        needs_key = self.job.processing == "deduplicate"
        return not (
            (needs_time and self.found.event_time is None)
            or (needs_group and self._grouping is None)
            or (needs_key and self.found.key is None)
        )

    @property
    def _grouping(self) -> Named | None:
        """The column to group or to join by; Spark compares no values of SPYT's own uint64."""
        found = self.found.grouping
        return None if found is not None and type_name(found.column.type) == "uint64" else found

    @property
    def lacks(self) -> str:
        """Why no first transform() can be written."""
        if self.job.processing not in KNOWN:
            return f"the logic of the type {self.job.processing} is yours to write"
        return "no column of the rows looks like " + {
            "window": "an event time",
            "deduplicate": "an event time, or none names a row: nine rows of ten have a value, and "
            "more than half of the values differ",
            "aggregate": "a group",
            "merge": "an event time and another one like a key",
            "join": "the key of a reference table",
        }.get(self.job.processing, "what it needs")

    @property
    def passing(self) -> list[Column]:
        """The columns of an output: those of the queue, and the fields of its objects."""
        found = list[Column]()
        for column in self.source.columns:
            parts = [part.column for part in self.parts if part.source == column.name]
            found += parts or ([column] if never_written(column) is None else [])
        return found

    def tables(self) -> str:
        """Return the text of tables.py."""
        made = _TABLES.format(
            more="{more}",
            origin=self.origin,
            queue=self.queue(),
            output=self.output(),
            reference=self._reference_table(),
        )
        uses_ti = owned_files.uses_type_info(made)
        return made.replace("{more}", "\nimport yt.type_info as ti\n" if uses_ti else "", 1)

    def queue(self) -> str:
        """Return the list QUEUE, with what was left out as comments."""
        return _listed([*map(_line, self.source.columns), *self._left_out()], 0)

    def _left_out(self) -> Iterator[str]:
        for column in self.source.left_out:
            text = _plain(f"Skipped: {column.name}, {column.type}: {column.why}.")
            yield from textwrap.wrap(text, _WIDTH - 5, initial_indent="# ", subsequent_indent="# ")

    def output(self) -> str:
        """Return the list of the output's columns."""
        keys = self.job.guarantee == "idempotent"
        first = [Column("queue_id", "utf8", key=True)] if self.job.queue_count > 1 and keys else []
        if keys:
            first += [Column(name, "int64", key=True) for name in ("tablet_index", "row_index")]
        columns = self.passing
        if self.job.processing == "window":
            group = self.found.group.column if self.found.group is not None else None
            columns = [
                *([Column(group.name, group.type)] if group is not None else []),
                Column("window_start", "timestamp", required=True),
                Column("window_end", "timestamp", required=True),
                Column("rows", "int64", required=True),
            ]
        if self.job.processing == "aggregate" and self._grouping is not None:
            by = self._grouping.column
            columns = [
                Column(by.name, by.type, key=True),
                Column("rows", "int64", aggregate="sum"),
            ]
        if self.job.processing == "merge" and self._grouping is not None:
            by = self._grouping.column
            columns = [Column(by.name, by.type, key=True), *self._others]
        if self.job.processing == "join":
            others = [column for column in self.reference if not column.key]
            columns = [
                *columns,
                *(Column(self._joined_name(c.name), c.type) for c in others),
            ]
        return _listed(map(_line, [*first, *columns]), 4)

    @property
    def reference(self) -> list[Column]:
        """The columns of the reference table: a key that the queue has, and what is known of it."""
        if self.joined is not None:
            return [*self.joined.columns]
        if self._grouping is None:
            return []
        key = self._grouping.column
        taken = {column.name.lower() for column in self.source.columns}
        names = ("label", f"{key.name}_label", "reference_label")
        name = next(name for name in names if name.lower() not in taken)
        return [Column(key.name, key.type, key=True), Column(name, ti.Utf8)]

    @property
    def joined(self) -> Reference | None:
        """The reference table of a join as the cluster has it."""
        return next((found for found in self.references if not found.name), None)

    def _joined_name(self, name: str) -> str:
        """Return the name that a column of the reference gets in the output."""
        taken = {column.name.lower() for column in [*self.source.columns, *self.passing]}
        names = (name, f"reference_{name}", *(f"reference_{name}_{n}" for n in range(2, 100)))
        return next(free for free in names if free.lower() not in taken)

    def _reference_table(self) -> str:
        if self.job.processing != "join":
            return ""
        about = (
            "replace its columns with those of yours"
            if self.joined is None
            else f"its columns are those of\n#: {_short(self.joined.path)}"
        )
        return _REFERENCE.format(columns=_listed(map(_line, self.reference), 0), about=about)

    def transform(self) -> str:
        """Return the text of transform.py."""
        made = {
            "map": self._map,
            "window": self._window,
            "join": self._join,
            "deduplicate": self._deduplicate,
            "aggregate": self._aggregate,
            "merge": self._merge,
        }[self.job.processing]()
        return (
            made if "F." in made else made.replace("from pyspark.sql import functions as F\n", "")
        )

    @property
    def _imports(self) -> str:
        return "\nfrom ytstream import json_of\n" if self.parts else ""

    def _schemas(self) -> str:
        """Return the constants with the fields of each column that is taken apart."""
        made = ""
        for column, name in self._taken_apart().items():
            fields = payloads.schema(part for part in self.parts if part.source == column)
            made += (
                f"\n#: The fields of {_plain(column)} that the sample has. Others are ignored: add "
                f'what you need.\n{name} = """\n{textwrap.indent(fields, "    ")}\n"""\n'
            )
        return made

    def _taken_apart(self) -> dict[str, str]:
        """Return the columns that are taken apart, each with the name of its constant."""
        made = dict[str, str]()
        for part in self.parts:
            plain = re.sub(r"[^A-Z0-9_]", "_", part.source.upper()).strip("_0123456789")
            name = f"{plain}_FIELDS" if plain else "FIELDS"
            if part.source not in made:
                made[part.source] = name if name not in made.values() else f"{name}_{len(made)}"
        return made

    def _parsed(self) -> str:
        """Return ``events`` with the objects as structs."""
        return "events" + "".join(
            f".withColumn({_quoted(column)}, F.from_json(json_of({_quoted(column)}), {name}))"
            for column, name in self._taken_apart().items()
        )

    def _selected(self, name: str) -> str:
        """Return a column of select()."""
        part = next((part for part in self.parts if part.column.name == name), None)
        if part is None:
            return _quoted(name)
        return f"F.col({_quoted(part.reference)}).alias({_quoted(name)})"

    def _map(self) -> str:
        places = ["tablet_index", "row_index"] if self.job.guarantee == "idempotent" else []
        queue = ["queue_id"] if places and self.job.queue_count > 1 else []
        names = [*queue, *places, *(column.name for column in self.passing)]
        doc = 'One row in, one row out; the columns of QUEUE become those of OUTPUTS["output"].'
        hints = self._hints()
        return _TRANSFORM.format(
            imports=self._imports,
            constants=(hints and f"\n{hints}\n") + self._schemas(),
            reject=self._harmless(),
            frames=_EVENTS,
            doc=doc,
            body=_indented(
                f"return {self._parsed()}.select({', '.join(map(self._selected, names))})"
            ),
        )

    def _join(self) -> str:
        others = [column for column in self.reference if not column.key]
        added = [self._joined_name(column.name) for column in others]
        names = [*(column.name for column in self.passing), *added]
        keys = ", ".join(self._joined_by.values())
        reference, by = self._renamed(dict(zip((c.name for c in others), added, strict=True)))
        rows = "events"
        if self.parts:
            own = ", ".join(self._selected(column.name) for column in self.passing)
            rows = f"{self._parsed()}.select({own})"
        what = added[0] if len(added) == 1 else "columns of the reference"
        return _TRANSFORM.format(
            imports=self._imports,
            constants=f"\n{self._hints()}\n{self._schemas()}",
            reject=self._harmless(),
            frames=f"{_EVENTS}, reference: DataFrame",
            doc=f"One row in, one row out, with the {_short(what)} of its {_short(keys)}.",
            body=_indented(
                f'return {rows}.join(F.broadcast({reference}), {by}, "left").select(\n'
                f"    {', '.join(map(_quoted, names))}\n)"
            ),
        )

    @property
    def _joined_by(self) -> dict[str, str]:
        """The columns of the reference's key -> those of the rows."""
        if self.joined is not None:
            return dict(self.joined.on)
        return {column.name: column.name for column in self.reference if column.key}

    def _renamed(self, added: dict[str, str]) -> tuple[str, str]:
        """Return the reference with the queue's names for its key, and what to join by."""
        names, by = {**self._joined_by, **added}, [*self._joined_by.values()]
        listed = _quoted(by[0]) if len(by) == 1 else f"[{', '.join(map(_quoted, by))}]"
        if all(name == other for name, other in names.items()):
            return "reference", listed
        columns = ", ".join(
            _quoted(name)
            if name == other
            else f"F.col({_quoted(f'`{name}`')}).alias({_quoted(other)})"
            for name, other in names.items()
        )
        return f"reference.select({columns})", listed

    def _window(self) -> str:
        times, group = self.found.event_time, self.found.group
        assert times is not None
        name = self._time_name(times)
        by, selected, hint = "", "", ""
        if group is not None:
            quoted = _quoted(group.column.name)
            by, selected = f", {quoted}", f"        {quoted},\n"
            many = f"{group.values} values in the sample"
            hint = f"#: Groups are by {_plain(group.column.name)}: {many}.\n"
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
            imports="",
            constants=f'\n{self._hints()}\n\n{hint}{length}WINDOW = "{self.found.window}"\n'
            + self._watermark(times),
            reject=self._rejected(times),
            frames=_EVENTS,
            doc=(
                f"One row per {'group and ' if group else ''}window; the columns are those of "
                'OUTPUTS["output"].'
            ),
            body=_indented(body),
        )

    def _deduplicate(self) -> str:
        times, named = self.found.event_time, self.found.key
        assert times is not None
        assert named is not None
        key = named.column
        names = ", ".join(_quoted(column.name) for column in self.passing)
        identity = _quoted(key.name if key.required else self._identity)
        dropped = (
            f".withWatermark({self._time_name(times)}, LATENESS)\n"
            f"    .dropDuplicatesWithinWatermark([{identity}])\n    .select({names})\n)"
        )
        body = f"return (\n    events{self._with_time(times)}{dropped}"
        if not key.required:
            value = f"F.col({_quoted(f'`{key.name}`')})"
            body = (
                f"nameless = F.count(F.when({value}.isNull(), 1))"
                f".alias({_quoted(f'without {_plain(key.name)}')})\n"
                f'identity = F.coalesce({value}.cast("string"), F.expr("uuid()"))\n'
                'return (\n    events.observe("passed", nameless)\n'
                f"    .withColumn({identity}, identity)\n    {self._with_time(times)}{dropped}"
            )
        return _TRANSFORM.format(
            imports="",
            constants=f"\n{self._hints()}\n\n" + self._watermark(times),
            reject=self._rejected(times),
            frames=_EVENTS,
            doc=f"One row per {_short(key.name)}." + ("" if key.required else _NAMELESS),
            body=_indented(body),
        )

    @property
    def _identity(self) -> str:
        """The name of a column that tells rows apart, and that the queue does not have."""
        return self._free_name("identity", "row_identity", "own_id")

    def _free_name(self, *names: str) -> str:
        """Return the first of these names that no column of the queue has."""
        taken = {column.name.lower() for column in self.source.columns}
        return next(name for name in names if name not in taken)

    def _aggregate(self) -> str:
        group = self._grouping
        assert group is not None
        by = self._selected(group.column.name)
        return _TRANSFORM.format(
            imports=self._imports,
            constants=f"\n{self._hints()}\n{self._schemas()}",
            reject=self._harmless(),
            frames=_EVENTS,
            doc=(
                f"What each row adds to the totals of its {_short(group.column.name)}.\n\n"
                "    Do not group: each task combines its rows of a key, and the table adds them "
                "up.\n    "
            ),
            body=_indented(
                f'return {self._parsed()}.select({by}, F.lit(1).cast("long").alias("rows"))'
            ),
        )

    @property
    def _others(self) -> list[Column]:
        """The columns of a table with newest() that are not its key: each has an order."""
        group = self._grouping
        return [
            column
            for column in self.passing
            if (group is None or column.name != group.column.name) and is_comparable(column.type)
        ]

    def _merge(self) -> str:
        group, times = self._grouping, self.found.event_time
        assert group is not None
        assert times is not None
        by = f'{{"output": newest(sequence_by={_quoted(times.column.name)})}}'
        names = [group.column.name, *(column.name for column in self._others)]
        return _TRANSFORM.format(
            imports="\nfrom ytstream import newest\n",
            constants=f"\n{self._hints()}\n\n"
            f"#: The table has the newest row of each {_plain(group.column.name)}.\nMERGE = {by}\n",
            reject=self._harmless(),
            frames=_EVENTS,
            doc="One row in, one row out: MERGE says which row of a key the table has.",
            body=_indented(f"return events.select({', '.join(map(_quoted, names))})"),
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
        return _quoted(self._free_name("event_time", "event_timestamp", "watermark_time"))

    @property
    def lateness(self) -> str:
        """The proposal for LATENESS."""
        is_for_repeats = self.job.processing == "deduplicate"
        return self.found.lateness_of_repeats if is_for_repeats else self.found.lateness

    def _watermark(self, times: EventTime) -> str:
        late, behind = self.lateness, f"a row is at most {_seconds(times.behind_us)} behind"
        why = f"{behind}, and rows are {_seconds(times.step_us)} apart on average"
        ahead = max(1, seconds_of(late) // 2)
        if self.job.processing == "deduplicate" and self.found.key is not None:
            name = _plain(self.found.key.column.name)
            why += f", those with one {name} at most {_seconds(self.found.apart_us)}"
        about = (
            "How far a row may lie behind the newest one, by event time. A proposal, longer than "
            f"what the sample has: {why}."
        )
        return (
            f"{_documented(about)}"
            f'LATENESS = "{late}"\n'
            "#: How far a row may lie ahead of the batch's clock, not more than LATENESS: a wrong\n"
            "#: date would move the watermark to the future, and right rows would be late.\n"
            f'AHEAD = "{ahead} seconds"\n'
        )

    def _rejected(self, times: EventTime) -> str:
        later = f"{times.expression} > current_timestamp() + INTERVAL "
        quote = _quoted(later)[:-1]
        return f'{{\n{self._untimed(times)}    "from the future": f{quote}{{AHEAD}}",\n}}'

    def _untimed(self, times: EventTime) -> str:
        """Return the condition of rows without an event time; a required timestamp has one."""
        if times.column.required and times.kind == "timestamp":
            return ""
        missing = self.found.rows - times.rows
        return (
            f"    # In the sample: {_of_rows(missing, self.found.rows)}.\n"
            f'    "without event time": {_quoted(f"{times.expression} IS NULL")},\n'
        )

    def _harmless(self) -> str:
        """Return a first REJECT that no row of the sample meets."""
        nulls = {
            column.name: sum(row[column.name] is None for row in self.source.rows)
            for column in self.source.columns
            if not column.required
        }
        best = [named.column.name for named in (self.found.key, self.found.group) if named]
        found = sorted(nulls, key=lambda name: (nulls[name] > 0, name not in best))
        if found == [*self._taken_apart()] and (inside := self._missing_field()):
            return inside
        if not found:
            return f"{{\n    # {_REPLACE}\n    {_NOTHING}\n}}"
        name = found[0]
        reason = _quoted(f"without {_plain(name)}")
        condition = _quoted(f"`{name}` IS NULL")
        many = _of_rows(nulls[name], self.found.rows)
        if not nulls[name]:
            return f"{{\n    # A proposal. In the sample: {many}.\n    {reason}: {condition},\n}}"
        return (
            f"{{\n    # {_REPLACE} The next line would reject {many}\n"
            f"    # of the sample.\n    # {reason}: {condition},\n    {_NOTHING}\n}}"
        )

    def _missing_field(self) -> str:
        """Return a first REJECT for a queue of objects: that a field is missing which all have."""
        for part in self.parts:
            (name, *deeper), rows = part.path, self.found.rows
            if part.rows == rows and not deeper and payloads.is_plain(name):
                condition = f"get_json_object(json_of(`{part.source}`), '$.{name}') IS NULL"
                return (
                    f"{{\n    # A proposal. In the sample: {_of_rows(0, rows)}.\n"
                    f"    {_quoted(f'without {name}')}: {_quoted(condition)},\n}}"
                )
        return ""

    def seen(self) -> Iterator[str]:
        """Yield what the rows suggest, and by how many of them."""
        times, key, group = self.found.event_time, self.found.key, self.found.group
        for column in self._taken_apart():
            fields = [part for part in self.parts if part.source == column]
            names = ", ".join(_plain(part.column.name) for part in fields[:12])
            rest = f" and {len(fields) - 12} more" if len(fields) > 12 else ""
            yield f"fields of {_plain(column)}: {names}{rest}"
        for column in self._of_any():
            text = f"json_of({_quoted(column)})"
            yield (
                f"any type {_plain(column)}: {text} is its JSON. "
                f'get_json_object({text}, "$") is its text without quotes'
            )
        if times is not None:
            yield (
                f"event time {_plain(times.column.name)}: {time_text(times.first_us)} to "
                f"{time_text(times.last_us)}, in {_of_rows(times.rows, self.found.rows)}. "
                f"{times.growing:.0%} of them are not earlier than the row before, and none is "
                f"more than {_seconds(times.behind_us)} behind"
            )
        if key is not None:
            yield f"key {_plain(key.column.name)}: {self._values(key)}"
        if len(self.found.unique) > 1:
            names = ", ".join(_plain(column.name) for column in self.found.unique[1:5])
            yield f"other keys: {names}"
        if group is not None:
            yield f"group {_plain(group.column.name)}: {self._values(group)}"
        elif self.job.processing in ("aggregate", "join", "merge") and self._grouping is not None:
            name = _plain(self._grouping.column.name)
            yield f"no column has few values. {name} is the best: {self._values(self._grouping)}"

    def _of_any(self) -> Iterator[str]:
        """Yield the columns of type `any` that are not taken apart."""
        for column in self.source.columns:
            if type_name(column.type) in ("yson", "any") and column.name not in self._taken_apart():
                yield column.name

    def _values(self, named: Named) -> str:
        many = counted(named.values, "different value")
        return f"{many} in {_of_rows(named.rows, self.found.rows)}"

    def _hints(self) -> str:
        """Return what the rows suggest, as comments."""
        wrapped = [
            part
            for line in self.seen()
            for part in textwrap.wrap(
                f"- {line}.", _WIDTH - 2, initial_indent="# ", subsequent_indent="#   "
            )
        ]
        head = "# Proposals, by what `make adopt` has seen in the sample:"
        return "\n".join([head, *wrapped]) if wrapped else ""

    def rows(self, reference: str = "") -> str:
        """Return the text of sample/rows.py, with the rows of the reference table of a join."""
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
        naming = [self.found.key.column] if self.found.key else []
        if (naming := list(self.found.unique) or naming) and has_time:
            names = ", ".join(_quoted(column.name) for column in naming)
            saved += f"    unique=({names},),\n"
        more_by = f"    more_by={_quoted(self.more_by)},"
        saved += more_by + "  # noqa: E501" * (len(more_by) > _WIDTH)
        return _ROWS.format(
            origin=self.origin,
            warning="\n".join(textwrap.wrap(self.warning, _WIDTH - 1)),
            event_time=f"{about}EVENT_TIME: str | None = {name}",
            start=f", {time_text(self.start_us)}" if has_time else "",
            start_us=f"{self.start_us:_}",
            saved=saved.rstrip("\n"),
            reference=reference,
        )

    def reference_rows(self, columns: Sequence[Column], own: str | None) -> str:
        """Return REFERENCE of sample/rows.py: the user's rows, or one for each key of the sample.

        ``columns`` are those of REFERENCE in tables.py.
        """
        if self.joined is not None:
            about = f"For the keys of the sample, from\n#: {_short(self.joined.path)}."
            return _REFERENCE_ROWS.format(about=about, rows=_saved(REFERENCE_FILE))
        if own not in (None, "[]"):
            return _REFERENCE_ROWS.format(about="As they were.", rows=own)
        keys = [column.name for column in columns if column.key]
        known = {column.name for column in self.source.columns}
        part = next((part for part in self.parts if [part.column.name] == keys), None)
        if part is None and (len(keys) != 1 or keys[0] not in known):
            about = "There are none yet: write some that the sample can join."
            return _REFERENCE_ROWS.format(about=about, rows="[]")
        others = ", ".join(
            f"{_quoted(column.name)}: {_made_up(column)}" for column in columns if not column.key
        )
        about = "Made up, one for each key of the sample: write your own."
        row = f"{{{_quoted(keys[0])}: key, {others}}}"
        values = f"SAVED.values({_quoted(keys[0])})"
        if part is not None:
            found = dict.fromkeys(part.value(row) for row in self.source.rows)
            values = repr([value for value in found if value is not None])
        rows = f"[{row} for key in {values}]"
        return _REFERENCE_ROWS.format(about=about, rows=rows)

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

    @property
    def looked_up(self) -> list[Reference]:
        """The references of lookup() as the cluster has them."""
        return [found for found in self.references if found.name]

    def looked_up_rows(self) -> str:
        """Return REFERENCES of sample/rows.py: the rows that lookup() finds for the sample."""
        if not self.looked_up:
            return ""
        lines = "".join(
            f"    {_quoted(found.name)}: {_saved(reference_file(found.name))},\n"
            for found in self.looked_up
        )
        return _REFERENCES_ROWS.format(rows=f"{{\n{lines}}}")

    def sample(self) -> str:
        """Return the text of sample/__init__.py."""
        given = {"reference": "rows.REFERENCE"} if self.job.processing == "join" else {}
        if self.looked_up:
            given["references"] = "rows.REFERENCES"
        return _SAMPLE.format(
            package=self.job.package,
            reference="".join(f", {name}={value}" for name, value in given.items()),
            given="".join(f"    {name}={value},\n" for name, value in given.items()),
        )

    def test(self) -> str:
        """Return the text of tests/test_transform.py."""
        return TEST


def reference_file(name: str) -> str:
    """Return the file with the rows of a reference of lookup()."""
    return f"reference-{name}.yson"


def _saved(file: str) -> str:
    return f"SavedRows(Path(__file__).with_name({_quoted(file)})).all"


def _made_up(column: Column) -> str:
    """Return the expression of a value of a reference row."""
    if type_name(column.type) in ("utf8", "string"):
        return f"{_quoted(f'{column.name} of ')} + str(key)"
    return "0" if column.required else "None"


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1_000_000:,.0f} s"


def _documented(text: str) -> str:
    """Return the lines of a comment about the constant below."""
    lines = textwrap.wrap(text, _WIDTH - 1, initial_indent="#: ", subsequent_indent="#: ")
    return "\n".join([*lines, ""])


def _of_rows(some: int, rows: int) -> str:
    return f"{some:,} of {rows:,} rows"


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
    more += f', aggregate="{column.aggregate}"' if column.aggregate is not None else ""
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
