"""The template's own files, unrendered: they parse, lint, and say each thing once."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader

from local_extensions import TemplateExtension, versions
from tests.support.project import (
    CONTEXT,
    DEFAULTS,
    DOCTOR,
    MINICLUSTER,
    PROJECT,
    ROOT,
    TOOLS,
    VARIANTS,
    YTSTREAM,
    variant_answers,
)

CONFIG = ROOT / "pyproject.toml"


def listed() -> list[Path]:
    """Return the template's files, as git sees them: committed, or new and not ignored."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = (ROOT / name for name in sorted(set(names.split("\0"))) if name)
    return [path for path in paths if path.is_file()]


FILES = listed()


def sources(*suffixes: str) -> list[Path]:
    """Return the template's files with these suffixes."""
    return [path for path in FILES if path.suffix in suffixes]


def is_stub(path: Path) -> bool:
    return path.read_text(encoding="utf-8").startswith("{% include ")


# A stub whose own name is computed has no suffix before it is rendered.
STUBS = [path for path in FILES if path.is_relative_to(PROJECT) and is_stub(path)]
IMPORT_THE_PACKAGE = [PROJECT / "main.py", PROJECT / "tests" / "conftest.py"]
"""They import the package, whose name is Jinja: Python only once they are rendered."""
PYTHON = [path for path in sources(".py") if not is_stub(path) and path not in IMPORT_THE_PACKAGE]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


RENDERED = [p for p in PYTHON if any(map(p.is_relative_to, (PROJECT, ROOT / "templates")))]
"""Python with Jinja in it. ruff parses all other files (test_ruff_has_nothing_to_say)."""


