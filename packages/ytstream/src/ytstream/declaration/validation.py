"""Refuses a job.py that does not fit its tables, its configuration or this runtime."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import COUNT, LATE, PROCESSINGS, REJECT, REJECTED, Guarantee, Job, own_confs
from ..schema import periods
from ..schema.changes import deleted_path
from ..schema.columns import Column, is_totals, key_of, rejected_columns, type_name
from ..schema.periods import Archive
from ..schema.spark_types import never_written
from ..settings import spark_conf
from ..settings.job_settings import SPYT, Settings, one_tablet_of
from ..text_table import counted
from ..version import version_of
from . import merging
from .compatibility import KEYED

MOST_COLUMNS = 1_024
"""The values that a row of a dynamic table may have (YTsaurus, client/table_client/public.h,
MaxValuesPerRow)."""
_NEVER_SORTED = ("yson", "any", "list", "struct", "tuple", "variant", "dict", "tagged")
"""Types of columns by which no table is sorted."""


def verify(job: Job) -> None:
    """Raise JobError unless job.py fits this runtime and its own tables; needs no cluster."""
    _verify_kinds(job)
    if job.processing not in PROCESSINGS:
        raise JobError(
            f"job.py: unknown processing {job.processing!r}",
            f"use one of {', '.join(PROCESSINGS)}",
            code=ErrorCode.JOB,
        )
    _refuse(
        "job.py and tables.py do not fit",
        "correct job.py or tables.py; nothing was started",
        chain(
            _of_functions(job),
            _of_reject(job),
            _of_static(job),
            _of_columns(job),
            _of_totals(job),
            merging.of_merge(job),
        ),
        ErrorCode.JOB,
    )


def _of_functions(job: Job) -> Iterator[str]:
    """Yield what is wrong with the functions, and with the outputs that they fill."""
    first = next(iter(job.outputs), None)
    if first != "output":
        yield f'the first of OUTPUTS must be "output", it is {first!r}'
    filled = {"output", REJECTED} if job.rejects else {"output"}
    unwritten = [name for name in job.outputs if name not in filled]
    if unwritten and job.split is None:
        yield (
            f"nothing fills the outputs {', '.join(unwritten)}: give Job split=outputs, the "
            "function of transform.py"
        )
    if not inspect.isfunction(job.transform):
        yield "transform is not a function"
    if not (job.split is None or inspect.isfunction(job.split)):
        yield "split is not a function"


def _of_reject(job: Job) -> Iterator[str]:
    """Yield what is wrong with REJECT, `late` and their output, apart from the output's columns."""
    if job.rejects and REJECTED not in job.outputs:
        needs = "REJECT" if job.reject else f'late="{REJECT}"'
        if not job.reject and job.archives:
            needs = "STATIC with a table per period, for rows that belong to no open one,"
        yield (
            f"{needs} needs an output in OUTPUTS: {REJECTED!r}: REJECTED, which ytstream exports: "
            'see docs/operations.md, "Rejected rows"'
        )
    if job.late == REJECT and not job.kind.is_stateful:
        yield f"processing {job.processing} keeps no state, so no row is late: leave out late"
    if LATE in job.reject and job.rejects_late:
        yield f"REJECT[{LATE!r}]: rows behind the watermark have this reason, choose another one"
    for name, conditions in (("REJECT", job.reject), ("WARN", job.warn)):
        for reason, condition in conditions.items():
            if not (_is_line(reason) and isinstance(condition, str) and condition.strip()):
                yield f"{name}[{reason!r}]: wanted one line as the reason and a SQL condition"
    if both := sorted({*job.reject} & {*job.warn}):
        yield f"REJECT and WARN have the same reason: {', '.join(both)}"


def _of_static(job: Job) -> Iterator[str]:
    """Yield what is wrong with STATIC."""
    if len({*job.static}) < len(job.static):
        yield "STATIC names an output twice"
    for name in job.static:
        if name not in job.outputs:
            yield f"STATIC names {name!r}, which OUTPUTS does not have"
        elif not re.fullmatch(r"[\w.-]+", name, re.ASCII):  # a folder is named after it
            yield f"the static output {name!r} needs a name of letters a-z, digits and _ . -"
        elif name == REJECTED and job.rejects:
            yield f"{name!r} cannot be static: `replay-rejected` removes rows of it"
        elif key := key_of(job.output_columns[name]):
            yield (
                f"OUTPUTS[{name!r}] is static and cannot have key columns ({', '.join(key)}): each "
                f"{'period' if name in job.archives else 'micro-batch'} is a table of its own, so "
                "no row replaces another"
            )
        elif name in job.archives:
            yield from _of_archive(job, name, job.archives[name])


