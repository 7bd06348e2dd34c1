"""`make setup` of a generated project: what is installed, by pip or uv, and what is refused.

The index is a folder of tiny packages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from local_extensions import versions
from tests.conftest import Generate

BACKEND = versions.pin("setuptools")
UV = Path(sys.prefix) / "bin" / "uv"
INSTALLERS = {"pip": "", "uv": str(UV)}


def wheel(folder: Path, name: str, version: str, code: str) -> Path:
    """Make a wheel of one module."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}/__init__.py", code)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{name}/__init__.py,,\n{info}/RECORD,,\n")
    return file


_BUILD = """
import setuptools, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "source-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        archive.writestr("source.py", f"BUILT_BY = '{setuptools.__version__}'")
        archive.writestr("source-1.dist-info/METADATA",
            "Metadata-Version: 2.1\\nName: source\\nVersion: 1\\n")
        archive.writestr("source-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        archive.writestr("source-1.dist-info/RECORD", "")
    return name
"""
"""Builds a wheel that says which setuptools was there."""
_CONFIG = """
[project]
name = "source"
version = "1"
[build-system]
requires = ["setuptools"]
build-backend = "backend"
backend-path = ["."]
"""


def source(folder: Path) -> Path:
    """Make a source distribution, as pyspark is one."""
    file = folder / "source-1.tar.gz"
    texts = {
        "backend.py": _BUILD,
        "pyproject.toml": _CONFIG,
        "PKG-INFO": "Metadata-Version: 2.1\nName: source\nVersion: 1\n",
    }
    with tarfile.open(file, "w:gz") as archive:
        for name, text in texts.items():
            entry = tarfile.TarInfo(f"source-1/{name}")
            entry.size = len(text)
            archive.addfile(entry, BytesIO(text.encode()))
    return file


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def list_sums(vendor: Path) -> None:
    """Write the checksums of the wheels in ``vendor``."""
    lines = [f"{digest(file)}  {file.name}\n" for file in sorted(vendor.glob("*.whl"))]
    (vendor / "SHA256SUMS").write_text("".join(lines))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (folder := tmp_path / "index").mkdir()
    wheel(folder, "setuptools", BACKEND, f"__version__ = '{BACKEND}'")
    wheel(folder, "tiny", "1", "")
    source(folder)
    return folder


@pytest.fixture
def project(generate: Generate, index: Path) -> Path:
    """A project that needs the packages of the index, and has one wheel of its own."""
    project = generate()
    # In this order: the source would be built before its backend is there.
    files = ("source-1.tar.gz", f"setuptools-{BACKEND}-py3-none-any.whl", "tiny-1-py3-none-any.whl")
    entries = [
        f"{name.split('-')[0]}=={name.split('-')[1].removesuffix('.tar.gz')} \\\n"
        f"    --hash=sha256:{'0' * 64} \\\n    --hash=sha256:{digest(index / name)}\n"
        for name in files
    ]
    (project / "requirements.txt").write_text("".join(entries))
    for file in (project / "vendor").iterdir():
        file.unlink()
    wheel(project / "vendor", "own", "1", "TEXT = 'first'")
    list_sums(project / "vendor")
    return project


def make(
    project: Path, venv: Path, *words: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Set the project up, without Java and without a network."""
    cleared = ("MAKE", "PIP_", "UV")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(cleared)}
    alone = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
    }
    return subprocess.run(
        [str(shutil.which("make")), "installed", *words, f"VENV={venv}"],
        cwd=project,
        env={**inherited, **alone, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def said(venv: Path, code: str) -> str:
    """Return what an interpreter prints in the environment."""
    words = [str(venv / "bin/python"), "-c", code]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(params=INSTALLERS)
def sources(request: pytest.FixtureRequest, index: Path, tmp_path: Path) -> dict[str, str]:
    """Who installs, and from where."""
    return {
        "UV": INSTALLERS[request.param],
        "PIP_FIND_LINKS": str(index),
        "PIP_NO_CACHE_DIR": "1",
        "UV_FIND_LINKS": str(index),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }


@pytest.mark.thorough
@pytest.mark.slow
def test_sources_are_built_with_the_locked_backend_and_wheels_come_last(
    project: Path, tmp_path: Path, sources: dict[str, str]
) -> None:
    venv = tmp_path / "venv"
    done = make(project, venv, **sources)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said(venv, "import source; print(source.BUILT_BY)") == BACKEND
    assert said(venv, "import own, tiny; print(own.TEXT)") == "first"
    assert make(project, venv, **sources).stdout == ""  # a second set-up finds nothing to do

    wheel(project / "vendor", "own", "1", "TEXT = 'second'")
    list_sums(project / "vendor")
    done = make(project, venv, **sources)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said(venv, "import own; print(own.TEXT)") == "second"


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("name", ["setuptools", "tiny"])
def test_a_package_with_another_hash_is_refused_and_no_half_of_an_environment_stays(
    project: Path, tmp_path: Path, sources: dict[str, str], index: Path, name: str
) -> None:
    (file,) = index.glob(f"{name}-*")
    wheel(index, name, file.name.split("-")[1], "__version__ = 'another'")
    done = make(project, tmp_path / "venv", **sources)
    assert done.returncode == 2
    assert "hash" in done.stderr.lower()
    assert "The packages were not installed; the reason is above" in done.stderr
    assert "(an environment takes 1 GB). Without a network:" in done.stderr
    assert not (tmp_path / "venv").exists()


FAKE = f"""#!/bin/sh
case "$*" in
  *"-m venv"*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
  *"-m pip install"*) echo "pip: $*" >> "$NOTES" ;;
  *) exec "{sys.executable}" "$@" ;;
