"""The plugin of a user's own tests: a mistake in the user's files is one line that names it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException

from tests.support.examples import example, settings_of
from tests.support.helpers import refusal
from ytstream import JobError
from ytstream_tools.testing import pytest_fixtures

TEST = Path("test_transform.py")


def _raised(folder: Path, name: str, text: str) -> BaseException:
    """Return the error of a call of ``f`` in the file ``name`` of a user."""
    names: dict[str, Any] = {"AnalysisException": AnalysisException, "JobError": JobError}
    exec(compile(text, str(folder / name), "exec"), names)  # as an import would
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        names["f"]()
    return caught.value


def _told(error: BaseException) -> BaseException:
    """Return what pytest is given in the place of ``error``."""
    call = pytest_fixtures.pytest_runtest_call(cast(pytest.Item, SimpleNamespace(path=TEST)))
    next(call)
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        call.throw(error)
    return caught.value


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "raise AnalysisException('[UNRESOLVED_COLUMN] prise\\n  at org.apache.spark.Long')",
            "[UNRESOLVED_COLUMN] prise (transform.py:2)\n  -> correct that line",
        ),
        ("{}['x']", "KeyError: 'x' (transform.py:2)\n  -> correct that line"),
        ("raise JobError('no rows', 'yield some')", "no rows\n  -> yield some"),
    ],
)
def test_a_mistake_is_told_without_a_trace(tmp_path: Path, line: str, message: str) -> None:
    told = _told(_raised(tmp_path, "transform.py", f"def f():\n    {line}\n"))
    assert isinstance(told, pytest.fail.Exception)
    assert (told.msg, told.pytrace) == (message, False)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "line"),
    [("transform.py", "assert 1 == 2"), ("test_transform.py", "{}['x']")],
)
def test_a_failure_of_the_test_itself_is_left_to_pytest(
    tmp_path: Path, name: str, line: str
) -> None:
    error = _raised(tmp_path, name, f"def f():\n    {line}\n")
    assert _told(error) is error


def test_a_test_that_passes_returns_what_it_did() -> None:
    call = pytest_fixtures.pytest_runtest_call(cast(pytest.Item, SimpleNamespace(path=TEST)))
    next(call)
    with pytest.raises(StopIteration) as caught:
        call.send("done")
    assert caught.value.value == "done"


def test_a_declaration_that_the_commands_refuse_is_refused_here_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = example("transactional", "aggregate").job
    settings = settings_of(job, "//home/job")
    monkeypatch.setattr(pytest_fixtures, "load", lambda *_: settings)
    monkeypatch.setattr(pytest_fixtures, "root_of", lambda _: Path())
    fixture: Any = pytest_fixtures.base_settings
    found = fixture.__wrapped__
    cluster = SimpleNamespace(http="")
    assert found(cluster, job) is settings
    keyed = replace(job, processing="window", guarantee="at_least_once")
    assert "has the key auction under at_least_once: " in refusal(lambda: found(cluster, keyed))
