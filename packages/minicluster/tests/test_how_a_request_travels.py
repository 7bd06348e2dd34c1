"""HOW_A_REQUEST_TRAVELS.md draws the layers that `make lint` checks."""

from __future__ import annotations

import tomllib

from tests.support import project


def test_the_page_draws_the_layers_of_the_contract() -> None:
    settings = tomllib.loads((project.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == ["minicluster"])
    page = (project.ROOT / "packages/minicluster/HOW_A_REQUEST_TRAVELS.md").read_text()
    drawn = [line.split("  ")[0] for line in page.split("```")[1].strip().splitlines()]
    assert drawn == [layer.replace(" | ", " ") for layer in layers]
