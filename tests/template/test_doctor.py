"""Doctor has nothing to say about a generated job, and its page shows what it prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from local_extensions import wheels
from tests.support.project import ROOT
from ytstream_doctor import command_line
from ytstream_doctor.rules import RULES

PAGE = ROOT / "docs/doctor.md"


def test_nothing_is_found_in_a_generated_job(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["doctor", str(project)]) == 0
    shown = capsys.readouterr().out
    assert "a job of ytstream" in shown
    assert shown.endswith("nothing was found\n")


def test_the_page_shows_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, language in (("enrich.py", "python"), ("run.sh", "bash")):
        (block,) = re.findall(rf"`{name}`:\n\n```{language}\n(.*?)```", page, re.DOTALL)
        (tmp_path / name).write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert command_line.main(["doctor", "."]) == 1
    (shown,) = re.findall(r"```text\n\$ python -m ytstream doctor \.\n(.*?)```", page, re.DOTALL)
    assert capsys.readouterr().out == shown


def test_the_page_has_every_rule() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rules = re.findall(r"^\| `([a-z-]+)` \| (.*?) \|", page, re.MULTILINE)
    assert dict(rules) == {rule.name: rule.rows for rule in RULES.values()}


@pytest.mark.thorough
@pytest.mark.slow
def test_beside_an_old_job_it_needs_neither_spark_nor_spyt(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\nmake dist\n(.*?)```", page, re.DOTALL)
    for package in ("ytstream", "ytstream-doctor"):
        wheels.build(ROOT / "packages" / package, tmp_path / "dist")
    (tmp_path / "job.py").write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    script = block.replace("PATH", "job.py").replace("python3", shlex.quote(sys.executable), 1)
    environment = {**os.environ, "PYTHONPATH": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "queue-key: rows are lost" in done.stdout
    (packages,) = (tmp_path / ".venv-doctor").glob("lib/python*/site-packages")
    assert not [
        each.name for each in packages.iterdir() if re.match("pyspark|spyt|py4j", each.name)
    ]
