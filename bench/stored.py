"""Results as files of JSON: one for each name, written as soon as it is measured."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.cases import Size
from tests.support.project import ROOT

RESULTS = ROOT / "bench" / "results"
"""The results that docs/performance.md is made from."""
TINY = ROOT / "build" / "bench"
"""Those of `--tiny`, which mean nothing."""
Found = Mapping[str, Any]


def path_of(folder: Path, name: str) -> Path:
    """Return where the results of a name are."""
    return folder / f"{name}.json"


def read(folder: Path, name: str) -> Found | None:
    """Return what is stored under a name; None if nothing is."""
    path = path_of(folder, name)
    if not path.is_file():
        return None
    found: Found = json.loads(path.read_text(encoding="utf-8"))
    return found


def write(folder: Path, name: str, size: Size, found: Found) -> None:
    """Store the results of a name, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(folder, name)
    whole = {"name": name, "size": asdict(size), "machine": machine(), **found}
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(_lines(_short(whole)), encoding="utf-8")
    beside.replace(path)


def _lines(whole: Mapping[str, Any]) -> str:
    """Return the JSON with a line for each key, and for each item of a list of objects: a round."""
    entries = (f"{json.dumps(key)}: {_listed(value)}" for key, value in whole.items())
    return "{\n " + ",\n ".join(entries) + "\n}\n"


def _listed(value: Any) -> str:
    if not (isinstance(value, list) and value and isinstance(value[0], Mapping)):
        return json.dumps(value)
    return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"


def _short(value: Any) -> Any:
    """Return the value with no more digits than mean anything."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, list | tuple) else value


def machine() -> dict[str, Any]:
    """Return what measured, and when."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processors": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "spark": version("pyspark"),
        "spyt": version("ytsaurus-spyt"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
