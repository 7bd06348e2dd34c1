"""Jobs whose data lie at an edge, made by a seeded generator: every test that is shipped fits them.

Times over twenty years and in many zones, windows of a local day over the changes of the clocks,
sessions over midnight, floats that are NaN or infinite, a static output beside dynamic ones. The
user's files replace those of a generated project, its tests stay as they are shipped; then more
rows go through the job, and all its tables are compared with what pandas makes of the same rows.
"""

from __future__ import annotations

import json
import math
import pickle
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from local_extensions.versions import SPARK
from tests.conftest import Generate
from tests.journeys.make_commands import LINT_TEST_DEMO, edit, result_of, run
from tests.journeys.whole import TABLETS
from tests.support.project import ROOT
from tests.support.sparks import OLDEST
from ytstream.schema.columns import REJECTED_COLUMNS, resolved, type_name

FOLDER = ROOT / "tests" / "journeys"
POSITION = ["queue_id", "tablet_index", "row_index"]


class Edge(NamedTuple):
    """A job whose user's files are in ``<name>/``, and the answers it is made with."""

    name: str
    processing: str
    guarantee: str
    spark: str
    further: tuple[str, ...] = ()
    """Outputs besides "output" and "rejected", in the order of OUTPUTS."""
    static: tuple[str, ...] = ()

    @property
    def reference(self) -> Any:
        """What pandas makes of rows that only the test knows."""
        return import_module(f"tests.journeys.{self.name}.reference")

    def of(self, file: str) -> Any:
        """Return a file of the user's."""
        return import_module(f"tests.journeys.{self.name}.{file}")


JOBS = (
    Edge("tides", "aggregate", "transactional", SPARK),
    Edge("meters", "window", "at_least_once", OLDEST),
    Edge("nightshift", "sessions", "transactional", SPARK),
    Edge("detector", "map", "idempotent", OLDEST, ("saturated",)),
    Edge("receipts", "deduplicate", "at_least_once", SPARK, ("archive", "returns"), ("archive",)),
)
PLACES = {"rows.py": "sample/rows.py", "expected.py": "sample/expected.py"}
a_job = pytest.mark.parametrize("job", JOBS, ids=[job.name for job in JOBS])


@pytest.fixture
def make(generate: Generate) -> Any:
    """Return what makes the project of a job, with the user's files and edits in place."""

    def made(job: Edge) -> Path:
        project = generate(
            project_name=job.name,
            processing=job.processing,
            guarantee=job.guarantee,
            spark_version=job.spark,
            queue_paths=" ".join(job.reference.QUEUES),
            cypress_root=f"//home/{job.name}/job",
        )
        for file in (FOLDER / job.name).glob("*.py"):
            if file.name != "reference.py":
                place = PLACES.get(file.name, f"src/{job.name}/{file.name}")
                shutil.copy(file, project / place)
        _declare(project, job)
        return project

    return made


def _declare(project: Path, job: Edge) -> None:
    """Name further outputs as the README says."""
    if job.further:
        edit(
            project / f"src/{job.name}/job.py",
            {
                "REJECT, transform": "REJECT, outputs, transform",
                "    reject=REJECT,\n": "    reject=REJECT,\n    split=outputs,\n",
            },
        )
        others = "".join(f'        "{name}": expected.{name},\n' for name in job.further)
        rejected = '"rejected": expected.rejected'
        edit(
            project / "sample/__init__.py",
            {f"{{{rejected}}}": f"{{\n{others}        {rejected},\n    }}"},
        )
        for file in ("local", "production"):
            with (project / f"config/{file}.toml").open("a", encoding="utf-8") as config:
                for name in job.further:
                    config.write(f'{name} = "//home/{job.name}/job/{name}"\n')
    if job.static:
        edit(
            project / f"src/{job.name}/job.py",
            {
                "OUTPUTS, QUEUE": "OUTPUTS, QUEUE, STATIC",
                "outputs=OUTPUTS": "outputs=OUTPUTS,\n    static=STATIC",
            },
        )


@pytest.mark.slow
@a_job
def test_the_users_expected_rows_are_those_of_pandas(job: Edge) -> None:
    """Two computations that know nothing of each other; neither uses Spark."""
    rows = job.reference.frame()
    sent, user = _sent(rows), job.of("expected")
    for output, frame in job.reference.outputs(rows).items():
        if output == "rejected":
            kept_out = [(reason, _plain(row)) for reason, row in user.rejected(sent)]
            pairs = zip(frame["reason"], frame.index, strict=True)
            assert Counter(kept_out) == Counter((why, _plain(sent[at])) for why, at in pairs)
            continue
        maker = user.expected if output == "output" else getattr(user, output)
        names = [name for name in _columns(job, output) if name not in POSITION]
        made = [{name: row[name] for name in names} for row in maker(sent)]
        assert made
        assert _counted(made) == _counted(frame[names].to_dict("records")), output


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@a_job
def test_its_lint_tests_and_demo_pass(make: Any, installed: Mapping[str, Path], job: Edge) -> None:
    started = time.monotonic()
    result = result_of(make(job), installed[job.spark], LINT_TEST_DEMO)
    print(f"{job.name}: {time.monotonic() - started:.0f} s", result)
    assert (result["guarantee"], result["processing"]) == (job.guarantee, job.processing)
    assert int(result["rows_out"]) > 0
    assert (result["lost"], result["kills"], result["restarts"]) == ("0", "1", "1")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@a_job
