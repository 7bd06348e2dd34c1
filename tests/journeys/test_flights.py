"""The way of a user: a new project, two files of their own, real rows in, each one compared."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Generate
from tests.journeys.flights import reference
from tests.project import OPTIONS, ROOT, SUBMIT_ARGS

pytestmark = pytest.mark.slow

FOLDER = ROOT / "tests" / "journeys" / "flights"
#: All flights of the package, and the first ones: one guarantee with these is in `make test`.
ROWS, FIRST = 336_776, 80_000


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("idempotent", FIRST), id="idempotent-first"),
        *(
            pytest.param((guarantee, ROWS), id=guarantee, marks=pytest.mark.journey)
            for guarantee in OPTIONS["guarantee"]
        ),
    ],
)
def journey(request: pytest.FixtureRequest) -> tuple[str, int]:
    """A guarantee, and the number of flights."""
    guarantee, rows = request.param
    return str(guarantee), int(rows)


@pytest.fixture(scope="module")
def guarantee(journey: tuple[str, int]) -> str:
    return journey[0]


@pytest.fixture(scope="module")
def flights(journey: tuple[str, int]) -> pd.DataFrame:
    found = reference.read_flights()
    assert len(found) == ROWS
    return found[: journey[1]]


@pytest.fixture(scope="module")
def queue_rows(flights: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The queue's rows as a file, for the process that sends them."""
    file = tmp_path_factory.mktemp("flights") / "rows.pickle"
    file.write_bytes(pickle.dumps(reference.queue_rows(flights)))
    return file


@pytest.fixture(scope="module")
def project(generate: Generate, guarantee: str) -> Path:
    """A project with the user's two files in place, and batches large enough for the backlog."""
    project = generate(
        project_name="Flights",
        guarantee=guarantee,
        queue_paths="//home/airports/departures",
        cypress_root="//home/airports/flights",
    )
    mine = FOLDER / "idempotent" if guarantee == "idempotent" else FOLDER
    for name in ("transform.py", "tables.py"):
        shutil.copy(mine / name, project / "src" / "flights" / name)
    config = project / "config" / "local.toml"
    lines = config.read_text(encoding="utf-8").splitlines()
    (size,) = (n for n, line in enumerate(lines) if line.startswith("max_rows_per_partition = "))
    lines[size] = "max_rows_per_partition = 50_000"
    # The writes' size follows from the batches' when it is left out.
    kept = [line for line in lines if not line.startswith("dyn_batch_size = ")]
    config.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return project


def run(project: Path, *words: str) -> str:
    """Run this environment's Python and return its output; fail when it fails."""
    path = os.pathsep.join(map(str, (project / "src", project, ROOT)))
    done = subprocess.run(
        [sys.executable, *words],
        cwd=project,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": SUBMIT_ARGS, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=2_400,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    return done.stdout


@pytest.mark.journey  # in `make test`: other users' files, in test_foreign_jobs.py
def test_its_linters_have_nothing_to_say_about_the_users_files(
    project: Path, mypy_cache: Path
) -> None:
    run(project, "-m", "ruff", "check", "--no-cache", ".")
    run(project, "-m", "ruff", "format", "--no-cache", "--check", ".")
    run(project, "-m", "mypy", "--strict", "--cache-dir", str(mypy_cache))


@pytest.mark.spark
def test_every_flight_comes_out_as_pandas_computes_it(
    project: Path, guarantee: str, queue_rows: Path, flights: pd.DataFrame, tmp_path: Path
) -> None:
    outcome_file = tmp_path / "outcome.pickle"
    print(run(project, str(FOLDER / "journey.py"), str(queue_rows), str(outcome_file)))
    outcome = pickle.loads(outcome_file.read_bytes())

    assert outcome["exit_code"] == 0
    assert outcome["rows_in"] == len(flights)
    assert outcome["queue_tablets"] == reference.TABLETS
    found: Counter[tuple[object, ...]] = outcome["rows"]
    assert found.total() == len(flights)
    # Only the idempotent output knows which row of the queue a row came from.
    has_key = guarantee == "idempotent"
    assert (outcome["columns"][:2] == ["tablet_index", "row_index"]) == has_key
    wanted = Counter(reference.expected(flights, positions=has_key))
    assert first(wanted - found) == first(found - wanted) == []
    if has_key:
        per_tablet = len(flights) // reference.TABLETS
        assert sorted(row[:2] for row in found.elements()) == [
            (tablet, row) for tablet in range(reference.TABLETS) for row in range(per_tablet)
        ]


def first(rows: Counter[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return a few of ``rows`` in order, so that a missing row faces the one in its place."""
    return sorted(rows, key=str)[:5]
