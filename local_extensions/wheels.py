"""Builds the packages of packages/ as wheels, with only the standard library.

    python3 local_extensions/wheels.py FOLDER

A hook calls it offline, before anything is installed. The same sources give the same bytes on every
Python: files are sorted, stored without compression and dated 1980. The format is that of the PyPA
specifications "Binary distribution format" and "Core metadata".
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import re
import sys
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).resolve().parents[1]
PACKAGES = [TEMPLATE / "packages" / name for name in ("minicluster", "ytstream", "ytstream-tools")]
"""The packages that a generated repository installs."""
PUBLISHED = [*PACKAGES, TEMPLATE / "packages" / "ytstream-doctor"]
"""Those that an organisation uploads to its index."""
LICENSE = TEMPLATE / "LICENSE"
CACHES = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
_METADATA = re.compile(r".*\.(egg|dist)-info").fullmatch
# As hatchling finds it.
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_DATE = (1980, 1, 1, 0, 0, 0)
_WHEEL = (
    "Wheel-Version: 1.0\nGenerator: ytstream-template\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
)


def build_all(packages: Sequence[Path], target: Path) -> list[Path]:
    """Write a wheel of each package folder into ``target``, and SHA256SUMS; return the wheels."""
    wheels = [build(package, target) for package in packages]
    sums = (f"{_sum(wheel.read_bytes())}  {wheel.name}\n" for wheel in wheels)
    (target / "SHA256SUMS").write_text("".join(sorted(sums, key=lambda line: line[66:])))
    return wheels


def requirements() -> str:
    """Return the packages as lines of a lock: an index has the wheels of `make dist`."""
    sums = {package.name: _sum(_wheel_of(package)[1]) for package in PACKAGES}
    return "".join(
        f"{name}=={version(name)} \\\n    --hash=sha256:{digest}\n" for name, digest in sums.items()
    )


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def build(package: Path, target: Path) -> Path:
    """Write the wheel of the folder ``package``, which has pyproject.toml, README.md and src/."""
    name, data = _wheel_of(package)
    target.mkdir(parents=True, exist_ok=True)
    wheel = target / name
    wheel.write_bytes(data)
    return wheel


def _wheel_of(package: Path) -> tuple[str, bytes]:
    """Return the wheel of a package folder: its file's name, and the bytes."""
    project = described(package)
    name = f"{project['name'].replace('-', '_')}-{project['version']}"
    info = f"{name}.dist-info"
    files = dict(_sources(package / "src"))
    files[f"{info}/METADATA"] = _metadata(project, package).encode()
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    files[f"{info}/licenses/{LICENSE.name}"] = LICENSE.read_bytes()
    if points := _entry_points(project):
        files[f"{info}/entry_points.txt"] = points.encode()
    record = [f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    return f"{name}-py3-none-any.whl", _archive(files)


def _archive(files: Mapping[str, bytes]) -> bytes:
    archive = io.BytesIO()  # into a file, zipfile would make seven system calls for each entry
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, _DATE)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix, whatever the machine
            out.writestr(entry, data)
    return archive.getvalue()


def described(package: Path) -> dict[str, Any]:
    """Return the table ``[project]`` of the package's pyproject.toml, with its version."""
    settings = _settings(package)
    return {**settings["project"], "version": version(package.name)}


@functools.cache
def version(name: str) -> str:
    """Return the version of one of the packages."""
    package = TEMPLATE / "packages" / name
    file = package / _settings(package)["tool"]["hatch"]["version"]["path"]
    found = _VERSION.search(file.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f'{file}: no line __version__ = "..."')
    return found[1]


@functools.cache
def _settings(package: Path) -> dict[str, Any]:
    return tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))


def _sources(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files below ``folder``, which is src/, sorted: a path inside it, and the bytes."""
    kept = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in CACHES and not _METADATA(name)]
        kept += [os.path.join(parent, name).removeprefix(f"{folder}{os.sep}") for name in names]
    for path in sorted(kept, key=lambda path: path.split(os.sep)):
        with open(os.path.join(folder, path), "rb") as file:
            yield path, file.read()


def _metadata(project: Mapping[str, Any], package: Path) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        f"License-File: {LICENSE.name}",
        *(f"Classifier: {one}" for one in project.get("classifiers", ())),
        *(f"Requires-Dist: {needed}" for needed in project.get("dependencies", ())),
    ]
    if keywords := project.get("keywords"):
        lines.append(f"Keywords: {','.join(keywords)}")
    for extra, needs in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {needed} ; extra == "{extra}"' for needed in needs]
    readme = (package / project["readme"]).read_text(encoding="utf-8")
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _entry_points(project: Mapping[str, Any]) -> str:
    groups = dict(project.get("entry-points", {}))
    if "scripts" in project:
        groups["console_scripts"] = project["scripts"]
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items()), ""])
        for group, points in groups.items()
    )
    return "\n".join(sections)


def _digest(data: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: wheels.py FOLDER")
    for wheel in build_all(PUBLISHED, Path(sys.argv[1])):
        print(wheel)
