"""The Java program of CLIENTS.md, run as the page shows it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from minicluster import testing
from packages.minicluster.tests.support.java_values import class_path

PAGE = Path(__file__).parents[1] / "CLIENTS.md"
PROGRAM = re.search(r"```java\n(.*?)```.*?It prints `(.*?)`", PAGE.read_text(), re.DOTALL)


def _compiles() -> bool:
    """Whether this Java runs a source file: a JRE has no compiler."""
    listed = subprocess.run(["java", "--list-modules"], capture_output=True, text=True, check=True)
    return "jdk.compiler@" in listed.stdout


@pytest.mark.thorough
@pytest.mark.spark
def test_the_program_prints_what_the_page_says(fresh: testing.Running, tmp_path: Path) -> None:
    assert PROGRAM is not None
    if not _compiles():
        pytest.skip("the Java here is a JRE")
    source = tmp_path / "Bids.java"
    source.write_text(PROGRAM[1])
    words = ["java", "-cp", class_path(), str(source), fresh.http]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.strip() == PROGRAM[2], done.stderr
