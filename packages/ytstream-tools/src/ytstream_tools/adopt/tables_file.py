"""tables.py as `adopt` finds it: what of it can stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ytstream.declaration import user_errors, validation
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import Job

from . import owned_files
from .starter_files import Starter


def with_queue(file: Path, starter: Starter) -> str | None:
    """Return tables.py with another QUEUE; None if it is damaged, and not only in its QUEUE.

    Raises JobError where nothing can be written in its place, or where QUEUE is computed.
    """
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    before = _problem(starter.job, text)
    try:
        with user_errors.user_code("tables.py"):
            listed = owned_files.with_list(text, "QUEUE", starter.queue())
            made = owned_files.with_import(owned_files.with_origin(listed, starter.origin))
    except JobError:
        if before is None:
            raise
        made = text
    after = None if before is None else _problem(starter.job, made)
    if after is not None and not starter.has_logic:
        raise JobError(
            f"{after.message}. Only QUEUE of tables.py can be written: {starter.lacks}",
            f"correct the rest of {file}, or take it from the last commit: git checkout {file}",
            code=ErrorCode.TABLES,
        )
    return made if after is None else None


def _problem(job: Job, text: str) -> JobError | None:
    """Return why every command would refuse the project with this tables.py."""
    made: dict[str, Any] = {"__name__": f"{job.package}.tables", "__package__": job.package}
    try:
        with user_errors.user_code("tables.py"):
            exec(compile(text, "tables.py", "exec"), made)
        validation.verify(
            replace(
                job,
                queue=made.get("QUEUE", ()),
                outputs=made.get("OUTPUTS", {}),
                reference=made.get("REFERENCE", ()),
                static=made.get("STATIC", ()),
                split=cast("Any", job.transform),  # a table is right whatever fills it
                reject={},
            )
        )
    except JobError as error:
        return error
    return None
