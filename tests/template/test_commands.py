"""Every command of every page is run by a test, or is listed here with the reason and a substitute.

A command is a line of a block `sh`, or one after `$` in a block `console`. The tutorial's commands
go together: tests/journeys/test_tutorial.py runs all of them.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from local_extensions.versions import TEMPLATE_VERSION
from tests.support.project import ROOT, user_config
from tests.support.upgrades import git
from tests.template.test_makefile import OFFERED, make
from tests.template.test_organisation import configuration
from tests.template.test_upgrade import template
from tools import site

__all__ = ["template"]
_BLOCK = re.compile(r"^ *```(sh|console)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)

TUTORIAL = "docs/tutorial.md"
AGENTS = "AGENTS.md"
HERE = "tests/template/test_commands.py"
MAKEFILE = "tests/template/test_makefile.py"
UPGRADE = "tests/template/test_upgrade.py"
README = "tests/template/test_readme.py"
START = "tests/template/test_start.py"
FLEET = "tests/template/test_fleet.py"
MINICLUSTER = "packages/minicluster/tests"
YTSTREAM = "packages/ytstream/tests"
TOOLS = "packages/ytstream-tools/tests"
DOCTOR = "packages/ytstream-doctor/tests/checks"
FAULTS = f"{DOCTOR}/test_planted_faults.py"

RAN = {
    r"(cookiecutter gh:|cruft create https:).*": f"{HERE}::test_a_command_that_generates_does_so",
    r"make release VERSION=.*": "tests/template/test_release.py"
    "::test_a_version_that_everything_agrees_with_is_released",
    r"\.venv/bin/python -m tools\.fleet .*": f"{FLEET}"
    "::test_a_fleet_is_updated_and_a_conflict_is_refused",
    r"cruft (check|update)": f"{UPGRADE}::test_a_project_gets_a_change_and_keeps_its_own",
    r"git status": f"{UPGRADE}::test_a_conflict_is_marked_and_lint_refuses_it",
    r"cruft link .*": f"{UPGRADE}::test_a_linked_project_is_updated_from_the_commit_it_records",
    r"cruft update --variables-to-update .*": f"{UPGRADE}"
    "::test_a_project_of_a_pair_that_is_offered_no_more_gets_another_guarantee",
    r"\.venv/bin/python -m pytest tests/test_transform\.py": "tests/template/test_running.py"
    "::test_its_own_tests_pass",
    r"python -m tests\.faults\.model.*": "tests/faults/model/test_model.py"
    "::test_no_fault_breaks_the_protocol",
    r"yt select-rows .*ytstream/job/ledger\].*": "tests/template/test_ledger_page.py"
    "::test_a_query_prints_what_the_page_shows",
    r"yt (create|mount-table|register-queue-consumer) .*|echo .*\| yt insert-rows .*"
    r"|yt select-rows 'auction.*|python -m minicluster": f"{MINICLUSTER}/test_transcript.py"
    "::test_the_transcript_holds",
    r"python -m <package> alerts .*": f"{TOOLS}/status/test_alert_rules.py"
    "::test_the_command_prints_the_rules",
    r"python -m ytstream_tools why .*": f"{TOOLS}/fleet/test_light.py"
    "::test_commands_run_without_spark_and_without_the_repository",
    r"python -m <package> page .*": f"{TOOLS}/report/test_html_page.py"
    "::test_the_command_writes_one_file_and_nothing_else",
    r"python -m <package> check --permissions .*": f"{YTSTREAM}/provisioning/test_permissions.py"
    "::test_the_command_asks_for_the_rights_alone",
    r"python -m <package> rehearse .*": f"{TOOLS}/replay/test_rehearsal.py"
    "::test_the_command_says_by_its_exit_code_whether_outputs_are_equal",
    r"(PYTHONPATH=src:\. )?python -m <package> capture .*": f"{TOOLS}/replay/test_batch_capture.py"
    "::test_the_command_saves_a_batch",
    r"python -m <package> complete-until .*": f"{YTSTREAM}/sealing/test_completeness.py"
    "::test_the_command_prints_it_and_nothing_else",
    r"python -m <package> metrics .*": f"{TOOLS}/status/test_prometheus.py"
    "::test_metrics_once_prints_and_ends",
    r"python -m <package> status .*": f"{TOOLS}/status/test_job_status.py"
    "::test_the_exit_code_says_whether_a_limit_is_exceeded",
    r"\.venv(-doctor)?/bin/python -m ytstream doctor PATH": f"{FAULTS}"
    "::test_a_planted_fault_is_named_alone_and_its_correction_is_not",
    r"\.venv/bin/python -m ytstream doctor PATH --accept RULE": f"{FAULTS}"
    "::test_a_rule_that_was_looked_into_can_be_accepted",
    r"\.venv/bin/python -m ytstream doctor PATH --json": f"{FAULTS}"
    "::test_json_has_each_finding_complete",
    r"\.venv/bin/python -m ytstream doctor PATH --proxy CLUSTER": f"{DOCTOR}/test_cluster_tables.py"
    "::test_a_fault_of_the_tables_is_named_and_its_correction_is_not",
    r"python3 -m venv \.venv-doctor|\.venv-doctor/bin/pip install "
    r"(ytsaurus-client|--no-deps dist/ytstream-\S+ dist/\S+)": "tests/template/test_doctor.py"
    "::test_beside_an_old_job_it_needs_neither_spark_nor_spyt",
    r"pip install ('minicluster\[rpc\]'|minicluster)": f"{MINICLUSTER}/test_installed.py"
    "::test_alone_in_an_empty_environment_it_serves_http_and_says_what_rpc_needs",
    r"yt link --force .*": f"{TOOLS}/reference/test_building.py"
    "::test_the_link_can_be_switched_back_by_hand",
    r"export YT_PROXY=127\.0\.0\.1:18080|yt insert-rows //home/shop/orders .*": f"{START}"
    "::test_a_queue_of_a_minicluster_gets_the_rows_of_the_page",
    r"yt select-rows 'o\.tablet_index, .*": "tests/template/test_deploy.py"
    "::test_the_query_finds_rows_that_are_in_both_outputs",
    r"\. \.venv/bin/activate|sleep 10|python -c 'import time.*|print\(dumps\(.*"
    r"|yt --proxy 127\.0\.0\.1:18080 (insert|select)-rows .*": f"{README}"
    "::test_its_commands_fill_the_queue_of_a_minicluster",
}
"""Commands, as regular expressions, and the test that runs them as they stand."""


class LeftOut(NamedTuple):
    """Why no test runs a command, and the test that comes nearest."""

    reason: str
    substitute: str


_TARGETS = f"{HERE}::test_a_target_of_a_page_is_there_with_its_words"
"""What `make` calls is run by other tests, in pieces; here its words are tried without effect."""
_TOO_LONG = "a test of all tests, or minutes: CI calls it, and the pieces have tests of their own"
PROJECTS = (
    r"make (provision rows status|tables|run|stop|submit(?: REPLACE=1)?|logs FOLLOW=1|rewind .*"
    r"|provision rows CONFIG=.*|lint test demo|adopt .*|preview( .*)?|approve( provision)?"
    r"|(provision|check|migrate|stop|status|run|reference) +CONFIG.*)"
)
OURS = (
    r"make (test|real( PROXY=.*)?|lint|lint test-all site audit|demo.*|test-quick|dist"
    r"|proof( (ONLY='CASE'|(SPARK=3.5 )?SAMPLE=200|LIST=1|STUMBLES=1|CHECK=FILE SEED=7))?)"
)
LEFT_OUT = {
    PROJECTS: LeftOut(f"a cluster's part is in {YTSTREAM}; {_TOO_LONG}", _TARGETS),
    OURS: LeftOut(_TOO_LONG, f"{HERE}::test_a_target_of_the_template_is_there"),
    r"python -m tests\.faults\.sweep( --.*|\.record|\.history .*)": LeftOut(
        "hours, and `record` writes a list that is committed",
        "tests/faults/sweep/test_sample.py::test_a_case_holds",
    ),
    r"python docs/findings/\w+\.py PROXY .*": LeftOut(
        "a test runs it with the address of its cluster",
        "tests/faults/sweep/test_findings.py::test_a_script_prints_what_the_page_says",
    ),
    r"\.venv/bin/pre-commit install": LeftOut(
        "it writes into the clone's own .git",
        f"{HERE}::test_what_runs_before_a_commit_is_make_lint",
    ),
    r"make spyt-tests CHECKOUT=.*": LeftOut(
        "it needs a checkout of SPYT's repository", "tests/template/test_spyt_tests.py"
        "::test_a_file_is_run_on_a_minicluster_with_what_it_assumes",
    ),
    r"pipx install cruft": LeftOut(
        "it installs into the home",
        f"{UPGRADE}::test_a_project_gets_a_change_and_keeps_its_own",
    ),
    r"git clone https://github\.com/ORG/REPO .*": LeftOut(
        "it needs the published repository", "tests/template/test_line_endings.py"
        "::test_a_clone_of_the_template_has_lf",
    ),
    r"git push origin main vX\.Y\.Z": LeftOut(
        "it publishes", "tests/template/test_release.py"
        "::test_a_version_that_everything_agrees_with_is_released",
    ),
    r"\.venv/bin/python -m minicluster": LeftOut(
        "it serves until it is stopped", f"{README}"
        "::test_its_commands_fill_the_queue_of_a_minicluster",
    ),
    r"docker compose (up --detach|down --volumes)": LeftOut(
        "it needs Docker", "tests/template/test_real.py::test_the_recipe_starts_the_same_server",
    ),
    r"export (CONFIG=config/production\.toml )?YT_TOKEN=\.\.\.": LeftOut(
        "it names a secret", f"{TOOLS}/submitting/test_submission.py"
        "::test_the_command_is_detached_and_holds_no_token",
    ),
    r"PYTHONPATH=src:\. .*-m bids_stream submit .*": LeftOut(
        "it needs a cluster", f"{TOOLS}/submitting/test_submission.py"
        "::test_the_command_is_detached_and_holds_no_token",
    ),
    r"pip install 'minicluster\[operations\]'": LeftOut(
        "it downloads Spark, 450 MB, which `make setup` has done",
        f"{MINICLUSTER}/release/test_publish.py"
        "::test_a_cluster_with_operations_has_a_release_and_nodes_for_it",
    ),
    r"yt select-rows 'reason, .*": LeftOut(
        "it shows rejected rows, whose number is the reader's own",
        f"{YTSTREAM}/rejected/test_rejected_rows.py::test_a_row_that_json_cannot_hold_does_not_stop_the_job",
    ),
    r"yt --proxy yt\.example\.com select-rows .*": LeftOut(
        "it asks the production cluster", "tests/template/test_ledger_page.py"
        "::test_a_query_prints_what_the_page_shows",
    ),
}  # fmt: skip


def commands(page: Path) -> Iterator[str]:
    """Yield the commands of a page, each on one line and without a comment."""
    for language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if language == "console" and not line.startswith("$ "):
                continue
            command = re.sub(r"(^|\s)# .*$", "", line.strip().removeprefix("$ ")).strip()
            if command:
                yield command


@cache
def of_the_repository() -> tuple[str, ...]:
    """Return the commands of all pages but the tutorial and those of generated projects."""
    pages = (ROOT / name for name in site.pages() if name != TUTORIAL)
    return tuple(dict.fromkeys(one for page in pages for one in commands(page)))


@pytest.fixture(scope="module")
def everything(plain: Path) -> list[str]:
    """The commands of all pages, with those of a generated project."""
    pages = [plain / name for name in ("README.md", "docs/operations.md", AGENTS)]
    return [*of_the_repository(), *(one for page in pages for one in commands(page))]


def test_each_command_is_run_or_listed_once(everything: list[str]) -> None:
    for command in everything:
        found = [known for known in (*RAN, *LEFT_OUT) if re.fullmatch(known, command)]
        assert len(found) == 1, f"{command}: name its test in {HERE}"


def test_each_entry_is_of_a_command(everything: list[str]) -> None:
    for known in (*RAN, *LEFT_OUT):
        assert any(re.fullmatch(known, command) for command in everything), known


def test_each_test_that_is_named_exists() -> None:
    for named in {*RAN.values(), *(left.substitute for left in LEFT_OUT.values())}:
        file, _, name = named.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, named


def test_a_command_without_a_test_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\nmake something   # a comment\n\n# only a comment\na \\\n  b\n```\n")
    assert [*commands(page)] == ["make something", "a b"]
    assert not any(re.fullmatch(known, "make something") for known in (*RAN, *LEFT_OUT))


def chosen(known: str) -> list[str]:
    return [command for command in of_the_repository() if re.fullmatch(known, command)]


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("command", chosen(next(iter(RAN))))
def test_a_command_that_generates_does_so(tmp_path: Path, template: Path, command: str) -> None:
    """With this repository in the place of ORG/REPO, and its version in that of vX.Y.Z."""
    git(template, "tag", "--force", f"v{TEMPLATE_VERSION}")
    for address in ("gh:ORG/REPO", "https://github.com/ORG/REPO"):
        command = command.replace(address, str(template))
    words = shlex.split(command.replace("vX.Y.Z", f"v{TEMPLATE_VERSION}"))
    configuration(tmp_path, pool="streaming")  # organisation.yaml
    if "--config-file" not in words:
        words += ["--config-file", str(user_config(tmp_path))]
    if "--no-input" not in words:
        words += ["--no-input"]
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = tmp_path.glob("*/src/*/job.py")
    assert "JOB = Job(" in made.read_text()


@pytest.mark.parametrize("command", chosen(PROJECTS))
def test_a_target_of_a_page_is_there_with_its_words(plain: Path, command: str) -> None:
    """What each calls is tested in packages/ytstream/tests; a cluster would be needed for more."""
    _, *words = shlex.split(command)
    done = make(plain, "-n", *words)
    assert done.returncode == 0, done.stderr
    assert {word for word in words if "=" not in word} <= {*OFFERED["project"]}
    for word in words:
        name, _, value = word.partition("=")
        assert value in done.stdout or f'"${name}"' in done.stdout


def test_each_command_for_an_assistant_is_a_target_that_needs_no_cluster(
    plain: Path,
) -> None:
    found = [*commands(plain / AGENTS)]
    assert {"make preview", "make lint", "make test"} <= {*found}
    for command in found:
        _, *words = shlex.split(command)
        done = make(plain, "-n", *words)
        assert done.returncode == 0, done.stderr
        assert {*words} <= {*OFFERED["project"]}
        assert "config/production.toml" not in done.stdout


@pytest.mark.parametrize("command", chosen(OURS))
def test_a_target_of_the_template_is_there(command: str, tmp_path: Path) -> None:
    _, *words = shlex.split(command)
    # `make -n` follows `$(MAKE)` into the project that a demo would have made.
    (project := tmp_path / "project").mkdir()
    (project / "Makefile").write_text("demo:\n")
    done = make(ROOT, "-n", *words, f"DEMO={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert {word for word in words if "=" not in word} <= {*OFFERED["template"]}


def test_what_runs_before_a_commit_is_make_lint(plain: Path) -> None:
    for folder in (ROOT, plain):
        config = (folder / ".pre-commit-config.yaml").read_text()
        assert "entry: make lint\n" in config
        # A hook of another server would have to be fetched first.
        assert re.findall(r"repo: (\S+)", config) == ["local"]
