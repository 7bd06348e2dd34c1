"""Jobs of other people's data: with the user's files replaced, `make lint test demo` passes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from local_extensions.versions import SPARK
from tests.conftest import Generate
from tests.journeys.make_commands import LINT_TEST_DEMO, edit, module, result_of
from tests.support import all_types, hostile_shell
from tests.support.project import OPTIONS, ROOT, generate
from tests.support.sparks import OLDEST
from tools.overlay import overlay
from ytstream.schema.columns import resolved, type_name

FOLDER = ROOT / "tests" / "journeys"


class Foreign(NamedTuple):
    """A job and the answers it is made with.

    Its user's files are in ``<name>/<processing>``, and in ``<name>`` what several jobs share.
    """

    name: str
    processing: str
    guarantee: str
    spark: str
    package: str
    """A package from PyPI and the file of it that goes into sample/."""
    data: str

    @property
    def folder(self) -> Path:
        """The user's files, flat."""
        return FOLDER / self.name / self.processing


QUAKES = "hvsampledata", "_data/earthquakes.csv"
PENGUINS = "palmerpenguins", "data/penguins-raw.csv"
JOBS = (
    Foreign("quakes", "map", "transactional", SPARK, *QUAKES),
    Foreign("quakes", "window", "transactional", OLDEST, *QUAKES),
    Foreign("penguins", "join", "at_least_once", SPARK, *PENGUINS),
    Foreign("penguins", "deduplicate", "at_least_once", SPARK, *PENGUINS),
    Foreign("quakes", "aggregate", "transactional", OLDEST, *QUAKES),
    Foreign("quakes", "merge", "transactional", SPARK, *QUAKES),
    Foreign("quakes", "sessions", "transactional", SPARK, *QUAKES),
)

PLACES = {
    "rows.py": "sample/rows.py",
    "expected.py": "sample/expected.py",
    "unit.py": "tests/test_transform.py",
}
"""Where the user's files are in a project, besides those of the package."""

SMALLER = {
    "max_rows_per_partition = 2_000": "max_rows_per_partition = 500",
    "dyn_batch_size = 1_000": "dyn_batch_size = 250",
}


def test_there_is_a_job_for_each_kind_of_processing() -> None:
    assert {job.processing for job in JOBS} == {*OPTIONS["processing"]}


def test_one_job_has_columns_of_every_type_in_its_queue_and_in_its_output() -> None:
    tables = module(JOBS[0].folder / "tables.py")
    every = {type_name(column.type) for column in all_types.job("map").output_columns["output"]}
    for described in (tables.QUEUE, tables.OUTPUTS["output"]):
        columns = resolved("", described)
        assert {type_name(column.type) for column in columns} == every
        assert {column.required for column in columns} == {True, False}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.name}-{job.processing}")
def test_its_lint_tests_and_demo_pass(
    generate: Generate, installed: dict[str, Path], job: Foreign
) -> None:
    _make(LINT_TEST_DEMO, generate, installed, job)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.spark
def test_the_demo_with_columns_of_every_type_passes_in_a_strange_environment(
    environments: dict[str, Path], tmp_path: Path
) -> None:
    """One job stands for all in `make test`: everything that a stranger may have is there."""
    job = JOBS[0]
    (folder := tmp_path / hostile_shell.FOLDER).mkdir()
    # Python takes its folders from the name that it is called by: Spark is in the folder, too.
    (folder / "packages").symlink_to(environments[job.spark])
    environment = overlay(folder / "packages", folder / "environment")
    project = _project(lambda **answers: generate(folder, **answers), job)
    former = os.umask(0o077)
    try:
        shell = hostile_shell.environment(tmp_path / "of others")
        _verify(result_of(project, environment, ["demo"], shell), job)
    finally:
        os.umask(former)


def _make(
    targets: Sequence[str], generate: Generate, installed: dict[str, Path], job: Foreign
) -> None:
    _verify(result_of(_project(generate, job), installed[job.spark], targets), job)


def _project(generate: Generate, job: Foreign) -> Path:
    project = generate(
        project_name=job.name,
        processing=job.processing,
        guarantee=job.guarantee,
        spark_version=job.spark,
        queue_paths=f"//home/{job.name}/raw",
        cypress_root=f"//home/{job.name}/job",
    )
    for file in (*job.folder.parent.glob("*.py"), *job.folder.glob("*.py")):
        shutil.copy(file, project / PLACES.get(file.name, f"src/{job.name}/{file.name}"))
    # A smaller backlog in the demo and in the test that kills the job: the rows are wide.
    edit(project / "config" / "local.toml", SMALLER)
    data = _data(job)
    shutil.copy(data, project / "sample" / data.name)
    return project


def _verify(result: Mapping[str, str], job: Foreign) -> None:
    assert (result["guarantee"], result["processing"]) == (job.guarantee, job.processing)
    assert int(result["rows_out"]) > 0
    assert (result["lost"], result["kills"], result["restarts"]) == ("0", "1", "1")


def _data(job: Foreign) -> Path:
    """Return a file that the package ships; its own functions would load it as a data frame."""
    spec = find_spec(job.package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / job.data
