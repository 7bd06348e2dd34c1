"""A locked file holds its packages by scope; a generated repository gets those of its scope.

The packages that a scope adds to the ones before it follow a line with its name. tools/locks.py
writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from . import versions

FOLDER = Path(__file__).resolve().parent.parent / "templates" / "locks"
_SCOPE = re.compile(r"^# Scope: (\w+)\n", re.MULTILINE)
_ENTRY = re.compile(r"^\w(?:.*\\\n)*.*\n", re.MULTILINE)


def entries(text: str) -> list[str]:
    """Return the entries of a lock, each with the lines of its hashes."""
    return _ENTRY.findall(text)


def requirements(processing: str, spark: str) -> str:
    """Return the locked packages of a generated repository."""
    text = (FOLDER / f"spark-{spark}.txt").read_text(encoding="utf-8")
    return cut(text, scope(processing))


def scope(processing: str) -> str:
    """Return the scope of a generated repository."""
    return "sessions" if processing == "sessions" else "dev"


def megabytes(processing: str, spark: str) -> int:
    """Return the size of a generated repository's environment."""
    (found,) = (one for one in versions.SPARKS if one.name == spark)
    return found.sessions_mb if scope(processing) == "sessions" else found.dev_mb


def cut(text: str, scope: str) -> str:
    """Return the packages of ``scope``, with those of the scopes before it."""
    head, *parts = _SCOPE.split(text)
    by_scope = dict(zip(parts[::2], parts[1::2], strict=True))
    wanted = versions.SCOPES[: versions.SCOPES.index(scope) + 1]
    return head + "".join(_ordered(by_scope.get(name, "") for name in wanted))


def joined(head: str, by_scope: Mapping[str, list[str]]) -> str:
    """Return a lock with these entries; ``cut`` takes it apart."""
    parts = (f"# Scope: {scope}\n{''.join(added)}" for scope, added in by_scope.items())
    return head + "".join(parts)


def _ordered(parts: Iterable[str]) -> list[str]:
    """Return the entries in the order that uv gives them: by name."""
    return sorted((entry for part in parts for entry in entries(part)), key=_name)


def _name(entry: str) -> str:
    return re.split(r"[^\w.-]", entry)[0]
