"""Refuses a job.py that does not fit its tables, its configuration or this runtime."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping

from . import confs
from .columns import Column, key_of, rejected_columns, type_name
from .config import Settings
from .errors import JobError
from .job import PROCESSINGS, REJECTED, Guarantee, Job
from .pairs import KEYED
from .schema import never_written
from .table import counted


def verify(job: Job) -> None:
    """Raise JobError unless job.py fits this runtime and its own tables; needs no cluster."""
    _verify_kinds(job)
    if job.processing not in PROCESSINGS:
        raise JobError(
            f"job.py: unknown processing {job.processing!r}",
            f"use one of {', '.join(PROCESSINGS)}",
        )
    first = next(iter(job.outputs), None)
    unwritten = [n for n in job.outputs if n not in ("output", REJECTED if job.reject else "")]
    wants, has = job.kind.has_reference, bool(job.reference)
    _refuse(
        "job.py and tables.py do not fit",
        "correct job.py or tables.py; nothing was started",
        (
            (first != "output", f'the first of OUTPUTS must be "output", it is {first!r}'),
            (
                bool(unwritten) and job.split is None,
                f"nothing fills the outputs {', '.join(unwritten)}: give Job split=outputs, the "
                "function of transform.py",
            ),
            (not inspect.isfunction(job.transform), "transform is not a function"),
            (not (job.split is None or inspect.isfunction(job.split)), "split is not a function"),
            *_of_reject(job),
            *_of_static(job),
            (wants and not has, "a join needs REFERENCE"),
            (has and not wants, f"processing {job.processing} does not use REFERENCE"),
            (has and not key_of(job.reference_columns), "REFERENCE has no key column"),
            (bool(key_of(job.queue_columns)), "a column of QUEUE cannot be a key: it is ordered"),
            *(
                (all(column.key for column in columns), f"OUTPUTS[{name!r}] has key columns alone")
                for name, columns in job.output_columns.items()
            ),
            *(
                (bool(problem := never_written(column)), f"OUTPUTS[{name!r}], {problem}")
                for name, columns in job.output_columns.items()
                for column in columns
            ),
        ),
    )


def _of_reject(job: Job) -> Iterator[tuple[bool, str]]:
    """Yield what may be wrong with REJECT and its output, apart from the output's columns."""
    without_output = bool(job.reject) and REJECTED not in job.outputs
    yield (
        without_output,
        f"REJECT needs an output in OUTPUTS: {REJECTED!r}: REJECTED, which ytstream exports; docs: "
        'README, "Rejected rows"',
    )
    for reason, condition in job.reject.items():
        is_entry = _is_line(reason) and isinstance(condition, str) and bool(condition.strip())
        yield not is_entry, f"REJECT[{reason!r}]: wanted one line as the reason and a SQL condition"


def _of_static(job: Job) -> Iterator[tuple[bool, str]]:
    """Yield what may be wrong with STATIC."""
    yield len({*job.static}) < len(job.static), "STATIC names an output twice"
    for name in job.static:
        if name not in job.outputs:
            yield True, f"STATIC names {name!r}, which OUTPUTS does not have"
        elif not re.fullmatch(r"[\w.-]+", name, re.ASCII):  # a folder is named after it
            yield True, f"the static output {name!r} needs a name of letters a-z, digits and _ . -"
        elif name == REJECTED and job.reject:
            yield True, f"{name!r} cannot be static: `replay-rejected` removes rows of it"
        elif key := key_of(job.output_columns[name]):
            yield (
                True,
                f"OUTPUTS[{name!r}] is static and cannot have key columns ({', '.join(key)}): each "
                "micro-batch is a table of its own, so no row replaces another",
            )


