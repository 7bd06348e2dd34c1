"""A repository that has adopted a file: its linters, its own tests and its demo."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.project import generate

ROWS = 400


def _file(folder: Path) -> Path:
    file = folder / "orders.jsonl"
    rows = (
        {
            "id": f"order-{number}",
            "user": ("ann", "bob", "eve")[number % 3],
            "price": number * 0.5,
            "at": f"2024-03-01T{number // 60:02}:{number % 60:02}:00Z",
            "note": None if number % 5 else "привет",
            "tags": ["a"] * (number % 3),
        }
        for number in range(ROWS)
    )
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize(
    ("guarantee", "processing"),
    [
        ("transactional", "map"),
        ("idempotent", "map"),
        ("at_least_once", "window"),
        ("transactional", "deduplicate"),
        ("transactional", "aggregate"),
    ],
)
def test_an_adopted_job_is_approved_linted_tested_and_killed(
    tmp_path: Path, installed: dict[str, Path], guarantee: str, processing: str
) -> None:
    project = generate(tmp_path, guarantee=guarantee, processing=processing)
    python = installed["4.1"] / "bin/python"
    environment = {**os.environ, "PYTHONPATH": f"{project / 'src'}:{project}"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [python, "-m", *words],
            cwd=project, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}\n{done.stdout[-4_000:]}{done.stderr[-4_000:]}"
        return done.stdout

    run("bids_stream", "adopt", "--from", str(_file(tmp_path)))
    run("bids_stream", "approve")
    for words in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        run(*words)
    assert " skipped" not in run("pytest", "-q", "tests/test_transform.py")
    assert "lost=0" in run("bids_stream", "demo")
