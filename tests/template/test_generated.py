"""Generated projects as files: complete, valid in each language, built, linted, typed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

from local_extensions import versions, wheels
from tests.conftest import Generate
from tests.support.project import DEFAULTS, generate
from ytstream.settings import spark_conf
from ytstream.settings.submit_section import SubmitSection

# The contract's keys; those of a state and of a join come last.
KEYS = """
    submit proxy allow_env_proxy queues consumer outputs checkpoint ledger create_queues start_from
    on_data_loss trigger_seconds batch_seconds stall_seconds max_rows_per_partition dyn_batch_size
    account connector tablet_cell_bundle medium output_retention pool proxy_role spyt_version accept
    runbook_url spark reject_limit late_limit references reference_cache_mb state_store reference
    reference_refresh open_periods deleted_keep
"""
CONFIG_KEYS = set(KEYS.split())
JOIN_KEYS = {"reference", "reference_refresh"}
STATE_KEYS = {"state_store"}
LATE_KEYS = {"late_limit"}

HOSTILE = (
    "Ставки \"bids\" 'x' \\n C:\\new\n{{ cookiecutter }} {% endraw %} `#` \"\"\" ''' 🚀 $(id) */"
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose free texts hold what breaks careless templates."""
    folder = tmp_path_factory.mktemp("hostile")
    return generate(
        folder, project_name=HOSTILE, description=HOSTILE, author=HOSTILE, license="MIT"
    )


def files(project: Path) -> Iterator[Path]:
    """Yield all files but the vendored wheels, which are built, not rendered."""
    for path in sorted(project.rglob("*")):
        if path.is_file() and path.parent != project / "vendor":
            yield path