esac"""
"""An interpreter that makes no environment but its own copy, and installs nothing."""
FAKE_UV = """#!/bin/sh
echo "uv: $*" >> "$NOTES"
case "$*" in *" install "*) echo "$UV_DEFAULT_INDEX" >> "$NOTES.index" ;; esac"""


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A folder with an interpreter and a uv that note their words."""
    (folder := tmp_path / "fake").mkdir()
    for name, body in {"python3.11": FAKE, "uv": FAKE_UV}.items():
        (folder / name).write_text(body)
        (folder / name).chmod(0o755)
    return folder


def noted(
    project: Path, fake: Path, *words: str, **environment: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Set up with the fakes; return the result and what was asked of pip and uv."""
    (notes := fake.parent / "notes").touch()
    named = {"PATH": f"{fake}{os.pathsep}{os.environ['PATH']}", "NOTES": str(notes)}
    done = make(project, fake.parent / "venv", *words, **named | environment)
    return done, notes.read_text().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("had", [False, True])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ("echo more >> own-1-py3-none-any.whl", "own-1-py3-none-any.whl differs from its checksum"),
        ("cp own-1-py3-none-any.whl a.whl", "a.whl is not listed"),
        ("rm own-1-py3-none-any.whl", "own-1-py3-none-any.whl is missing, but listed"),
        ("rm SHA256SUMS", "own-1-py3-none-any.whl is not listed"),
        ("echo nonsense > SHA256SUMS", "own-1-py3-none-any.whl is not listed"),
    ],
)
def test_a_wheel_that_is_not_the_listed_one_is_refused_before_anything_is_installed(
    project: Path, fake: Path, tmp_path: Path, spoil: str, message: str, had: bool
) -> None:
    if had:
        assert noted(project, fake, "UV=")[0].returncode == 0
        (tmp_path / "notes").unlink()
    subprocess.run(spoil, shell=True, cwd=project / "vendor", check=True)
    done, asked = noted(project, fake, "UV=")
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert line.startswith(f"vendor/{message} in vendor/SHA256SUMS. Nothing was installed.")
    assert asked == []
    assert (tmp_path / "venv").exists() is had


@pytest.mark.thorough
@pytest.mark.parametrize("used", INSTALLERS)
def test_everything_of_the_index_is_installed_by_its_hash_by_uv_if_it_is_there(
    project: Path, fake: Path, tmp_path: Path, used: str
) -> None:
    done, asked = noted(project, fake, *(["UV="] if used == "pip" else []))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        f"The locked packages go into {tmp_path}/venv, about {versions.SPARKS[0].dev_mb} MB: "
    )
    first, second, third = (line for line in asked if " install " in line)
    assert {first.split(":")[0], third.split(":")[0]} == {used}
    for line in (first, second):
        assert " --no-build-isolation --require-hashes -r " in line
    assert first.endswith("backend.txt")
    assert second.endswith(" requirements.txt")
    assert (tmp_path / "venv/backend.txt").read_text().startswith(f"setuptools=={BACKEND} ")
    assert third.endswith("install vendor/own-1-py3-none-any.whl")
    assert " --no-deps --no-index " in third


def test_without_vendor_there_are_no_wheels_to_install(project: Path, fake: Path) -> None:
    shutil.rmtree(project / "vendor")
    done, asked = noted(project, fake, "UV=")
    assert done.returncode == 0, done.stderr
    assert len(asked) == 2


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "https://pip:secret@index.example.com/simple"),
        ({"PIP_INDEX_URL": "https://a.example.com"}, "https://a.example.com"),
        ({"UV_DEFAULT_INDEX": "https://b.example.com"}, "https://b.example.com"),
        ({"PIP_CONFIG_FILE": os.devnull}, ""),
    ],
)
def test_uv_asks_the_index_of_pip_and_no_file_names_it(
    project: Path, fake: Path, tmp_path: Path, given: dict[str, str], url: str
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://pip:secret@index.example.com/simple\n")
    done, asked = noted(project, fake, **{"PIP_CONFIG_FILE": str(config), **given})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "notes.index").read_text().splitlines()[:2] == [url, url]
    shown = done.stdout + done.stderr + "".join(asked)
    files = [file.read_text() for file in (tmp_path / "venv").rglob("*") if file.is_file()]
    assert not any("example.com" in text for text in [shown, *files])


@pytest.mark.thorough
def test_lock_keeps_the_wheels_of_vendor_out(project: Path, fake: Path) -> None:
    words = [str(shutil.which("make")), "lock"]
    environment = {"PATH": f"{fake}{os.pathsep}{os.environ['PATH']}", "NOTES": f"{fake}/notes"}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    subprocess.run(words, cwd=project, env=inherited | environment, check=True)
    *_, asked = (fake / "notes").read_text().splitlines()
    assert asked.startswith("uv: pip compile ")
    assert asked.endswith(
        " --extra dev pyproject.toml --output-file requirements.txt"
        " --find-links vendor --no-emit-package own"
    )
    done = subprocess.run(
        [*words, "UV="], cwd=project, env=inherited, capture_output=True, text=True, check=False
    )
    assert "uv is missing, which resolves for every platform: pipx install uv" in done.stderr
