"""The user's modules: whether their files have changed, and how they are imported again."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ytstream.job import Job

from ..demo.job_sample import Sample

Times = Mapping[Path, int]


def times_of(root: Path, package: str) -> Times:
    """Return when each file of the package and of the sample was written."""
    found = {}
    for folder in (root / "src" / package, root / "sample"):
        for file in folder.rglob("*"):
            # Not bytecode, nor the files in which editors keep what is not saved yet.
            if "__pycache__" in file.parts or file.name.startswith(".") or file.name[-1] == "~":
                continue
            try:
                is_file, changed = file.is_file(), file.stat().st_mtime_ns
            except OSError:  # an editor replaces a file by another one
                continue
            if is_file:
                found[file] = changed
    return found


def imported(package: str) -> tuple[Job, Sample]:
    """Import the job and the sample as their files are now. Raises what they raise."""
    for name in [*sys.modules]:
        if name.partition(".")[0] in (package, "sample"):
            del sys.modules[name]
    importlib.invalidate_caches()
    linecache.clearcache()
    with _without_bytecode():
        job: Job = importlib.import_module(f"{package}.job").JOB
        sample: Sample = importlib.import_module("sample").SAMPLE
    return job, sample


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Write no bytecode: Python takes it for a file that was saved within the same second.

    It compares whole seconds and the size (importlib, `_validate_timestamp_pyc`).
    """
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
