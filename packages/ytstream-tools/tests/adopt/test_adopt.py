"""A queue or a file becomes columns, sample rows and a first transform(); no edit is lost."""

from __future__ import annotations

import ast
import importlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yt.type_info as ti
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from yt import yson
from yt.wrapper.schema import TableSchema
from yt.yson import YsonUint64

from minicluster.testing import Running
from tests.support import all_types
from tests.support.examples import example
from tests.support.helpers import ContextOf, fails_with
from tests.support.project import generate
from tests.support.queues import make_queue
from tests.support.server_errors import denied
from ytstream import Column, Job, cli
from ytstream.cluster.client import Client, explained
from ytstream.errors.error_codes import ErrorCode
from ytstream.schema.columns import resolved
from ytstream_tools.adopt import (
    adoption,
    file_source,
    masks,
    owned_files,
    payloads,
    proposals,
    queue_source,
    reference_source,
    sample_files,
)
from ytstream_tools.adopt.queue_source import Take
from ytstream_tools.adopt.reference_source import Reference
from ytstream_tools.adopt.source_rows import SourceRows
from ytstream_tools.demo import sample_types, yson_rows
from ytstream_tools.demo.saved_rows import SavedRows
from ytstream_tools.testing.computed_outputs import unconnected, unstreamed_outputs_of

START = 1_704_067_200_000_000


def _transform(events: DataFrame) -> DataFrame:
    return events


_transform.__module__ = "bids_stream.transform"


def _job(processing: str = "map", guarantee: str = "transactional") -> Job:
    """Return a job of the package that generate() makes."""
    return replace(example(guarantee, processing).job, transform=_transform)


def _orders(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"order-{number}",
            "user": ("ann", "bob", "eve")[number % 3],
            "cents": 100 + number,
            "at": YsonUint64(START + number * 1_000_000 - (number % 7 == 0) * 3_000_000),
        }
        for number in range(count)
    ]


ORDERS = resolved(
    "QUEUE",
    [
        Column("id", "utf8", required=True),
        Column("user", "utf8"),
        Column("cents", "int64"),
        Column("at", "timestamp"),
    ],
)


def _adopt(
    root: Path,
    source: SourceRows,
    job: Job | None = None,
    *,
    masked: Sequence[str] = (),
    without: Sequence[str] = (),
    overwrite: bool = False,
    ask: adoption.Ask | None = None,
    references: Sequence[Reference] = (),
) -> str:
    """Adopt, and return what the terminal shows."""
    screen = io.StringIO()
    starter = adoption.starter_of(job or _job(), source, masked, without, references)
    console = Console(file=screen, width=120)
    adoption.adopt(root, starter, console, overwrite=overwrite, ask=ask)
    return screen.getvalue()


def _texts(root: Path) -> dict[str, bytes]:
    files = (file for folder in ("src", "sample", "tests") for file in (root / folder).rglob("*"))
    return {str(file.relative_to(root)): file.read_bytes() for file in files if file.is_file()}


def _lint(root: Path) -> None:
    for words in (["check", "."], ["format", "--check", "."]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def _tables(root: Path) -> dict[str, Any]:
    made: dict[str, Any] = {}
    exec((root / "src/bids_stream/tables.py").read_text(), made)
    return made


def test_a_queue_with_every_type_becomes_columns_that_resolve(
    client: Client, root: str, tmp_path: Path
) -> None:
    known = resolved("QUEUE", [all_types.ID, *all_types.COLUMNS])
    rows = all_types.odd_rows()
    path = make_queue(client, f"{root}/queue", [*known, *all_types.ODD], rows)
    source = queue_source.read(client, path, 100, Take.NEWEST)
    assert [column.name for column in source.left_out] == ["a.b", "C_UTF8", "either"]
    project = generate(tmp_path)
    _adopt(project, source)
    _lint(project)
    found = resolved("QUEUE", _tables(project)["QUEUE"])
    assert found[: len(known)] == known
    read = [column for column in all_types.ODD if column.name not in ("a.b", "C_UTF8", "either")]
    assert [column.name for column in found[len(known) :]] == [column.name for column in read]
    text = (project / "src/bids_stream/tables.py").read_text()
    assert "# Skipped: a.b, int64:" in text
    saved = yson_rows.read(project / "sample/rows.yson")
    assert len(saved) == len(rows)
    sample_types.verify("rows", found, saved)  # as each test of the repository does


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    "processing", ["map", "window", "deduplicate", "aggregate", "join", "merge"]
)
def test_a_first_transform_is_lint_free_for_each_type_that_has_one(
    client: Client, root: str, tmp_path: Path, processing: str
) -> None:
    path = make_queue(client, f"{root}/queue", ORDERS, _orders(50))
    source = queue_source.read(client, path, 40, Take.NEWEST)
    assert [row["id"] for row in source.rows] == [f"order-{number}" for number in range(10, 50)]
    project = generate(tmp_path, processing=processing)
    before = _texts(project)
    said = _adopt(project, source, _job(processing))
    _lint(project)
    is_new = (
        before["src/bids_stream/transform.py"] != _texts(project)["src/bids_stream/transform.py"]
    )
    assert is_new
    assert "proposal: key id: 40 different values in 40 of 40 rows" in said
    assert "proposal: group user: 3 different values in 40 of 40 rows" in said
    _fits(project, processing)
    if processing == "window":
        text = (project / "src/bids_stream/transform.py").read_text()
        assert 'withWatermark("at", LATENESS)' in text
        assert 'groupBy(F.window("at", WINDOW), "user")' in text


def _fits(root: Path, processing: str) -> list[dict[str, Any]]:
    """Import the repository as its tests do; return the rows of its reference table."""
    code = (
        "import json; from bids_stream.job import JOB; from sample import SAMPLE\n"
        "from ytstream.declaration.validation import verify; verify(JOB)\n"
        "from ytstream_tools.demo import sample_types\n"
        "sample_types.verify('rows', JOB.queue_columns, SAMPLE.make(100))\n"
        "if JOB.reference:\n"
        "    sample_types.verify('REFERENCE', JOB.reference_columns, SAMPLE.reference)\n"
        "print(json.dumps([SAMPLE.approved, SAMPLE.reference]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (root / "sample/expected.py").exists()
    assert "assert_approved" in (root / "tests/test_transform.py").read_text()
    approved, reference = json.loads(done.stdout)
    assert approved == len(yson_rows.read(root / "sample/rows.yson"))
    assert (len(reference) > 0) == (processing == "join")
    return list(reference)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    "processing", ["map", "window", "deduplicate", "aggregate", "join", "merge"]
)
def test_rows_without_a_group_or_a_time_leave_nothing_of_the_example(
    tmp_path: Path, processing: str
) -> None:
    """The example's test would expect a price of rows that have none."""
    columns = resolved("QUEUE", [Column("n", "int64", required=True), Column("x", "double")])
    rows = [{"n": number, "x": number / 7} for number in range(40)]
    project = generate(tmp_path, processing=processing)
    said = _adopt(project, SourceRows("orders", columns, [], rows), _job(processing))
    assert len(_fits(project, processing)) == (40 if processing == "join" else 0)
    transform = (project / "src/bids_stream/transform.py").read_text()
    if processing in ("window", "deduplicate", "merge"):
        assert "no column of the rows looks like an event time" in said
        return
    _lint(project)
    assert "price" not in transform
    if processing in ("aggregate", "join"):
        assert "proposal: no column has few values. n is the best: 40 different values" in said


