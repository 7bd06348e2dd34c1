"""The way of a user: a new project, files of their own, real rows in, each one compared."""

from __future__ import annotations

import pickle
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.conftest import Generate
from tests.journeys import make_commands
from tests.journeys.flights import reference
from tests.journeys.make_commands import edit
from tests.support.project import OPTIONS, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.journey]
"""`make test` plays a foreign job of test_foreign_jobs.py."""

FOLDER = ROOT / "tests" / "journeys" / "flights"
QUEUE = "//home/airports/departures"
ROWS = 336_776
SLICE = 20_000
"""The first ones: three micro-batches as the project is generated."""
POSITION = ("tablet_index", "row_index")

CASES = {
    **{
        guarantee: ("idempotent" if guarantee == "idempotent" else "map", "map", guarantee)
        for guarantee in OPTIONS["guarantee"]
    },
    "totals": ("aggregate", "aggregate", "transactional"),
}
"""The user's folder of each case, its processing and its guarantee."""
JOB = {
    "import REJECT, transform": "import REJECT, outputs, transform",
    "    reject=REJECT,\n": "    reject=REJECT,\n    split=outputs,\n",
}
"""Edits of the generated files that are not rewritten as a whole."""
LARGE = {"max_rows_per_partition = 2_000": "max_rows_per_partition = 50_000"}


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    found = reference.read_flights()
    assert len(found) == ROWS
    return found


@pytest.fixture(scope="module")
def make(generate: Generate) -> Any:
    """Return what makes the project of a case, with the user's files in place."""

    def made(case: str) -> Path:
        folder, processing, guarantee = CASES[case]
        project = generate(
            project_name="Flights",
            processing=processing,
            guarantee=guarantee,
            queue_paths=QUEUE,
            cypress_root="//home/airports/flights",
        )
        for name in ("transform.py", "tables.py"):
            shutil.copy(FOLDER / folder / name, project / "src" / "flights" / name)
        if processing == "map":
            edit(project / "src" / "flights" / "job.py", JOB)
            for name in ("local", "production"):
                with (project / "config" / f"{name}.toml").open("a", encoding="utf-8") as config:
                    config.write('delayed = "//home/airports/flights/delayed"\n')
        return project

    return made


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def project(make: Any, case: str) -> Path:
    return Path(make(case))


def run(project: Path, *words: str) -> str:
    """Run this environment's Python and return its output; fail when it fails."""
    return make_commands.run(project, Path(sys.prefix), *words)


def test_its_linters_have_nothing_to_say_about_the_users_files(
    project: Path, mypy_cache: Path
) -> None:
    run(project, "-m", "ruff", "check", "--no-cache", ".")
    run(project, "-m", "ruff", "format", "--no-cache", "--check", ".")
    run(project, "-m", "mypy", "--strict", "--cache-dir", str(mypy_cache))


@pytest.mark.spark
@pytest.mark.parametrize("rows", [SLICE, ROWS])
def test_every_flight_comes_out_as_pandas_computes_it(
    make: Any, case: str, rows: int, flights: pd.DataFrame, tmp_path: Path
) -> None:
    project, chosen = make(case), flights.head(rows)
    if rows > SLICE:
        edit(project / "config" / "local.toml", LARGE)
        config = project / "config" / "local.toml"
        # The writes' size follows from the batches' when it is left out.
        kept = [
            line
            for line in config.read_text(encoding="utf-8").splitlines()
            if not line.startswith("dyn_batch_size = ")
        ]
        config.write_text("\n".join(kept) + "\n", encoding="utf-8")
    sent, found = tmp_path / "rows.pickle", tmp_path / "outcome.pickle"
    sent.write_bytes(pickle.dumps([{QUEUE: reference.queue_rows(chosen)}]))
    print(run(project, str(FOLDER.parent / "whole.py"), "flights", str(sent), str(found)))
    outcome = pickle.loads(found.read_bytes())

    assert outcome["exit_code"] == 0
    assert outcome["rows_in"] == rows
    assert len(outcome["batches"]) > 1  # a total that is kept running has been replaced
    outputs = outcome["outputs"]
    if CASES[case][1] == "aggregate":
        rejected = reference.outputs(chosen)["rejected"]
        cancelled = [row for row in rejected if row["reason"] == "never departed"]
        wanted = {"output": reference.totals(chosen), "rejected": cancelled}
    else:
        wanted = reference.outputs(chosen)
        assert rows == len(outputs["output"]) + len(outputs["rejected"])
        reasons = Counter(row["reason"] for row in outputs["rejected"])
        assert reasons == reference.rejected(chosen).dropna().value_counts().to_dict()
        assert {name: sum(batch[name] for batch in outcome["batches"]) for name in outputs} == {
            name: len(found) for name, found in outputs.items()
        }
    assert wanted.keys() == outputs.keys()
    for name, expected in wanted.items():
        assert expected  # nothing is equal to nothing
        # The time is the batch's. Only the idempotent outputs know which row of the queue a row
        # came from, and `rejected` does.
        unknown = {"time"} if name == "rejected" or case == "idempotent" else {"time", *POSITION}
        more, less = counted(outputs[name], unknown), counted(expected, unknown)
        assert first(less - more) == first(more - less) == [], name


@pytest.mark.spark
@pytest.mark.parametrize(
    "place",
    ["commit", "output", "delayed", "rejected"],
)
def test_a_kill_in_a_batch_of_three_outputs_leaves_all_of_it_or_nothing(
    make: Any, place: str, tmp_path: Path
) -> None:
    found = tmp_path / "outcome.pickle"
    print(run(make("transactional"), str(FOLDER / "killed.py"), place, str(found)))
    outcome = pickle.loads(found.read_bytes())
    assert (outcome["kills"], outcome["restarts"], outcome["rows_in"]) == (1, 1, SLICE)
    between, end = outcome["looks"]
    # The first batch was in all three tables, and nothing of the second in any.
    assert len(between["batches"]) == 1
    assert between["rows"] == between["batches"][0]
    assert all(between["rows"].values())
    assert len(end["batches"]) == 3
    assert all(all(batch.values()) for batch in end["batches"])
    totals = {name: sum(batch[name] for batch in end["batches"]) for name in end["rows"]}
    assert end["rows"] == totals
    assert end["rows"]["output"] + end["rows"]["rejected"] == SLICE
    assert outcome["outcomes"] == {name: (rows, 0, 0) for name, rows in totals.items()}


def counted(
    rows: Iterable[Mapping[str, Any]], without: Iterable[str]
) -> Counter[tuple[tuple[str, Any], ...]]:
    """Return how often each row is there, but for the columns ``without``."""
    return Counter(
        tuple((name, row[name]) for name in sorted(row) if name not in {*without}) for row in rows
    )


def first(rows: Counter[tuple[tuple[str, Any], ...]]) -> list[tuple[tuple[str, Any], ...]]:
    """Return a few of ``rows`` in order, so that a missing row faces the one in its place."""
    return sorted(rows, key=str)[:5]
