"""An error in the user's files is one line that names the place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark import SparkContext

from tests.support.helpers import refusal
from ytstream import Job, JobError
from ytstream.declaration.user_errors import BRING, imported, place, place_in


def _run(file: Path, text: str) -> object:
    file.write_text(text, encoding="utf-8")
    exec(compile(text, str(file), "exec"), {"__name__": "job"})  # as an import would
    return None


def _importing(file: Path, text: str) -> str:
    def import_job() -> Job:
        _run(file, text)
        raise AssertionError("the file has no mistake")

    return refusal(lambda: imported(import_job))


def test_the_line_of_an_error_is_named(tmp_path: Path) -> None:
    text = _importing(tmp_path / "tables.py", 'A = 1\nB = {}["price"]\n')
    assert "KeyError: 'price' (tables.py:2)" in text


def test_a_line_that_is_not_python_is_named(tmp_path: Path) -> None:
    assert "job.py:2: " in _importing(tmp_path / "job.py", "A = 1\nB = (\n")


def test_a_package_that_is_not_there_is_no_wrong_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    text = _importing(tmp_path / "transform.py", "import pandas as pd\n")
    assert "(transform.py:1)" in text
    assert f"-> {BRING}; a job of another processing" in text


_NO_SESSION = "SparkContext or SparkSession should be created first."


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ('F.udf("long")(lambda price: price)', _NO_SESSION),
        ('F.udf(lambda url: [url], "array<string>")', _NO_SESSION),
        ('F.col("price") > 3', "imported: AssertionError (transform.py:2)"),
    ],
    ids=["decorator", "function", "column"],
)
def test_what_needs_spark_at_an_import_is_refused_with_the_way_to_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, said: str
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)  # as in a new process
    file = tmp_path / "transform.py"
    text = _importing(file, f"from pyspark.sql import functions as F\nMADE = {made}\n")
    assert said in text
    assert "(transform.py:2)\n  -> Spark is not there yet when a module is imported: " in text
    assert "an object, @F.udf(LongType()) of pyspark.sql.types" in text
    fixed = "from pyspark.sql import functions as F, types as T\n"
    fixed += "MADE = F.udf(T.LongType())(lambda price: price)\n"
    assert _run(file, fixed) is None


def test_an_assertion_of_the_users_own_is_theirs(tmp_path: Path) -> None:
    text = _importing(tmp_path / "tables.py", "assert 1 > 2, 'no'\n")
    assert "AssertionError: no (tables.py:1)\n  -> correct that line" in text


def test_a_line_of_a_compiled_module_is_not_the_users() -> None:
    trace = '  File "/job/transform.py", line 7\n  File "pyarrow/error.pxi", line 92\n'
    assert place_in(trace) == " (transform.py:7)"


def test_a_refusal_is_left_as_it_is() -> None:
    def import_job() -> Job:
        raise JobError("no such column", "name another")

    assert refusal(lambda: imported(import_job)) == "no such column\n  -> name another"


def test_an_error_outside_of_the_users_files_has_no_place() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 // 0
    caught.value.__traceback__ = None
    assert place(caught.value) == ""
