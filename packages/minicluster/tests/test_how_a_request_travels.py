"""HOW_A_REQUEST_TRAVELS.md draws the layers that `make lint` checks; its modules exist."""

from __future__ import annotations

import re
import tomllib

from tests.support import project

PAGE = (project.ROOT / "packages/minicluster/HOW_A_REQUEST_TRAVELS.md").read_text(encoding="utf-8")


def test_the_page_draws_the_layers_of_the_contract() -> None:
    settings = tomllib.loads((project.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == ["minicluster"])
    drawn = [line.split("  ")[0] for line in PAGE.split("```")[1].strip().splitlines()]
    assert drawn == [layer.replace(" | ", " ") for layer in layers]


def test_the_page_names_modules_that_exist() -> None:
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", PAGE))
    assert named
    assert [one for one in sorted(named) if not (project.MINICLUSTER / one).is_file()] == []
