"""Where things are, what the template offers, and how to generate from it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from cookiecutter.main import cookiecutter

from local_extensions.answers import Answers, found, shortened
from local_extensions.command_line import typed
from local_extensions.versions import SPARK

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "{{cookiecutter.project_slug}}"
YTSTREAM = ROOT / "packages" / "ytstream" / "src" / "ytstream"
TOOLS = ROOT / "packages" / "ytstream-tools" / "src" / "ytstream_tools"
DOCTOR = ROOT / "packages" / "ytstream-doctor" / "src" / "ytstream_doctor"
MINICLUSTER = ROOT / "packages" / "minicluster" / "src" / "minicluster"
CONTEXT: dict[str, Any] = json.loads((ROOT / "cookiecutter.json").read_text(encoding="utf-8"))
OPTIONS = {name: value for name, value in CONTEXT.items() if not name.startswith("_")}
"""The options in their order; the value is a list of choices, or a default."""
DEFAULTS = {
    **{name: value[0] if isinstance(value, list) else value for name, value in OPTIONS.items()},
    "project_slug": "bids-stream",
    "queue_paths": "//home/ytstream/bids",
}
"""Answers that are accepted, one choice each."""


def problems(answers: Answers) -> list[str]:
    """Return why these answers are refused, each reason on one line."""
    return shortened(found(answers))


QUEUES = {"single": "//home/ytstream/bids", "multi": "//home/east/bids //home/west/bids"}
Variant = tuple[str, str, str]
VARIANTS: list[Variant] = [
    (guarantee, processing, queues)
    for guarantee, processing, queues in itertools.product(
        OPTIONS["guarantee"], OPTIONS["processing"], QUEUES
    )
    if not problems({**DEFAULTS, "guarantee": guarantee, "processing": processing})
]
"""All pairs of guarantee and processing that are offered, with one and with two queues."""


def variant_answers(variant: Variant) -> dict[str, str]:
    """Return the answers that generate ``variant``."""
    guarantee, processing, queues = variant
    return {
        "guarantee": guarantee,
        "processing": processing,
        "queue_paths": QUEUES[queues],
    }


STATIC = {
    "tables.py": {"OUTPUTS = {": 'STATIC = ("output",)\nOUTPUTS = {'},
    "job.py": {
        "OUTPUTS, QUEUE": "OUTPUTS, QUEUE, STATIC",
        "outputs=OUTPUTS": "outputs=OUTPUTS,\n    static=STATIC",
    },
}
"""Edits of an owner's that make the first output static, by file of the package."""


def make_static(root: Path) -> None:
    """Make the first output of a project static; its key columns become ordinary ones."""
    for name, edits in STATIC.items():
        file = root / "src/bids_stream" / name
        text = file.read_text(encoding="utf-8")
        for before, after in edits.items():
            assert text.count(before) == 1
            text = text.replace(before, after)
        first, end, rest = text.partition("\n    ],")
        text = first.replace("key=True", "required=True") + end + rest
        file.write_text(text, encoding="utf-8")


def user_config(folder: Path) -> Path:
    """Return a cookiecutter configuration that keeps its files in ``folder``, not in the home."""
    file = folder / "cookiecutter.yaml"
    folders = {"cookiecutters_dir": f"{folder}/templates", "replay_dir": f"{folder}/replay"}
    file.write_text(json.dumps(folders), encoding="utf-8")
    return file


def environment_of(spark: str) -> Path:
    """Return the environment of a Spark version. This process runs in the default's."""
    if spark == SPARK:
        return Path(sys.prefix)
    given = os.environ.get(f"YTSTREAM_VENV_{spark.replace('.', '_')}")
    return Path(given or ROOT / f".venv-{spark}")


def keep_in_state(project: Path) -> None:
    """Let a generated `aggregate` keep its totals in Spark's state, as one of 1.0.0 does."""
    (source,) = (path.parent for path in (project / "src").glob("*/job.py"))
    for name in ("tables.py", "transform.py"):
        shutil.copyfile(ROOT / "tests/support/in_state" / name, source / name)
    job = (source / "job.py").read_text(encoding="utf-8")
    reject = "    reject=REJECT,\n"
    changed = job.replace(reject, f"{reject}    shuffle_partitions=8,\n")
    (source / "job.py").write_text(changed, encoding="utf-8")


def generate(folder: Path, **answers: str) -> Path:
    """Generate a project in ``folder`` and return its root; options left out take their defaults.

    Values are taken literally, Jinja included.
    """
    return Path(
        cookiecutter(
            str(ROOT),
            no_input=True,
            extra_context={name: typed(value) for name, value in answers.items()},
            output_dir=str(folder),
            config_file=str(user_config(folder)),
        )
    )
