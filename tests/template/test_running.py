"""Generated projects at work: their own tests, on the real SPYT of each Spark version."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from local_extensions.versions import SPARK, SPARK_VERSIONS
from tests.support.jvm import submit_args
from tests.support.project import (
    STATIC,
    VARIANTS,
    Variant,
    generate,
    make_static,
    variant_answers,
)

KILLED = [
    variant
    for number, pair in enumerate(dict.fromkeys(variant[:2] for variant in VARIANTS))
    for variant in VARIANTS
    if variant == (*pair, ("single", "multi")[number % 2])
]
"""One of each guarantee and kind is run, killed and restarted, with one queue and several in turn.
"""


def test_every_guarantee_and_kind_is_killed_with_one_queue_or_several() -> None:
    assert len(VARIANTS) == 26
    assert len(KILLED) == 13
    assert {variant[2] for variant in KILLED} == {"single", "multi"}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize("spark", SPARK_VERSIONS)
@pytest.mark.parametrize("variant", KILLED, ids="-".join)
def test_its_own_tests_pass(
    tmp_path: Path, installed: dict[str, Path], variant: Variant, spark: str
) -> None:
    answers = {**variant_answers(variant), "spark_version": spark}
    _run_its_tests(generate(tmp_path, **answers), installed[spark])


MORE = {
    "src/bids_stream/tables.py": {
        "OUTPUTS = {": 'STATIC = ("expensive",)\nOUTPUTS = {',
        "    # The rows that REJECT": '    "expensive": [],\n    # The rows that REJECT',
    },
    "src/bids_stream/job.py": {
        **STATIC["job.py"],
        "import REJECT, transform": "import REJECT, outputs, transform",
        "    reject=REJECT": "    split=outputs,\n    reject=REJECT",
    },
    "sample/__init__.py": {"others={": 'others={"expensive": expected.expensive, '},
    "config/local.toml": {"[outputs]": '[outputs]\nexpensive = "//home/ytstream/job/expensive"'},
}
"""Edits that add a static output beside the first one, with outputs() of docs/operations.md."""
_EXPENSIVE = """

def expensive(rows: Sequence[Row]) -> Iterator[Row]:
    return (row for row in expected(rows) if row["price_eur"] > 100_000)
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize(
    ("guarantee", "processing"),
    [("transactional", "window"), ("idempotent", "map"), ("at_least_once", "map")],
)
def test_its_own_tests_pass_with_a_static_output(
    tmp_path: Path, installed: dict[str, Path], guarantee: str, processing: str
) -> None:
    project = generate(tmp_path, guarantee=guarantee, processing=processing)
    make_static(project)
    _run_its_tests(project, installed[SPARK])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_its_own_tests_pass_with_a_static_output_beside_the_first_one(
    tmp_path: Path, installed: dict[str, Path]
) -> None:
    project = generate(tmp_path)
    _edit(project, MORE)
    page = (project / "docs/operations.md").read_text()
    (outputs,) = re.findall(r"^```python\n(def outputs\(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for name, code in {
        "src/bids_stream/transform.py": f"\n\n{outputs}",
        "src/bids_stream/tables.py": '\nOUTPUTS["expensive"] = OUTPUTS["output"]\n',
        "sample/expected.py": _EXPENSIVE,
    }.items():
        with (project / name).open("a") as file:
            file.write(code)
    _run_its_tests(project, installed[SPARK])


def _edit(project: Path, edits: Mapping[str, Mapping[str, str]]) -> None:
    """Replace texts that the files have once."""
    for name, texts in edits.items():
        text = (project / name).read_text()
        for before, after in texts.items():
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        (project / name).write_text(text)


def _run_its_tests(project: Path, environment: Path, *words: str) -> None:
    done = subprocess.run(
        [environment / "bin/python", "-m", "pytest", "-q", *words],
        cwd=project,
        env={
            **os.environ,
            "YTSTREAM_SUBMIT_ARGS": submit_args(),
            "PYTHONPATH": os.pathsep.join([str(project / "src"), str(project)]),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-20_000:]


_FIRST = {"FIRST_BID_US = 1_704_067_200_000_000": "FIRST_BID_US = 1_577_836_800_000_000"}
"""Another column of the event time, and rows over years: texts of transform.py, rows.py and
expected.py by processing, which each of them has once."""
OTHER_TIMES: dict[str, dict[str, dict[str, str]]] = {
    "window": {
        "src/bids_stream/transform.py": {
            'WINDOW = "10 seconds"': 'WINDOW = "1 day"',
            'LATENESS = "10 seconds"': 'LATENESS = "3 days"',
            'AHEAD = "5 seconds"': 'AHEAD = "3 days"',
        },
        "sample/rows.py": {
            "randrange(1_000, 20_000)": "randrange(60, 1_200) * 1_000_000",
            **_FIRST,
        },
        "sample/expected.py": {
            "\nWINDOW = 10_000_000": "\nWINDOW = 86_400_000_000",
            "\nLATENESS = 10_000_000": "\nLATENESS = 259_200_000_000",
        },
    },
    "deduplicate": {
        "src/bids_stream/transform.py": {
            'WITHIN = "10 seconds"': 'WITHIN = "300 days"',
            'AHEAD = "5 seconds"': 'AHEAD = "300 days"',
        },
        "sample/rows.py": {"randrange(1_000, 20_000)": "randrange(3_600) * 10_000_000", **_FIRST},
        "sample/expected.py": {},
    },
    "sessions": {
        "src/bids_stream/transform.py": {'AHEAD = "1 minute"': 'AHEAD = "600 seconds"'},
        "sample/rows.py": _FIRST,
        "sample/expected.py": {},
    },
}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "processing",
    ["window", *(pytest.param(name, marks=pytest.mark.journey) for name in [*OTHER_TIMES][1:])],
)
def test_test_transform_fits_other_times_and_names(
    tmp_path: Path, environments: dict[str, Path], processing: str
) -> None:
    project = generate(tmp_path, processing=processing)
    _edit(project, OTHER_TIMES[processing])
    for name in [*OTHER_TIMES[processing], "src/bids_stream/tables.py"]:
        text = (project / name).read_text()
        assert "date_time" in text
        (project / name).write_text(text.replace("date_time", "placed_at"))
    _run_its_tests(project, environments[SPARK], "tests/test_transform.py")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["-m", "bids_stream", "run"], ["main.py"]])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_imports_ends_in_one_line(
    tmp_path: Path, words: list[str], number: signal.Signals
) -> None:
    project = generate(tmp_path)
    (spyt := tmp_path / "spyt").mkdir()
    (spyt / "version.py").write_text('__version__ = "2.11.2"\n')
    (spyt / "__init__.py").write_text(f"import os\nos.kill(os.getpid(), {number})\n")
    path = os.pathsep.join(map(str, (tmp_path, project / "src", project)))
    done = subprocess.run(
        [sys.executable, *words],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 128 + number
    # The JVM that has begun may have said something, too.
    assert "stopped before the start" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr
