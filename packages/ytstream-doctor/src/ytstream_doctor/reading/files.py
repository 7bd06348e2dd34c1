"""The files of a job: Python modules, and texts that may hold settings or commands."""

import ast
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode

from .shell import substituted

_LEFT_OUT = {
    "__pycache__", "build", "dist", "env", "node_modules", "site-packages", "test", "tests",
    "vendor", "venv",
}  # fmt: skip
"""Folders with the code of others, with what is built, or with tests."""
_SHELL = {".bash", ".env", ".mk", ".service", ".sh"}
_TEXTS = {".cfg", ".conf", ".ini", ".json", ".properties", ".toml", ".yaml", ".yml"}
_SCRIPTS = re.compile(r"Makefile|Dockerfile.*|Jenkinsfile")
_NAMED = re.compile(r"spark-defaults.*|(requirements|constraints).*\.txt")
"""Prose has the ending .txt as well."""
_TEMPLATES = (".j2", ".jinja", ".jinja2")
_MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Module:
    """One Python file. Its name is the last part of what an import says."""

    file: str
    name: str
    tree: ast.Module


@dataclass(frozen=True)
class TextFile:
    """One other file, without comments; a line that ends with a backslash includes the next."""

    file: str
    lines: tuple[tuple[int, str], ...]

    @property
    def kind(self) -> str:
        """The ending of the file's name, without that of a template."""
        return Path(_untemplated(self.file)).suffix

    @property
    def is_script(self) -> bool:
        """Whether the file's lines are commands."""
        name = Path(_untemplated(self.file)).name
        return self.kind in (*_SHELL, "") or _SCRIPTS.fullmatch(name) is not None


@dataclass(frozen=True)
class Files:
    """What was read, and why the rest was not, by file."""

    modules: tuple[Module, ...]
    texts: tuple[TextFile, ...]
    unread: tuple[tuple[str, str], ...]


def read(path: Path) -> Files:
    """Read a file, or a folder with all below it. Raises JobError without one."""
    is_file = _is_file(path)
    modules: list[Module] = []
    texts: list[TextFile] = []
    unread: list[tuple[str, str]] = []

    def shown(file: Path) -> str:
        return str(file if is_file else file.relative_to(path))

    def skipped(error: OSError) -> None:
        unread.append((shown(Path(str(error.filename))), _reason(error)))

    for file in [path] if is_file else _below(path, skipped):
        name = shown(file)
        try:
            if not is_file and file.stat().st_size > _MOST_BYTES:
                unread.append((name, f"it is larger than {_MOST_BYTES // 1_000_000} MB"))
                continue
            content = file.read_bytes()
            if _is_python(file, content):
                modules.append(_module(name, file, content))
            elif is_file or _is_text(file, content):
                texts.append(_text(name, content))
        except SyntaxError as error:
            unread.append((name, _syntax(error, content)))
        except (RecursionError, MemoryError):
            unread.append((name, "an expression is nested too deeply for Python's parser"))
        except (OSError, ValueError) as error:
            unread.append((name, _reason(error)))
    return Files(tuple(modules), tuple(texts), tuple(unread))


def _is_file(path: Path) -> bool:
    try:
        if path.exists():
            return not path.is_dir()
        why = "does not exist"
    except OSError as error:
        why = f"cannot be read: {_reason(error)}"
    raise JobError(f"{path} {why}", "name the file or the folder of the job", code=ErrorCode.FILE)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _syntax(error: SyntaxError, content: bytes) -> str:
    line = error.lineno
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
    return f"line {line}: {error.msg}" if line else error.msg


def _module(name: str, file: Path, content: bytes) -> Module:
    stem = file.parent.name if file.stem == "__init__" else file.stem
    return Module(name, stem, ast.parse(content))  # by the encoding that the file declares


def _text(name: str, content: bytes) -> TextFile:
    if b"\0" in content:
        raise ValueError("it is not a text")
    text = TextFile(name, tuple(_logical(content.decode("utf-8-sig", "replace"))))
    return TextFile(name, substituted(text.lines)) if text.is_script else text


def _untemplated(name: str) -> str:
    return next((name.removesuffix(end) for end in _TEMPLATES if name.endswith(end)), name)


def _below(folder: Path, skipped: Callable[[OSError], None]) -> Iterator[Path]:
    """Yield the files that may be read: by their names, and those without an ending."""
    for root, folders, names in os.walk(folder, onerror=skipped):
        folders[:] = sorted(
            name for name in folders if name not in _LEFT_OUT and not name.startswith(".")
        )
        for name in sorted(names):
            file = Path(root, name)
            if (_is_named(name) or "." not in name) and file.is_file():
                yield file


def _is_named(name: str) -> bool:
    plain = _untemplated(name)
    is_known = _NAMED.fullmatch(plain) or _SCRIPTS.fullmatch(plain)
    return (
        Path(plain or name).suffix in (".py", *_SHELL, *_TEXTS)
        or plain == ".env"
        or (is_known is not None)
    )


def _is_python(file: Path, content: bytes) -> bool:
    begins = content[:100].partition(b"\n")[0]
    is_script = not file.suffix and begins.startswith(b"#!") and b"python" in begins
    return file.suffix == ".py" or is_script


def _is_text(file: Path, content: bytes) -> bool:
    """Return whether a text may hold commands: without an ending only a script does."""
    return _is_named(file.name) or content.startswith(b"#!")


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not comments with the number at which each begins."""
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