def test_a_key_may_repeat_where_the_job_drops_repeats(tmp_path: Path) -> None:
    rows = [row for row in _orders(40) for _ in range(1 + (row["cents"] % 8 == 0))]
    project = generate(tmp_path, processing="deduplicate")
    said = _adopt(project, SourceRows("orders", ORDERS, [], rows), _job("deduplicate"))
    assert "proposal: key id: 40 different values in 45 of 45 rows" in said
    assert "proposal: LATENESS " in said
    assert "WINDOW" not in said
    text = (project / "src/bids_stream/transform.py").read_text()
    assert 'dropDuplicatesWithinWatermark(["id"])' in text
    assert 'unique=("id",)' in (project / "sample/rows.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ti.Int64, ti.Utf8], ids=["int64", "utf8"])
def test_rows_without_an_id_are_not_one_row(tmp_path: Path, kind: Any) -> None:
    """For Spark, null is a value like others: of all rows without an id one would pass."""
    columns = [
        replace(column, type=kind, required=False) if column.name == "id" else column
        for column in ORDERS
    ]
    rows = [
        {
            **row,
            "cents": 100 + n % 4,
            "id": None if n % 20 == 5 else n if kind == ti.Int64 else f"o{n}",
        }
        for n, row in enumerate(_orders(40))
    ]
    project = generate(tmp_path, processing="deduplicate")
    said = _adopt(project, SourceRows("orders", columns, [], rows), _job("deduplicate"))
    _lint(project)
    assert "proposal: key id: 38 different values in 38 of 40 rows" in said
    text = (project / "src/bids_stream/transform.py").read_text()
    assert 'F.coalesce(F.col("`id`").cast("string"), F.expr("uuid()"))' in text
    assert 'dropDuplicatesWithinWatermark(["identity"])' in text
    assert 'unique=("id",)' in (project / "sample/rows.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("processing", ["map", "aggregate", "join", "window", "deduplicate"])
def test_no_proposal_rejects_a_row_of_the_sample_or_tests_a_required_column(
    tmp_path: Path, processing: str
) -> None:
    columns = [
        replace(column, required=column.name in ("id", "at")) if column.name != "cents" else column
        for column in ORDERS
    ]
    rows = [{**row, "user": row["user"] if n % 9 else None} for n, row in enumerate(_orders(90))]
    project = generate(tmp_path, processing=processing)
    _adopt(project, SourceRows("orders", columns, [], rows), _job(processing))
    _lint(project)
    reject = _reject(project)
    if processing in ("window", "deduplicate"):  # no event time is required
        assert [*reject] == ["from the future"]
        return
    assert reject == {"without cents": "`cents` IS NULL"}
    for row in rows:
        row["cents"] = None
    _adopt(project, SourceRows("orders", columns, [], rows), _job(processing))
    assert _reject(project) == {"example": "false"}
    text = (project / "src/bids_stream/transform.py").read_text()
    assert "would reject 10 of 90 rows" in text


def _reject(project: Path) -> dict[str, str]:
    tree = ast.parse((project / "src/bids_stream/transform.py").read_text())
    (found,) = (
        node.value for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "REJECT"
    )  # fmt: skip
    assert isinstance(found, ast.Dict)
    return {
        ast.literal_eval(key): ast.unparse(value).strip("'")
        for key, value in zip(found.keys, found.values, strict=True)
        if key is not None
    }


@pytest.mark.thorough
def test_a_reference_table_that_is_edited_keeps_its_rows_or_gets_some(tmp_path: Path) -> None:
    project = generate(tmp_path, processing="join")
    tables = project / "src/bids_stream/tables.py"
    before = '    Column("auction", "int64", key=True),\n    Column("category", "utf8"),\n'
    after = before.replace('"auction", "int64"', '"user", "utf8"')
    after = after.replace('"category", "utf8"', '"category", "utf8", required=True')
    tables.write_text(tables.read_text().replace(before, after))
    reference = (
        Column("user", "utf8", key=True),
        Column("category", "utf8", required=True),
        Column("seller", "int64"),
    )
    job = replace(_job("join"), reference=reference)
    source = SourceRows("orders", ORDERS, [], _orders(5))
    _adopt(project, source, job, overwrite=True)
    assert _fits(project, "join")[0] == {
        "user": "ann", "category": "category of ann", "seller": None,
    }  # fmt: skip
    rows = project / "sample/rows.py"
    mine = '[{"user": "zoe", "category": "a", "seller": 5}]'
    text, count = re.subn(
        r"(REFERENCE: [^=]*= )\[.*?\n\]", rf"\1{mine}", rows.read_text(), flags=re.S
    )
    assert count == 1
    rows.write_text(text)
    _adopt(project, source, job, overwrite=True)
    assert _fits(project, "join") == [{"user": "zoe", "category": "a", "seller": 5}]


PAYLOAD = resolved("QUEUE", [Column("payload", "any")])


def _payloads(count: int) -> list[dict[str, Any]]:
    """Return rows that are one object each; a title is a text or a number."""
    return [
        {
            "payload": {
                "sha": f"c{number}",
                "author": {"name": ("ann", "bob", "eve")[number % 3], "odd key": number},
                "size": number if number % 2 else number / 4,
                "title": number if number % 5 == 0 else "ж",
                "files": ["a"],
                "$hidden": 1,
                **({} if number % 4 else {"late": True}),
            }
        }
        for number in range(count)
    ]


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("processing", ["map", "aggregate", "join"])
def test_a_queue_of_objects_is_taken_apart(tmp_path: Path, processing: str) -> None:
    project = generate(tmp_path, processing=processing)
    source = SourceRows("commits", PAYLOAD, [], _payloads(40))
    said = _adopt(project, source, _job(processing))
    _lint(project)
    _fits(project, processing)
    assert '{"sha":"c0","author":...' in said  # JSON, and no object of Python
    assert "proposal: group author_name: 3 different values in 40 of 40 rows" in said
    assert _reject(project) == {
        "without sha": "\"get_json_object(json_of(`payload`), '$.sha') IS NULL\""
    }
    found = {column.name: column.type for column in _tables(project)["OUTPUTS"]["output"]}
    parts = {
        "sha": "utf8", "author_name": "utf8", "author_odd_key": "int64", "size": "double",
        "title": "utf8", "files": "utf8", "late": "bool",
    }  # fmt: skip
    wanted: dict[str, dict[str, str]] = {
        "map": parts,
        "join": {**parts, "label": "utf8"},
        "aggregate": {"author_name": "utf8", "rows": "int64"},
    }
    assert found == wanted[processing]


@pytest.mark.thorough
@pytest.mark.spark
def test_the_first_transform_of_objects_gives_their_values(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = generate(tmp_path)
    _adopt(project, SourceRows("commits", PAYLOAD, [], _payloads(40)))
    monkeypatch.syspath_prepend(project)
    monkeypatch.syspath_prepend(project / "src")
    rows = [*_payloads(3), {"payload": {"size": 1}}, {"payload": None}]
    with _fresh_imports():
        made = unstreamed_outputs_of(spark, unconnected(_job_of_project()), rows)
    assert [row["$reason"] for row in made["rejected"]] == ["without sha"] * 2
    assert made["output"][2] == {
        "sha": "c2", "author_name": "eve", "author_odd_key": 2, "size": 0.5, "title": "ж",
        "files": '["a"]', "late": None,
    }  # fmt: skip
    assert made["output"][0]["title"] == "0"


def test_a_column_of_texts_and_numbers_comes_with_how_to_read_it(tmp_path: Path) -> None:
    rows = [{"title": 1776 if number % 7 == 0 else f"film {number}"} for number in range(40)]
    columns = resolved("QUEUE", [Column("title", ti.Yson)])
    project = generate(tmp_path)
    assert 'json_of("title") is its JSON' in _adopt(project, SourceRows("films", columns, [], rows))
    transform = (project / "src/bids_stream/transform.py").read_text()
    assert 'get_json_object(json_of("title"), "$")' in " ".join(transform.split())


def test_fields_that_are_not_the_same_thing_are_left_as_they_are() -> None:
    """A dictionary of many keys is text, as is a list; few objects are no structure."""
    rows: list[dict[str, Any]] = [
        {"a": {"by_id": {f"u{n}": 1 for n in range(50)}, "n": 2**63, "N": 1}, "b": [n], "id": 1}
        for n in range(3)
    ]
    columns = [Column(name, ti.Yson) for name in ("a", "b")] + [Column("ID", ti.Int64)]
    found = payloads.of(columns, [{**row, "ID": 1} for row in rows])
    assert [(part.reference, part.column.type) for part in found] == [
        ("a.by_id", ti.Utf8), ("a.n", ti.Utf8),
    ]  # fmt: skip
    assert payloads.of([Column("a", ti.Yson)], [{"a": "text"}, {"a": {"x": 1}}]) == []


def test_rows_of_all_queues_come_with_the_columns_that_all_have(
    client: Client, root: str, tmp_path: Path
) -> None:
    other = [replace(c, required=False) for c in ORDERS if c.name != "cents"]
    other.append(Column("cents", ti.Utf8))
    left = make_queue(client, f"{root}/left", ORDERS, _orders(20))
    rows = [{**row, "cents": "1", "user": "zoe"} for row in _orders(20)]
    right = make_queue(client, f"{root}/right", [*other, Column("more", ti.Int64)], rows)
    empty = make_queue(client, f"{root}/empty", ORDERS, [])
    source = queue_source.read_all(client, [left, right, empty], 12, Take.NEWEST)
    assert {column.name: column.required for column in source.columns} == {
        "id": False, "user": False, "at": False,
    }  # fmt: skip
    assert [row["user"] == "zoe" for row in source.rows] == [False, True] * 4
    assert {left.name: left.why for left in source.left_out} == {
        "cents": "the queues have other types for it: int64, utf8",
        "more": f"{left} has no such column that a job can read",
    }
    assert f"{empty} has no rows now" in source.notes
    project = generate(tmp_path)
    assert f"newest: 4 of {left}, 4 of {right}" in _adopt(project, source).replace("the ", "")
    with fails_with(ErrorCode.NO_ROWS):
        queue_source.read_all(client, [empty], 12, Take.NEWEST)


def _table(client: Client, path: str, columns: list[dict[str, Any]], rows: list[Any]) -> str:
    client.create("table", path, recursive=True, attributes={"dynamic": True, "schema": columns})
    client.mount_table(path, sync=True)
    client.insert_rows(path, rows)
    return path


PEOPLE = [
    {"name": "person", "type": "utf8", "sort_order": "ascending"},
    {"name": "cents", "type": "int64"},
    {"name": "city", "type": "utf8"},
]


@pytest.mark.thorough
@pytest.mark.slow
def test_a_join_gets_the_columns_of_its_table_and_the_rows_of_the_samples_keys(
    client: Client, root: str, tmp_path: Path, context_of: ContextOf
) -> None:
    """The key has another name than in the queue, and another column is in both."""
    rows = [{"person": name, "cents": 1, "city": "ж"} for name in ("ann", "bob", "zoe")]
    path = _table(client, f"{root}/people", PEOPLE, rows)
    context = context_of("transactional", "join")
    context = replace(context, settings=replace(context.settings, reference=path))
    source = SourceRows("orders", ORDERS, [], _orders(20))
    found, notes = reference_source.read_all(context, source)
    assert notes == []
    project = generate(tmp_path, processing="join")
    said = _adopt(project, source, _job("join"), references=found)
    assert f"reference {path}: 2 rows for 3 keys of the sample, by person = user" in said
    _lint(project)
    assert _fits(project, "join") == rows[:2]
    output = _tables(project)["OUTPUTS"]["output"]
    assert [column.name for column in output][-2:] == ["reference_cents", "city"]
    text = (project / "src/bids_stream/transform.py").read_text()
    assert 'F.col("`person`").alias("user")' in text
    hidden, notes = reference_source.read_all(context, source, ["user"])
    assert hidden == []
    assert "MASK hides user" in notes[0]


@pytest.mark.thorough
@pytest.mark.slow
def test_references_of_lookup_get_rows_for_the_samples_keys(
    client: Client, root: str, tmp_path: Path, context_of: ContextOf
) -> None:
    path = _table(client, f"{root}/people", PEOPLE, [{"person": "eve", "cents": 5, "city": "a"}])
    context = context_of("transactional", "map")
    columns = [Column("person", "utf8", key=True), Column("city", "utf8")]
    job = replace(context.job, references={"people": columns, "gone": columns})
    given = {"people": path, "gone": f"{root}/gone"}
    context = replace(context, job=job, settings=replace(context.settings, references=given))
    source = SourceRows("orders", ORDERS, [], _orders(20))
    found, notes = reference_source.read_all(context, source)
    assert notes == []
    project = generate(tmp_path)
    said = _adopt(project, source, replace(_job(), references=job.references), references=found)
    assert f"{root}/gone: the table is missing, so it has no rows in sample/rows.py" in said
    _lint(project)
    code = "import json; from sample import SAMPLE; print(json.dumps(SAMPLE.references))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": f"{project / 'src'}:{project}"},
    )  # fmt: skip
    assert json.loads(done.stdout) == {"people": [{"person": "eve", "city": "a"}], "gone": []}


def test_a_reference_without_readable_rows_gets_a_row_for_each_key(tmp_path: Path) -> None:
    """Its keys are those of the sample, which may be masked. A `join` may have no REFERENCE."""
    columns = {"people": [Column("user", "utf8", key=True), Column("age", "int64", required=True)]}
    columns["people"].append(Column("city", "utf8"))
    columns["pairs"] = [Column("user", "utf8", key=True), Column("shop", "utf8", key=True)]
    job = replace(_job("join"), reference=(), references=columns)
    unread = reference_source.all_unread(job, {"people": "//home/people"}, "it is unmounted")
    source = SourceRows("orders", ORDERS, [], _orders(20))
    starter = adoption.starter_of(job, source, ("user",), (), unread)
    people, pairs = starter.looked_up
    masked = {row["user"] for row in starter.source.rows}
    assert len(masked) == 3
    assert masked.isdisjoint(row["user"] for row in source.rows)
    assert [*people.rows] == [
        {"user": name, "age": 0, "city": f"city of {name}"}
        for name in dict.fromkeys(row["user"] for row in starter.source.rows)
    ]
    assert "//home/people: it is unmounted, so its 3 rows in sample/ are made up" in str(people)
    assert not pairs.rows
    assert "has no keys under the names user, shop: write some" in str(pairs)
    text = sample_files.sample(starter)
    assert "references=rows.REFERENCES" in text
    assert "rows.REFERENCE," not in text
    assert '"pairs": []' in sample_files.looked_up_rows(starter)


def test_windows_need_no_group(tmp_path: Path) -> None:
    rows = [{"at": row["at"], "celsius": row["cents"] / 7} for row in _orders(40)]
    columns = resolved("QUEUE", [Column("at", "timestamp"), Column("celsius", "double")])
    project = generate(tmp_path, processing="window")
    said = _adopt(project, SourceRows("orders", columns, [], rows), _job("window"))
    assert "│ 2024-01-01T00:00:02Z │" in said
    _lint(project)
    text = (project / "src/bids_stream/transform.py").read_text()
    assert '.groupBy(F.window("at", WINDOW))' in text
    assert 'the sample is about 8 windows long.\nWINDOW = "5 seconds"' in text
    names = [column.name for column in _tables(project)["OUTPUTS"]["output"]]
    assert names == ["window_start", "window_end", "rows"]


def test_a_column_whose_name_the_job_adds_is_left_out(tmp_path: Path) -> None:
    columns = resolved("QUEUE", [Column("row_index", "int64"), Column("n", "int64")])
    source = SourceRows("orders", columns, [], [{"row_index": 5, "n": number} for number in (1, 2)])
    for guarantee, is_left in (("transactional", False), ("idempotent", True)):
        starter = adoption.starter_of(_job(guarantee=guarantee), source, (), ())
        assert [column.name for column in starter.source.left_out] == ["row_index"] * is_left
        assert all(("row_index" in row) != is_left for row in starter.source.rows)
    with fails_with(ErrorCode.USAGE):
        adoption.starter_of(_job(guarantee="idempotent"), source, (), ("n",))


def test_a_name_with_any_character_is_no_code(tmp_path: Path) -> None:
    """It is in comments, in a docstring, in reasons and in lists."""
    name = 'a"""\\\nb'
    columns = resolved("QUEUE", [Column(name, "utf8"), Column("event_time", "int64")])
    rows = [{name: f"r{number}", "event_time": START // 10**6 + number} for number in range(20)]
    project = generate(tmp_path, processing="deduplicate", guarantee="at_least_once")
    job = _job("deduplicate", "at_least_once")
    _adopt(project, SourceRows("orders", columns, [], rows), job)
    _lint(project)
    text = (project / "src/bids_stream/transform.py").read_text()
    # The column keeps its type for the output.
    assert 'withColumn("event_timestamp"' in text


@pytest.mark.thorough
def test_the_last_repetition_of_a_sample_is_in_the_past(tmp_path: Path) -> None:
    """Else most rows of the demo would be rejected: they would be from the future."""
    for days in (1, 100, 3_000):
        rows = [
            {**row, "at": YsonUint64(START - number * days * 86_400_000_000 // 100)}
            for number, row in enumerate(_orders(100))
        ]
        (folder := tmp_path / str(days)).mkdir()
        project = generate(folder, processing="window")
        _adopt(project, SourceRows("orders", ORDERS, [], rows), _job("window"))
        made: dict[str, Any] = {"__file__": str(project / "sample/rows.py"), "__name__": "rows"}
        exec((project / "sample/rows.py").read_text(), made)
        times = [int(row["at"]) for row in made["rows"](30_000)]
        assert times == sorted(times)
        assert times[0] == made["START_US"] >= 0
        assert times[-1] < time.time_ns() // 1_000
        assert times[-1] - times[0] > 0


def test_nothing_is_overwritten_without_a_terminal_or_a_yes(tmp_path: Path) -> None:
    project = generate(tmp_path)
    source = SourceRows("orders", ORDERS, [], _orders(5))
    file = project / "src/bids_stream/tables.py"
    file.write_text(file.read_text() + "\n#: Mine.\nMORE = 1\n")
    before = _texts(project)
    with fails_with(ErrorCode.FILE):
        _adopt(project, source)
    assert "nothing was written" in _adopt(project, source, ask=lambda _: False)
    assert _texts(project) == before
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return True

    _adopt(project, source, ask=ask)
    assert "tables.py its QUEUE is replaced" in asked[0]
    made = _tables(project)
    assert made["MORE"] == 1
    assert [column.name for column in made["QUEUE"]] == ["id", "user", "cents", "at"]
    assert "price_eur" in [column.name for column in made["OUTPUTS"]["output"]]
    # The logic is not touched where the outputs are not.
    assert _texts(project)["src/bids_stream/transform.py"] == before["src/bids_stream/transform.py"]


@pytest.mark.thorough
def test_what_adopt_has_written_is_no_edit_for_the_next_one(tmp_path: Path) -> None:
    project = generate(tmp_path)
    source = SourceRows("orders", ORDERS, [], _orders(5))
    _adopt(project, source)
    fewer = source.without(["user"], "nobody needs it")
    assert "overwritten" not in _adopt(project, replace(fewer, origin="fewer"))
    text = (project / "src/bids_stream/tables.py").read_text()
    assert "user" not in text.partition("QUEUE = ")[2].replace("# Skipped: user", "")
    transform = project / "src/bids_stream/transform.py"
    transform.write_text(transform.read_text() + "\n#: Mine.\nMORE = 1\n")
    rows = project / "sample/rows.py"
    rows.write_text(rows.read_text() + "\n#: Mine.\nMORE = 1\n")
    with fails_with(ErrorCode.FILE) as caught:
        _adopt(project, source)
    assert "sample/rows.py is overwritten" in caught.value.message
    assert "rows.yson" not in caught.value.message
    _adopt(project, source, overwrite=True)
    assert "MORE" in transform.read_text()
    assert "MORE" not in rows.read_text()


@pytest.mark.parametrize("is_edited", [False, True])
def test_the_comment_of_the_queue_is_not_the_examples_where_only_the_queue_is_new(
    tmp_path: Path, is_edited: bool
) -> None:
    project = generate(tmp_path, processing="sessions", guarantee="at_least_once")
    file = project / "src/bids_stream/tables.py"
    if is_edited:
        file.write_text(file.read_text() + "\n#: Of bids in Nexmark. Mine.\nMORE = 1\n")
    job = _job("sessions", "at_least_once")
    for origin in ("orders.jsonl", "//home/orders"):
        source = SourceRows(origin, ORDERS, [], _orders(5))
        _adopt(project, source, job, overwrite=is_edited)
        text = file.read_text()
        comment = text.partition("QUEUE = ")[0].rpartition("\n\n")[2]
        assert comment == (
            f"#: By `make adopt`, from {origin}.\n#: All queues have these columns.\n"
            "#: The job ignores other columns of a queue.\n"
        )
        assert ("Of bids in Nexmark. Mine." in text) == is_edited
        assert '"first_bid"' in text


SECOND = 1_000_000


@pytest.mark.parametrize(
    ("step", "behind", "apart", "window", "lateness", "of_repeats"),
    [
        (9, 0, 0, "30 minutes", "10 seconds", "10 seconds"),
        (9, 9, 0, "30 minutes", "10 seconds", "10 seconds"),
        (9, 10, 0, "30 minutes", "30 seconds", "30 seconds"),
        (9, 200, 0, "30 minutes", "5 minutes", "5 minutes"),
        (9, 0, 200, "30 minutes", "10 seconds", "5 minutes"),
        (3_600, 0, 0, "7 days", "1 hour", "1 hour"),
    ],
)
def test_lengths_follow_what_the_sample_has(
    step: int, behind: int, apart: int, window: str, lateness: str, of_repeats: str
) -> None:
    """A window is of hours where the sample is of days, but no row is hours late."""
    seconds = [(f"r{number}", number * step) for number in range(2_001)]
    seconds.insert(1_001, ("late", 1_000 * step - behind))
    seconds.append(("r2000", 2_000 * step + apart))
    rows = [{"id": name, "at": YsonUint64(START + at * SECOND)} for name, at in seconds]
    columns = resolved("QUEUE", [Column("id", "utf8"), Column("at", "timestamp")])
    found = proposals.of(columns, rows)
    assert (found.window, found.lateness) == (window, lateness)
    assert found.lateness_of_repeats == of_repeats


def test_a_queue_that_gives_no_rows_is_refused(client: Client, root: str, cluster: Running) -> None:
    def read(path: str) -> None:
        queue_source.read(client, path, 10, Take.NEWEST)

    with fails_with(ErrorCode.USAGE):
        read(f"{root}/nothing")
    empty = make_queue(client, f"{root}/empty", ORDERS)
    with fails_with(ErrorCode.NO_ROWS):
        read(empty)
    table = f"{root}/sorted"
    keyed = TableSchema(strict=True, unique_keys=True)
    keyed.add_column("id", ti.Int64, sort_order="ascending")
    keyed.add_column("value", ti.Optional[ti.Int64])
    schema = keyed.to_yson_type()
    client.create("table", table, attributes={"dynamic": True, "schema": schema})
    with fails_with(ErrorCode.USAGE):
        read(table)
    unmounted = f"{root}/unmounted"
    schema = TableSchema(strict=True).add_column("id", ti.Int64).to_yson_type()
    client.create("table", unmounted, attributes={"dynamic": True, "schema": schema})
    with fails_with(ErrorCode.NOT_PROVISIONED):
        read(unmounted)
    full = make_queue(client, f"{root}/full", ORDERS, _orders(3))
    cluster.client.faults.add(method="select_rows", action="fail", error=denied("read", full))
    context = example("transactional", "map")
    from tests.support.examples import settings_of

    try:
        with fails_with(ErrorCode.PERMISSION), explained(settings_of(context.job, root)):
            read(full)
    finally:
        cluster.client.faults.clear()


def test_300_columns_are_all_there_and_the_preview_is_short(
    client: Client, root: str, tmp_path: Path
) -> None:
    columns = resolved("QUEUE", [Column(f"column_{n:03}", "int64") for n in range(300)])
    rows = [{column.name: number for column in columns} for number in range(10)]
    path = make_queue(client, f"{root}/wide", columns, rows)
    project = generate(tmp_path)
    said = _adopt(project, queue_source.read(client, path, 100, Take.NEWEST))
    assert len(_tables(project)["QUEUE"]) == 300
    assert yson_rows.read(project / "sample/rows.yson") == rows
    assert "and 294 more columns" in said
    assert "column_299" not in said
    _lint(project)


def test_a_mask_keeps_length_null_and_equality_and_no_file_has_the_original(tmp_path: Path) -> None:
    rows = [
        {**row, "user": None if n == 4 else f"somebody-{n % 3}"} for n, row in enumerate(_orders(9))
    ]
    project = generate(tmp_path)
    said = _adopt(project, SourceRows("orders", ORDERS, [], rows), masked=["user", "id", "cents"])
    saved = yson_rows.read(project / "sample/rows.yson")
    for row, other in zip(rows, saved, strict=True):
        assert (row["user"] is None) == (other["user"] is None)
        assert len(str(row["user"])) == len(str(other["user"]))
        assert len(row["id"]) == len(other["id"])
        assert len(str(row["cents"])) == len(str(other["cents"]))
    first = {str(row["user"]): other["user"] for row, other in zip(rows, saved, strict=True)}
    assert [first[str(row["user"])] for row in rows] == [row["user"] for row in saved]
    assert len({row["user"] for row in saved}) == 4
    for text in (*_texts(project).values(), said.encode()):
        assert b"somebody-" not in text
        assert b"order-" not in text
    again = masks.masked(rows, ORDERS, ["user"])
    assert again[0]["user"] != saved[0]["user"]  # another key each time


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("string", b"\xff\x00\x01\x02\x03\x04\x05\x06"),
        ("json", '{"name": "somebody"}'),
        ("uint64", YsonUint64(2**64 - 1)),
        ("int8", -100),
        ("double", -1234.5),
        ("any", {"who": ["somebody", {"n": 123_456_789}]}),
        (ti.List[ti.Utf8], ["somebody", "nobody-else"]),
    ],
)
def test_a_masked_value_still_fits_its_column(type_: Any, value: Any) -> None:
    columns = resolved("QUEUE", [Column("secret", type_)])
    (row, null) = masks.masked([{"secret": value}, {"secret": None}], columns, ["secret"])
    assert row["secret"] != value
    assert null["secret"] is None
    sample_types.verify("rows", columns, [row])


def test_no_part_of_a_free_value_stays() -> None:
    text = b'{alice=<from="bob">[#; <from="bob">%true; {carol="dave"}]}'
    (row,) = masks.masked(
        [{"secret": yson.loads(text)}], resolved("QUEUE", [Column("secret", "any")]), ["secret"]
    )
    line = yson_rows.line_of(row)
    for name in (b"alice", b"bob", b"carol", b"dave", b"from"):
        assert name not in line
    assert b"#" in line
    assert b"%true" in line


def test_a_mask_at_a_path_leaves_keys_and_other_values_as_they_are() -> None:
    columns = resolved("QUEUE", [Column("payload", "any"), Column("id", "int64")])
    rows: list[dict[str, Any]] = [
        {"id": 1, "payload": {"author": {"email": "ann@x", "name": "ann"}, "to": [{"n": 1}]}},
        {"id": 2, "payload": {"author": {"email": "ann@x"}, "to": []}},
        {"id": 3, "payload": {"author": None}},
        {"id": 4, "payload": None},
        {"id": 5, "payload": yson.loads(b'{author={email="bob@x"};to=[{n=123456};{n=7}]}')},
    ]
    made = masks.masked(rows, columns, ["payload.author.email", "payload.to.n"])
    first, second = made[0]["payload"], made[1]["payload"]
    assert first["author"]["email"] == second["author"]["email"] != "ann@x"
    assert len(first["author"]["email"]) == 5
    assert first["author"]["name"] == "ann"
    assert first["to"] != [{"n": 1}]
    assert [*first["to"][0]] == ["n"]
    assert made[2:4] == rows[2:4]
    line = yson_rows.line_of(made[4])
    assert b"bob@x" not in line
    assert b"123456" not in line
    assert b'"email"=' in line
    for wrong in ("payload.author.emial", "other.x", "id.x"):
        with fails_with(ErrorCode.USAGE):
            masks.masked(rows, columns, [wrong])


def test_a_short_value_is_not_its_own_mask() -> None:
    columns = resolved("QUEUE", [Column("digit", "int64"), Column("letter", "utf8")])
    rows = [{"digit": number, "letter": "abcdefghij"[number]} for number in range(10)]
    for _ in range(20):  # each time with another key
        for row, other in zip(rows, masks.masked(rows, columns, ["digit", "letter"]), strict=True):
            assert row["digit"] != other["digit"]
            assert row["letter"] != other["letter"]


def test_what_cannot_be_masked_or_is_unknown_is_refused() -> None:
    columns = resolved("QUEUE", [Column("at", "timestamp"), Column("ok", "bool")])
    for name in ("at", "ok", "other"):
        with fails_with(ErrorCode.USAGE):
            masks.masked([{"at": 1, "ok": True}], columns, [name])


def test_rows_can_be_spread_over_what_is_there(client: Client, root: str) -> None:
    path = make_queue(client, f"{root}/queue", ORDERS, _orders(1_000))
    found = queue_source.read(client, path, 20, Take.SPREAD).rows
    numbers = [int(row["id"].removeprefix("order-")) for row in found]
    assert len({*numbers}) == 20
    assert (min(numbers), max(numbers)) == (0, 999)
    assert sum(250 <= number < 750 for number in numbers) >= 8


FILES = {
    "rows.jsonl": '{"n": 1, "x": 1, "t": "a"}\n{"n": null, "x": 2.5, "t": "c"}\n',
    "rows.csv": "n,x,t\n1,1,a\n,2.5,c\n",
    "rows.yson": '{"n"=1;"x"=1.;"t"="a"};\n{"n"=#;"x"=2.5;"t"="c"};\n',
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_columns_and_rows(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    found = file_source.read(tmp_path / name, 10, Take.NEWEST)
    columns = {column.name: (column.type, column.required) for column in found.columns}
    assert columns["n"] == (ti.Int64, False)
    assert columns["x"] == (ti.Double, True)
    assert columns["t"] == (ti.Utf8, True)
    assert [row["x"] for row in found.rows] == [1.0, 2.5]
    assert [row["n"] for row in found.rows] == [1, None]


def test_a_file_may_have_what_other_programs_write(tmp_path: Path) -> None:
    (file := tmp_path / "index.csv").write_text(",n\n0,1\n1,2\n")  # pandas, DataFrame.to_csv
    found = file_source.read(file, 10, Take.NEWEST)
    assert [column.name for column in found.columns] == ["n"]
    assert [(column.name, column.why) for column in found.left_out] == [("", "it has no name")]
    (file := tmp_path / "rows.jsonl").write_text(
        '{"t": "two\u2028lines", "n": 340282366920938463463374607431768211455}\n'
        '{"t": "\x85", "n": -1}\n'
    )
    found = file_source.read(file, 10, Take.NEWEST)
    assert [row["t"] for row in found.rows] == ["two\u2028lines", "\x85"]


BIG = 340282366920938463463374607431768211455


@pytest.mark.parametrize(
    ("name", "lines", "type_", "values"),
    [
        ("codes.csv", "01234\n00007", ti.Utf8, ["01234", "00007"]),
        ("ids.csv", "1234567890123456789\n-1", ti.Int64, [1234567890123456789, -1]),
        ("ids.csv", "18446744073709551615\n0", ti.Uint64, [2**64 - 1, 0]),
        ("ids.csv", f"{BIG}\n1", ti.Utf8, [str(BIG), "1"]),
        ("prices.csv", "1.50\n2.00", ti.Double, [1.5, 2.0]),
        ("prices.csv", "1\n2.5", ti.Double, [1.0, 2.5]),
        ("versions.csv", "1.10\n1.1", ti.Utf8, ["1.10", "1.1"]),
        ("precise.csv", "0.12345678901234567890\n1", ti.Utf8, ["0.12345678901234567890", "1"]),
        ("numbers.csv", "1\nNA", ti.Int64, [1, None]),
        ("countries.csv", "NA\nDE", ti.Utf8, ["NA", "DE"]),
        ("n.jsonl", f'{{"x": {BIG}}}\n{{"x": 1.5}}', ti.Utf8, [str(BIG), "1.5"]),
        ("n.jsonl", '{"x": 9007199254740993}\n{"x": 1.5}', ti.Utf8, ["9007199254740993", "1.5"]),
        ("n.jsonl", '{"x": 18446744073709551615}\n{"x": 1}', ti.Uint64, [2**64 - 1, 1]),
        ("n.jsonl", '{"x": 0.12345678901234567890}', ti.Utf8, ["0.12345678901234567890"]),
        ("n.jsonl", f'{{"x": [{BIG}, 1]}}', ti.Yson, [[str(BIG), 1]]),
    ],
)
def test_every_value_of_a_file_comes_back_the_same(
    name: str, lines: str, type_: Any, values: list[Any], tmp_path: Path
) -> None:
    header = "x\n" if name.endswith(".csv") else ""
    (file := tmp_path / name).write_text(f"{header}{lines}\n")
    found = file_source.read(file, 10, Take.NEWEST)
    assert [column.type for column in found.columns] == [type_]
    assert [row["x"] for row in found.rows] == values
    assert [*map(yson_rows.line_of, found.rows)]
    assert [note.partition(":")[0] for note in found.notes] == ["x"] * (name == "numbers.csv")


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("a.csv", "1\n2\n3", "int64, from 3 values"),
        ("a.csv", "1\n2\nabc", "utf8, from 3 values: 2 of 3 values are numbers, but not 'abc'"),
        ("a.csv", "01\n2", "utf8, from 2 values: its values are numbers, but '01' would change"),
        ("a.csv", "1.10\n1.1", "utf8, from 2 values: its values are numbers, but no type holds"),
        ("a.csv", '1\n""', "int64, from 1 value of 2 rows"),
        ("a.jsonl", '{"x": 7}\n{"x": "a"}\n{"x": "b"}', "any, from 3 values: 2 texts, 1 number"),
        ("a.jsonl", '{"x": 7}\n{}', "int64, from 1 value of 2 rows"),
    ],
)
def test_each_column_says_what_was_inferred_and_from_what(
    name: str, lines: str, said: str, tmp_path: Path
) -> None:
    header = "x\n" if name.endswith(".csv") else ""
    (file := tmp_path / name).write_text(f"{header}{lines}\n")
    source = file_source.read(file, 10, Take.NEWEST)
    (line,) = source.inferred
    assert line.startswith(f"x: {said}")
    screen = Console(file=io.StringIO(), width=200, record=True)
    adoption.show(screen, adoption.starter_of(_job(), source, (), ()), [])
    assert f"column {line}\n" in screen.export_text()


def test_a_file_of_many_columns_has_a_line_for_those_in_doubt(tmp_path: Path) -> None:
    names = ",".join(f"c{number}" for number in range(100))
    ones, odd = ",".join("1" * 100), ",".join(["1"] * 99 + ["x"])
    (file := tmp_path / "wide.csv").write_text(f"{names}\n{ones}\n{odd}\n")
    lines = file_source.read(file, 10, Take.NEWEST).inferred
    assert lines[-2:] == ["c99: utf8, from 2 values: 1 of 2 values are numbers, but not 'x'",
                          "... and 69 more"]  # fmt: skip
    assert "c98: int64, from 2 values" not in lines


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_of_a_file_is_found(separator: str, tmp_path: Path) -> None:
    lines = [["id", "price"], ["1", "2,5" if separator != "," else '"2,5"']]
    (file := tmp_path / "rows.csv").write_text("\n".join(map(separator.join, lines)))
    assert file_source.read(file, 10, Take.NEWEST).rows == [{"id": 1, "price": "2,5"}]


@pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "\ufeffsep=;\r\n"])
def test_the_first_line_of_a_file_for_excel_names_the_separator(first: str, tmp_path: Path) -> None:
    (file := tmp_path / "rows.csv").write_bytes(f"{first}id;price,eur\n1;2,5\n".encode())
    assert file_source.read(file, 10, Take.NEWEST).rows == [{"id": 1, "price,eur": "2,5"}]


@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        ("a.csv", "a,b\n1,2\n1,2,3\n", 3, "3 fields, but the header has 2"),
        ("a.csv", 'a,b\n"1\n2",2\n\n1\n', 5, "1 field, but the header has 2"),
        ("a.csv", "a,b,a\n1,2,3\n", 1, "2 columns are named 'a'"),
        ("a.csv", "a;b,c\n1;2,3\n", 1, "not clear whether a comma or a semicolon"),
        ("a.csv", "sep=;\na;b\n1;2;3\n", 3, "3 fields, but the header has 2"),
        ("a.csv", 'a,b\n1,"2\n', 2, "unexpected end of data"),
        ("a.csv", b"a,b\n1,\xff\n", 2, "0xff is not UTF-8"),
        ("a.jsonl", '{"a": 1}\n{"a": 1, "a": 2}\n', 2, "the name 'a' twice"),
        ("a.jsonl", '{"a": 1}\n\n{"a": "\\ud800"}\n', 3, "column 'a' has \\ud800, one half"),
        ("a.jsonl", "[1]\n", 1, "not an object"),
    ],
)
def test_a_line_that_does_not_fit_is_named(
    name: str, text: str | bytes, line: int, said: str, tmp_path: Path
) -> None:
    (file := tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with fails_with(ErrorCode.FILE) as caught:
        file_source.read(file, 10, Take.NEWEST)
    assert f"{file}, line {line}: " in caught.value.message
    assert said in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("guarantee", "names", "said"),
    [
        ("transactional", ["$ip"], "'$ip'"),
        ("transactional", ["n" * 300], "'nnn"),
        ("transactional", [f"c{number}" for number in range(1_100)], "1100 columns"),
        ("idempotent", [f"c{number}" for number in range(1_023)], "adds tablet_index, row_index"),
    ],
)
def test_columns_that_no_table_can_have_are_refused(
    guarantee: str, names: list[str], said: str, tmp_path: Path
) -> None:
    (file := tmp_path / "rows.csv").write_text(f"{','.join(names)}\n{'1,' * len(names)}"[:-1])
    source = file_source.read(file, 10, Take.NEWEST)
    with fails_with(ErrorCode.USAGE) as caught:
        adoption.starter_of(_job(guarantee=guarantee), source, (), ())
    assert said in caught.value.message