def _of_archive(job: Job, name: str, archive: Archive) -> Iterator[str]:
    """Yield what is wrong with an output that has a table per period."""
    found = {column.name: column for column in job.output_columns[name]}
    said = f"STATIC[{name!r}]"
    for problem in periods.problems(archive):
        yield f"{said}: {problem}"
    for column in archive.sort_by:
        if column not in found:
            yield f"{said}: sort_by={column!r}, which OUTPUTS[{name!r}] does not have"
        elif (kind := type_name(found[column].type)) in _NEVER_SORTED:
            yield f"{said}: sort_by={column!r} is {kind}, by which no table is sorted"
    if not isinstance(archive.by, str):
        return
    if archive.by not in found:
        yield f"{said}: by={archive.by!r}, which OUTPUTS[{name!r}] does not have"
    elif (kind := type_name(found[archive.by].type)) not in periods.TIMES:
        wanted = " or ".join(periods.TIMES)
        yield f"{said}: the column {archive.by} is {kind}, wanted {wanted}: cast it in transform()"


def _of_columns(job: Job) -> Iterator[str]:
    """Yield what is wrong with the columns of tables.py, apart from what columns.py refuses."""
    if job.kind.has_reference and not (job.reference or job.references):
        yield "a join needs REFERENCE, or REFERENCES for lookup()"
    elif job.reference and not job.kind.has_reference:
        yield f"processing {job.processing} does not use REFERENCE"
    if job.reference and not key_of(job.reference_columns):
        yield "REFERENCE has no key column"
    yield from _of_references(job)
    if key_of(job.queue_columns):
        yield "a column of QUEUE cannot be a key: it is ordered"
    tables = {"QUEUE": job.queue_columns, "REFERENCE": job.reference_columns}
    tables |= {f"REFERENCES[{name!r}]": columns for name, columns in job.lookup_columns.items()}
    tables |= {f"OUTPUTS[{name!r}]": columns for name, columns in job.output_columns.items()}
    for name, columns in tables.items():
        if len(columns) > MOST_COLUMNS:
            yield (
                f"{name} has {len(columns)} columns; a row of a YTsaurus table has at most "
                f"{MOST_COLUMNS} values: put some of them into one column, e.g. of type any"
            )
    for name, columns in job.output_columns.items():
        if all(column.key for column in columns):
            yield f"OUTPUTS[{name!r}] has only key columns"
        for problem in filter(None, map(never_written, columns)):
            yield f"OUTPUTS[{name!r}], {problem}"


def _of_references(job: Job) -> Iterator[str]:
    """Yield what is wrong with REFERENCES."""
    for name, columns in job.lookup_columns.items():
        if not key_of(columns):
            yield f"REFERENCES[{name!r}] has no key column: list the table's whole key, key=True"
    if job.references and job.guarantee == "idempotent":
        yield (
            "idempotent allows no REFERENCES: a batch that is written again may look up other "
            'values; set guarantee="transactional"'
        )


def _of_totals(job: Job) -> Iterator[str]:
    """Yield what is wrong with `aggregate=`, apart from what columns.py refuses."""
    read = {"QUEUE": job.queue_columns, "REFERENCE": job.reference_columns}
    read |= {f"REFERENCES[{name!r}]": columns for name, columns in job.lookup_columns.items()}
    for name, columns in read.items():
        if is_totals(columns):
            yield f"{name} has columns with aggregate=, which only OUTPUTS may have"
    for name in job.totals:
        columns = job.output_columns[name]
        plain = [column.name for column in columns if not (column.key or column.aggregate)]
        if plain:
            yield (
                f"OUTPUTS[{name!r}] has columns with aggregate= and without ({', '.join(plain)}): "
                "a table adds up all columns that are not keys, or none"
            )
        if not key_of(columns):
            yield f"OUTPUTS[{name!r}] has aggregate= and no key column: totals need a key"
        if job.guarantee != "transactional":
            yield (
                f"OUTPUTS[{name!r}] has aggregate= under {job.guarantee}: a write that is repeated "
                'would be added twice; set guarantee="transactional" in job.py'
            )


