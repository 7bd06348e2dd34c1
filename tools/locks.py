"""Lock what is installed: every package of the index in templates/locks, with its hashes.

`make locks` resolves the pins of local_extensions/versions.py again with uv, for every platform at
once. It asks the index that pip is configured for; no file names it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile

from local_extensions import locks, versions
from tools import sparks

COMPILE = shlex.split(
    "-m uv --quiet pip compile --universal --python-version 3.11 --generate-hashes"
    " --no-annotate --no-emit-index-url --custom-compile-command 'make lock'"
)
"""As in `make lock` of a generated project. 3.11 is the oldest Python that is supported."""


def compiled(spark: str, scope: str, constraints: str = "") -> str:
    """Return what uv locks for the pins of ``scope``, in the versions of another lock."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(constraints)
        file.flush()
        done = subprocess.run(
            [sys.executable, *COMPILE, "--constraints", file.name, "-"],
            input="\n".join(versions.requirements(scope, spark)),
            env=os.environ | index(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stdout


def text_of(lock: versions.Lock) -> str:
    """Return the text of a lock, its entries by the first scope that needs them.

    Raises ValueError where two scopes would lock one package in two ways.
    """
    whole = compiled(lock.spark, lock.scope)
    if lock.scope in versions.ALONE:
        return whole
    head = whole[: whole.index(locks.entries(whole)[0])]
    by_scope: dict[str, list[str]] = {}
    known: set[str] = set()
    scopes = versions.SCOPES[: versions.SCOPES.index(lock.scope) + 1]
    for scope in scopes[1:]:
        text = whole if scope == lock.scope else compiled(lock.spark, scope, whole)
        found = locks.entries(text)
        if other := {*found} - {*locks.entries(whole)}:
            raise ValueError(f"scope {scope} has other entries: {''.join(sorted(other))}")
        by_scope[scope] = [entry for entry in found if entry not in known]
        known |= {*found}
    return locks.joined(head, by_scope)


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
    """Write every lock, and what follows from SPARKS; the exit code of the first failure."""
    for name, lock in versions.LOCKS.items():
        try:
            text = text_of(lock)
        except subprocess.CalledProcessError as error:
            print(f"{name}: not locked; uv gives the reason above", file=sys.stderr)
            return error.returncode
        except ValueError as error:
            print(f"{name}: not locked: {error}", file=sys.stderr)
            return 1
        (locks.FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
        print(f"{name}: {text.count(chr(10) + '    --hash=')} hashes")
    sparks.written()
    return 0


if __name__ == "__main__":
    sys.exit(main())
