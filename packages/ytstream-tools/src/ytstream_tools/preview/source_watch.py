"""The user's modules: whether their files have changed, and how they are imported again."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Mapping
from pathlib import Path

from ytstream.job import Job

from ..demo.job_sample import Sample

Times = Mapping[Path, int]


def times_of(root: Path, package: str) -> Times:
    """Return when each file of the package and of the sample was written."""
    folders = (root / "src" / package, root / "sample")
    files = (file for folder in folders for file in folder.glob("*") if file.is_file())
    found = {}
    for file in files:
        try:
            found[file] = file.stat().st_mtime_ns
        except OSError:  # an editor replaces a file by another one
            continue
    return found


def imported(package: str) -> tuple[Job, Sample]:
    """Import the job and the sample as their files are now. Raises what they raise."""
    for name in [*sys.modules]:
        if name.partition(".")[0] in (package, "sample"):
            del sys.modules[name]
    importlib.invalidate_caches()
    linecache.clearcache()
    job: Job = importlib.import_module(f"{package}.job").JOB
    sample: Sample = importlib.import_module("sample").SAMPLE
    return job, sample
