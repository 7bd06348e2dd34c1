"""The compiled classes of ``jvm/``, kept from one start to the next: to compile takes a second.

They are kept in the virtual environment that runs the job: whoever may write there may replace the
sources, too, and they go with it. Not on a cluster, nor in a Python of the system.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

NAME = "ytstream-connector.jar"
"""Executors know the jar by it."""


def name_of(made_of: Iterable[tuple[str, str]]) -> str:
    """Return a name for what is made of these texts and of the jars of Spark and SPYT."""
    digest = hashlib.sha256()
    for name, text in (*made_of, *_jars()):
        digest.update(f"{name}\0{len(text)}\0{text}".encode())
    return digest.hexdigest()[:32]


def found(name: str) -> Path | None:
    """Return the jar that a start before this one has made; None without one that is whole."""
    if (folder := _folder()) is None:
        return None
    jar = folder / name / NAME
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(jar) as opened:
        return jar if opened.testzip() is None else None
    return None


def kept(jar: Path, name: str) -> Path:
    """Keep a jar, if that is possible here; return it, or its copy."""
    if (folder := _folder()) is None:
        return jar
    place = folder / name / NAME
    copy = place.with_suffix(f".{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(jar, copy)
        return copy.replace(place)  # whole or not at all: another start may do the same
    except OSError:
        with suppress(OSError):
            copy.unlink()
        return jar


def _folder() -> Path | None:
    if sys.prefix == sys.base_prefix or "YT_OPERATION_ID" in os.environ:
        return None
    return Path(sys.prefix) / "var" / "ytstream-connector"


def _jars() -> Iterator[tuple[str, str]]:
    """Yield path, size and time of each jar that the classes are compiled against."""
    for package in ("pyspark", "spyt"):
        spec = find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            for jar in sorted(Path(folder).glob("jars/**/*.jar")):
                facts = jar.stat()
                yield str(jar), f"{facts.st_size} {facts.st_mtime_ns}"
