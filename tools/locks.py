"""Lock what is installed: every package of the index in templates/locks, with its hashes.

`make locks` resolves the pins of local_extensions/versions.py again with uv, for every platform at
once. It asks the index that pip is configured for; no file names it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from local_extensions import versions

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "templates" / "locks"
#: As in `make lock` of a generated project. 3.11 is the oldest Python that is supported.
COMPILE = shlex.split(
    "-m uv --quiet pip compile --universal --python-version 3.11 --generate-hashes"
    " --no-annotate --no-emit-index-url --custom-compile-command 'make lock'"
)


def compiled(name: str, widest: str) -> str:
    """Return the text of lock ``name``; shared packages have their versions of lock ``widest``."""
    lock = versions.LOCKS[name]
    constraints = [] if name == widest else ["--constraints", str(LOCKS / f"{widest}.txt")]
    done = subprocess.run(
        [sys.executable, *COMPILE, *constraints, "-"],
        input="\n".join(versions.requirements(lock.scope, lock.spark)),
        env=os.environ | index(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def index() -> dict[str, str]:
    """Return the variable that names pip's index to uv; empty for the public one.

    It may hold a password, so it is not an argument: other users see those.
    """
    if {"UV_DEFAULT_INDEX", "UV_INDEX_URL"} & os.environ.keys():
        return {}
    words = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    settings = dict(line.split("=", 1) for line in listed.splitlines())
    for source in (":env:", "install", "global"):
        if url := settings.get(f"{source}.index-url", "").strip("'"):
            return {"UV_DEFAULT_INDEX": url}
    return {}


def main() -> int:
    """Write every lock; the exit code of the first that cannot be resolved."""
    widest: dict[str, str] = {}
    for name, lock in versions.LOCKS.items():
        try:
            text = compiled(name, widest.setdefault(lock.spark, name))
        except subprocess.CalledProcessError as error:
            print(f"{name}: not locked; uv gives the reason above", file=sys.stderr)
            return error.returncode
        (LOCKS / f"{name}.txt").write_text(text, encoding="utf-8")
        print(f"{name}: {text.count(chr(10) + '    --hash=')} hashes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