@pytest.mark.parametrize("damage", ["names", "syntax", "gone"])
def test_adopt_repairs_a_project_whose_tables_are_damaged(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = generate(tmp_path)
    monkeypatch.syspath_prepend(project / "src")
    monkeypatch.chdir(project)
    tables = project / "src/bids_stream/tables.py"
    text = tables.read_text()
    if damage == "gone":
        tables.unlink()
    else:
        broken = {
            "names": text.replace('"auction"', '"$auction"'),
            "syntax": text + "\nQUEUE = [\n",
        }
        tables.write_text(broken[damage])
    (file := tmp_path / "rows.jsonl").write_text('{"id": "a"}\n{"id": "b"}\n')
    words = ["--config", "config/local.toml", "--from", str(file), "--overwrite"]
    with _fresh_imports():
        assert cli.run("bids_stream", _job_of_project, ["tables", *words[:2]]) == 1
    with _fresh_imports():
        assert cli.run("bids_stream", _job_of_project, ["adopt", *words]) == 0
    assert [column.name for column in _tables(project)["QUEUE"]] == ["id"]
    with _fresh_imports():
        assert cli.run("bids_stream", _job_of_project, ["tables", *words[:2]]) == 0


def test_the_advice_to_take_other_rows_repeats_what_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = generate(tmp_path)
    monkeypatch.syspath_prepend(project / "src")
    monkeypatch.chdir(project)
    Path("my rows.jsonl").write_text("".join(f'{{"id": "a{n}", "n": {n}}}\n' for n in range(9)))

    def more_by(*words: str) -> str:
        with _fresh_imports():
            assert cli.run("bids_stream", _job_of_project, ["adopt", *words]) == 0
        made: dict[str, Any] = {"__file__": str(project / "sample/rows.py"), "__name__": "rows"}
        exec(Path("sample/rows.py").read_text(), made)
        return str(made["SAVED"].more_by)

    given = ("--from", "my rows.jsonl", "--mask", "id", "--without", "n")
    command = "make adopt FROM='my rows.jsonl' COUNT={} TAKE=spread MASK=id WITHOUT=n"
    assert more_by(*given, "--count", "5") == command.format(5)
    assert more_by(*given, "--count", "5", "--take", "spread") == command.format(50)
    assert more_by(*given) == ""  # these are all rows of the file
    _lint(project)


def _job_of_project() -> Job:
    found: Job = importlib.import_module("bids_stream.job").JOB
    return found


@contextmanager
def _fresh_imports() -> Iterator[None]:
    """Import the project's package from its files, and forget it."""
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "bids_stream"]:
            del sys.modules[name]


