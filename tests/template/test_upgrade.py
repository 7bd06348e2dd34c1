"""Generated projects follow the template: `cruft create` and `cruft update` from a local clone."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT, user_config


def git(folder: Path, *words: str) -> None:
    """Run git with an identity of its own, whatever the machine's settings."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A repository with the template's files as they are now, committed or not."""
    clone = tmp_path / "template"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            (clone / name).write_bytes((ROOT / name).read_bytes())
        else:
            (clone / name).unlink(missing_ok=True)
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "as it stands")
    return clone


def cruft(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cruft", *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_project_takes_over_a_change_and_keeps_its_own(tmp_path: Path, template: Path) -> None:
    answers = {"queue_paths": "//b/q //a/q", "author": 'О\'Нил "x"'}
    config = str(user_config(tmp_path))
    words = ("--no-input", "--config-file", config, "--extra-context", json.dumps(answers))
    cruft(tmp_path, "create", str(template), *words)
    project = tmp_path / "bids-stream"
    stored = json.loads((project / ".cruft.json").read_text())["context"]["cookiecutter"]
    assert stored["queue_paths"] == "//a/q //b/q"

    mine = project / "src/bids_stream/transform.py"
    mine.write_text(mine.read_text() + "\n# mine\n")
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "generated")

    ignored = template / "{{cookiecutter.project_slug}}/.gitignore"
    ignored.write_text(ignored.read_text() + "/new-in-the-template/\n")
    git(template, "commit", "--quiet", "--all", "--message", "a change")

    cruft(project, "update", "--skip-apply-ask")
    assert "/new-in-the-template/" in (project / ".gitignore").read_text()
    assert mine.read_text().endswith("\n# mine\n")
    cruft(project, "check")


@pytest.mark.slow
def test_a_conflict_is_left_for_the_user_and_the_users_files_are_not_touched(
    tmp_path: Path, template: Path
) -> None:
    words = ("--no-input", "--config-file", str(user_config(tmp_path)))
    cruft(tmp_path, "create", str(template), *words)
    project = tmp_path / "bids-stream"
    mine = project / "src/bids_stream/job.py"
    mine.write_text(mine.read_text().replace('name="bids-stream"', 'name="mine"'))
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "generated")

    theirs = template / "templates/job/map.py"
    theirs.write_text(theirs.read_text().replace("    name=", "    most_failures=6,\n    name="))
    columns = template / "templates/tables/map.py"
    columns.write_text(columns.read_text() + "\n# of the template\n")
    git(template, "commit", "--quiet", "--all", "--message", "a change beside the user's")

    cruft(project, "update", "--skip-apply-ask")
    assert 'name="mine"' in mine.read_text()
    # cruft leaves what it could not apply beside the file.
    assert "+    most_failures=6," in mine.with_name("job.py.rej").read_text()
    assert "# of the template" not in (project / "src/bids_stream/tables.py").read_text()


@pytest.mark.slow
def test_a_project_of_a_pair_that_is_offered_no_more_gets_another_guarantee(
    tmp_path: Path, template: Path
) -> None:
    """By the command of docs/upgrading.md."""
    rule = template / "packages/ytstream/src/ytstream/pairs.py"
    today = rule.read_text()
    rule.write_text("def problem(guarantee, processing):\n    return None\n")
    git(template, "commit", "--quiet", "--all", "--message", "before the rule")
    answers = json.dumps({"guarantee": "at_least_once", "processing": "aggregate"})
    words = ("--no-input", "--config-file", str(user_config(tmp_path)), "--extra-context", answers)
    cruft(tmp_path, "create", str(template), *words)
    project = tmp_path / "bids-stream"
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "generated")
    rule.write_text(today)
    git(template, "commit", "--quiet", "--all", "--message", "the rule")

    page = (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ *cruft (update .*variables.*)$", page, re.MULTILINE)
    cruft(project, *shlex.split(line), "--skip-apply-ask")
    assert (project / "ytstream/pairs.py").read_text() == today
    assert 'guarantee="transactional"' in (project / "src/bids_stream/job.py").read_text()
    assert "exactly once, by transaction" in (project / "docs/operations.md").read_text()
