"""An environment as a generated project has it: our wheels over packages that are there.

    python tools/overlay.py ENVIRONMENT TARGET

The packages of ENVIRONMENT are found by a path file, so TARGET costs two seconds and no copy of
Spark. The editable installs of ENVIRONMENT are path files themselves, which Python does not follow
from there: what TARGET imports is what a user gets.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from local_extensions import wheels

_PROGRAMS = ("ruff",)
"""Linters are programs beside the interpreter."""
_FOLDERS = "import json, sys; print(json.dumps([p for p in sys.path if p.endswith('-packages')]))"


def overlay(environment: Path, target: Path) -> Path:
    """Make the environment ``target`` over ``environment`` and return it.

    Raises subprocess.CalledProcessError.
    """
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "venv", "--clear", "--without-pip", target], check=True)
    found = subprocess.run([python, "-c", _FOLDERS], check=True, capture_output=True, text=True)
    (packages,) = target.glob("lib/python3.*/site-packages")
    (packages / "beneath.pth").write_text("\n".join(json.loads(found.stdout)) + "\n")
    for name in _PROGRAMS:
        if (program := environment / "bin" / name).exists():
            (target / "bin" / name).symlink_to(program)
    with tempfile.TemporaryDirectory() as folder:
        built = wheels.build_all(wheels.PACKAGES, Path(folder))
        pip = [str(target / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", *built], check=True)
    return target


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: overlay.py ENVIRONMENT TARGET")
    overlay(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
