"""The floors of the runtime: imports go down only."""

from __future__ import annotations

from pathlib import Path

import ytstream
from tests.imports import arrows, circles, upward

RUNTIME = Path(ytstream.__file__).parent

#: The lowest first; "" is what a job imports, `from ytstream import Job`.
FLOORS = (
    ("confs", "entry", "errors", "latest", "log", "pairs", "plan", "positions", "table", "version"),
    ("columns", "config", "shipped"),
    ("cluster", "resharding", "schema"),
    ("ledger", "mounting", "tablets"),
    ("job",),
    ("", "blame", "declaration", "guarantees", "recovery", "retention"),
    ("provision",),
    ("capacity",),
    ("demo", "describe", "query", "status"),
    ("submit", "testing"),
    ("cli",),
)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(arrows(RUNTIME)) == []


def test_imports_go_down_only() -> None:
    assert [str(arrow) for arrow in upward(arrows(RUNTIME), FLOORS)] == []
