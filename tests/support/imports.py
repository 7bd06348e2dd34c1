"""The import arrows between the modules of a package, read from its sources.

python -m tests.support.imports PACKAGE

Every import counts: absolute or relative, at the top of a module, inside a function, or under
TYPE_CHECKING. An arrow to a package means its `__init__.py`.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Floors = Sequence[Sequence[str]]
"""First-level names of a package, the lowest floor first; "" is the package's own `__init__.py`."""


@dataclass(frozen=True, order=True)
class Arrow:
    """`source` imports `target`; both are dotted names inside the package, "" for its root."""

    source: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.source or '__init__'} -> {self.target or '__init__'} (line {self.line})"


def modules(package: Path) -> dict[str, Path]:
    """Return every module of the package by its dotted name, without the package's own name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def arrows(package: Path) -> list[Arrow]:
    """Return the imports between modules of the package: one for each pair, its first line."""
    known = modules(package)
    found: dict[tuple[str, str], int] = {}
    for source, path in known.items():
        is_package = path.name == "__init__.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            for target in _targets(node, source, is_package, package.name, known):
                if target != source:
                    line = getattr(node, "lineno", 0)
                    found[source, target] = min(line, found.get((source, target), line))
    return sorted(Arrow(source, target, line) for (source, target), line in found.items())


def _targets(
    node: ast.AST, source: str, is_package: bool, root: str, known: Mapping[str, Path]
) -> Iterator[str]:
    """Yield the modules of the package that an import statement names."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = _inside(alias.name, root)
            if name is not None:
                yield _module(name, known)
    elif isinstance(node, ast.ImportFrom):
        base = _base(node, source, is_package, root)
        if base is None:
            return
        for alias in node.names:
            yield _module(f"{base}.{alias.name}".lstrip("."), known)


def _inside(name: str, root: str) -> str | None:
    """Return a dotted name without the package's own; None for a name outside of the package."""
    head, _, rest = name.partition(".")
    return rest if head == root else None


def _base(node: ast.ImportFrom, source: str, is_package: bool, root: str) -> str | None:
    """Return the dotted name after `from`; None for one outside of the package."""
    if node.level == 0:
        return _inside(node.module or "", root)
    parts = source.split(".") if source else []
    up = node.level - 1 if is_package else node.level
    parts = parts[: len(parts) - up] if up else parts
    return ".".join([*parts, *([node.module] if node.module else [])])


def _module(name: str, known: Mapping[str, Path]) -> str:
    """Return the longest prefix of a dotted name that is a module; the rest names its contents."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


def circles(found: Iterable[Arrow]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or not; the largest first."""
    following: dict[str, set[str]] = defaultdict(set)
    for arrow in found:
        following[arrow.source].add(arrow.target)
    reached = {name: _reached(name, following) for name in list(following)}
    groups = {
        frozenset({name} | {other for other in reached[name] if name in reached.get(other, ())})
        for name in reached
        if name in reached[name]
    }
    return sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))


def _reached(start: str, following: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that arrows lead to; `start` itself only by a circle."""
    seen: set[str] = set()
    waiting = list(following.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(following.get(name, ()))
    return seen


def upward(found: Iterable[Arrow], floors: Floors) -> list[Arrow]:
    """Return the arrows to a higher floor, or to another room of the same one.

    Raises ValueError for a first-level name that no floor lists.
    """
    height = {name: floor for floor, names in enumerate(floors) for name in names}
    wrong = []
    for arrow in found:
        source, target = (name.partition(".")[0] for name in (arrow.source, arrow.target))
        if unlisted := {source, target} - height.keys():
            raise ValueError(f"no floor lists {', '.join(sorted(unlisted))}: {arrow}")
        if source != target and height[target] >= height[source]:
            wrong.append(arrow)
    return wrong


def main(packages: Iterable[Path]) -> int:
    """Print the counts of each package, and its circles; return 1 when there are any."""
    is_circular = False
    for package in packages:
        found = arrows(package)
        rings = circles(found)
        counts = f"{len(modules(package))} modules, {len(found)} arrows, {len(rings)} circles"
        print(f"{package.name}: {counts}")
        for circle in rings:
            print(f"  a circle of {len(circle)}: {', '.join(circle)}")
        is_circular |= bool(rings)
    return int(is_circular)


if __name__ == "__main__":
    sys.exit(main(map(Path, sys.argv[1:])))
