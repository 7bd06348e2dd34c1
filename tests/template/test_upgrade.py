"""Generated projects follow the template: `cruft create` and `cruft update` from a local clone."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from local_extensions.versions import TEMPLATE_VERSION, pin, requirement
from tests.support.project import ROOT, user_config
from tests.support.upgrades import commit, cruft, cruft_said, git, template_as_it_stands


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A repository with the template's files as they are now, committed or not."""
    return template_as_it_stands(tmp_path)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text, f"{file}: {old}"
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def tree(project: Path) -> dict[str, str]:
    """Return the files of a project by their paths, git's own left out."""
    paths = sorted(path for path in project.rglob("*") if path.is_file())
    names = [(path.relative_to(project).as_posix(), path) for path in paths]
    return {
        name: path.read_bytes().decode(errors="backslashreplace")
        for name, path in names
        if not name.startswith(".git/")
    }


def change(template: Path) -> None:
    """Commit changes of each kind that an upgrade brings: to the extension, to the users' files."""
    extension = template / "local_extensions"
    edit(extension / "versions.py", 'Pin("ruff", "', 'Pin("ruff", "9')
    edit(
        extension / "text.py",
        "def markdown(",
        "def loud(value):\n    return value.upper()\n\n\ndef markdown(",
    )
    edit(extension / "extension.py", '"toml": text', '"loud": text.loud,\n            "toml": text')
    project = template / "{{cookiecutter.project_slug}}"
    edit(
        project / "README.md",
        "Responsible: {{ cookiecutter.author |",
        "By: {{ cookiecutter.author | loud |",
    )
    edit(project / "Makefile", "COUNT=N       how many", "COUNT=N       as many")
    for name in ("job", "tables", "transform"):
        file = template / f"templates/map/{name}.py"
        file.write_text(file.read_text() + "\n# of the template\n")
    edit(template / "templates/shared/sample.py", '"rejected": expected', '"refused": expected')
    git(template, "commit", "--quiet", "--all", "--message", "a change of each kind")


OF_1_0_0 = {
    "minicluster": ("testing",),
    "ytstream": ("REJECTED", "Column", "Job", "JobError", "checked_state", "cli", "entry"),
    "ytstream.demo.sample": ("Sample",),
    "ytstream.demo.scenario": ("play",),
    "ytstream.demo.screen": ("may_repeat",),
    "ytstream.job": ("JobContext",),
    "ytstream.testing.batches": ("stream_outputs",),
    "ytstream.testing.frames": (
        "assert_outputs", "output_frames", "reference_frame", "rejected_frames",
    ),
    "ytstream.testing.stream": ("Stream", "assert_exact"),
}  # fmt: skip
"""What the files of a repository of 1.0.0 import (commit 7d7dfc5d). Their owner may have changed
them, so an update leaves them as they are."""


@pytest.mark.parametrize("module", OF_1_0_0)
def test_a_name_that_repositories_of_1_0_0_import_is_there(module: str) -> None:
    found = import_module(module)
    for name in OF_1_0_0[module]:
        assert hasattr(found, name) or import_module(f"{module}.{name}")


@pytest.mark.thorough
@pytest.mark.slow
def test_a_project_gets_a_change_and_keeps_its_own(tmp_path: Path, template: Path) -> None:
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


USERS = (
    "sample/__init__.py",
    "src/bids_stream/job.py",
    "src/bids_stream/tables.py",
    "src/bids_stream/transform.py",
)


