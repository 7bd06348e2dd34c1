"""What a result is of: all that decides a verdict, and nothing that does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.faults.sweep import cases
from tests.support.project import ROOT
from tools import proof_digest
from ytstream.job import PROCESSINGS

_LOADED = """
import sys
from pathlib import Path
import tests.faults.sweep.worker
from tests.faults.sweep import lab
from tests.faults.sweep.jobs import JOBS, LISTINGS
for variant in (*JOBS, *LISTINGS):
    lab.made_of(variant)
for module in [*sys.modules.values()]:
    if getattr(module, "__file__", None):
        print(module.__file__)
"""
_NAMES_AND_PATHS = {
    "packages/ytstream-tools/src/ytstream_tools/repository.py",
    "tools/proof_digest.py",
    "tests/faults/sweep/results.py",
    "tests/support/jvm.py",
    "tests/support/project.py",
}
"""What a worker loads, and no verdict depends on: names, folders, and the template's answers."""


def test_all_that_a_worker_loads_is_in_a_part() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], cwd=ROOT, check=True, capture_output=True, text=True
    )
    files = (Path(line) for line in done.stdout.splitlines())
    loaded = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.is_relative_to(ROOT) and not path.relative_to(ROOT).parts[0].startswith(".")
    }
    parts = [part.as_posix() for of_part in proof_digest.PARTS.values() for part in of_part]
    parts += [f"templates/{name}" for name in ("shared", *PROCESSINGS)]
    left = {
        name
        for name in loaded | {cases.POINTS.relative_to(ROOT).as_posix()}
        if not any(name == part or name.startswith(f"{part}/") for part in parts)
    }
    own = {name for name in left if not name.endswith("__init__.py")}
    assert {name for name in own if not name.startswith("local_extensions/")} <= _NAMES_AND_PATHS
    known = {"tests/faults/sweep/play.py", "tests/support/with_deletes/transform.py"}
    assert known <= loaded


def _folder(root: Path, source: str, java: str) -> str:
    for name, text in (("batch.py", source), ("Block.java", java)):
        path = root / proof_digest.RUNTIME / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return proof_digest.runtime(root)


def test_comments_and_layout_void_nothing(tmp_path: Path) -> None:
    java = 'class Block { String path = "//home"; }'
    first = _folder(tmp_path, "def f(a):\n    return a + 1\n", java)
    same = _folder(
        tmp_path,
        '"""Words."""\n\n\ndef f(a):  # why\n    """Add."""\n    return (a + 1)\n',
        '/* why */\nclass Block {\n  String path = "//home"; // a folder\n}',
    )
    assert same == first
    assert _folder(tmp_path, "def f(a):\n    return a + 2\n", java) != first
    assert _folder(tmp_path, "def f(a):\n    return a + 1\n", java.replace("home", "tmp")) != first
