"""Free text survives each language: what a parser of it reads is what was typed."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Callable

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from local_extensions import text

# What a terminal can send: no lone surrogates (refused: not UTF-8), no NUL (ends an argument).
TYPED = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
HOSTILE = (
    'say "hi"',
    "it's",
    "back\\slash\\",
    "two\nlines\r\nthree\rfour",
    "Ставки на Мосту",
    "emoji 🚀 👨‍👩‍👧",
    '"""); import os; os._exit(1)  # ',
    "{{ cookiecutter }} {% raw %} {# #}",
    "${{ github.token }} $(reboot) `reboot`",
    "a: b #c - d | *e* _f_ <g> [h](i) &amp; ~~j~~",
    "- item",
    "1. item",
    "    indented",
    "# heading",
    "\x07\x1b[31m\x7f\x85\xa0\u2028\ufeff\uffff",
)

READERS: dict[str, tuple[Callable[[str], str], Callable[[str], object]]] = {
    "toml": (text.quoted, lambda source: tomllib.loads(f"value = {source}")["value"]),
    "yaml": (text.quoted, lambda source: yaml.safe_load(f"value: {source}")["value"]),
    "json": (text.quoted, json.loads),
    "python": (text.python, ast.literal_eval),
    "docstring": (text.python, lambda source: ast.literal_eval(f'""{source}""')),
}


@pytest.mark.parametrize("language", READERS)
@given(typed=TYPED)
def test_every_text_is_read_back(language: str, typed: str) -> None:
    write, read = READERS[language]
    assert read(f'"{write(typed)}"') == typed


@pytest.mark.parametrize("typed", HOSTILE)
@pytest.mark.parametrize("language", READERS)
def test_hostile_text_is_read_back(language: str, typed: str) -> None:
    write, read = READERS[language]
    assert read(f'"{write(typed)}"') == typed


@pytest.mark.parametrize("write", [text.quoted, text.python, text.markdown])
def test_letters_stay_readable(write: Callable[[str], str]) -> None:
    typed = "Ставки ½ 入札 👨‍👩‍👧 naïve"
    assert write(typed) == typed


@pytest.mark.parametrize("write", [text.quoted, text.python, text.markdown])
@given(typed=TYPED)
def test_the_result_is_one_line(write: Callable[[str], str], typed: str) -> None:
    assert "\n" not in write(typed)
    assert "\r" not in write(typed)


def test_the_formatter_finds_nothing_to_change_in_a_quotation() -> None:
    assert text.python('say "hi"') == r"say \x22hi\x22"


MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(source: str) -> str:
    """Return the last block as rendered Markdown shows it; ``<br>`` breaks the line."""
    *_, last = (token for token in MARKDOWN.parse(source) if token.type == "inline")
    parts = []
    for token in last.children or []:
        assert token.type in {"text", "text_special"} or token.content == "<br>", token
        parts.append("\n" if token.type == "html_inline" else token.content)
    return "".join(parts)


def lines(typed: str) -> list[str]:
    """Return the lines without white space at their ends, which Markdown does not show."""
    return [line.strip() for line in typed.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


@pytest.mark.parametrize("frame", ["# {}\n", "{}\n", "| head |\n| --- |\n| {} |\n"])
@given(typed=TYPED.filter(str.strip))
@example(typed="- item")
@example(typed="1) item")
@example(typed="a\n\n    b")
@example(typed="<br>")
@example(typed="`code` ```")
@example(typed="https://example.com www.example.com a@example.com")
def test_markdown_shows_what_was_typed(frame: str, typed: str) -> None:
    assert shown(frame.format(text.markdown(typed))).split("\n") == lines(typed)
