"""A generated job is rehearsed: one deliberate change is found, and without one it says equal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from local_extensions.versions import SPARK, SPARK_VERSIONS, pin
from minicluster import testing as minicluster
from tests.support.examples import example
from tests.support.helpers import unconnected
from tests.support.jvm import submit_args
from tests.support.project import ROOT, generate
from tests.support.read_requests import READS
from tests.support.upgrades import git
from ytstream.schema.table_schema import table_schema
from ytstream_tools.demo.job_sample import counted
from ytstream_tools.replay.batch_capture import TEST
from ytstream_tools.replay.batch_rows import NUMBER, PARTITION, QUEUE, CapturedBatch
from ytstream_tools.replay.rehearsal import DIFFERS
from ytstream_tools.replay.version_run import ClusterInput, RehearsedVersion, replay

CHANGES = {
    "map": ("EUR_PER_1000_USD = 908", "EUR_PER_1000_USD = 909", "price_eur"),
    "join": ('"seller"', '(-F.col("seller")).alias("seller")', "seller"),
    "window": ('F.sum("price")', 'F.max("price")', "total"),
}
"""One change of a value in transform(), and the column that it changes."""
CASES = [
    *product(CHANGES, [True, False], [SPARK]),
    *(
        pytest.param("window", False, name, marks=pytest.mark.other_spark)
        for name in SPARK_VERSIONS
        if name != SPARK
    ),
]
"""What is rehearsed, whether it is changed, and the Spark of the deployed version."""


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.spark
def test_a_version_runs_over_the_rows_of_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sample of the journeys below: one version, whose outputs are those that are expected."""
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    made, project = example("transactional", "map", rejects=True), generate(tmp_path)
    queue = "//home/ytstream/bids"
    sent = made.sample.make(200)
    rows = [{**row, QUEUE: queue, PARTITION: n % 3, NUMBER: n} for n, row in enumerate(sent)]
    schema = table_schema(made.job.queue_columns).to_yson_type()
    given = ClusterInput(
        [CapturedBatch("1-0", rows[:150]), CapturedBatch("1-1", rows[150:])],
        [],
        {queue: {"schema": schema, "tablet_count": 3}},
    )
    version = RehearsedVersion("this", "bids_stream", project, project / "config/local.toml")
    found = replay(version, given, unconnected("transactional"), tmp_path)
    assert [*found] == ["output", "rejected"]
    columns = made.job.output_columns["output"]
    assert counted(found["output"].rows, columns) == made.sample.wanted(made.job, sent)
    assert len(found["rejected"].rows) == len(sent) - len(found["output"].rows) > 0
    assert {*found["rejected"].rows[0]} == {"tablet_index", "row_index", "reason", "row"}
    assert found["rejected"].key == ["tablet_index", "row_index"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize(("kind", "is_changed", "deployed"), CASES)
def test_a_change_is_found_and_nothing_else(
    tmp_path: Path, environments: dict[str, Path], kind: str, is_changed: bool, deployed: str
) -> None:
    project = generate(tmp_path, processing=kind)
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "deployed")
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(asked, cwd=project, capture_output=True, text=True, check=True)
    commit = done.stdout.strip()
    before, after, column = CHANGES[kind]
    if is_changed:
        file = project / "src/bids_stream/transform.py"
        text = file.read_text()
        assert text.count(before) == 1
        file.write_text(text.replace(before, after))
    with minicluster.start() as production:
        environment = {
            **os.environ,
            "YT_PROXY": production.http,
            "YTSTREAM_SUBMIT_ARGS": submit_args(),
            "PYTHONPATH": os.pathsep.join(
                [str(project / "src"), str(project), str(ROOT), os.environ.get("PYTHONPATH", "")]
            ),
        }
        python = str(environments[SPARK] / "bin/python")
        made = [python, "-m", "tests.template.production", production.http, "20", "100", commit]
        subprocess.run(made, cwd=project, env=environment, check=True)
        production.client.journal.clear()
        done = subprocess.run(
            [
                *(python, "-m", "bids_stream", "rehearse", "--batches", "20"),
                *("--python", environments[deployed] / "bin/python"),
            ],
            cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        requests = {entry.method for entry in production.client.journal()}
    said = done.stdout
    assert done.returncode == (DIFFERS if is_changed else 0), said + done.stderr
    assert "select_rows" in requests
    assert requests <= READS
    assert "read 2000 rows of 20 batches" in said
    sparks = re.findall(r"20 batches on a minicluster, Spark (.*)$", said, re.MULTILINE)
    assert sparks == [pin("pyspark", deployed), pin("pyspark", SPARK)]
    (counts,) = re.findall(r"^output: (\d+) rows before, (\d+) after: (.*)$", said, re.MULTILINE)
    assert counts[0] == counts[1] != "0"
    assert said.splitlines()[-1] == ("not equal" if is_changed else "equal")
    if is_changed:
        # Rows without a key are paired by what they share: some stay alone.
        alone = r"(\d+)" if kind == "join" else "(0)"
        assert re.fullmatch(rf"[1-9]\d* changed, {alone} only before, \1 only after", counts[2])
        assert column in re.findall(r"^    (\w+) ", said, re.MULTILINE)
    else:
        assert counts[2] == "equal"
    listed = ["git", "status", "--porcelain"]
    left = subprocess.run(listed, cwd=project, capture_output=True, text=True, check=True).stdout
    assert left == (" M src/bids_stream/transform.py\n" if is_changed else "")


def test_the_test_of_a_captured_batch_passes_the_projects_linter(tmp_path: Path) -> None:
    project = generate(tmp_path)
    folder = project / "tests/captured/batch_7_12"
    folder.mkdir(parents=True)
    call = "run_through(stream, Path(__file__).parent)"
    text = TEST.format(what="Batch 7-12", proxy="hahn", name="batch_7_12", call=call)
    (folder / "test_batch_7_12.py").write_text(text, encoding="utf-8")
    for words in (("check",), ("format", "--check")):
        line = [sys.executable, "-m", "ruff", *words, str(folder)]
        done = subprocess.run(line, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