@pytest.mark.slow
def test_an_update_equals_a_fresh_project_and_leaves_the_users_files(
    tmp_path: Path, template: Path
) -> None:
    """cruft renders both commits in one process: the second with its own pins and filters."""
    words = ("--no-input", "--config-file", str(user_config(tmp_path)))
    cruft(tmp_path, "create", str(template), *words)
    project = tmp_path / "bids-stream"
    edit(project / "src/bids_stream/job.py", 'name="bids-stream"', 'name="mine"')
    further = 'expected.rejected, "totals": expected.totals}'
    edit(project / "sample/__init__.py", "expected.rejected}", further)
    commit(project, "generated")
    mine = {name: (project / name).read_text() for name in USERS}
    change(template)

    cruft(project, "update", "--skip-apply-ask")
    (tmp_path / "fresh").mkdir()
    cruft(tmp_path / "fresh", "create", str(template), *words)
    fresh = tree(tmp_path / "fresh" / "bids-stream")
    raised = "9" + pin("ruff")
    assert f'"ruff=={raised}"' in fresh["pyproject.toml"]
    assert "By: DATA PLATFORM TEAM" in fresh["README.md"]
    assert all(fresh[name] != mine[name] for name in USERS)
    assert tree(project) == {**fresh, **mine}
    cruft(project, "check")


@pytest.mark.thorough
@pytest.mark.slow
def test_a_conflict_is_marked_and_lint_refuses_it(tmp_path: Path, template: Path) -> None:
    """Where the generated files were committed before they were edited: git knows the base."""
    words = ("--no-input", "--config-file", str(user_config(tmp_path)))
    cruft(tmp_path, "create", str(template), *words)
    project = tmp_path / "bids-stream"
    commit(project, "generated")
    edit(project / "README.md", "Responsible: Data", "Responsible: our data")
    commit(project, "ours")
    assert conflicts(project).returncode == 0
    change(template)

    cruft(project, "update", "--skip-apply-ask")
    cruft(project, "check")
    status = ["git", "status", "--short"]
    done = subprocess.run(status, cwd=project, capture_output=True, text=True, check=True)
    assert "UU README.md\n" in done.stdout
    marked = (project / "README.md").read_text()
    ours, theirs = marked.split("<<<<<<< ours\n")[1].split(">>>>>>> theirs")[0].split("=======\n")
    assert "Responsible: our data" in ours
    assert "By: DATA" in theirs
    done = conflicts(project)
    assert done.returncode == 2
    assert "README.md:" in done.stdout
    assert "A merge left these" in done.stderr


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("has_git", [False, True])
def test_lint_refuses_a_change_that_git_cannot_merge(
    tmp_path: Path, template: Path, has_git: bool
) -> None:
    """Without git, and where the files were edited before their first commit."""
    words = ("--no-input", "--config-file", str(user_config(tmp_path)))
    cruft(tmp_path, "create", str(template), *words)
    project = tmp_path / "bids-stream"
    edit(project / ".gitignore", "/dist/", "/dist/*")
    if has_git:
        commit(project, "ours")
    edit(template / "{{cookiecutter.project_slug}}/.gitignore", "/dist/", "/dists/")
    change(template)
    cruft(project, "update", "--skip-apply-ask")
    assert "+/dists/\n" in (project / ".gitignore.rej").read_text()
    assert "By: DATA" in (project / "README.md").read_text()
    done = conflicts(project)
    assert (done.returncode, "./.gitignore.rej" in done.stdout) == (2, True)


