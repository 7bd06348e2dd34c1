"""Rejected rows with all that a queue may hold: kept as JSON, and back through replay-rejected."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import yt.type_info as ti
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from yt.yson import YsonUint64

from tests.support import all_types
from tests.support.examples import example
from tests.support.helpers import ContextOf, adopt, another_process, head_of, refusal
from tests.support.simulated_driver import Driver
from ytstream import Column, JobError
from ytstream.job import REJECTED
from ytstream.provisioning import job_objects
from ytstream.rejected.limit import FEW
from ytstream.settings.job_settings import OWN, SPYT
from ytstream_tools.demo.job_sample import untyped
from ytstream_tools.replay.rejected_replay import rehearse, replay
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

NEVER = {"never": "false"}
Rejecting = Callable[..., Stream]
"""Makes a job of columns, REJECT and a number of queues."""


@pytest.fixture
def rejecting(context_of: ContextOf, spark: SparkSession) -> Rejecting:
    """Provision a job whose output has the columns of its queue, all of whose rows are rejected."""

    def made(columns: Sequence[Column], reject: Mapping[str, str], queues: int = 1) -> Stream:
        context = context_of("transactional", "map", queues, rejects=True)
        names = [column.name for column in columns]

        def transform(events: DataFrame) -> DataFrame:
            return events.select(*names)

        job = replace(
            context.job,
            queue=columns,
            outputs={"output": columns, REJECTED: context.job.outputs[REJECTED]},
            transform=transform,
            reject=reject,
        )
        context = replace(context, job=job)
        job_objects.provision(context)
        adopt(spark, context)
        return Stream(context, example("transactional", "map").sample, spark)

    return made


def _send(stream: Stream, rows: Sequence[Mapping[str, Any]], queue: int = 0) -> None:
    path = stream.settings.queues[queue]
    stream.client.insert_rows(path, [{**row, "$tablet_index": 0} for row in rows])


def _rows(stream: Stream, output: str) -> list[dict[str, Any]]:
    """Return an output's rows without YTsaurus' own columns, in the order of their id if any."""
    path = stream.settings.outputs[output]
    rows = [
        {name: row[name] for name in row if not name.startswith("$")}
        for row in stream.client.select_rows(f"* from [{path}]")
    ]
    return sorted(rows, key=lambda row: str(row.get("id")))


def _replayed(stream: Stream) -> str:
    """Replay; a dry run before it says the same and changes nothing."""
    given = (stream.spark, stream.context, stream.flow())
    paths = (*stream.settings.outputs.values(), stream.settings.ledger)
    before = [list(stream.client.select_rows(f"* from [{path}]")) for path in paths]
    first, *more, last = rehearse(*given)
    assert last == "nothing was changed"
    assert [list(stream.client.select_rows(f"* from [{path}]")) for path in paths] == before
    said = replay(*given, print)
    assert said.startswith(first.replace(" would go", " went").replace(" would stay", " stay"))
    output = stream.settings.outputs["output"]
    rows = said.partition(" ")[0]
    assert more == ([f"{output}: {rows} more"] if int(rows) else [])
    return said


def _differences(
    sent: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]
) -> dict[Any, Any]:
    """Return what differs by id and column; compared as texts, since NaN equals nothing."""
    by_id = {row["id"]: row for row in found}
    return {
        (row["id"], name): (value, by_id[row["id"]][name])
        for row in sent
        for name, value in row.items()
        if repr(untyped(by_id[row["id"]][name])) != repr(untyped(value))
    }


MORE: dict[str, tuple[Any, list[Any]]] = {
    "numbers": (ti.Dict[ti.Int64, ti.Utf8], [[[1, "a"]], [], [[-2, "ы"]]]),
    "unsigned": (ti.List[ti.Uint64], [[0, 2**64 - 1], [], [1]]),
    "nan": ("double", [math.nan, math.inf, -math.inf]),
    "short_nan": ("float", [math.nan, math.inf, -math.inf]),
    "nans": (ti.List[ti.Double], [[math.nan, 1.0], [math.inf], []]),
}
"""Besides those of all_types: the keys of a map that are no texts, and what is no finite number."""
TEXTS = [Column("id", "utf8"), Column("text", "string")]


@pytest.mark.thorough
def test_values_of_every_type_come_back_from_a_rejected_row(rejecting: Rejecting) -> None:
    """And a reason may be written in any letters."""
    more = [Column(f"c_{name}", type_) for name, (type_, _) in MORE.items()]
    reason = 'it\'s "odd" \\ %s {0} причина'
    stream = rejecting([all_types.ID, *all_types.COLUMNS, *more], {reason: "id LIKE '%'"})
    sent = all_types.rows()
    for number, row in enumerate(sent):
        row |= {f"c_{n}": [*values, None][number] for n, (_, values) in MORE.items()}
    _send(stream, sent)
    stream.drain()
    assert [row["reason"] for row in _rows(stream, REJECTED)] == [reason] * 4
    stream.redeclare(reject=NEVER)
    assert _replayed(stream).startswith("4 rows went into the outputs; 0 stay")
    assert _differences(sent, _rows(stream, "output")) == {}


NAMES = ("tablet_index", "row_index", "reason", "time", "row", "parsed", "position")
"""Names that the output of rejected rows, and the work on it, use as well."""


@pytest.mark.thorough
@pytest.mark.parametrize("queues", [1, 2])
def test_a_queue_may_use_the_names_of_the_output(rejecting: Rejecting, queues: int) -> None:
    columns = [Column("id", "utf8"), *(Column(name, "int64") for name in NAMES)]
    stream = rejecting(columns, {"odd": "row % 2 = 1", "Odd": "reason > 5"}, queues)
    sent = [{"id": str(n), **{name: n + k for k, name in enumerate(NAMES)}} for n in range(8)]
    for queue in range(queues):
        _send(stream, sent[queue::queues], queue)
    stream.drain()
    # `row` is n + 4, `reason` n + 2.
    assert {row["reason"] for row in _rows(stream, REJECTED)} == {"odd", "Odd"}
    assert [row["id"] for row in _rows(stream, "output")] == ["0", "2"]
    stream.redeclare(reject=NEVER)
    assert _replayed(stream).startswith("6 rows went into the outputs; 0 stay")
    assert _differences(sent, _rows(stream, "output")) == {}


@pytest.mark.thorough
def test_a_long_row_comes_back(rejecting: Rejecting) -> None:
    stream = rejecting(TEXTS, {"too long": "length(text) > 100"})
    sent = [{"id": "long", "text": "ы" * 5_000_000}, {"id": "short", "text": "a"}]
    _send(stream, sent)
    stream.drain()
    assert [found["id"] for found in _rows(stream, "output")] == ["short"]
    totals = head_of(stream).totals
    assert (totals.read, totals.written, totals.rejected) == (
        2,
        {"output": 1, "rejected": 1},
        {"too long": 1},
    )
    stream.redeclare(reject=NEVER)
    assert _replayed(stream).startswith("1 rows went into the outputs; 0 stay")
    assert _differences(sent, _rows(stream, "output")) == {}


@pytest.mark.journey  # test_column_values.py has the expressions without a job
@pytest.mark.parametrize("connector", [OWN, SPYT], indirect=True)
def test_a_row_of_a_thousand_columns_is_rejected_and_comes_back(
    rejecting: Rejecting, connector: str
) -> None:
    """Spark descends into an expression: into a sum of a thousand terms a thousand times."""
    names = [f"c{number:03}" for number in range(999)]
    kinds = ["uint8" if number % 10 == 0 else "utf8" for number in range(999)]
    columns = [
        Column("id", "utf8"),
        *(Column(name, kind, required=True) for name, kind in zip(names, kinds, strict=True)),
    ]
    stream = rejecting(columns, {"bad": "id = 'bad'"})
    chosen = stream.context.job.transform
    # Columns that may be null by the plan, and never are: each is checked.
    nullable = {name: F.when(F.col("id").isNotNull(), F.col(name)) for name in names}
    stream.redeclare(transform=lambda rows: chosen(rows.withColumns(nullable)))
    sent = [
        {"id": key, **{n: 9 if k == "uint8" else key for n, k in zip(names, kinds, strict=True)}}
        for key in ("bad", "good")
    ]
    _send(stream, sent)
    stream.drain()
    assert [row["reason"] for row in _rows(stream, REJECTED)] == ["bad"]
    assert _differences(sent[1:], _rows(stream, "output")) == {}
    stream.redeclare(reject=NEVER)
    assert _replayed(stream).startswith("1 rows went into the outputs; 0 stay")
    assert _differences(sent, _rows(stream, "output")) == {}


INEXACT = {"texts": "\x01" * 5_000_000, "bytes": b"\xff" * 13_000_000}
"""Longer as JSON than a table takes."""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", INEXACT)
def test_a_row_that_json_cannot_hold_does_not_stop_the_job(rejecting: Rejecting, kind: str) -> None:
    """And stays where it is: what came back would not be what was sent."""
    text, why = INEXACT[kind], "longer than 16 MiB as JSON"
    stream = rejecting(TEXTS, {"bad": "id = 'bad'"})
    _send(stream, [{"id": "bad", "text": text}, {"id": "good", "text": "a"}])
    stream.drain()
    assert [found["id"] for found in _rows(stream, "output")] == ["good"]
    (rejected,) = _rows(stream, REJECTED)
    assert (rejected["reason"], json.loads(rejected["row"])["$inexact"]) == ("bad", why)
    stream.redeclare(reject=NEVER)
    said = _replayed(stream)
    assert said.startswith("0 rows went into the outputs; 1 stay")
    assert "1 of them since JSON cannot hold them" in said
    assert [found["id"] for found in _rows(stream, "output")] == ["good"]


@pytest.mark.thorough
def test_any_bytes_come_back_from_a_rejected_row(rejecting: Rejecting) -> None:
    """Columns with bytes that are not text are named; the others are texts, as they ever were."""
    columns = [*TEXTS, Column("texts", ti.Dict[ti.String, ti.Int64])]
    stream = rejecting(columns, {"all": "true"})
    sent: list[dict[str, Any]] = [
        {"id": "gzip", "text": b"\x00\xff\x1f\x8b", "texts": [["k", 1]]},
        {"id": "long", "text": bytes(range(256)) * 300, "texts": [["\ufffd", 2], [b"\xff", 1]]},
        {"id": "none", "text": None, "texts": [[b"\xed\xa0\x80", 3]]},
        {"id": "text", "text": "$base64 ы \ufffd", "texts": []},
        {"id": "void", "text": b"", "texts": None},
    ]
    _send(stream, sent)
    stream.drain()
    found = {row["id"]: row for row in (json.loads(r["row"]) for r in _rows(stream, REJECTED))}
    assert found["gzip"] == {
        "$base64": ["text"], "id": "gzip", "text": "AP8fiw==", "texts": {"k": 1},
    }  # fmt: skip
    assert b64decode(found["long"]["text"], validate=True) == sent[1]["text"]
    assert found["text"] == sent[3] | {"texts": {}}
    stream.redeclare(reject=NEVER)
    assert _replayed(stream).startswith("5 rows went into the outputs; 0 stay")
    assert _differences(sent, _rows(stream, "output")) == {}


@pytest.mark.thorough
def test_a_value_of_any_is_json_for_a_person_and_comes_back_byte_by_byte(
    rejecting: Rejecting,
) -> None:
    """A long value is told by its length."""
    stream = rejecting([Column("id", "utf8"), Column('a "b"', "any")], {"all": "true"})
    values: dict[str, Any] = {
        "bytes": {"b": b"\xff"},
        "long": "x" * 20_000,
        "map": {"user": {"name": "Żółw"}, "n": YsonUint64(2**64 - 1)},
        "none": None,
    }
    sent = [{"id": id_, 'a "b"': value} for id_, value in values.items()]
    _send(stream, sent)
    stream.drain()
    found = {row["id"]: row for row in (json.loads(r["row"]) for r in _rows(stream, REJECTED))}
    assert {id_: row.get("$json") for id_, row in found.items()} == {
        "bytes": {'a "b"': {"b": {"$bytes": "/w=="}}},
        "long": {'a "b"': "20002 characters of JSON"},
        "map": {'a "b"': {"user": {"name": "Żółw"}, "n": 2**64 - 1}},
        "none": None,
    }
    stream.redeclare(reject=NEVER)
    assert _replayed(stream).startswith("4 rows went into the outputs; 0 stay")
    assert _differences(sent, _rows(stream, "output")) == {}


WRITTEN_BEFORE = '{"id":"a","text":"$base64 AP8fiw==","texts":{"AP8fiw==":1}}'
"""As the runtime wrote it before strings could be in base64."""


@pytest.mark.thorough
def test_rows_of_older_versions_are_read_as_they_were_written(rejecting: Rejecting) -> None:
    columns = [*TEXTS, Column("texts", ti.Dict[ti.String, ti.Int64])]
    stream = rejecting(columns, {"all": "true"})
    sent = {"id": "a", "text": "$base64 AP8fiw==", "texts": [["AP8fiw==", 1]]}
    _send(stream, [sent, sent])
    stream.drain()
    first, second = _rows(stream, REJECTED)
    inexact = {"$inexact": "a text is not UTF-8", "id": "a", "text": "\ufffd"}
    path = stream.settings.outputs[REJECTED]
    stream.client.insert_rows(
        path, [{**first, "row": WRITTEN_BEFORE}, {**second, "row": json.dumps(inexact)}]
    )
    stream.redeclare(reject=NEVER)
    assert _replayed(stream).startswith("1 rows went into the outputs; 1 stay")
    assert _differences([sent], _rows(stream, "output")) == {}


DAMAGED = {
    "no base64": '{"$base64": ["id"], "id": "a?", "n": 1}',
    "cut off": '{"id": "a", "n": 1',
    "empty": "",
    "a list": "[]",
    "null": "null",
    "a text for a number": '{"id": "a", "n": "x"}',
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", DAMAGED)
def test_a_row_whose_json_is_damaged_stays(rejecting: Rejecting, kind: str) -> None:
    columns = [Column("id", "utf8"), Column("n", "int64")]
    stream = rejecting(columns, {"all": "true"})
    _send(stream, [{"id": "a", "n": 1}, {"id": "b", "n": 2}])
    stream.drain()
    (first,) = (row for row in _rows(stream, REJECTED) if row["row_index"] == 0)
    path = stream.settings.outputs[REJECTED]
    stream.client.insert_rows(path, [{**first, "row": DAMAGED[kind]}])
    stream.redeclare(reject=NEVER)
    assert _replayed(stream).startswith("1 rows went into the outputs; 1 stay")
    assert _rows(stream, "output") == [{"id": "b", "n": 2}]


def test_null_and_nan_are_judged_as_sql_judges_them(rejecting: Rejecting) -> None:
    """Null is neither more nor less; NaN is more than every number (Spark, "NaN Semantics")."""
    columns = [Column("id", "utf8"), Column("at", "timestamp"), Column("x", "double")]
    reject = {"no time": "at IS NULL", "too late": "at > '2030-01-01'", "too large": "x > 1e300"}
    stream = rejecting(columns, reject)
    rows = [
        {"id": "a no time", "at": None, "x": 1.0},
        {"id": "b passes", "at": YsonUint64(1), "x": None},
        {"id": "c too large", "at": YsonUint64(1), "x": math.nan},
        {"id": "d too large", "at": YsonUint64(1), "x": math.inf},
        {"id": "e passes", "at": YsonUint64(1), "x": -math.inf},
        {"id": "f no time", "at": None, "x": math.nan},
    ]
    _send(stream, rows)
    stream.drain()
    for row in _rows(stream, REJECTED):
        assert json.loads(row["row"])["id"].endswith(row["reason"])
    assert [row["id"] for row in _rows(stream, "output")] == ["b passes", "e passes"]


@pytest.mark.parametrize("limit", [0, 1])
def test_the_limits_are_none_and_all(rejecting: Rejecting, limit: int) -> None:
    stream = rejecting(TEXTS, {"all": "true"})
    stream.configure(reject_limit=limit)
    _send(stream, [{"id": str(number)} for number in range(FEW)])
    stream.drain()  # few rows are bad rows, whatever the limit
    assert len(_rows(stream, REJECTED)) == FEW
    _send(stream, [{"id": str(number)} for number in range(FEW + 1)])
    if limit == 0:
        with pytest.raises(JobError, match=r"21 of 21 rows .* 21 all; reject_limit allows 0%"):
            stream.drain()
    else:
        stream.drain()
    assert len(_rows(stream, REJECTED)) == FEW + (FEW + 1) * limit


# -- what does not go into the outputs


def _texts(count: int, text: str = "") -> list[dict[str, Any]]:
    return [{"id": f"{number:02}", "text": text} for number in range(count)]


@pytest.mark.thorough
def test_rows_that_a_rewind_reads_again_and_accepts_are_not_replayed(rejecting: Rejecting) -> None:
    stream = rejecting(TEXTS, {"odd": "id >= '06'"})
    _send(stream, _texts(10))
    stream.drain()
    stream.redeclare(reject={"odd": "id >= '08'"})
    Driver(stream.context, stream.tablets).rewind("earliest")
    assert ", 4 of them since the job reads them again" in _replayed(stream)
    stream = another_process(stream)
    stream.drain()
    stream.redeclare(reject=NEVER)
    said = _replayed(stream)
    assert said.startswith("2 rows went into the outputs; 2 stay in //")
    assert ", 2 of them since a later batch has read their position again" in said
    ids = sorted(row["id"] for row in _rows(stream, "output"))
    assert ids == sorted([f"{n:02}" for n in range(10)] + [f"{n:02}" for n in range(6)])


@pytest.mark.thorough
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_rows_that_transform_drops_stay_unless_they_are_to_go(
    rejecting: Rejecting, is_shuffled: bool
) -> None:
    """After a shuffle the tasks do not tell, and halves of the rows are tried."""
    stream = rejecting(TEXTS, {"all": "true"})
    _send(stream, _texts(10))
    stream.drain()
    chosen = stream.context.job.transform

    def transform(rows: DataFrame) -> DataFrame:
        some = chosen(rows.filter("id BETWEEN '06' AND '08'"))
        return some.repartition(3) if is_shuffled else some

    stream.redeclare(reject={"last": "id = '09'"}, transform=transform)
    said = _replayed(stream)
    assert said.startswith("3 rows went into the outputs; 7 stay in //")
    assert "1 of them since REJECT rejects them again, 6 of them since transform() or" in said
    given = (stream.spark, stream.context, stream.flow())
    said = replay(*given, print, remove_dropped=True)
    assert said.startswith(
        "0 rows went into the outputs, 6 that go into none went out of `rejected`; 1 stay"
    )
    assert len(_rows(stream, "output")) == 3
    assert [row["row_index"] for row in _rows(stream, REJECTED)] == [9]


@pytest.mark.thorough
def test_a_row_that_becomes_several_hides_none_that_is_dropped(rejecting: Rejecting) -> None:
    """Here as many rows come out as go in."""
    stream = rejecting(TEXTS, {"all": "true"})
    _send(stream, [{"id": f"{n:02}", "text": None if n % 3 else "a b c"} for n in range(6)])
    stream.drain()
    words = F.explode(F.split("text", " "))
    chosen = stream.context.job.transform
    stream.redeclare(reject=NEVER, transform=lambda rows: chosen(rows.withColumn("text", words)))
    said = replay(stream.spark, stream.context, stream.flow(), print)
    assert said.startswith("2 rows went into the outputs; 4 stay in //")
    assert len(_rows(stream, "output")) == 6
    assert [row["row_index"] for row in _rows(stream, REJECTED)] == [1, 2, 4, 5]


@pytest.mark.thorough
@pytest.mark.parametrize("is_grouped", [False, True])
def test_rows_that_outputs_drops_stay(rejecting: Rejecting, is_grouped: bool) -> None:
    """Where it groups rows, nothing tells which are in a group: transform() alone counts."""
    stream = rejecting(TEXTS, {"all": "true"})
    _send(stream, _texts(6))
    stream.drain()

    def split(rows: DataFrame) -> dict[str, DataFrame]:
        rows = rows.filter("id < '02'")
        return {
            "output": rows.groupBy("id").agg(F.max("text").alias("text")) if is_grouped else rows
        }

    stream.redeclare(reject=NEVER, split=split)
    said = replay(stream.spark, stream.context, stream.flow(), print)
    count = 6 if is_grouped else 2
    assert said.startswith(f"{count} rows went into the outputs; {6 - count} stay in //")
    assert sorted(row["id"] for row in _rows(stream, "output")) == ["00", "01"]


@pytest.mark.thorough
def test_a_chunk_has_as_many_rows_as_its_bytes_allow(
    rejecting: Rejecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a row with more bytes is a chunk of its own."""
    monkeypatch.setattr("ytstream_tools.replay.rejected_table.CHUNK_BYTES", 250)
    stream = rejecting(TEXTS, {"all": "true"})
    _send(stream, [*_texts(5, "x" * 100), {"id": "99", "text": "x" * 1_000}])
    stream.drain()
    stream.redeclare(reject=NEVER)
    told: list[str] = []
    replay(stream.spark, stream.context, stream.flow(), told.append)
    assert [line.partition(" ")[0] for line in told] == ["2", "4", "5", "6"]
    assert len(_rows(stream, "output")) == 6


