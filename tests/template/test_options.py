"""The options as they are offered, and what each does to a generated project."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_extensions import answers
from local_extensions.versions import SPARK_VERSIONS
from tests.conftest import Generate
from tests.support.project import CONTEXT, DEFAULTS, OPTIONS, generate, problems

# The public contract: order, and the values in their order. A value may not be offered yet.
CONTRACT: dict[str, list[str] | None] = {
    "project_name": None,
    "project_slug": None,
    "description": None,
    "author": None,
    "processing": ["map", "window", "join", "deduplicate", "aggregate", "merge", "sessions"],
    "guarantee": ["transactional", "idempotent", "at_least_once"],
    "queue_paths": None,
    "cypress_root": None,
    "yt_proxy": None,
    "spark_version": [*SPARK_VERSIONS],
    "ci": ["github", "gitlab", "none"],
    "license": ["Apache-2.0", "MIT", "none"],
    "runtime_from": ["wheels", "index"],
}
CHOICES = [name for name, values in CONTRACT.items() if values]


def test_options_are_asked_in_the_order_of_the_contract() -> None:
    assert list(OPTIONS) == list(CONTRACT)


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_those_of_the_contract_in_its_order(name: str) -> None:
    contract = CONTRACT[name]
    assert contract
    assert OPTIONS[name] == [value for value in contract if value in OPTIONS[name]]


def test_every_question_and_every_value_is_explained() -> None:
    prompts = CONTEXT["__prompts__"]
    assert list(prompts) == list(CONTRACT)
    for name in CHOICES:
        values = CONTRACT[name]
        assert values
        assert list(prompts[name]) == ["__prompt__", *values]
        assert all(prompts[name][value].startswith(f"{value}: ") for value in values)
    # The prompt library takes square brackets for mark-up.
    assert "[" not in json.dumps(list(prompts.values()))[1:-1]


def test_the_check_runs_before_anything_else_is_derived() -> None:
    private = [name for name in CONTEXT if name.startswith("__")]
    assert private[0] == "__answers_checked"


def test_the_defaults_are_accepted() -> None:
    assert problems(DEFAULTS) == []


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Bids stream", "bids-stream"),
        ("Ставки на мосту", "stavki-na-mostu"),
        ("2024 bids", "job-2024-bids"),
        ("Sample", "job-sample"),
        ("import", "job-import"),
        ("PySpark", "job-pyspark"),
        ("🚀", "ytstream-job"),
        ('Bid\'s "best" \\ path', "bid-s-best-path"),
    ],
)
def test_the_slug_is_computed_from_the_name(name: str, slug: str) -> None:
    assert answers.slug(name) == slug


@pytest.mark.thorough
@given(st.text())
def test_the_computed_slug_is_always_accepted(name: str) -> None:
    assert problems({**DEFAULTS, "project_slug": answers.slug(name)}) == []


def test_queues_are_stored_sorted_with_one_space_between(tmp_path: Path) -> None:
    project = generate(tmp_path, queue_paths=" //home/b/q  //home/a/q\t//home/a/p ")
    paths = ["//home/a/p", "//home/a/q", "//home/b/q"]
    (replay,) = (tmp_path / "replay").iterdir()
    stored = json.loads(replay.read_text(encoding="utf-8"))["cookiecutter"]
    assert stored["queue_paths"] == " ".join(paths)
    for name in ("local", "production"):
        assert tomllib.loads((project / f"config/{name}.toml").read_text())["queues"] == paths


def test_pages_stay_short_with_two_thousand_queues(generate: Generate) -> None:
    paths = [f"//home/region-{number:04}/bids" for number in range(2000)]
    project, small = (
        generate(queue_paths=" ".join(paths)),
        generate(queue_paths=" ".join(paths[:5])),
    )
    for path in small.rglob("*"):
        if path.is_file() and path.parent.name != "config":
            many = (project / path.relative_to(small)).stat().st_size
            assert many < path.stat().st_size + 200, path
    readme = (project / "README.md").read_text(encoding="utf-8")
    assert "| reads | 2000 queues, named in `config/production.toml` |" in readme
    assert paths[1] not in readme


def test_the_package_is_the_slug_with_underscores(generate: Generate) -> None:
    project = generate(project_slug="my-first-job")
    assert project.name == "my-first-job"
    assert (project / "src/my_first_job/__init__.py").is_file()


@pytest.mark.parametrize(
    ("ci", "files"), [("github", {".github"}), ("gitlab", {".gitlab-ci.yml"}), ("none", set())]
)
def test_the_ci_file_is_the_one_of_the_service(
    generate: Generate, ci: str, files: set[str]
) -> None:
    project = generate(ci=ci)
    assert {path.name for path in project.iterdir()} & {".github", ".gitlab-ci.yml"} == files


@pytest.mark.parametrize(
    ("license_", "opening", "expression"),
    [
        ("Apache-2.0", "Apache License", "Apache-2.0"),
        ("MIT", "MIT License", "MIT"),
        ("none", None, "LicenseRef-Proprietary"),
    ],
)
def test_the_licence_is_the_one_chosen(
    generate: Generate, license_: str, opening: str | None, expression: str
) -> None:
    project = generate(license=license_, author="Иван & Co")
    metadata = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert metadata["license"] == expression
    if opening is None:
        assert not (project / "LICENSE").exists()
    else:
        text = (project / "LICENSE").read_text(encoding="utf-8")
        assert text.lstrip().startswith(opening)
        assert "Иван & Co" in text