def conflicts(project: Path) -> subprocess.CompletedProcess[str]:
    """Run the part of `make lint` that looks for what a merge has left."""
    assert "\nlint: installed conflicts " in (project / "Makefile").read_text()
    words = ["make", "--no-print-directory", "conflicts"]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_linked_project_is_updated_from_the_commit_it_records(
    tmp_path: Path, template: Path
) -> None:
    words = ("--no-input", "--config-file", str(user_config(tmp_path)))
    cookiecutter = [sys.executable, "-m", "cookiecutter", str(template), *words]
    subprocess.run(cookiecutter, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    project = tmp_path / "bids-stream"
    first = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=template, capture_output=True, text=True
    )
    recorded = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["ytstream-template"]
    assert recorded.pop("example")  # digests of the example's files, see `adopt`
    assert recorded == {"version": TEMPLATE_VERSION, "commit": first.stdout.strip()}
    change(template)

    page = (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^cruft (link .*)$", page, re.MULTILINE)
    link = line.replace("TEMPLATE", str(template)).replace("COMMIT", recorded["commit"])
    cruft(project, *shlex.split(link), *words)
    commit(project, "generated and linked")
    mine = {name: (project / name).read_text() for name in USERS}
    cruft(project, "update", "--skip-apply-ask")
    (tmp_path / "fresh").mkdir()
    cruft(tmp_path / "fresh", "create", str(template), *words)
    assert tree(project) == {**tree(tmp_path / "fresh" / "bids-stream"), **mine}


@pytest.mark.thorough
@pytest.mark.slow
def test_a_refusal_under_cruft_is_one_message_with_a_command_that_works(
    tmp_path: Path, template: Path
) -> None:
    config = ("--config-file", str(user_config(tmp_path)))
    text = 'О\'Нил "x" \n\\n'
    given = {"author": text, "guarantee": "idempotent", "processing": "window", "ci": "none"}
    words = ("create", str(template), "--no-input", *config, "--extra-context")
    done = cruft_said(tmp_path, *words, json.dumps(given))
    assert (done.returncode, done.stdout) == (1, "")
    problem, kept = done.stderr.splitlines()
    assert problem.startswith("Error: guarantee idempotent goes with processing map only")
    assert not (tmp_path / "bids-stream").exists()
    again = shlex.split(kept.partition(" type: ")[2])
    assert again[0] == "cruft"
    cruft(tmp_path, *again[1:])
    project = tmp_path / "bids-stream"
    stored = json.loads((project / ".cruft.json").read_text())["context"]["cookiecutter"]
    assert {name: stored[name] for name in given} == {**given, "guarantee": "transactional"}

    commit(project, "generated")
    update = ("update", "--skip-apply-ask", "--variables-to-update")
    done = cruft_said(project, *update, '{"Spark-Version": "3.5"}')
    assert done.returncode == 1
    problem, kept = done.stderr.splitlines()
    assert "Did you mean spark_version?" in problem
    again = shlex.split(kept.partition(" type: cruft ")[2])
    assert again == [*update, '{"spark_version": "3.5"}']
    cruft(project, *again)
    assert requirement("pyspark", "3.5") in (project / "pyproject.toml").read_text()


@pytest.mark.thorough
@pytest.mark.slow
def test_an_option_that_comes_with_the_new_commit_is_given_to_it(
    tmp_path: Path, template: Path
) -> None:
    """The former commit, which cruft renders first, does not know it."""
    words = ("--no-input", "--config-file", str(user_config(tmp_path)))
    cruft(tmp_path, "create", str(template), *words)
    project = tmp_path / "bids-stream"
    commit(project, "generated")
    edit(template / "cookiecutter.json", '  "__answers', '  "newest": "a",\n  "__answers')
    readme = template / "{{cookiecutter.project_slug}}/README.md"
    readme.write_text(readme.read_text() + "{{ cookiecutter.newest }}\n")
    git(template, "commit", "--quiet", "--all", "--message", "an option")
    given = '{"newest": "is b"}'
    cruft(project, "update", "--skip-apply-ask", "--variables-to-update", given)
    assert (project / "README.md").read_text().endswith("is b\n")


@pytest.mark.thorough
@pytest.mark.slow
def test_a_project_of_a_pair_that_is_offered_no_more_gets_another_guarantee(
    tmp_path: Path, template: Path
) -> None:
    """By the command of docs/upgrading.md."""
    rule = template / "packages/ytstream/src/ytstream/settings/job_rules.toml"
    today = rule.read_text()
    table = "[impossible.at_least_once.reasons"
    edit(rule, f"{table}]\n", f"{table}.other]\n")
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
    (line,) = re.findall(r"^ *cruft (update .*variables.*guarantee.*)$", page, re.MULTILINE)
    cruft(project, *shlex.split(line), "--skip-apply-ask")
    (wheel,) = (project / "vendor").glob("ytstream-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("ytstream/settings/job_rules.toml").decode() == today
    # The user's own; the page says what to write there.
    assert 'guarantee="at_least_once"' in (project / "src/bids_stream/job.py").read_text()
    assert 'guarantee="transactional"' in page
    assert "exactly once, by transaction" in (project / "docs/operations.md").read_text()
