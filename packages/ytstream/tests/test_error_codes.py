"""Each error that a package raises has a code, and each code an error and a line in the docs."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project import ROOT
from ytstream import JobError, RestartableError
from ytstream.errors import OutageError, StalledError, SupersededError, UnmountedError, code_of
from ytstream.errors.error_codes import ErrorCode

SOURCES = sorted((ROOT / "packages").glob("ytstream*/src/**/*.py"))


def _calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node


def test_every_error_that_a_package_raises_names_its_code() -> None:
    without = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in SOURCES
        for call in _calls(path)
        if isinstance(call.func, ast.Name) and call.func.id == "JobError"
        if "code" not in {keyword.arg for keyword in call.keywords}
    ]
    assert not without


def test_every_code_is_used() -> None:
    used = set[str]()
    for path in SOURCES:
        used.update(re.findall(r"ErrorCode\.(\w+)", path.read_text(encoding="utf-8")))
    assert used == set(ErrorCode.__members__)


def test_the_page_lists_the_codes() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| code \|.*\n\|[ -|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*ErrorCode]


def test_an_error_of_the_users_own_code_needs_no_code() -> None:
    error = JobError("the feed is closed", "open it")
    assert (error.code, str(error)) == (ErrorCode.USER, "the feed is closed\n  -> open it")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (JobError("a", code=ErrorCode.CONFIG), ErrorCode.CONFIG),
        (SupersededError("a", "b", "c"), ErrorCode.SUPERSEDED),
        (RestartableError("a"), ErrorCode.TRANSIENT),
        (RestartableError("a", code=ErrorCode.QUEUE_RESHARDED), ErrorCode.QUEUE_RESHARDED),
        (OutageError("a", "b"), ErrorCode.OUTAGE),
        (UnmountedError("a"), ErrorCode.UNMOUNTED),
        (StalledError("a"), ErrorCode.STALLED),
        (ValueError("a"), ErrorCode.UNEXPECTED),
    ],
)
def test_an_error_keeps_its_code_through_a_pickle(error: Exception, code: ErrorCode) -> None:
    assert code_of(error) == code
    if not isinstance(error, UnmountedError):
        assert code_of(pickle.loads(pickle.dumps(error))) == code
