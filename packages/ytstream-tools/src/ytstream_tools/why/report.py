"""What `why` prints, and the ticket that it writes when it knows no cause."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .causes import Cause, causes_of
from .facts import Facts
from .finding import Finding


def text(found: Facts, known: Sequence[tuple[Cause, Finding]]) -> str:
    """Return the most likely cause with its commands, the others, and what could not be read."""
    return "\n".join(_lines(found, known))


def _lines(found: Facts, known: Sequence[tuple[Cause, Finding]]) -> Iterator[str]:
    if known:
        cause, finding = known[0]
        yield f"{cause.name}: {finding.said}"
        yield from (f"  -> {line}" for line in finding.do)
    else:
        yield "unknown: no cause that `why` knows fits"
        yield f"  -> {found.make('status')}, then {found.make('logs')}"
    others = [(cause, finding) for cause, finding in known[1:] if not cause.is_healthy]
    if others:
        yield "also:"
        yield from (f"  {cause.name}: {finding.said}" for cause, finding in others)
    if found.missing_to_stop:
        yield "this user may not stop the job:"
        yield from (f"  {line}" for line in found.missing_to_stop)
    if found.unread:
        listed = ", ".join(f"{part} [{code}]" for part, code in found.unread.items())
        yield f"could not be read: {listed}"


def write(found: Facts, folder: Path) -> Path:
    """Write one file for a ticket into ``folder``, and return its path."""
    path = folder / f"ticket-{found.job}-{found.time:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(ticket(found), ensure_ascii=False, indent=2) + "\n", "utf-8")
    return path


def ticket(found: Facts) -> Mapping[str, Any]:
    """Return the facts for somebody who was not there.

    Fields are named one by one: no text of the user's code, of a row, or of the environment.
    """
    settings, status, head = found.settings, found.status, found.head
    return {
        "time": _time(found.time),
        "job": found.job,
        "cluster": settings.proxy,
        "runtime": found.runtime,
        "causes": [cause.name for cause, _ in causes_of(found)],
        "refused": found.refused,
        "unread": dict(found.unread),
        "tables": [asdict(one) for one in found.tables],
        "full": [asdict(one) for one in found.full],
        "proxies": {"role": settings.proxy_role, "count": found.proxies},
        "lock": None if found.lock is None else asdict(found.lock),
        "process": None if status is None else status.process,
        "end_code": found.end_code,
        "epoch": None if head is None else head.epoch,
        "batches": None if head is None else head.number,
        "restarts_last_day": None if status is None else status.epochs,
        "seconds_since_last_batch": None if status is None else status.age,
        "partitions": [] if status is None else [asdict(one) for one in status.partitions],
        "recent_batches": [] if status is None else [
            {"name": one.name, "read": one.read, "seconds": one.seconds, "ended": _time(one.ended)}
            for one in status.recent
        ],
        "operation": _operation(found),
        "attempts": [asdict(one) for one in found.attempts],
        "log": [asdict(one) for one in found.log],
        "seconds_ahead": {"here": found.ahead_here, "driver": found.ahead_driver},
        "missing_rights": [*found.missing_to_read, *found.missing_to_stop],
    }  # fmt: skip


def _operation(found: Facts) -> Mapping[str, Any] | None:
    seen = found.operation
    if seen is None:
        return None
    note = {key: str(seen.note.get(key, "")) for key in ("version", "commit", "runtime")}
    return {
        "id": seen.id,
        "state": seen.state,
        "started": seen.started,
        "ended": seen.ended,
        **note,
    }


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")
