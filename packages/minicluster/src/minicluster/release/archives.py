"""The two archives that a job unpacks, in their real layout; large files in them are links.

A distribution of Spark has 460 MB of jars. Here each jar is a link into the environment that the
archive is made of, so it has less than 0.1 MB and unpacks at once. Equal files give equal bytes.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import YtError, generic

_CORE = re.compile(r"spark-core_[\d.]+-(\d+)\.(\d+)\.(\d+)\.jar")
_CACHE = "__pycache__"
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP can name."""


def spark_version(home: Path) -> tuple[int, int, int]:
    """Return the version of the Spark in ``home``, from the name of its core jar."""
    for jar in sorted(home.glob("jars/spark-core_*.jar")):
        if found := _CORE.fullmatch(jar.name):
            major, minor, patch = map(int, found.groups())
            return major, minor, patch
    raise _no_home(home)


def spark_name(home: Path) -> str:
    """Return the name of Spark's own archive of that version, without its ending."""
    return f"spark-{'.'.join(map(str, spark_version(home)))}-bin-hadoop3"


def spark_archive(home: Path) -> bytes:
    """Return the distribution of the Spark in ``home``, a folder like that of pip's pyspark."""
    top = spark_name(home)
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for folder in ("bin", "sbin"):
            for file in _files(home / folder):
                _add(tar, f"{top}/{file.relative_to(home)}", file)
        for folder in ("jars", "python/lib"):
            for file in _files(home / folder):
                _add_link(tar, f"{top}/{file.relative_to(home)}", file)
    return out.getvalue()


def spyt_archive(package: Path) -> bytes:
    """Return ``spyt-package.zip`` of the installed Python package ``spyt``."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in ("bin", "conf"):
            for file in _files(package / folder):
                name = f"spyt-package/{file.relative_to(package)}"
                archive.writestr(_entry(name, file.stat().st_mode), file.read_bytes())
        for file in sorted(package.glob("*.py")):
            name = f"spyt-package/python/spyt/{file.name}"
            archive.writestr(_entry(name, file.stat().st_mode), file.read_bytes())
        for file in _files(package / "jars"):
            name = f"spyt-package/{file.relative_to(package)}"
            archive.writestr(_entry(name, stat.S_IFLNK | 0o777), os.fsencode(file.absolute()))
    return out.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and _CACHE not in file.parts:
            yield file


def _add(tar: tarfile.TarFile, name: str, file: Path) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode = stat.S_IMODE(file.stat().st_mode)
    entry.size = file.stat().st_size
    with file.open("rb") as content:
        tar.addfile(entry, content)


def _add_link(tar: tarfile.TarFile, name: str, target: Path) -> None:
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.SYMTYPE
    entry.linkname = str(target.absolute())
    tar.addfile(entry)


def _entry(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ZIP_TIME)
    entry.create_system = 3  # Unix: the mode counts then
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _no_home(home: Path) -> YtError:
    return generic(
        f"{home} is not a Spark: it has no jars/spark-core_*.jar; give the folder of an installed "
        "pyspark, e.g. .venv/lib/python3.11/site-packages/pyspark"
    )