def test_a_file_that_is_none_or_empty_or_damaged_is_refused(tmp_path: Path) -> None:
    for name, text, code in (
        ("rows.txt", "a", ErrorCode.USAGE),
        ("missing.csv", None, ErrorCode.FILE),
        ("empty.jsonl", "", ErrorCode.NO_ROWS),
        ("damaged.jsonl", "{", ErrorCode.FILE),
    ):
        if text is not None:
            (tmp_path / name).write_text(text)
        with fails_with(code):
            file_source.read(tmp_path / name, 10, Take.NEWEST)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("timestamp", [START, START + 5_000_000]),
        ("int64", [START // 1_000_000, START // 1_000_000 + 5]),
        ("utf8", ["2024-01-01T00:00:00.250Z", "2024-01-01 00:00:05+03:00"]),
    ],
)
def test_saved_rows_go_on_as_long_as_wanted(kind: str, values: list[Any], tmp_path: Path) -> None:
    from ytstream_tools.demo import event_times

    rows = [{"at": value, "id": f"r{number}"} for number, value in enumerate(values)]
    yson_rows.write(tmp_path / "rows.yson", rows)
    times = sorted(event_times.microseconds(value, kind) or 0 for value in values)
    saved = SavedRows(tmp_path / "rows.yson", "at", kind, times[0], times[1], ("id",))
    assert sorted(row["id"] for row in saved.repeated(2, 1, times[0])) == ["r0", "r1"]
    later = START + 86_400_000_000 * 100
    made = list(saved.repeated(7, 2, later))
    found = [event_times.microseconds(row["at"], kind) or 0 for row in made]
    assert found == sorted(found)
    assert found[0] == later - later % (1 if kind == "timestamp" else 1_000) or kind == "utf8"
    assert len({row["id"] for row in made}) == 7