def test_every_table_is_as_pandas_computes_it(
    make: Any, installed: Mapping[str, Path], job: Edge, tmp_path: Path
) -> None:
    rows = job.reference.frame()
    sent = _sent(rows)
    place = _places(job, rows)
    phase = rows["phase"] if "phase" in rows else pd.Series(0, index=rows.index)
    phases: list[dict[str, list[Mapping[str, Any]]]] = [{} for _ in range(phase.max() + 1)]
    for at, row in enumerate(sent):
        phases[phase[at]].setdefault(place[at][0], []).append(row)
    given, found = tmp_path / "rows.pickle", tmp_path / "outcome.pickle"
    given.write_bytes(pickle.dumps(phases))
    script = str(FOLDER / "whole.py")
    print(run(make(job), installed[job.spark], script, job.name, str(given), str(found)))
    outcome = pickle.loads(found.read_bytes())

    assert outcome["exit_code"] == 0
    assert outcome["rows_in"] == len(rows)
    assert all(count > 1 for count in outcome["tables"].values())
    assert outcome["tables"].keys() == {*job.static}
    wanted = job.reference.outputs(rows)
    assert outcome["outputs"].keys() == wanted.keys()
    for output, frame in wanted.items():
        made = [
            {**row, **dict(zip(POSITION, place[at], strict=True))}
            for at, row in zip(frame.index, frame.to_dict("records"), strict=True)
        ]
        names = _columns(job, output)
        if output == "rejected":  # the time is that of the batch
            names = [name for name in names if name != "time"]
            for at, row in zip(frame.index, made, strict=True):
                row["row"] = json.dumps(_as_json(job, sent[at]), sort_keys=True)
            for row in outcome["outputs"][output]:
                row["row"] = json.dumps(json.loads(row["row"]), sort_keys=True)
        assert made  # nothing is equal to nothing
        more = _counted({n: row[n] for n in names} for row in outcome["outputs"][output])
        less = _counted({name: row[name] for name in names} for row in made)
        assert _first(less - more) == _first(more - less) == [], output
        print(f"{output}: {len(made)} rows")


def _columns(job: Edge, output: str) -> list[str]:
    columns = job.of("tables").OUTPUTS[output]
    several = len(job.reference.QUEUES) > 1
    names = ["queue_id"] if several and columns is REJECTED_COLUMNS else []
    return names + [column.name for column in columns]


def _sent(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as they are put into a queue."""
    plain = rows.drop(columns=["queue", "phase"], errors="ignore").astype(object)
    plain = plain.where(plain.map(lambda value: value is not pd.NA), None)
    return plain.to_dict("records")  # type: ignore[no-any-return]


def _places(job: Edge, rows: pd.DataFrame) -> list[tuple[str, int, int]]:
    """Return queue, tablet and position of each row of the first phase, dealt out in turn."""
    behind = rows.groupby("queue").cumcount()
    return [
        (job.reference.QUEUES[queue], number % TABLETS, number // TABLETS)
        for queue, number in zip(rows["queue"], behind, strict=True)
    ]


def _as_json(job: Edge, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as `rejected` keeps it: no nulls, times and what JSON does not know as texts."""
    kinds = {c.name: type_name(c.type) for c in resolved("", job.of("tables").QUEUE)}
    texts: dict[str, Any] = {"timestamp": _moment, "uint64": str}
    return {
        name: _in_json(texts.get(kinds[name], lambda same: same)(value))
        for name, value in row.items()
        if value is not None
    }


def _moment(time_us: int) -> str:
    moment = datetime(1970, 1, 1) + timedelta(microseconds=time_us)
    return f"{moment.isoformat(timespec='microseconds')}Z"


def _in_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, list):
        return [_in_json(item) for item in value]
    if isinstance(value, dict):
        return {name: _in_json(item) for name, item in value.items() if item is not None}
    return value


def _counted(rows: Iterable[Mapping[str, Any]]) -> Counter[Any]:
    return Counter(map(_plain, rows))


def _plain(value: Any) -> Any:
    """Return a value that equals its like, by value alone; floats to nine digits."""
    if isinstance(value, Mapping):
        return tuple((str(name), _plain(item)) for name, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, float):
        return f"{value:.9g}"
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    return int(value)


def _first(rows: Counter[Any]) -> list[Any]:
    return sorted(rows, key=str)[:3]
