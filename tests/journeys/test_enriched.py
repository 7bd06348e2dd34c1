"""A dictionary and a register, built by `make reference` and looked up by key, equal to pandas."""

from __future__ import annotations

import pickle
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import Generate
from tests.journeys import make_commands
from tests.journeys.enriched.shapes import SHAPES, expected
from tests.journeys.make_commands import edit
from tests.support.project import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.journey]

FOLDER = ROOT / "tests" / "journeys" / "enriched"
JOB = {
    "import OUTPUTS, QUEUE": "import OUTPUTS, QUEUE, REFERENCES",
    "import REJECT, transform": "import transform",
    "    reject=REJECT,\n": "    references=REFERENCES,\n",
}
"""Edits of the generated files that are not rewritten as a whole."""
SPLIT = {
    "import transform\n": "import outputs, transform\n",
    "    transform=transform,\n": "    transform=transform,\n    split=outputs,\n",
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_killed_job_finds_what_pandas_finds(
    generate: Generate, name: str, tmp_path: Path
) -> None:
    shape, root = SHAPES[name], f"//home/{name}"
    project = generate(project_name=name, queue_paths=f"{root}/raw", cypress_root=f"{root}/job")
    for file in ("tables.py", "transform.py"):
        shutil.copy(FOLDER / name / file, project / "src" / name / file)
    edit(project / "src" / name / "job.py", JOB)
    if name == "positions":
        edit(project / "src" / name / "job.py", SPLIT)
    config = project / "config" / "local.toml"
    edit(config, {f'rejected = "{root}/job/rejected"\n': ""})
    with config.open("a", encoding="utf-8") as opened:
        opened.write(f'\n[references]\n{shape.reference} = "{root}/{shape.reference}"\n')
    found = tmp_path / "outcome.pickle"
    said = make_commands.run(
        project, Path(sys.prefix), str(FOLDER / "played.py"), name, name, str(found)
    )
    print(said)
    outcome = pickle.loads(found.read_bytes())
    rows = shape.rows(outcome["rows_in"])
    wanted = expected(shape, rows)
    assert (outcome["kills"], outcome["restarts"], outcome["ways"]) == (1, 1, ["keys"])
    assert outcome["outcomes"] == {"output": (len(wanted), 0, 0)}
    assert 0 < outcome["missing"] < len(rows)
