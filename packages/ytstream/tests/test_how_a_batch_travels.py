"""HOW_A_BATCH_TRAVELS.md draws the layers that `make lint` checks, and names what exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import ytstream

RUNTIME = Path(ytstream.__file__).parent
ROOT = RUNTIME.parents[3]
PAGE = (RUNTIME.parents[1] / "HOW_A_BATCH_TRAVELS.md").read_text(encoding="utf-8")


def _layers() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == ["ytstream"])
    return [layer.replace(" | ", " ") for layer in layers]


def test_the_page_draws_the_layers_of_the_contract() -> None:
    drawn = [re.split(r" {4,}", line)[0] for line in PAGE.split("```")[1].strip().splitlines()]
    assert drawn == _layers()


def test_the_page_names_modules_and_functions_that_exist() -> None:
    named = set(re.findall(r"`(\w+/\w+\.py)`", PAGE))
    assert named
    assert [one for one in sorted(named) if not (RUNTIME / one).is_file()] == []
    code = "\n".join(path.read_text(encoding="utf-8") for path in RUNTIME.rglob("*.py"))
    for name in re.findall(r"`([A-Z]\w+\.\w+)`", PAGE):
        owner, method = name.split(".")
        assert re.search(rf"^class {owner}\b", code, re.MULTILINE), name
        assert re.search(rf"^    def {method}\(", code, re.MULTILINE), name
