"""The demo of each variant, on each Spark: rows in, kill -9, restart, rows counted."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.support.project import ROOT, VARIANTS, Variant
from tests.support.sparks import SPARKS

pytestmark = [pytest.mark.journey, pytest.mark.spark]

QUEUES = {"single": 1, "multi": 2}


@pytest.mark.parametrize("spark", SPARKS)
@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_no_row_is_lost_and_none_is_repeated(variant: Variant, spark: str) -> None:
    guarantee, processing, queues = variant
    said = _demo(
        f"GUARANTEE={guarantee}",
        f"PROCESSING={processing}",
        f"QUEUES={QUEUES[queues]}",
        f"SPARK={spark}",
    )
    figures = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", _last(said))}
    # The sample of deduplicate has repeats as well.
    assert figures["rows_in"] >= 20_000 * QUEUES[queues], said
    assert (figures["lost"], figures["kills"], figures["restarts"]) == (0, 1, 1), said
    assert figures["duplicated"] == 0 or guarantee == "at_least_once", said


def _demo(*words: str) -> str:
    """Run the demo as a person in a shell of their own does; return what it said."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "demo", *words],
        cwd=ROOT,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def _last(said: str) -> str:
    return next(line for line in reversed(said.splitlines()) if "rows_in=" in line)
