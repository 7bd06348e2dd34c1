"""The archive that goes to the cluster: the job's package and this runtime."""

import ast
import sys
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from ..errors import JobError
from ..errors.error_codes import ErrorCode

_ON_THE_CLUSTER = {"pyspark", "py4j", "spyt", "yt", "yt_yson_bindings"}
"""Packages that a job may import without bringing them. The first three come with the operation's
own files. The others are of the nodes' Python: the administrators have put them there, and the
driver looks for them before it starts (node/attempt.py)."""
_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache"}


def archive(package: str, folder: Path) -> Path:
    """Write the package, its data files and this runtime as ``<folder>/<package>.zip``."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{package}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name in (package, "ytstream"):
            sources = _folder(name)
            for source in _files(sources):
                out.write(source, Path(name) / source.relative_to(sources))
    return target


def verify_imports(package: str, more: Sequence[str] = ()) -> None:
    """Raise JobError for an import of the package that the cluster would not find.

    ``more`` are the packages that the processing type needs on the cluster in addition to SPYT's.
    """
    known = _ON_THE_CLUSTER | sys.stdlib_module_names | {package, "ytstream", *more}
    sources = _folder(package)
    missing = [
        f"{file.name}:{line} imports {name}"
        for file in _files(sources)
        if file.suffix == ".py"
        for line, name in _imports(file)
        if name not in known
    ]
    if missing:
        raise JobError(
            "a job has only the standard library, "
            f"{', '.join(('pyspark', 'spyt', *more))} and ytsaurus-client:\n  "
            + "\n  ".join(missing),
            "put its sources into the package, which travels whole, or bring it by archive, under "
            "[submit]",
            code=ErrorCode.PACKAGES,
        )


def verify_data_files(package: str) -> None:
    """Raise JobError for code that finds a file by ``__file__``: on the cluster it is in a zip."""
    found = [
        f"{file.name}:{line}"
        for folder in import_module(package).__path__
        for file in _files(Path(folder))
        if file.suffix == ".py"
        for line in _own_paths(file)
    ]
    if found:
        raise JobError(
            f"{', '.join(found)}: __file__ leads to no file on the cluster, where Python imports "
            "the package from an archive",
            'read it with `importlib.resources`: files(__package__).joinpath("NAME").read_text()',
            code=ErrorCode.PACKAGES,
        )


def _files(sources: Path) -> Iterator[Path]:
    for file in sorted(sources.rglob("*")):
        if file.is_file() and not _CACHES & {*file.relative_to(sources).parts}:
            yield file


def _own_paths(file: Path) -> Iterator[int]:
    """Yield the lines that use ``__file__``, but for those that take only its name."""
    tree = _tree(file)
    named = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.Attribute) and outer.attr in ("name", "stem")
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "__file__" and id(node) not in named:
            yield node.lineno


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.partition(".")[0]


def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise JobError(
            f"{file} is not valid Python: {error}", "correct or remove it", code=ErrorCode.USER_CODE
        ) from error


def _folder(package: str) -> Path:
    return Path(str(import_module(package).__file__)).parent
