"""The job as an attribute of its ledger: what a person without the repository needs to look at it.

Every start writes it. It has no secret: settings of Spark and of [submit] are left out, as they may
hold some, but for the number of executors and cores.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from yt.common import YtError

from ..cluster import operation
from ..cluster.client import Client, plain
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import COUNT, Job, JobContext
from ..schema.columns import Column
from ..schema.periods import Archive
from ..settings.job_settings import Settings
from ..settings.resources import sizes_of
from ..settings.submit_section import SubmitSection
from ..version import __version__

RECORD = "ytstream_settings"
"""The attribute."""
_ANNOTATION = "annotation"
"""The attribute that the web interface shows as text (YTsaurus documentation, "Annotations")."""
_OURS = "A table of the ytstream job "
"""Begins an annotation that was written here."""
_VERSION = 1
"""Raised when a field goes or changes its meaning."""
_STARTS, _PERIOD = 200, timedelta(days=1)
"""Starts that are remembered, and for how long."""
_TOTALS = (Column("key", "int64", key=True), Column("total", "int64", aggregate="sum"))
"""Stands for the columns of an output that adds up."""
_SIZES = ("executors", "executor_cores")
_PLAIN = (
    "proxy", "consumer", "checkpoint", "ledger", "reference", "max_rows_per_partition", "pool",
    "proxy_role", "runbook_url", "account", "tablet_cell_bundle", "late_limit", "trigger_seconds",
)  # fmt: skip


def write(context: JobContext, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Write the record, with this start; a cluster that is away is not told."""
    client, ledger = context.client, context.settings.ledger
    with suppress(YtError, OSError):
        former = _of(client, ledger)
        since = now() - _PERIOD
        starts = [one for one in former.get("starts", ()) if datetime.fromisoformat(one) > since]
        own = operation.own()
        running = operation.get(client, own) if own is not None else None
        starts = [*starts, now().isoformat(timespec="seconds")][-_STARTS:]
        note = running.note if running is not None else former.get("note", {})
        record = record_of(context, starts, note)
        client.set(f"{ledger}/@{RECORD}", record)
        _annotate(context, annotation_of(record))


def record_of(
    context: JobContext, starts: Sequence[str], note: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the record."""
    job, settings = context.job, context.settings
    sizes = sizes_of(settings)
    return {
        "version": _VERSION,
        "runtime": __version__,
        "job": job.name,
        "processing": job.processing,
        "guarantee": job.guarantee,
        "outputs": dict(settings.outputs),
        "static": [*job.static],
        "archives": {
            name: {
                "period": one.seconds,
                "by": one.by,
                "lateness": one.lateness_seconds,
                **({"keep": round(one.keep.total_seconds())} if one.keep is not None else {}),
                "late": one.late,
            }
            for name, one in job.archives.items()
        },
        "reject": [*job.reject],
        "warn": [*job.warn],
        "late": job.late,
        "totals": [*job.totals],
        "queues": [*settings.queues],
        "references": dict(settings.references),
        "alias": settings.alias,
        **{name: value for name in _PLAIN if (value := getattr(settings, name)) is not None},
        **{name: int(sizes[name]) for name in _SIZES},
        "starts": [*starts],
        "note": {key: str(note[key]) for key in ("version", "commit", "repository") if key in note},
    }


def annotation_of(record: Mapping[str, Any]) -> str:
    """Return what the web interface shows at each of the job's tables; Cypress takes ASCII only."""
    links = {
        "Repository": record["note"].get("repository"),
        "Commit": record["note"].get("commit"),
        "Runbook": record.get("runbook_url"),
        "Ledger": record["ledger"],
    }
    lines = [f"{_OURS}{record['job']}", *(f"{k}: {v}" for k, v in links.items() if v)]
    return "\n\n".join(lines).encode("ascii", "backslashreplace").decode()


def _annotate(context: JobContext, text: str) -> None:
    """Write the links on the tables of the job; those that a person has annotated stay as is."""
    settings = context.settings
    for path in (settings.consumer, settings.ledger, *settings.outputs.values()):
        former = str(context.client.get_attribute(path, _ANNOTATION, None) or "")
        if former != text and (not former or former.startswith(_OURS)):
            context.client.set(f"{path}/@{_ANNOTATION}", text)


def read(client: Client, ledger: str) -> Mapping[str, Any]:
    """Return the record. Raises JobError where there is none, or one of a newer version."""
    found = _of(client, ledger)
    if not found:
        raise JobError(
            f"{ledger} does not say whose ledger it is: no job has started with it since ytstream "
            f"{__version__}",
            "correct the path; or use the commands of the job's repository, after `make setup`",
            code=ErrorCode.NO_LEDGER,
        )
    if int(found.get("version", 0)) > _VERSION:
        raise JobError(
            f"the record of {ledger} is of a newer ytstream: {found.get('runtime')}",
            "install that version",
            code=ErrorCode.NO_LEDGER,
        )
    return found


def _of(client: Client, ledger: str) -> Mapping[str, Any]:
    found = client.get_attribute(ledger, RECORD, None)
    return plain(found) if isinstance(found, Mapping) else {}


def settings_of(record: Mapping[str, Any], proxy: str) -> Settings:
    """Return the settings of the job, as far as looking at it needs them."""
    named = {name: record[name] for name in _PLAIN if name in record}
    settings = Settings(
        **{**named, "proxy": proxy},
        queues=tuple(record["queues"]),
        outputs=dict(record["outputs"]),
        references=_references(record),
    )
    sizes: dict[str, Any] = {name: int(record[name]) for name in _SIZES if name in record}
    return replace(settings, submit=SubmitSection(alias=record["alias"], **sizes))


def job_of(record: Mapping[str, Any]) -> Job:
    """Return the job's declaration without its code: no columns, no transform()."""
    return Job(
        name=record["job"],
        processing=record["processing"],
        guarantee=record["guarantee"],
        queue=(),
        outputs={
            name: _TOTALS if name in record.get("totals", ()) else () for name in record["outputs"]
        },
        transform=_not_here,
        static=_archives(record.get("archives", {})) or tuple(record["static"]),
        reject=dict.fromkeys(record["reject"], ""),
        references=dict.fromkeys(_references(record), ()),
        warn=dict.fromkeys(record.get("warn", ()), ""),
        late=str(record.get("late", COUNT)),
    )


def _archives(found: Mapping[str, Any]) -> Mapping[str, Archive]:
    return {
        name: Archive(
            timedelta(seconds=one["period"]),
            one["by"],
            timedelta(seconds=one["lateness"]),
            timedelta(seconds=one["keep"]) if "keep" in one else None,
            one["late"],
        )
        for name, one in found.items()
    }


def _references(record: Mapping[str, Any]) -> dict[str, str]:
    return dict(record.get("references", {}))


def _not_here(*_: object) -> Any:
    raise NotImplementedError