def test_a_list_of_tables_is_replaced_and_what_is_around_it_stays() -> None:
    source = 'A = 1\nQUEUE: list[int] = [  # ы\n    1,\n]\nOUTPUTS = {"output": [2], "x": [3]}\n'
    made = owned_files.with_list(source, "QUEUE", "[4]")
    assert made == 'A = 1\nQUEUE: list[int] = [4]\nOUTPUTS = {"output": [2], "x": [3]}\n'
    assert '"output": [5], "x"' in owned_files.with_list(made, "OUTPUTS", "[5]", "output")
    with fails_with(ErrorCode.TABLES):
        owned_files.with_list("QUEUE = columns()\n", "QUEUE", "[]")


def test_rows_of_partitions_are_interleaved_as_a_job_reads_them() -> None:
    parts = [[{"n": 1}, {"n": 4}], [{"n": 2}, {"n": 3}, {"n": 5}, {"n": 6}]]
    made = [row["n"] for row in queue_source.interleaved(parts)]
    assert made == [1, 2, 3, 4, 5, 6]


@pytest.mark.thorough
@pytest.mark.spark
def test_a_parquet_file_keeps_its_types(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "written"
    text = (
        "1 AS n, 'a' AS t, TIMESTAMP '2024-01-01 00:00:00Z' AS at, 1.50BD AS d, map(1, 2) AS m, "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00' AS local, DATE '1969-12-31' AS day, "
        "TIMESTAMP '1969-12-31 23:59:59Z' AS early, named_struct('a', 1, 'b', 'x') AS s, "
        "DATE '2024-01-01' AS today, INTERVAL '1' DAY AS pause"
    )
    spark.sql(f"SELECT {text}").coalesce(1).write.parquet(f"file://{folder}")
    (file,) = folder.glob("*.parquet")
    found = file_source.read(file, 10, Take.NEWEST)
    types = {column.name: column.type for column in found.columns}
    assert types == {
        "n": ti.Int32,
        "t": ti.Utf8,
        "at": ti.Timestamp,
        "d": ti.Decimal(3, 2),
        "m": ti.Dict[ti.Int32, ti.Optional[ti.Int32]],
        "local": ti.Timestamp,
        "day": ti.Date32,
        "early": ti.Timestamp64,
        "s": ti.Struct["a" : ti.Optional[ti.Int32], "b" : ti.Optional[ti.Utf8]],
        "today": ti.Date,
    }
    (row,) = found.rows
    assert [column.name for column in found.left_out] == ["pause"]
    assert row["at"] == row["local"] == START
    assert (row["day"], row["early"], row["today"]) == (-1, -1_000_000, START // 86_400_000_000)
    assert (row["m"], row["s"]) == ([[1, 2]], {"a": 1, "b": "x"})
    yson_rows.line_of(row)


@pytest.mark.thorough
@pytest.mark.spark
def test_nanoseconds_of_a_parquet_file_are_a_number(spark: SparkSession, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    nanoseconds = START * 1_000 + 1
    column = pyarrow.array([nanoseconds], pyarrow.timestamp("ns", tz="UTC"))
    parquet.write_table(pyarrow.table({"at": column}), file := tmp_path / "rows.parquet")
    found = file_source.read(file, 10, Take.NEWEST)
    assert [column.type for column in found.columns] == [ti.Int64]
    assert found.rows == [{"at": nanoseconds}]


@pytest.mark.spark
def test_a_parquet_file_that_spark_cannot_read_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (file := tmp_path / "rows.parquet").write_bytes(b"PAR1")
    with fails_with(ErrorCode.FILE):
        file_source.read(file, 10, Take.NEWEST)
    arrays = [pyarrow.array([1]), pyarrow.array([2])]
    parquet.write_table(pyarrow.Table.from_arrays(arrays, names=["a", "a"]), file)
    with fails_with(ErrorCode.FILE) as caught:
        file_source.read(file, 10, Take.NEWEST)
    assert "COLUMN_ALREADY_EXISTS" in caught.value.message
    parquet.write_table(pyarrow.Table.from_arrays(arrays, names=["Id", "id"]), file)
    found = file_source.read(file, 10, Take.NEWEST)
    assert [column.name for column in found.left_out] == ["id"]