@pytest.mark.parametrize("path", RENDERED, ids=relative)
def test_python_parses_and_has_jinja_in_strings_only(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    in_strings = sum(value.count("{{ cookiecutter") for value in strings if isinstance(value, str))
    assert text.count("{{ cookiecutter") == in_strings
    assert not re.search(r"\{%|\{#", text)


@pytest.mark.parametrize("path", STUBS, ids=relative)
def test_a_stub_is_one_include_without_a_line_end(path: Path) -> None:
    # The included file ends with the line's end; the formatter refuses a second one.
    assert re.fullmatch(r"\{% include [^\n]+ %\}", path.read_text(encoding="utf-8"))


def test_what_imports_the_package_has_no_other_jinja() -> None:
    for path in IMPORT_THE_PACKAGE:
        text = path.read_text(encoding="utf-8").replace("{{ cookiecutter.__package }}", "package")
        ast.parse(text)
        assert "{{" not in text
        assert "{%" not in text


def test_stubs_are_the_only_python_that_ruff_leaves_out() -> None:
    excluded = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["tool"]["ruff"]["extend-exclude"]
    patterns = [pattern for pattern in excluded if pattern.endswith(".py")]
    matched = {path for path in sources(".py") for pattern in patterns if path.match(pattern)}
    # The same glob must not reach into the files that the stubs include.
    assert {relative(path) for path in matched} == {
        relative(path) for path in [*STUBS, *IMPORT_THE_PACKAGE] if path.suffix == ".py"
    }
    left_out = [*STUBS, *IMPORT_THE_PACKAGE]
    assert all(any(path.match(pattern) for path in left_out) for pattern in patterns)


def test_no_sources_but_stubs_go_unlinted() -> None:
    command = ["ruff", "check", "--config", str(CONFIG), "--show-files", "."]
    shown = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {relative(path) for path in PYTHON} <= {relative(Path(line)) for line in shown}


def test_every_included_file_is_there_for_every_choice() -> None:
    loader = Environment(
        loader=FileSystemLoader([PROJECT, ROOT / "templates"]), extensions=[TemplateExtension]
    )
    for variant in VARIANTS:
        answers = {**DEFAULTS, **variant_answers(variant), "project_slug": "x", "ci": "none"}
        for name, formula in CONTEXT.items():
            if name.startswith("__") and isinstance(formula, str) and "checked" not in name:
                answers[name] = loader.from_string(formula).render(cookiecutter=answers)
        for stub in STUBS:
            text = stub.read_text(encoding="utf-8").removeprefix("{% include ")
            source = loader.compile_expression(text.removesuffix(" %}"))(cookiecutter=answers)
            assert isinstance(source, str | list)
            names = [source] if isinstance(source, str) else source
            found = [name for name in names if (ROOT / "templates" / name).is_file()]
            assert found or not rendered(stub.name, answers), (names, answers)


def rendered(name: str, answers: dict[str, str]) -> str:
    """Return a file's computed name; empty when the choice leaves the file out."""
    return Environment().from_string(name).render(cookiecutter=answers)


def test_ruff_and_its_formatter_have_nothing_to_say() -> None:
    for command in (["check"], ["format", "--check"]):
        words = [sys.executable, "-m", "ruff", *command, "--config", str(CONFIG), "."]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


# Their first lines still name values.
def test_docstrings_of_functions_are_in_the_imperative() -> None:
    folders = [YTSTREAM, TOOLS, DOCTOR, MINICLUSTER]
    folders += [ROOT / name for name in ("local_extensions", "hooks", "tools", "bench")]
    words = [sys.executable, "-m", "ruff", "check", "--select", "D401", "--config", str(CONFIG)]
    done = subprocess.run([*words, *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
@pytest.mark.slow
def test_mypy_has_nothing_to_say() -> None:
    words = [sys.executable, "-m", "mypy", "--config-file", str(CONFIG)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_template_and_its_projects_lint_by_the_same_rules() -> None:
    mine, theirs = (
        tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["ruff"]
        for path in (CONFIG, PROJECT / "pyproject.toml")
    )
    for key in ("select", "ignore"):
        assert mine["lint"][key] == theirs["lint"][key]
    assert mine["line-length"] == theirs["line-length"]


def test_toml_that_is_not_made_by_a_loop_is_valid_before_rendering() -> None:
    for path in (PROJECT / "pyproject.toml", CONFIG):
        tomllib.loads(path.read_text(encoding="utf-8"))


def test_every_pin_has_a_reason_and_stands_in_one_place() -> None:
    assert all(len(entry.reason) > 5 for entry in versions.PINS)
    names = {entry.name for entry in versions.PINS if entry.scope != "ci"}
    pinned = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})==\d")
    for path in [*sources(".py", ".toml", ".md", ".yml", ".yaml", ".mk"), ROOT / "Makefile"]:
        # Sentences like "ytsaurus-client 0.13.55" are for people; requirements come from the list.
        assert not pinned.search(path.read_text(encoding="utf-8")), path


def test_no_path_of_one_machine_is_in_the_files() -> None:
    machine = re.compile(r"""["'` =(]/(root|work|tmp|Users|home/[a-z]+)/[A-Za-z0-9._-]""")
    for path in sources(".py", ".toml", ".md", ".yml", ".yaml", ".mk", ".json"):
        assert not machine.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("path", sorted(ROOT.glob("templates/*/expected.py")), ids=relative)
def test_the_expected_rows_are_plain_python(path: Path) -> None:
    """An oracle that asks the runtime, or Spark, agrees with it, right or wrong."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    named += [str(node.module) for node in froms if not node.level]
    assert {name.partition(".")[0] for name in named} <= sys.stdlib_module_names
    assert {node.module for node in froms if node.level} <= {"rows"}


_LEFT = {"thorough", "journey", "other_spark"}
"""Marks of what `make test` leaves to `make test-all`."""


def _marks(nodes: Iterable[ast.expr]) -> set[str]:
    """Return the names of marks that stand alone or are called, not those of their parameters."""
    plain = (node.func if isinstance(node, ast.Call) else node for node in nodes)
    return {node.attr for node in plain if isinstance(node, ast.Attribute)}


def _is_in_make_test(path: Path) -> bool:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            value = node.value
            if _marks(value.elts if isinstance(value, ast.List) else [value]) & _LEFT:
                return False
    tests = [node for node in body if isinstance(node, ast.FunctionDef)]
    return any(
        node.name.startswith("test_") and not _marks(node.decorator_list) & _LEFT for node in tests
    )


@pytest.mark.parametrize("source", [YTSTREAM, TOOLS, DOCTOR, MINICLUSTER], ids=relative)
def test_each_folder_with_tests_keeps_one_in_make_test(source: Path) -> None:
    """docs/architecture.md says so: a folder of the source that has a folder of tests."""
    tests = source.parents[1] / "tests"
    named = (one.name for one in source.iterdir() if not one.name.startswith("_"))
    folders = [tests / name for name in named if (tests / name).is_dir()]
    assert folders
    for folder in folders:
        assert any(map(_is_in_make_test, folder.rglob("test_*.py"))), folder