def _verify_kinds(job: Job) -> None:
    """Raise JobError for a value of job.py that is of the wrong kind, or a number out of bounds."""
    if not isinstance(job, Job):
        raise JobError("JOB in job.py is not a Job", "write JOB = Job(...)", code=ErrorCode.JOB)
    _refuse(
        "job.py cannot be read",
        "correct job.py or tables.py; nothing was started",
        _of_kinds(job),
        ErrorCode.JOB,
    )


def _of_kinds(job: Job) -> Iterator[str]:
    for name in ("name", "processing", "guarantee"):
        if not _is_line(value := getattr(job, name)):
            yield f"{name}={value!r}: wanted one line"
    lists = {"queue": job.queue, "reference": job.reference}
    if isinstance(job.outputs, Mapping):
        lists |= {f"outputs[{name!r}]": columns for name, columns in job.outputs.items()}
    if isinstance(job.references, Mapping):
        lists |= {f"references[{name!r}]": columns for name, columns in job.references.items()}
    else:
        yield "references: wanted a dict of names and lists of columns"
    for name, columns in lists.items():
        if not isinstance(columns, list | tuple):
            yield f"{name}={columns!r}: wanted a list"
    if job.late not in (COUNT, REJECT):
        yield f'late={job.late!r}: wanted "{COUNT}" or "{REJECT}"'
    for name in ("reject", "warn"):
        if not isinstance(getattr(job, name), Mapping):
            yield f"{name}: wanted a dict of reasons and SQL conditions"
    yield from merging.of_kinds(job.merge)
    if isinstance(job.static, Mapping):
        for name, archive in job.static.items():
            if not (_is_line(name) and isinstance(archive, Archive)):
                yield f"static[{name!r}]={archive!r}: wanted Hourly(...), Daily(...) or Every(...)"
    elif not (isinstance(job.static, tuple | list) and all(map(_is_line, job.static))):
        yield f"static={job.static!r}: wanted a tuple of names of outputs, or a dict of archives"
    if not isinstance(job.outputs, Mapping):
        yield "outputs: wanted a dict of names and lists of columns"
    else:
        for name in job.outputs:
            if not isinstance(name, str):
                yield f"outputs: the name {name!r} is not a text"
    for name in job.references if isinstance(job.references, Mapping) else ():
        if not _is_line(name):
            yield f"references: the name {name!r} is not one line of text"
    for name in ("reference_rows", "shuffle_partitions", "large_state_bytes", "most_failures"):
        if type(value := getattr(job, name)) is not int or value < 1:
            yield f"{name}={value!r}: wanted a positive number"
    for name in ("failure_period_seconds", "first_pause_seconds", "longest_pause_seconds"):
        if type(value := getattr(job, name)) not in (int, float) or value <= 0:
            yield f"{name}={value!r}: wanted a positive number"


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def verify_configuration(job: Job, settings: Settings, guarantee: Guarantee) -> None:
    """Raise JobError unless the configuration has what this job and its guarantee need."""
    job, queues = job.reading(len(settings.queues)), len(settings.queues)
    _refuse(
        "the configuration and the job do not fit",
        "correct the configuration or tables.py; nothing was started",
        chain(
            _of_settings(job, settings),
            _of_keys(job, guarantee, queues),
            _of_rejected(job, queues),
            _of_position(job, guarantee, queues),
        ),
        ErrorCode.CONFIG,
    )


