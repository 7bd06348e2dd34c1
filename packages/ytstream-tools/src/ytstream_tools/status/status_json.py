"""The JSON of `status`: one object, whose fields docs/status.md lists."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from ytstream.cluster import operation
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import LookedUp

from ..submitting.version_history import DeployedVersion
from .archive_status import ArchiveStatus
from .job_status import FinishedBatch, JobStatus, PartitionStatus

VERSION = 1
"""Raised when a field goes or changes its meaning; a new field leaves it."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def text(context: JobContext, found: JobStatus) -> str:
    """Return the document as text."""
    return json.dumps(document(context, found), ensure_ascii=False, indent=2)


def document(context: JobContext, found: JobStatus) -> dict[str, Any]:
    """Return what one look has found."""
    head, job = found.head, context.job
    return {
        "version": VERSION,
        "time": _time(found.time),
        "cluster": {"name": found.cluster, "proxy": context.settings.proxy},
        "job": {"name": job.name, "guarantee": job.guarantee, "processing": job.processing},
        "process": {
            "state": found.process.value,
            "owner": head.owner if head is not None else None,
            "said": found.how or None,
            "lock": found.holder or None,
            "connector": found.connector or None,
        },
        "epoch": {
            "number": head.epoch if head is not None else 0,
            "changes_last_day": found.epochs,
        },
        "lag": {
            "rows": found.lag,
            "seconds": found.lag_seconds,
            "seconds_until_caught_up": found.seconds_left(),
            "largest_share": found.largest_share,
        },
        "rows_per_second": found.rate,
        "age_seconds": found.age,
        "partitions": [_partition(one) for one in found.partitions],
        "removed_queues": sorted(head.removed) if head is not None else [],
        "batches": [_batch(one) for one in found.recent],
        "rejected": {"batches": len(found.batches), "rows": dict(found.rejected)},
        "totals": {
            "batches": head.number if head is not None else 0,
            **({} if head is None else asdict(head.totals)),
        },
        "state": _state(found),
        "static": None if found.static is None else asdict(found.static),
        "archives": [_archive(one) for one in found.archives],
        "sums": [asdict(one) for one in found.sums],
        "operation": _operation(context, found),
        "versions": [_version(one) for one in found.versions],
    }


def _partition(one: PartitionStatus) -> Mapping[str, Any]:
    return {
        "queue": one.queue,
        "partition": one.number,
        "first": one.first,
        "end": one.end,
        "consumer": one.consumer,
        "next": one.next,
        "lag_rows": one.lag,
        "lag_seconds": one.seconds if one.lag else 0.0,
        "trim_seconds": one.trim_seconds,
    }


def _batch(one: FinishedBatch) -> Mapping[str, Any]:
    return {
        "name": one.name,
        "number": one.number,
        "started": _time(one.started),
        "ended": _time(one.ended),
        "seconds": one.seconds,
        "rows_read": one.read,
        "rows_written": dict(one.written),
        "rejected": dict(one.rejected),
        "times": asdict(one.times) if one.times is not None else None,
        "warned": dict(one.warned),
        "late": one.late,
        "without_event_time": one.without_time,
        "lookups": {name: _lookups(used) for name, used in one.lookups.items()},
        "changes": {name: asdict(keys) for name, keys in one.changes.items()},
    }


def _lookups(used: LookedUp) -> Mapping[str, Any]:
    figures = asdict(used)
    seconds = figures.pop("milliseconds") / 1000
    return {**figures, "seconds": seconds}


def _archive(one: ArchiveStatus) -> Mapping[str, Any]:
    sealed = None if one.last_sealed is None else _time(one.last_sealed)
    return {**asdict(one), "last_sealed": sealed}


def _state(found: JobStatus) -> Mapping[str, Any] | None:
    if found.state is None:
        return None
    mark = found.state.watermark
    return {
        "rows": found.state.rows,
        "checkpoint_bytes": found.state.bytes,
        "watermark": _time(_EPOCH + timedelta(milliseconds=mark)) if mark else None,
        "store": asdict(found.state.store) if found.state.store is not None else None,
    }


def _operation(context: JobContext, found: JobStatus) -> Mapping[str, Any] | None:
    seen = found.operation
    if seen is None:
        return None
    return {
        "id": seen.id,
        "alias": context.settings.alias,
        "state": seen.state,
        "started": seen.started,
        "ended": seen.ended or None,
        "error": seen.error or None,
        "attempts": len(found.runs),
        "failed_attempts": sum(run.state == "failed" for run in found.runs),
        "version": seen.note.get("version"),
        "commit": seen.note.get("commit"),
        "executors": seen.executors,
        "page": operation.address(context.client, seen.id) or None,
        "spark_page": seen.description.get("Web UI"),
    }


def _version(one: DeployedVersion) -> Mapping[str, Any]:
    return {
        "operation": one.operation or None,
        "version": one.note.get("version") or None,
        "commit": one.note.get("commit") or None,
        "files": one.identity[0] or None,
        "configuration": one.identity[1] or None,
        "user": one.user or None,
        "state": one.state.value,
        "started": one.started or None,
        "ended": one.ended or None,
        "how": one.how or None,
    }


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds")