def test_no_jinja_no_empty_file_one_newline_at_the_end(project: Path) -> None:
    for path in files(project):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\{\{[ -]*cookiecutter|\{%|\{#|cookiecutter\.(?!json)", text), path
        if text or path.name != "__init__.py":
            assert text.endswith("\n"), path
            assert not text.endswith("\n\n"), path
            assert "\n\n\n\n" not in text, path


def test_no_empty_folder_and_no_cache(project: Path) -> None:
    folders = [path for path in project.rglob("*") if path.is_dir()]
    assert folders
    for folder in folders:
        assert any(folder.iterdir()), folder
        assert folder.name not in {"__pycache__", ".ruff_cache", ".mypy_cache", ".pytest_cache"}


def test_the_layout_is_the_one_of_the_design(project: Path) -> None:
    package = project / "src" / project.name.replace("-", "_")
    owned = {path.name for path in package.iterdir()}
    assert owned == {"__init__.py", "__main__.py", "job.py", "tables.py", "transform.py"}
    for name in (
        "README.md",
        "AGENTS.md",
        "docs/operations.md",
        "Makefile",
        "pyproject.toml",
        "main.py",
        ".gitignore",
        "sample/rows.py",
        "sample/expected.py",
        "tests/test_transform.py",
        "tests/test_job.py",
        "config/local.toml",
        "config/production.toml",
    ):
        assert (project / name).is_file(), name


def test_a_repository_is_its_owners_but_for_the_wheels(project: Path) -> None:
    assert {path.name for path in (project / "vendor").iterdir()} == {
        *(
            f"{name}-{wheels.version(package)}-py3-none-any.whl"
            for package in ("ytstream", "ytstream-tools", "minicluster")
            for name in [package.replace("-", "_")]
        ),
        "SHA256SUMS",
    }


def test_with_an_index_nothing_is_vendored(generate: Generate) -> None:
    project = generate(runtime_from="index")
    assert not (project / "vendor").exists()


def test_the_operations_page_shows_every_setting_with_its_reason(project: Path) -> None:
    page = (project / "docs/operations.md").read_text(encoding="utf-8")
    guarantee = re.search(r'guarantee="(\w+)"', next(project.glob("src/*/job.py")).read_text())
    assert guarantee is not None
    version = re.search(r"pyspark==([\d.]+)", (project / "requirements.txt").read_text())
    assert version is not None
    store = None if is_stateless(project) else "rocksdb"
    for conf in spark_conf.of_session(guarantee[1], state_store=store, spark=version[1]):
        assert f"| `{conf.key}` | `{conf.value}` | {conf.reason} |" in page


def is_join(project: Path) -> bool:
    return "REFERENCE" in next(project.glob("src/*/tables.py")).read_text()


def is_sessions(project: Path) -> bool:
    return 'processing="sessions"' in next(project.glob("src/*/job.py")).read_text()


def keeps_late(project: Path) -> bool:
    """Return whether late rows go to `rejected`: in each processing type with a watermark."""
    job = next(project.glob("src/*/job.py")).read_text()
    is_timed = re.search(r'processing="(window|deduplicate|sessions)"', job) is not None
    assert ('late="reject"' in job) == is_timed
    return is_timed


def is_stateless(project: Path) -> bool:
    return (
        re.search(
            r'processing="(map|join|aggregate|merge)"',
            next(project.glob("src/*/job.py")).read_text(),
        )
        is not None
    )


def test_config_keys_are_those_of_the_contract(project: Path) -> None:
    local, production = (
        tomllib.loads((project / f"config/{name}.toml").read_text(encoding="utf-8"))
        for name in ("local", "production")
    )
    for config in (local, production):
        assert config.keys() <= CONFIG_KEYS
        assert "rejected" in config["outputs"]
        assert (config.keys() & JOIN_KEYS) == (JOIN_KEYS if is_join(project) else set())
    assert local["create_queues"] is True
    assert local["allow_env_proxy"] is True
    assert not production.keys() & {"create_queues", "allow_env_proxy"}
    assert production["proxy"] == DEFAULTS["yt_proxy"]


def test_commented_config_keys_are_those_of_the_contract(project: Path) -> None:
    text = (project / "config/production.toml").read_text(encoding="utf-8")
    commented = re.findall(r"^# ([\w.]+ = .*|\[\w+\])$", text, re.MULTILINE)
    optional = tomllib.loads("\n".join(commented))
    assert optional["submit"].keys() <= {key.name for key in fields(SubmitSection)}
    assert optional.keys() <= CONFIG_KEYS, optional.keys()
    assert optional.keys() | tomllib.loads(text).keys() | {"create_queues", "allow_env_proxy"} == (
        CONFIG_KEYS
        - (set() if is_join(project) else JOIN_KEYS)
        - (STATE_KEYS if is_stateless(project) else set())
        - (set() if keeps_late(project) else LATE_KEYS)
    )


def test_versions_are_those_of_the_one_list(project: Path) -> None:
    metadata = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (spark,) = (
        spark
        for spark in versions.SPARK_VERSIONS
        if versions.requirement("pyspark", spark) in metadata["dependencies"]
    )
    job, dev, more = (versions.requirements(scope, spark) for scope in ("job", "dev", "sessions"))
    own, testing = (
        f"{name}=={wheels.version('ytstream')}" for name in ("ytstream", "ytstream-tools[testing]")
    )
    needed = job + (more[len(dev) :] if is_sessions(project) else [])
    assert metadata["dependencies"] == [own, *needed]
    assert metadata["optional-dependencies"]["dev"] == [testing, *dev[len(job) :]]


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_ci_runs_lint_and_test_on_pinned_images_without_secrets(
    generate: Generate, ci: str
) -> None:
    project = generate(ci=ci, project_name=HOSTILE, project_slug="x")
    file = {"github": ".github/workflows/ci.yml", "gitlab": ".gitlab-ci.yml"}[ci]
    text = (project / file).read_text(encoding="utf-8")
    job = yaml.safe_load(text)
    commands = (
        [step["run"] for one in job["jobs"].values() for step in one["steps"] if "run" in step]
        if ci == "github"
        else [line for name in ("checks", "template") for line in job[name]["script"]]
    )
    assert commands == ["make lint test", "make outdated"]
    assert "latest" not in text
    assert "secret" not in text.replace("no secret", "")
    # A token is for the release alone, which is a workflow of its own there.
    assert "YT_TOKEN" not in text.partition("\n# Puts this commit on the cluster")[0]
    if ci == "github":
        assert job["name"] == HOSTILE


def test_hostile_text_is_shown_as_typed(hostile: Path) -> None:
    metadata = tomllib.loads((hostile / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert metadata["description"] == HOSTILE
    # A header of the wheel's metadata, which cannot hold a line break.
    assert metadata["authors"] == [{"name": " ".join(HOSTILE.split())}]
    assert f"Copyright (c) {HOSTILE}\n" in (hostile / "LICENSE").read_text(encoding="utf-8")
    for page, before in (("README.md", ""), ("docs/operations.md", "Operating ")):
        heading = MarkdownIt("commonmark").parse((hostile / page).read_text(encoding="utf-8"))[1]
        shown = "".join(
            "\n" if token.type == "html_inline" else token.content
            for token in heading.children or []
        )
        assert shown == before + HOSTILE


def test_hostile_text_leaves_every_python_file_valid(hostile: Path) -> None:
    for path in hostile.rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"))


def tool(project: Path, *arguments: str) -> None:
    """Run a tool of the shared environment in the project, as its Makefile does."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(project / "src"), str(project)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def lint(project: Path) -> None:
    tool(project, "ruff", "check", "--no-cache", ".")
    tool(project, "ruff", "format", "--no-cache", "--check", ".")


def test_ruff_has_nothing_to_say(project: Path) -> None:
    lint(project)


def test_ruff_has_nothing_to_say_about_hostile_text(hostile: Path) -> None:
    lint(hostile)


@pytest.mark.slow
def test_mypy_has_nothing_to_say(project: Path, mypy_cache: Path) -> None:
    tool(project, "mypy", "--cache-dir", str(mypy_cache))


def wheel(project: Path, folder: Path) -> tuple[list[str], Message]:
    """Build the project's wheel without the network; return the names in it, and its metadata."""
    pip = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    tool(project, *pip, "--wheel-dir", str(folder), ".")
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return names, message_from_bytes(archive.read(metadata))


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(generate: Generate, tmp_path: Path) -> None:
    project = generate()
    names, metadata = wheel(project, tmp_path)
    package = project.name.replace("-", "_")
    tops = {package, f"{package}-0.1.0.dist-info"}
    assert {name.split("/")[0] for name in names} == tops
    assert f"{package}/__main__.py" in names
    assert metadata["Name"] == project.name


@pytest.mark.thorough
@pytest.mark.slow
def test_a_wheel_with_hostile_text_has_whole_metadata(hostile: Path, tmp_path: Path) -> None:
    _, metadata = wheel(hostile, tmp_path)
    assert metadata["Name"] == hostile.name
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert len(metadata.get_all("Requires-Dist") or []) > 4
