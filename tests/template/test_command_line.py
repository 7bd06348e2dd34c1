"""What the extension reads from the command line of cookiecutter and cruft."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_extensions import command_line
from local_extensions.command_line import Call, current_call
from tests.support.project import user_config


@pytest.fixture(autouse=True)
def without_cruft() -> Iterator[None]:
    """Unload cruft afterwards: while it is there, the extension forgets its modules."""
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "cruft"]:
        del sys.modules[name]


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> Call:
    monkeypatch.setattr(sys, "argv", [*words])
    return current_call.__wrapped__()


@pytest.mark.parametrize("program", ["/bin/cookiecutter", "/lib/cookiecutter/__main__.py"])
def test_answers_of_cookiecutter_are_its_last_words(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    found = call(monkeypatch, program, "gh:a/b", "--no-input", "pool=batch", "-o", "out", "x=a=b")
    assert found.command == "cookiecutter"
    assert found.given == {"pool": "batch", "x": "a=b"}
    assert found.arguments["no_input"] is True
    assert str(found.arguments["output_dir"]) == "out"


@pytest.mark.parametrize("program", ["/bin/pytest", "-c", "/lib/other/__main__.py", ""])
def test_the_words_of_another_program_are_not_answers(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    assert call(monkeypatch, program, "template", "pool=batch") == Call()


@pytest.mark.parametrize("words", [(), ("check",), ("--version",)])
def test_a_command_of_cruft_that_renders_nothing_has_no_answers(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    assert call(monkeypatch, "cruft", *words).given == {}


@pytest.mark.parametrize("command", ["create", "link"])
def test_answers_of_cruft_are_json(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    found = call(monkeypatch, "cruft", command, "t", "-y", "--extra-context", '{"pool": "batch"}')
    assert (found.command, found.given) == (f"cruft {command}", {"pool": "batch"})
    assert found.arguments["template_git_url"] == "t"


def test_answers_of_cruft_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (file := tmp_path / "answers.json").write_text('{"pool": "batch"}')
    found = call(monkeypatch, "cruft", "create", "t", "--extra-context-file", str(file))
    assert found.given == {"pool": "batch"}
    file.unlink()  # as where a hook runs, in another folder: a relative path leads nowhere
    assert call(monkeypatch, "cruft", "create", "t", "-E", str(file)).given == {}


def test_an_update_has_its_answers_in_the_render_of_the_new_commit_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored = {"pool": "streaming", "account": "analytics"}
    state = {"commit": "0" * 40, "context": {"cookiecutter": stored}}
    (tmp_path / ".cruft.json").write_text(json.dumps(state))
    (tmp_path / "repo/.git").mkdir(parents=True)
    monkeypatch.setattr(command_line, "TEMPLATE", tmp_path / "repo")
    words = ("update", "-p", str(tmp_path), "--variables-to-update", '{"pool": "batch"}')
    for rendered, given in ((False, {}), (True, {"pool": "batch"})):
        if rendered:
            (tmp_path / "current_template").mkdir()
            (tmp_path / "current_template/README.md").touch()
        found = call(monkeypatch, "cruft", *words)
        assert (found.given, found.stored) == (given, stored)


def test_a_replay_has_all_answers_that_cookiecutter_has_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = user_config(tmp_path)
    (tmp_path / "replay").mkdir()
    whole = {"cookiecutter": {"author": "A team"}}
    for file in ("mine.json", f"{command_line.TEMPLATE.name}.json"):
        (tmp_path / "replay" / file).write_text(json.dumps(whole))
    words = ("cookiecutter", "t", "--config-file", str(config))
    assert call(monkeypatch, *words).replayed == {}
    assert call(monkeypatch, *words, "--replay").replayed == whole["cookiecutter"]
    found = call(monkeypatch, *words, "--replay-file", "other/mine.json")
    assert found.replayed == whole["cookiecutter"]
