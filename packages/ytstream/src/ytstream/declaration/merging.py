"""What is wrong with MERGE of transform.py, before anything runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import yt.type_info as ti

from ..job import REJECTED, Job
from ..schema.changes import DELETED, IS_STORED, Merge, Newest, newest
from ..schema.columns import Column, is_totals, key_of, spelled, type_name

_WITHOUT_ORDER = ("yson", "dict")
"""Kinds of columns that have no order, so they cannot decide between two rows."""


def of_merge(job: Job) -> Iterator[str]:
    """Yield what is wrong with MERGE, apart from the kinds of its values."""
    if job.processing == "merge" and not job.merge:
        yield (
            'processing="merge" and no MERGE: give Job merge=MERGE, the dict of transform.py; '
            "without it a row replaces any other one with its key"
        )
    for name, rule in job.merge.items():
        if name not in job.outputs:
            yield f"MERGE names {name!r}, which OUTPUTS does not have"
        else:
            yield from (f"MERGE[{name!r}]: {problem}" for problem in _of_output(job, name, rule))


def of_kinds(merge: Any) -> Iterator[str]:
    """Yield what is wrong with the kinds of values in MERGE."""
    if not isinstance(merge, Mapping):
        yield "merge: wanted a dict of outputs and newest(), or functions"
        return
    for name, rule in merge.items():
        if not isinstance(name, str):
            yield f"merge: the name {name!r} is not a text"
        elif isinstance(rule, Newest):
            by, flag = rule.sequence_by, rule.apply_as_deletes
            if not (isinstance(by, str) and by):
                yield f"merge[{name!r}]: sequence_by={by!r}, wanted the name of a column"
            if not (flag is None or (isinstance(flag, str) and flag)):
                yield f"merge[{name!r}]: apply_as_deletes={flag!r}, wanted the name of a column"
        elif rule is newest or not inspect.isfunction(rule):
            yield f"merge[{name!r}]={rule!r}: wanted newest(sequence_by=...), or a function"


def _of_output(job: Job, name: str, rule: Merge) -> Iterator[str]:
    columns = job.output_columns[name]
    if name == REJECTED and job.rejects:
        yield "the runtime writes the rejected rows, each under its position"
    elif name in job.static:
        yield "the output is static, and a table of one micro-batch changes no other"
    elif not key_of(columns):
        yield "the output has no key column: the key says which rows belong together"
    if is_totals(columns):
        yield "the output has columns with aggregate=, and its table adds up what is written"
    if job.guarantee != "transactional":
        yield (
            f"{job.guarantee} writes without a transaction, so a row that was read may change "
            'before it is written: set guarantee="transactional" in job.py'
        )
    for taken in (DELETED, IS_STORED):
        if taken in {column.name.lower() for column in columns}:
            yield f"the output has a column {taken}, a name that MERGE uses"
    if isinstance(rule, Newest):
        yield from _of_newest(job, columns, rule)


def _of_newest(job: Job, columns: tuple[Column, ...], rule: Newest) -> Iterator[str]:
    values = {column.name: column for column in columns if not column.key}
    by, flag = rule.sequence_by, rule.apply_as_deletes
    if by not in values:
        yield f"sequence_by={by!r} is not a value column of the output ({', '.join(values)})"
    for column in values.values():
        if any(kind in _WITHOUT_ORDER for kind in _kinds(column.type)):
            yield (
                f"column {column.name} is {spelled(column.type)}, which has no order, so two rows "
                f"with the same {by} would be decided by chance: store text, or write a function"
            )
    if flag is not None and flag in key_of(columns):
        yield f"apply_as_deletes={flag!r} is a key column"
    elif flag is not None and flag in values and values[flag].type != ti.Bool:
        yield f"apply_as_deletes={flag!r} is {spelled(values[flag].type)}, wanted a boolean"
    if unordered(job, rule) and REJECTED not in job.outputs:
        yield (
            f"{by} of QUEUE may be null or NaN, and such rows are rejected: add {REJECTED!r}: "
            "REJECTED to OUTPUTS, or required=True to the column of QUEUE if it is not a double"
        )


def unordered(job: Job, rule: Newest) -> bool:
    """Return whether rows of the queues may have null or NaN as the sequence value."""
    return any(
        column.name == rule.sequence_by
        and (not column.required or column.type in (ti.Double, ti.Float))
        for column in job.queue_columns
    )


def _kinds(type_: Any) -> Iterator[str]:
    yield type_name(type_)
    items = [item[1] if isinstance(item, tuple) else item for item in getattr(type_, "items", ())]
    for part in [getattr(type_, "item", None), *items]:
        if part is not None:
            yield from _kinds(part)
