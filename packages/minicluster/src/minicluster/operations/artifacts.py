"""The files of a task, taken from Cypress when the operation starts.

The operation keeps them as they are then: a real one holds a snapshot lock on each.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from ..core.errors import generic, not_supported
from ..cypress.commands import Cypress
from ..cypress.kinds import expect
from ..cypress.ypath import parse_rich
from .model import Artifact, Task


def artifacts_of(cypress: Cypress, task: Task, tx: str | None) -> tuple[Artifact, ...]:
    """Return the files that a task's `file_paths` name. Raises YtError."""
    found: dict[str, Artifact] = {}
    for path in task.file_paths:
        artifact = _artifact(cypress, path, tx)
        if artifact.name in found:
            raise generic(f'Duplicate user file name "{artifact.name}" for task "{task.name}"')
        found[artifact.name] = artifact
    return tuple(found.values())


def _artifact(cypress: Cypress, given: Any, tx: str | None) -> Artifact:
    rich = parse_rich(given)
    node = cypress.resolve(rich.path, tx=tx)
    if node.type == "table":
        raise not_supported(f"a table as a file of a job ({rich.path})")
    expect(node, rich.path, "file")
    name = rich.attributes.get("file_name", node.attributes.get("file_name", node.name))
    executable = rich.attributes.get("executable", node.attributes.get("executable", False))
    parts = PurePosixPath(str(name)).parts
    if not parts or ".." in parts or parts[0] == "/":
        raise generic(f'File name "{name}" leads out of the sandbox', path=rich.path)
    return Artifact(str(PurePosixPath(*parts)), node.payload, executable in (True, "true"))
