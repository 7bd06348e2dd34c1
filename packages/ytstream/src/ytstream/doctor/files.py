"""The files of a job: Python modules, and texts that may hold settings or commands."""

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import JobError

#: Folders with the code of others, with what is built, or with tests.
_LEFT_OUT = {
    *("__pycache__", "build", "dist", "env", "node_modules", "site-packages", "test", "tests"),
    *("vendor", "venv"),
}
_TEXTS = {
    *(".bash", ".cfg", ".conf", ".env", ".ini", ".json", ".mk", ".properties", ".sh", ".toml"),
    *(".txt", ".yaml", ".yml"),
}
_NAMED = re.compile(r"Makefile|Dockerfile.*|Jenkinsfile|spark-defaults.*")
_MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Module:
    """One Python file. Its name is the last part of what an import says."""

    file: str
    name: str
    tree: ast.Module


@dataclass(frozen=True)
class Text:
    """One other file, without comments; a line that ends with a backslash includes the next."""

    file: str
    lines: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Files:
    """What was read, and why the rest was not, by file."""

    modules: tuple[Module, ...]
    texts: tuple[Text, ...]
    unread: tuple[tuple[str, str], ...]


def read(path: Path) -> Files:
    """Read a file, or a folder with all below it. Raises JobError without one."""
    if not path.exists():
        raise JobError(f"{path} does not exist", "name the file or the folder of the job")
    modules, texts, unread = [], [], []
    for file in [path] if path.is_file() else _below(path):
        name = str(file if path.is_file() else file.relative_to(path))
        try:
            text = file.read_text(encoding="utf-8-sig")
            if file.suffix == ".py":
                modules.append(_module(name, file, text))
            else:
                texts.append(Text(name, tuple(_logical(text))))
        except SyntaxError as error:
            unread.append((name, f"line {error.lineno}: {error.msg}"))
        except (OSError, ValueError) as error:
            unread.append((name, str(error)))
    return Files(tuple(modules), tuple(texts), tuple(unread))


def _module(name: str, file: Path, text: str) -> Module:
    stem = file.parent.name if file.stem == "__init__" else file.stem
    return Module(name, stem, ast.parse(text))


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name not in _LEFT_OUT and not name.startswith(".")
        )
        for name in sorted(names):
            file = Path(root, name)
            is_known = file.suffix == ".py" or file.suffix in _TEXTS or _NAMED.fullmatch(name)
            if is_known and file.is_file() and file.stat().st_size <= _MOST_BYTES:
                yield file


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are no comments with the number at which each begins."""
    begun: tuple[int, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(#|//|;)", line):
            continue
        first, before = begun or (number, "")
        begun = None
        if line.rstrip().endswith("\\"):
            begun = (first, f"{before}{line.rstrip()[:-1]}\n")
        else:
            yield first, before + line
    if begun:
        yield begun
