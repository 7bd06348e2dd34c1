"""tables.py and transform.py as `adopt` writes them: they work, and are there to be edited."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yt.type_info as ti

from ytstream.job import Job
from ytstream.schema.columns import Column, is_comparable, type_name
from ytstream.schema.spark_types import never_written
from ytstream.text_table import counted

from ..demo.event_times import text as time_text
from . import owned_files, payloads, starter_texts
from .payloads import Part
from .proposals import EventTime, Named, Proposals, seconds_of
from .python_text import (
    WIDTH,
    column_line,
    comment_above,
    in_seconds,
    indented,
    listed,
    of_rows,
    printable,
    quoted,
    shortened,
)
from .reference_source import Reference
from .source_rows import SourceRows

KNOWN = ("map", "window", "join", "deduplicate", "aggregate", "merge")
"""Processing types with a first transform() that needs no knowledge of what the job is for."""
_EVENTS = "events: DataFrame"
_NOTHING, _REPLACE = '"example": "false",', "An example, which rejects nothing: replace it."
"""A condition that no row meets: which rows are wrong, a person knows."""


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
        return shortened(self.source.origin)

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
        made = starter_texts.TABLES.format(
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
        return listed([*map(column_line, self.source.columns), *self._left_out()], 0)

    def _left_out(self) -> Iterator[str]:
        for column in self.source.left_out:
            text = printable(f"Skipped: {column.name}, {column.type}: {column.why}.")
            yield from textwrap.wrap(text, WIDTH - 5, initial_indent="# ", subsequent_indent="# ")

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
        return listed(map(column_line, [*first, *columns]), 4)

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
            else f"its columns are those of\n#: {shortened(self.joined.path)}"
        )
        return starter_texts.REFERENCE.format(
            columns=listed(map(column_line, self.reference), 0), about=about
        )

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
                f"\n#: The fields of {printable(column)} that the sample has. Others are ignored: "
                f'add what you need.\n{name} = """\n{textwrap.indent(fields, "    ")}\n"""\n'
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
            f".withColumn({quoted(column)}, F.from_json(json_of({quoted(column)}), {name}))"
            for column, name in self._taken_apart().items()
        )

    def _selected(self, name: str) -> str:
        """Return a column of select()."""
        part = next((part for part in self.parts if part.column.name == name), None)
        if part is None:
            return quoted(name)
        return f"F.col({quoted(part.reference)}).alias({quoted(name)})"

    def _map(self) -> str:
        places = ["tablet_index", "row_index"] if self.job.guarantee == "idempotent" else []
        queue = ["queue_id"] if places and self.job.queue_count > 1 else []
        names = [*queue, *places, *(column.name for column in self.passing)]
        doc = 'One row in, one row out; the columns of QUEUE become those of OUTPUTS["output"].'
        hints = self._hints()
        return starter_texts.TRANSFORM.format(
            imports=self._imports,
            constants=(hints and f"\n{hints}\n") + self._schemas(),
            reject=self._harmless(),
            frames=_EVENTS,
            doc=doc,
            body=indented(
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
        return starter_texts.TRANSFORM.format(
            imports=self._imports,
            constants=f"\n{self._hints()}\n{self._schemas()}",
            reject=self._harmless(),
            frames=f"{_EVENTS}, reference: DataFrame",
            doc=f"One row in, one row out, with the {shortened(what)} of its {shortened(keys)}.",
            body=indented(
                f'return {rows}.join(F.broadcast({reference}), {by}, "left").select(\n'
                f"    {', '.join(map(quoted, names))}\n)"
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
        listed = quoted(by[0]) if len(by) == 1 else f"[{', '.join(map(quoted, by))}]"
        if all(name == other for name, other in names.items()):
            return "reference", listed
        columns = ", ".join(
            quoted(name)
            if name == other
            else f"F.col({quoted(f'`{name}`')}).alias({quoted(other)})"
            for name, other in names.items()
        )
        return f"reference.select({columns})", listed

    def _window(self) -> str:
        times, group = self.found.event_time, self.found.group
        assert times is not None
        name = self._time_name(times)
        by, selected, hint = "", "", ""
        if group is not None:
            named = quoted(group.column.name)
            by, selected = f", {named}", f"        {named},\n"
            many = f"{group.values} values in the sample"
            hint = f"#: Groups are by {printable(group.column.name)}: {many}.\n"
        body = (
            f"return (\n    events{self._with_time(times)}.withWatermark({name}, LATENESS)\n"
            f"    .groupBy(F.window({name}, WINDOW){by})\n"
            f'    .agg(F.count(F.lit(1)).alias("rows"))\n    .select(\n{selected}'
            '        F.col("window.start").alias("window_start"),\n'
            '        F.col("window.end").alias("window_end"),\n        "rows",\n    )\n)'
        )
        windows = counted(self.found.windows, "window")
        length = f"#: The length of a window. A proposal: the sample is about {windows} long.\n"
        return starter_texts.TRANSFORM.format(
            imports="",
            constants=f'\n{self._hints()}\n\n{hint}{length}WINDOW = "{self.found.window}"\n'
            + self._watermark(times),
            reject=self._rejected(times),
            frames=_EVENTS,
            doc=(
                f"One row per {'group and ' if group else ''}window; the columns are those of "
                'OUTPUTS["output"].'
            ),
            body=indented(body),
        )

    def _deduplicate(self) -> str:
        times, named = self.found.event_time, self.found.key
        assert times is not None
        assert named is not None
        key = named.column
        names = ", ".join(quoted(column.name) for column in self.passing)
        identity = quoted(key.name if key.required else self._identity)
        dropped = (
            f".withWatermark({self._time_name(times)}, LATENESS)\n"
            f"    .dropDuplicatesWithinWatermark([{identity}])\n    .select({names})\n)"
        )
        body = f"return (\n    events{self._with_time(times)}{dropped}"
        if not key.required:
            value = f"F.col({quoted(f'`{key.name}`')})"
            body = (
                f"nameless = F.count(F.when({value}.isNull(), 1))"
                f".alias({quoted(f'without {printable(key.name)}')})\n"
                f'identity = F.coalesce({value}.cast("string"), F.expr("uuid()"))\n'
                'return (\n    events.observe("passed", nameless)\n'
                f"    .withColumn({identity}, identity)\n    {self._with_time(times)}{dropped}"
            )
        return starter_texts.TRANSFORM.format(
            imports="",
            constants=f"\n{self._hints()}\n\n" + self._watermark(times),
            reject=self._rejected(times),
            frames=_EVENTS,
            doc=f"One row per {shortened(key.name)}."
            + ("" if key.required else starter_texts.NAMELESS),
            body=indented(body),
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
        return starter_texts.TRANSFORM.format(
            imports=self._imports,
            constants=f"\n{self._hints()}\n{self._schemas()}",
            reject=self._harmless(),
            frames=_EVENTS,
            doc=(
                f"What each row adds to the totals of its {shortened(group.column.name)}.\n\n"
                "    Do not group: each task combines its rows of a key, and the table adds them "
                "up.\n    "
            ),
            body=indented(
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
        by = f'{{"output": newest(sequence_by={quoted(times.column.name)})}}'
        names = [group.column.name, *(column.name for column in self._others)]
        return starter_texts.TRANSFORM.format(
            imports="\nfrom ytstream import newest\n",
            constants=f"\n{self._hints()}\n\n"
            f"#: The table has the newest row of each {printable(group.column.name)}.\n"
            f"MERGE = {by}\n",
            reject=self._harmless(),
            frames=_EVENTS,
            doc="One row in, one row out: MERGE says which row of a key the table has.",
            body=indented(f"return events.select({', '.join(map(quoted, names))})"),
        )

    def _with_time(self, times: EventTime) -> str:
        """Return the call that adds the event time as a timestamp, where it is of another type."""
        if times.kind == "timestamp":
            return ""
        return f".withColumn({self._time_name(times)}, F.expr({quoted(times.expression)}))"

    def _time_name(self, times: EventTime) -> str:
        """Return the name of a column with the event time as a timestamp."""
        if times.kind == "timestamp":
            return quoted(times.column.name)
        return quoted(self._free_name("event_time", "event_timestamp", "watermark_time"))

    @property
    def lateness(self) -> str:
        """The proposal for LATENESS."""
        is_for_repeats = self.job.processing == "deduplicate"
        return self.found.lateness_of_repeats if is_for_repeats else self.found.lateness

    def _watermark(self, times: EventTime) -> str:
        late, behind = self.lateness, f"a row is at most {in_seconds(times.behind_us)} behind"
        why = f"{behind}, and rows are {in_seconds(times.step_us)} apart on average"
        ahead = max(1, seconds_of(late) // 2)
        if self.job.processing == "deduplicate" and self.found.key is not None:
            name = printable(self.found.key.column.name)
            why += f", those with one {name} at most {in_seconds(self.found.apart_us)}"
        about = (
            "How far a row may lie behind the newest one, by event time. A proposal, longer than "
            f"what the sample has: {why}."
        )
        return (
            f"{comment_above(about)}"
            f'LATENESS = "{late}"\n'
            "#: How far a row may lie ahead of the batch's clock, not more than LATENESS: a wrong\n"
            "#: date would move the watermark to the future, and right rows would be late.\n"
            f'AHEAD = "{ahead} seconds"\n'
        )

    def _rejected(self, times: EventTime) -> str:
        later = f"{times.expression} > current_timestamp() + INTERVAL "
        quote = quoted(later)[:-1]
        return f'{{\n{self._untimed(times)}    "from the future": f{quote}{{AHEAD}}",\n}}'

    def _untimed(self, times: EventTime) -> str:
        """Return the condition of rows without an event time; a required timestamp has one."""
        if times.column.required and times.kind == "timestamp":
            return ""
        missing = self.found.rows - times.rows
        return (
            f"    # In the sample: {of_rows(missing, self.found.rows)}.\n"
            f'    "without event time": {quoted(f"{times.expression} IS NULL")},\n'
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
        reason = quoted(f"without {printable(name)}")
        condition = quoted(f"`{name}` IS NULL")
        many = of_rows(nulls[name], self.found.rows)
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
                    f"{{\n    # A proposal. In the sample: {of_rows(0, rows)}.\n"
                    f"    {quoted(f'without {name}')}: {quoted(condition)},\n}}"
                )
        return ""

    def seen(self) -> Iterator[str]:
        """Yield what the rows suggest, and by how many of them."""
        times, key, group = self.found.event_time, self.found.key, self.found.group
        for column in self._taken_apart():
            fields = [part for part in self.parts if part.source == column]
            names = ", ".join(printable(part.column.name) for part in fields[:12])
            rest = f" and {len(fields) - 12} more" if len(fields) > 12 else ""
            yield f"fields of {printable(column)}: {names}{rest}"
        for column in self._of_any():
            text = f"json_of({quoted(column)})"
            yield (
                f"any type {printable(column)}: {text} is its JSON. "
                f'get_json_object({text}, "$") is its text without quotes'
            )
        if times is not None:
            yield (
                f"event time {printable(times.column.name)}: {time_text(times.first_us)} to "
                f"{time_text(times.last_us)}, in {of_rows(times.rows, self.found.rows)}. "
                f"{times.growing:.0%} of them are not earlier than the row before, and none is "
                f"more than {in_seconds(times.behind_us)} behind"
            )
        if key is not None:
            yield f"key {printable(key.column.name)}: {self._values(key)}"
        if len(self.found.unique) > 1:
            names = ", ".join(printable(column.name) for column in self.found.unique[1:5])
            yield f"other keys: {names}"
        if group is not None:
            yield f"group {printable(group.column.name)}: {self._values(group)}"
        elif self.job.processing in ("aggregate", "join", "merge") and self._grouping is not None:
            name = printable(self._grouping.column.name)
            yield f"no column has few values. {name} is the best: {self._values(self._grouping)}"

    def _of_any(self) -> Iterator[str]:
        """Yield the columns of type `any` that are not taken apart."""
        for column in self.source.columns:
            if type_name(column.type) in ("yson", "any") and column.name not in self._taken_apart():
                yield column.name

    def _values(self, named: Named) -> str:
        many = counted(named.values, "different value")
        return f"{many} in {of_rows(named.rows, self.found.rows)}"

    def _hints(self) -> str:
        """Return what the rows suggest, as comments."""
        wrapped = [
            part
            for line in self.seen()
            for part in textwrap.wrap(
                f"- {line}.", WIDTH - 2, initial_indent="# ", subsequent_indent="#   "
            )
        ]
        head = "# Proposals, by what `make adopt` has seen in the sample:"
        return "\n".join([head, *wrapped]) if wrapped else ""

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
