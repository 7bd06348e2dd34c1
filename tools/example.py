"""A generated project for the tools that look at one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cookiecutter.main import cookiecutter

ROOT = Path(__file__).resolve().parent.parent


def generated(folder: Path, answers: Mapping[str, str]) -> Path:
    """Generate a project in ``folder`` and return it; nothing is written into the home."""
    folder.mkdir(parents=True)
    config = folder / "cookiecutter.yaml"
    kept = {"cookiecutters_dir": f"{folder}/templates", "replay_dir": f"{folder}/replay"}
    config.write_text(json.dumps(kept), encoding="utf-8")
    words = {"no_input": True, "output_dir": str(folder), "config_file": str(config)}
    return Path(cookiecutter(str(ROOT), extra_context=dict(answers), **words))
