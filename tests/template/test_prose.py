"""The check of the pages' words: it finds them in prose, and reads no code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import prose

RULES = {re.compile(r"\bcure\b", re.IGNORECASE): "fix", re.compile(r"\bhas to be\b"): "must be"}


def _found(text: str) -> list[tuple[int, str]]:
    return [(one.line, one.found) for one in prose.findings("page.md", text, RULES)]


def test_a_word_is_found_where_it_is() -> None:
    assert _found("One.\n\nThe Cure has\nto be known.\n") == [(3, "Cure"), (3, "has to be")]


@pytest.mark.parametrize(
    "text",
    [
        "Call `cure`.",
        "```sh\ncure; cure; cure\n```",
        "{% if cure %}yes{% endif %}",
        "See [this](cure.md).",
        "One; two.",
    ],
)
def test_code_and_good_prose_are_left_alone(text: str) -> None:
    assert _found(text) == []


def test_messages_are_read_and_docstrings_are_not() -> None:
    code = '"""A cure has to be."""\nprint("it has to be", f"a {cure} cure")\n'
    found = [(one.line, one.found) for one in prose.messages("m.py", code, RULES)]
    assert found == [(2, "has to be"), (2, "cure")]


def test_comments_of_a_generated_repository_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "templates/map").mkdir(parents=True)
    file = tmp_path / "templates/map/transform.py"
    file.write_text('"""One row in."""\n# It has to be mended; by you; now.\n')
    assert prose.pages() == [file]
    assert prose.main([]) == 1
    file.write_text('"""One row in."""\n# Fix it; by you; now.\n')
    assert prose.main([]) == 0


def test_a_paragraph_has_at_most_one_semicolon() -> None:
    assert _found("One; two\nthree; four.\n\n- one; two\n- one; two\n") == [(1, ";")]


def test_each_rule_finds_the_words_that_it_names(tmp_path: Path) -> None:
    rules = prose.rules()
    assert rules
    page = tmp_path / "page.md"
    page.write_text("The job is started anew, and the table has to be mended.\n")
    assert prose.main([str(page)]) == 1
    page.write_text("The job restarts, and you fix the table.\n")
    assert prose.main([str(page)]) == 0


@pytest.mark.thorough
def test_the_pages_keep_the_words() -> None:
    assert prose.main([]) == 0
