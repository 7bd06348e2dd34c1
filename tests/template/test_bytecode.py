"""Compiled templates are kept, and never used for another text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader, nodes

from local_extensions import TemplateExtension, extension
from tests.support.project import PROJECT, ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where bytecode goes; there is no such folder yet."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(extension, "_CACHE", tmp_path / "__pycache__")
    return tmp_path / "__pycache__"


def rendered(templates: Path) -> str:
    """Render a.txt as a process of its own would: with a new environment."""
    environment = Environment(
        extensions=[TemplateExtension], loader=FileSystemLoader(templates), autoescape=False
    )
    return environment.get_template("a.txt").render(name='"')


def test_a_template_is_compiled_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text('"{{ name | toml }}"')
    assert rendered(tmp_path) == r'"\""'
    assert len(list(folder.iterdir())) == 1
    monkeypatch.delattr(Environment, "_parse")
    assert rendered(tmp_path) == r'"\""'


def test_a_changed_template_is_compiled_again(folder: Path, tmp_path: Path) -> None:
    for text in ("one {{ name | toml }}", "two {{ name | toml }}"):
        (tmp_path / "a.txt").write_text(text)
        assert rendered(tmp_path) == text[:4] + r"\""
    assert len(list(folder.iterdir())) == 1


def test_a_damaged_entry_is_compiled_again(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("{{ name | toml }}")
    whole = rendered(tmp_path)
    (entry,) = folder.iterdir()
    held = entry.read_bytes()
    for left in (0, 10, len(held) // 2, len(held) - 1):
        entry.write_bytes(held[:left])
        assert rendered(tmp_path) == whole


def test_where_nothing_can_be_written_nothing_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("{{ name | toml }}")
    folder.write_text("no folder")
    assert rendered(tmp_path) == r"\""
    folder.unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(tmp_path) == r"\""
    assert not folder.exists()


def test_what_is_kept_depends_on_no_filter_of_ours() -> None:
    """Jinja computes a filter of a constant when it compiles: a later filter would not be asked."""
    environment = Environment(extensions=[TemplateExtension], autoescape=False)
    ours = set(environment.filters) - set(Environment(autoescape=False).filters)
    assert "toml" in ours
    for file in [*PROJECT.rglob("*"), *(ROOT / "templates").rglob("*")]:
        if file.is_file() and "__pycache__" not in file.parts:
            tree = environment.parse(file.read_text(encoding="utf-8"))
            used = [node for node in tree.find_all(nodes.Filter) if node.name in ours]
            assert not [node for node in used if isinstance(node.node, nodes.Const)], file
