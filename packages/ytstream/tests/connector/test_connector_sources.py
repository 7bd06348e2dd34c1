"""The connector's Java travels with the runtime."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ytstream.connector import compile_java
from ytstream.declaration import archive as shipped

JVM = Path(compile_java.__file__).with_name("jvm")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the archive of a job of one file."""
    package = tmp_path / "shipped_with_java"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return shipped.archive(package.name, tmp_path / "dist")


def test_the_sources_and_their_page_go_to_the_cluster(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        names = {name for name in opened.namelist() if "/connector/jvm/" in name}
    assert names == {f"ytstream/connector/jvm/{file.name}" for file in JVM.iterdir()}
    assert {"ytstream/connector/jvm/Queue.java", "ytstream/connector/jvm/README.md"} <= names


def test_the_sources_are_read_out_of_the_archive(archive: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "from ytstream.connector import compile_java\n"
        "print(compile_java.__file__, *(name for name, _ in compile_java._sources()))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    place, *names = said.stdout.split()
    assert place.startswith(str(archive))
    assert names == sorted(file.name for file in JVM.glob("*.java"))
