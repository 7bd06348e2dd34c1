"""Which saves a preview sees, and that it imports what was saved."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ytstream_tools.preview import source_watch


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository whose job is a number."""
    (package := tmp_path / "src/watched").mkdir(parents=True)
    (tmp_path / "sample").mkdir()
    (package / "__init__.py").touch()
    (package / "job.py").write_text("from .transform import VALUE as JOB\n")
    (package / "transform.py").write_text("VALUE = 1\n")
    (tmp_path / "sample/__init__.py").write_text("SAMPLE = 1\n")
    for folder in (tmp_path / "src", tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return tmp_path


def test_a_save_within_the_same_second_is_imported(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = root / "src/watched/transform.py"
    for number in (1, 2):
        file.write_text(f"VALUE = {number}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        job, _ = source_watch.imported("watched")
        assert str(job) == str(number)


def test_a_save_in_a_folder_of_the_package_is_seen_and_an_editors_own_file_is_not(
    root: Path,
) -> None:
    def times() -> source_watch.Times:
        return source_watch.times_of(root, "watched")

    before = times()
    for name in (".transform.py.swp", "transform.py~", "__pycache__/transform.pyc"):
        (file := root / "src/watched" / name).parent.mkdir(exist_ok=True)
        file.touch()
    assert times() == before
    (folder := root / "src/watched/parsing").mkdir()
    (folder / "urls.py").touch()
    assert times().keys() - before.keys() == {folder / "urls.py"}