def _verify_kinds(job: Job) -> None:
    """Raise JobError for a value of job.py that is of the wrong kind, or a number out of bounds."""
    if not isinstance(job, Job):
        raise JobError("JOB in job.py is not a Job", "write JOB = Job(...)")
    texts = ("name", "processing", "guarantee")
    whole = ("reference_rows", "shuffle_partitions", "large_state_bytes", "most_failures")
    seconds = ("failure_period_seconds", "first_pause_seconds", "longest_pause_seconds")
    has_outputs = isinstance(job.outputs, Mapping)
    outputs = job.outputs if has_outputs else {}
    lists = {"queue": job.queue, "reference": job.reference}
    lists |= {f"outputs[{name!r}]": columns for name, columns in outputs.items()}
    is_reject = isinstance(job.reject, Mapping)
    is_static = isinstance(job.static, tuple | list) and all(map(_is_line, job.static))
    _refuse(
        "job.py cannot be read",
        "correct job.py or tables.py; nothing was started",
        (
            *(
                (not _is_line(value := getattr(job, name)), f"{name}={value!r}: wanted one line")
                for name in texts
            ),
            *(
                (not isinstance(columns, list | tuple), f"{name}={columns!r}: wanted a list")
                for name, columns in lists.items()
            ),
            (not is_reject, "reject: wanted a dict of reasons and SQL conditions"),
            (not is_static, f"static={job.static!r}: wanted a tuple of names of outputs"),
            (not has_outputs, "outputs: wanted a dict of names and lists of columns"),
            *(
                (not isinstance(name, str), f"outputs: the name {name!r} is not a text")
                for name in outputs
            ),
            *(
                (type(value := getattr(job, name)) is not int or value < 1, _wanted(name, value))
                for name in whole
            ),
            *(
                (
                    type(value := getattr(job, name)) not in (int, float) or value <= 0,
                    _wanted(name, value),
                )
                for name in seconds
            ),
        ),
    )


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _wanted(name: str, value: object) -> str:
    return f"{name}={value!r}: wanted a positive number"


def verify_configuration(job: Job, settings: Settings, guarantee: Guarantee) -> None:
    """Raise JobError unless the configuration has what this job and its guarantee need."""
    job = job.reading(len(settings.queues))
    is_join, has_reference = job.kind.has_reference, settings.reference is not None
    added = [*guarantee.position, *(["queue_id"] if len(settings.queues) > 1 else [])]
    taken = sorted({column.name.lower() for column in job.queue_columns} & {*added})
    _refuse(
        "the configuration and the job do not fit",
        "correct the configuration or tables.py; nothing was started",
        (
            *((n not in settings.outputs, f"[outputs] lacks {n}, of OUTPUTS") for n in job.outputs),
            *(
                (name not in job.outputs, f"[outputs] names {name}, which OUTPUTS does not have")
                for name in settings.outputs
            ),
            *(
                (confs.is_protected(name), f"[spark] sets {name}: `make confs` shows its reason")
                for name in settings.spark_confs
            ),
            (is_join and not has_reference, "a join needs the key `reference`"),
            (
                has_reference and not is_join,
                f"processing {job.processing} does not use the key `reference`",
            ),
            *_of_keys(job, guarantee, len(settings.queues)),
            *_of_rejected(job, len(settings.queues)),
            (
                bool(taken),
                f"QUEUE has {', '.join(taken)}, a name under which the job adds a row's position; "
                "a queue with such a column needs another guarantee, or a job for each queue",
            ),
        ),
    )


def _of_keys(job: Job, guarantee: Guarantee, queues: int) -> Iterator[tuple[bool, str]]:
    """Yield which outputs have another key than the guarantee has; None of its own: any.

    A static output has none; that of `rejected` is a position, and such a row does not change.
    """
    wanted = guarantee.key(queues)
    for name, columns in job.output_columns.items():
        is_kept = name in job.static or (bool(job.reject) and name == REJECTED)
        key = key_of(columns)
        if wanted is None or key == wanted or is_kept:
            continue
        yield (
            True,
            f"{guarantee.name} with {counted(queues, 'queue')} needs the key columns "
            f"{', '.join(wanted)} in front of OUTPUTS[{name!r}]; it has {', '.join(key) or 'none'}"
            if wanted
            else f"OUTPUTS[{name!r}] has the key {', '.join(key)} under {guarantee.name}: {KEYED}; "
            'set guarantee="transactional" in job.py, or leave the key out',
        )


def _of_rejected(job: Job, queues: int) -> Iterator[tuple[bool, str]]:
    """Yield whether the columns of the output of rejected rows are not as they have to be."""
    if job.reject:
        wanted = rejected_columns(queues)
        found = job.output_columns[REJECTED]
        lines = [f"OUTPUTS[{REJECTED!r}] needs, with {counted(queues, 'queue')}, the columns"]
        yield (
            found != wanted,
            "\n    ".join([*lines, *map(_line, wanted), "or REJECTED of ytstream"]),
        )


def _line(column: Column) -> str:
    """Return a column as tables.py writes it."""
    kind = "key=True" if column.key else "required=True"
    return f'Column("{column.name}", "{type_name(column.type)}", {kind})'


def _refuse(title: str, remedy: str, checks: Iterable[tuple[bool, str]]) -> None:
    lines = [line for is_wrong, line in checks if is_wrong]
    if lines:
        raise JobError(f"{title}:\n  " + "\n  ".join(lines), remedy)
