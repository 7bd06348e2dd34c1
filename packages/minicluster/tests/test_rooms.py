"""The rooms of the minicluster are on floors: imports point down, without a circle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import imports, project
from tests.imports import Arrow

PACKAGE = project.MINICLUSTER
FLOORS = [
    ["", "errors", "ids", "clock", "client_operations", "memory"],
    ["rows", "client"],
    ["cypress", "testing"],
    ["tables", "plugin", "release"],
    ["queues", "query", "operations"],
    ["cluster", "nodes"],
    ["persist"],
    ["control"],
    ["http", "rpc"],
    ["__main__"],
]
"""The lowest first, as HOW_A_REQUEST_TRAVELS.md draws them."""


@pytest.fixture(scope="module")
def arrows() -> list[Arrow]:
    """Return the imports between modules of the minicluster."""
    return imports.arrows(PACKAGE)


def test_no_modules_import_each_other_in_a_circle(arrows: list[Arrow]) -> None:
    assert imports.circles(arrows) == []


def test_no_import_points_up(arrows: list[Arrow]) -> None:
    assert list(map(str, imports.upward(arrows, FLOORS))) == []


def test_rows_know_the_errors_alone(arrows: list[Arrow]) -> None:
    targets = {arrow.target for arrow in arrows if arrow.source.startswith("rows")}
    assert {name for name in targets if not name.startswith("rows")} == {"errors"}


def test_the_page_about_requests_names_real_modules_and_draws_the_floors() -> None:
    page = (project.ROOT / "packages/minicluster/HOW_A_REQUEST_TRAVELS.md").read_text()
    drawn = page.split("```")[1]
    assert [line.split("  ")[0].split() for line in drawn.strip().splitlines()] == [
        [name for name in floor if name] for floor in reversed(FLOORS)
    ]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Modules that import each other in every way there is."""
    root = tmp_path / "house"
    for name, text in {
        "__init__.py": "",
        "cellar.py": "import json\n",
        "hall/__init__.py": "from . import door\n",
        "hall/door.py": "from ..cellar import json\nfrom . import key as k\n",
        "hall/key.py": "def late():\n    from house.hall import door\n",
        "attic.py": (
            "from typing import TYPE_CHECKING\nimport house.hall.key\nfrom . import cellar\n"
            "if TYPE_CHECKING:\n    from .hall import door\n"
        ),
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_every_import_is_an_arrow(package: Path) -> None:
    assert [(arrow.source, arrow.target, arrow.line) for arrow in imports.arrows(package)] == [
        ("attic", "cellar", 3),
        ("attic", "hall.door", 5),
        ("attic", "hall.key", 2),
        ("hall", "hall.door", 1),
        ("hall.door", "cellar", 1),
        ("hall.door", "hall.key", 2),
        ("hall.key", "hall.door", 2),
    ]
    assert imports.circles(imports.arrows(package)) == [["hall.door", "hall.key"]]


def test_an_arrow_up_is_found_and_an_unlisted_room_is_refused() -> None:
    down, up = Arrow("hall.door", "cellar", 1), Arrow("cellar", "attic", 7)
    beside = Arrow("attic", "roof.tile", 2)
    floors = [["cellar"], ["hall"], ["attic", "roof"]]
    assert imports.upward([down, up, beside], floors) == [up, beside]
    with pytest.raises(ValueError, match="no floor lists attic"):
        imports.upward([down, up], floors[:2])