@pytest.mark.thorough
def test_a_row_that_no_table_takes_is_named_and_the_rows_before_it_are_replayed(
    rejecting: Rejecting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its value is longer than 16 MiB: the cluster refuses the whole chunk for it."""
    monkeypatch.setattr("ytstream_tools.replay.rejected_table.CHUNK", 4)
    stream = rejecting(TEXTS, {"all": "true"})
    _send(stream, [*_texts(6), {"id": "06", "text": "x" * 9_000_000}, {"id": "07", "text": "y"}])
    stream.drain()
    chosen = stream.context.job.transform
    twice = F.concat("text", "text")
    stream.redeclare(reject=NEVER, transform=lambda rows: chosen(rows.withColumn("text", twice)))
    given = (stream.spark, stream.context, stream.flow())
    said = refusal(lambda: replay(*given, print))
    (queue,), rejected = stream.settings.queues, stream.settings.outputs[REJECTED]
    assert f"row 6 of {queue}, partition 0, cannot be replayed from {rejected}: " in said
    assert "length 18000000, limit 16777216" in said
    assert "keep such rows out with REJECT" in said
    assert [row["id"] for row in _rows(stream, "output")] == [f"{n:02}" for n in range(6)]
    assert [row["row_index"] for row in _rows(stream, REJECTED)] == [6, 7]
    stream.redeclare(reject={"long": "length(text) > 8000000"})
    assert replay(stream.spark, stream.context, stream.flow(), print).startswith("1 rows went")