def _of_settings(job: Job, settings: Settings) -> Iterator[str]:
    yield from (
        f"[outputs] lacks {n}, of OUTPUTS" for n in job.outputs if n not in settings.outputs
    )
    for name in settings.outputs:
        if name not in job.outputs:
            yield f"[outputs] names {name}, which OUTPUTS does not have"
    for name in job.references.keys() - settings.references.keys():
        yield f"[references] lacks {name}, of REFERENCES"
    for name in settings.references.keys() - job.references.keys():
        if job.references:
            yield f"[references] names {name}, which REFERENCES does not have"
        else:
            yield (
                f"[references] names {name}, and Job(...) in job.py has no REFERENCES: give it "
                "references=REFERENCES, with the list of tables.py"
            )
    if job.totals and settings.connector == SPYT:
        yield (
            f'connector = "spyt" writes no totals, and {", ".join(job.totals)} has aggregate=: it '
            'would replace them; use connector = "own"'
        )
    if job.merge and settings.connector == SPYT:
        yield (
            'connector = "spyt" looks up and deletes no rows, as MERGE of '
            f'{", ".join(job.merge)} needs it: use connector = "own"'
        )
    for name in job.deletions.keys() & settings.outputs.keys():
        path = deleted_path(settings.outputs[name])
        if path in settings.outputs.values():
            yield f"[outputs] names {path}, in which the job remembers deletes of {name}"
    for name in job.totals:
        if problem := _of_first(name, job.output_columns[name], settings):
            yield problem
    own = own_confs(job, settings, version_of("pyspark"))
    for name, value in settings.spark_confs.items():
        if spark_conf.is_protected(name) and own.get(name, "").lower() != value.lower():
            yield f"[spark] sets {name}: `make confs` shows its reason"
    for size in spark_conf.SIZES:
        if size.key in settings.spark_confs and getattr(settings.submit, size.name) is not None:
            yield f"{size.key} is given twice: under [spark], and as {size.name} under [submit]"
    if settings.late_limit is not None and not job.rejects_late:
        yield f'late_limit needs late="{REJECT}" in job.py: otherwise reject_limit counts late rows'
    is_read = reads_reference(job)
    if is_read and settings.reference is None:
        yield "a join needs the key `reference`"
    elif settings.reference is not None and not is_read:
        yield f"processing {job.processing} does not use the key `reference` without REFERENCE"


def reads_reference(job: Job) -> bool:
    """Return whether transform() gets the table of REFERENCE, and not only lookup() its own."""
    return job.kind.has_reference and not (job.references and not job.reference)


def _of_first(name: str, columns: Sequence[Column], settings: Settings) -> str:
    """Return why `first` may depend on chance; empty where the owner says that it does not."""
    first = [column.name for column in columns if column.aggregate == "first"]
    if not first or one_tablet_of(name) in settings.accept:
        return ""
    return (
        f'OUTPUTS[{name!r}] has aggregate="first" ({", ".join(first)}): between rows of several '
        "tablets it depends on where batches are cut; if all rows of a key are in one tablet of "
        f'one queue: accept = ["{one_tablet_of(name)}"] in the configuration'
    )


def _of_keys(job: Job, guarantee: Guarantee, queues: int) -> Iterator[str]:
    """Yield which outputs have another key than the guarantee has; None of its own: any.

    A static output has none; that of `rejected` is a position, and such a row does not change.
    """
    wanted = guarantee.key(queues)
    for name, columns in job.output_columns.items():
        is_kept = name in job.static or (job.rejects and name == REJECTED)
        key = key_of(columns)
        if wanted is None or key == wanted or is_kept:
            continue
        if wanted:
            yield (
                f"{guarantee.name} with {counted(queues, 'queue')} needs the key columns "
                f"{', '.join(wanted)} in front of OUTPUTS[{name!r}]; it has "
                f"{', '.join(key) or 'none'}"
            )
        else:
            yield (
                f"OUTPUTS[{name!r}] has the key {', '.join(key)} under {guarantee.name}: {KEYED}; "
                'set guarantee="transactional" in job.py, or leave the key out'
            )


def _of_rejected(job: Job, queues: int) -> Iterator[str]:
    """Yield whether the columns of the output of rejected rows are malformed."""
    wanted = rejected_columns(queues)
    if job.rejects and job.output_columns[REJECTED] != wanted:
        title = f"OUTPUTS[{REJECTED!r}] needs, with {counted(queues, 'queue')}, the columns"
        yield "\n    ".join([title, *map(_line, wanted), "or REJECTED of ytstream"])


def _of_position(job: Job, guarantee: Guarantee, queues: int) -> Iterator[str]:
    """Yield columns of the queues that have the name of one that the job adds."""
    added = {*guarantee.position, "queue_id"} if queues > 1 else {*guarantee.position}
    if taken := sorted({column.name.lower() for column in job.queue_columns} & added):
        yield (
            f"QUEUE has {', '.join(taken)}, a name under which the job adds a row's position; a "
            "queue with such a column needs another guarantee, or a job for each queue"
        )


def _line(column: Column) -> str:
    """Return a column as tables.py writes it."""
    kind = "key=True" if column.key else "required=True"
    return f'Column("{column.name}", "{type_name(column.type)}", {kind})'


def _refuse(title: str, remedy: str, problems: Iterable[str], code: ErrorCode) -> None:
    if lines := [*problems]:
        raise JobError(f"{title}:\n  " + "\n  ".join(lines), remedy, code=code)
