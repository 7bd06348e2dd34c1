"""The Python of a node: nothing but what a cluster's administrators install for SPYT.

SPYT needs ``packaging`` and, for its own calls, ytsaurus-client. pyspark comes to a job from the
distribution, spyt from the release, and the job's own packages from the job. An interpreter with
more in it would hide that something is not shipped.
"""

from __future__ import annotations

import os
import shutil
import sys
import venv
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from ..core.errors import generic

PACKAGES = ("ytsaurus-client", "ytsaurus-yson", "packaging")
"""What every node has, by name of the distribution."""

_OTHER_VERSION = '''\
"""Let this interpreter say that it is of another version."""

import collections
import sys

_Info = collections.namedtuple("version_info", "major minor micro releaselevel serial")
sys.version_info = _Info({major}, {minor}, 0, "final", 0)
sys.hexversion = {major} << 24 | {minor} << 16 | 0xF0
sys.version = "{major}.{minor}.0 " + sys.version.partition(" ")[2]  # platform parses the rest
'''


def make(
    folder: Path, *, more: Sequence[str] = (), without: Sequence[str] = (), says: str = ""
) -> Path:
    """Make the environment ``folder``; return its folder of programs, for the PATH of jobs.

    It links to packages of the running interpreter: those of every node, those that ``more``
    names, and all that these require. ``without`` leaves packages out; ``says`` is a version such
    as "3.9" that the interpreter claims. Raises YtError for a package that is not installed here.
    """
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(folder)
    site = folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for source in sources((*PACKAGES, *more), without=without):
        (site / source.name).symlink_to(source)
    if says:
        major, minor = says.split(".")
        claim = _OTHER_VERSION.format(major=int(major), minor=int(minor))
        (site / "other_version.py").write_text(claim)
        # Not sitecustomize: Debian has one of its own, which is found first.
        (site / "other_version.pth").write_text("import other_version\n")
    return folder / "bin"


def sources(names: Sequence[str], *, without: Sequence[str] = ()) -> list[Path]:
    """Return the files and folders, as they are installed here, of packages and what they require.

    Raises YtError for a package that is not installed here.
    """
    wanted = sorted(_closure(names) - {_plain(name) for name in without})
    return [part for name in wanted for part in _parts(metadata.distribution(name))]


def java_home() -> Path | None:
    """Return the home of this machine's Java: JAVA_HOME, or that of the java on the PATH.

    A submit names it in ``spark.ytsaurus.java.home``: SPYT's own default, /opt/jdk17, is that of
    its cluster images.
    """
    given = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{given}/bin" if given else None)
    return Path(found).resolve().parents[1] if found else None


def _closure(names: Sequence[str]) -> set[str]:
    """Return the names and all that they require here, extras left out."""
    from packaging.requirements import Requirement  # SPYT requires it

    found: set[str] = set()
    waiting = [_plain(name) for name in names]
    while waiting:
        if (name := waiting.pop()) in found:
            continue
        found.add(name)
        try:
            lines = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            raise generic(f"{name} is not installed here, so jobs cannot have it") from None
        for line in lines:
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                waiting.append(_plain(wanted.name))
    return found


def _parts(distribution: metadata.Distribution) -> Iterator[Path]:
    """Yield the files and folders that the distribution put into its site-packages."""
    names = {file.parts[0] for file in distribution.files or ()}
    for name in sorted(names - {"..", "__pycache__"}):
        yield Path(str(distribution.locate_file(name))).resolve()


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
