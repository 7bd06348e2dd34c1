"""docs/api.md is what the code says, and names all that a job's files may use."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import ytstream
from tests.template.test_generated import CONFIG_KEYS
from tools import api
from ytstream.errors.error_codes import ErrorCode
from ytstream.settings.submit_section import SubmitSection

PAGE = api.PAGE.read_text(encoding="utf-8")


def _first_cells(part: str) -> set[str]:
    return set(re.findall(r"^\| `\[?(\w+)\]?` \|", part, re.MULTILINE))


def test_the_page_is_made_of_the_code() -> None:
    assert api.page() == PAGE, "call `python -m tools.api`"


def test_it_has_every_public_name() -> None:
    named = set(re.findall(r"^## `(\w+)`", PAGE, re.MULTILINE))
    assert named == {*ytstream.__all__} - {"__version__"}


def test_it_has_every_error_code() -> None:
    codes = PAGE.partition("### Error codes")[2].partition("\n## ")[0]
    assert _first_cells(codes) == {*ErrorCode}


def test_it_has_every_key_of_the_configuration() -> None:
    keys, _, rest = PAGE.partition("\n## Configuration\n")[2].partition("\n### `[submit]`")
    assert _first_cells(keys) == CONFIG_KEYS
    submit = rest.partition("\n### `accept`")[0]
    assert _first_cells(submit) == {key.name for key in fields(SubmitSection)}


def test_a_field_without_a_comment_is_an_error(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('class One:\n    a: int\n    """What ``it`` is."""\n    b: int = 1\n')
    with pytest.raises(LookupError, match=r"One\.b has no text"):
        api._comments(module, "One")
    module.write_text(module.read_text().replace("    b: int = 1\n", ""))
    assert api._comments(module, "One") == {"a": "What `it` is."}
