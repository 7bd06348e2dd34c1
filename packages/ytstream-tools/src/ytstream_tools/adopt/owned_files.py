"""The user's files of a repository: which are still as they were made, and how to write them.

A repository says in pyproject.toml what its example files were when they were generated, and in
sample/adopted.json what `adopt` has written.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode


def digest(text: str) -> str:
    """Return what pyproject.toml says of a file. local_extensions/text.py computes the same."""
    return hashlib.sha256(text.rstrip().encode()).hexdigest()[:16]


Digests = Mapping[str, str]
"""By the path of a file in the repository."""
ADOPTED = "sample/adopted.json"


def examples(root: Path) -> Digests:
    """Return the digests of the example's files."""
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = project.get("tool", {}).get("ytstream-template", {}).get("example", {})
    return {str(name): str(value) for name, value in found.items()}


def adopted(root: Path) -> Digests:
    """Return the digests of the files that `adopt` has written."""
    try:
        found = json.loads((root / ADOPTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def is_edited(root: Path, path: str, *known: Digests) -> bool:
    """Return whether the file has something of the user's in it."""
    file = root / path
    if not file.exists():
        return False
    # A file that is not UTF-8 is not ours.
    found = digest(file.read_text(encoding="utf-8", errors="replace"))
    return all(digests.get(path) != found for digests in known)


def with_list(source: str, name: str, text: str, key: str | None = None) -> str:
    """Return a module with another list in ``name`` or, with a key, under it in a dict.

    Raises JobError where the module has no such list.
    """
    found = None
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            found = node.value if key is None else _under(node.value, key)
    if not isinstance(found, ast.List) or found.end_lineno is None:
        where = name if key is None else f"{name}[{key!r}]"
        raise JobError(
            f"tables.py has no list {where} that could be replaced",
            f"write {where} = [...] there",
            code=ErrorCode.TABLES,
        )
    lines = source.encode().splitlines(keepends=True)  # ast counts in bytes
    before = b"".join(lines[: found.lineno - 1]) + lines[found.lineno - 1][: found.col_offset]
    after = lines[found.end_lineno - 1][found.end_col_offset :] + b"".join(
        lines[found.end_lineno :]
    )
    return before.decode() + text + after.decode()


def with_origin(source: str, origin: str) -> str:
    """Return tables.py whose comment about QUEUE says where its columns are from.

    Only a sentence of the template's or of `adopt`'s own is replaced: others are the user's.
    """
    return _ORIGIN.sub(f"#: By `make adopt`, from {origin}.\n#: ", source, count=1)


_ORIGIN = re.compile(
    r"^#: (?:Bids of an auction site, as in the streaming benchmark Nexmark\."
    r"|By `make adopt`, from .*\.\n#:) ",
    re.MULTILINE,
)


def literal(file: Path, name: str) -> str | None:
    """Return the text of a value that a module gives to ``name``, if it is nothing but data."""
    try:
        source = file.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
                if node.value is None:
                    continue
                ast.literal_eval(node.value)
                return ast.get_source_segment(source, node.value)
    except (OSError, ValueError, SyntaxError):
        return None
    return None


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _under(value: ast.expr | None, key: str) -> ast.expr | None:
    if not isinstance(value, ast.Dict):
        return None
    pairs = zip(value.keys, value.values, strict=True)
    return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)


def uses_type_info(source: str) -> bool:
    """Return whether a column of tables.py has a type of yt.type_info."""
    return re.search(r"^ *Column\(.*, ti\.", source, re.MULTILINE) is not None


def with_import(source: str) -> str:
    """Return tables.py with yt.type_info imported as ``ti`` where it is used and missing."""
    if not uses_type_info(source) or "import yt.type_info as ti" in source:
        return source
    return source.replace("from ytstream", "import yt.type_info as ti\n\nfrom ytstream", 1)


def formatted(text: str, name: str) -> str:
    """Return Python as ruff formats it, where ruff is installed."""
    if find_spec("ruff") is None:
        return text
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", name, "-"],
        input=text, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else text
