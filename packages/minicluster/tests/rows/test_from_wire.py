"""Rows of every form that a client may give them, each on the short way and on the long one."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from yt import yson

from minicluster.core.errors import YtError
from minicluster.rows import bulk, wire
from minicluster.rows.aggregates import without_flag
from minicluster.rows.from_wire import (
    DELETE,
    UPDATE,
    WRITE,
    Modification,
    RowReader,
    key_of,
    key_reader,
    narrowing,
)
from minicluster.rows.from_yson import ItemReader, encode
from minicluster.rows.schema import TableSchema
from minicluster.tables.transactions import merged
from tests.support import codes

COLUMNS: list[dict[str, Any]] = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "u", "type": "uint64", "sort_order": "ascending"},
    {"name": "small", "type": "int8", "required": True},
    {"name": "text", "type": "utf8"},
    {"name": "bytes", "type": "string"},
    {"name": "number", "type": "double"},
    {"name": "flag", "type": "boolean"},
    {"name": "time", "type": "timestamp"},
    {"name": "any", "type": "any"},
]
GOOD: dict[str, list[Any]] = {
    "k": [0, -(1 << 63), (1 << 63) - 1, yson.YsonUint64(5), None],
    "u": [yson.YsonUint64((1 << 64) - 1), 7, None],
    "small": [-128, 127],
    "text": ["text", "текст", b"text", "текст".encode(), "", None],
    "bytes": [b"\xff", b"12345678", "text", None],
    "number": [1.5, float("inf"), None],
    "flag": [True, False, None],
    "time": [yson.YsonUint64(1), 5, None],
    "any": [{"a": [1, b"\xff"]}, 1, b"text", None],
}
BAD: dict[str, list[Any]] = {
    "k": ["1", 1.0, True, yson.YsonUint64(1 << 63), yson.to_yson_type(1, attributes={"a": 1})],
    "u": [-1, yson.to_yson_type(yson.YsonUint64(1), attributes={"a": 1}), b"1"],
    "small": [128, -129, None, True],
    "text": [b"\xff", 1, [], yson.to_yson_type("text", attributes={"a": 1})],
    "bytes": [1, {}],
    "number": [1, "1", True],
    "flag": [1, "true"],
    "time": [-1, 1 << 62],
    "any": [yson.to_yson_type({}, attributes={"a": 1})],
    "unknown": [1, None],
    "$tablet_index": [0],
}


def schema(*, keys: bool) -> TableSchema:
    columns = [{**column} for column in COLUMNS]
    if not keys:
        for column in columns:
            column.pop("sort_order", None)
    return schema_of(columns)


def schema_of(columns: list[dict[str, Any]]) -> TableSchema:
    keys = any("sort_order" in column for column in columns)
    return TableSchema.from_yson(
        yson.to_yson_type(columns, attributes={"strict": True, "unique_keys": keys})
    )


def items(count: int) -> list[dict[str, Any]]:
    source = random.Random(5)
    made = []
    for _ in range(count):
        item = {name: source.choice(values) for name, values in GOOD.items()}
        for name in ("text", "bytes", "number", "flag", "time", "any"):
            if source.random() < 0.1:
                del item[name]
        made.append(item)
    return made


def modifications(reader: RowReader, rowset: bytes, kinds: list[int]) -> list[Modification]:
    """Return what each row of a rowset changes."""
    whole, others = reader.rowset(rowset, kinds)
    return [(WRITE, index, row) for index, rows in whole.items() for row in rows] + others


@pytest.mark.parametrize("keys", [True, False])
def test_an_item_becomes_the_row_that_its_wire_form_becomes(keys: bool) -> None:
    of = schema(keys=keys)
    reader = ItemReader(of, lambda names: RowReader(of, names, "//t"))
    found = [reader.modification(WRITE, item) for item in items(500)]
    names, rows = encode(of, items(500))
    by_wire = RowReader(of, names, "//t")
    assert found == [by_wire.modification(WRITE, row) for row in rows]
    by_rpc = modifications(by_wire, wire.join(rows), [WRITE] * 500)
    # Over RPC a row of a sorted table that lacks columns leaves these as they are.
    whole = [len(item) == len(GOOD) or not keys for item in items(500)]
    assert [row for row, plain in zip(by_rpc, whole, strict=True) if plain] == [
        row for row, plain in zip(found, whole, strict=True) if plain
    ]
    assert {kind for (kind, _, _), plain in zip(by_rpc, whole, strict=True) if not plain} <= {3}


@pytest.mark.parametrize(("name", "value"), [(n, value) for n in BAD for value in BAD[n]])
def test_an_item_is_refused_as_its_wire_form_is(name: str, value: Any) -> None:
    of = schema(keys=True)
    reader = ItemReader(of, lambda names: RowReader(of, names, "//t"))
    good = {column: values[0] for column, values in GOOD.items()}
    assert reader.modification(WRITE, good)
    with pytest.raises(YtError) as refused:
        reader.modification(WRITE, {**good, name: value})
    if name == "any":  # the column is not named
        assert refused.value.message == "Error occurred while parsing YSON"
    elif name in GOOD:
        assert f'"{name}"' in refused.value.message


def test_an_items_key_cannot_be_left_out() -> None:
    of = schema(keys=True)
    reader = ItemReader(of, lambda names: RowReader(of, names, "//t"))
    with pytest.raises(YtError, match='Missing key column "u"'):
        reader.modification(UPDATE, {"k": 1, "small": 1})
    with pytest.raises(YtError, match='Missing required column "small"'):
        reader.modification(WRITE, {"k": 1, "u": 1})
    with pytest.raises(YtError, match="Invalid number of key columns"):
        reader.modification(DELETE, {"k": 1, "u": 1, "small": 1})


def test_an_item_may_name_its_tablet() -> None:
    of = schema(keys=False)
    reader = ItemReader(of, lambda names: RowReader(of, names, "//t"))
    row = reader.modification(WRITE, {"small": 1})[2]
    assert reader.modification(WRITE, {"small": 1, "$tablet_index": 3}) == (WRITE, 3, row)
    assert reader.modification(WRITE, {"small": 1, "$tablet_index": None}) == (WRITE, None, row)
    for wrong in ("3", True, yson.YsonUint64(3)):
        with pytest.raises(YtError, match="tablet_index"):
            reader.modification(WRITE, {"small": 1, "$tablet_index": wrong})


def test_rows_that_name_their_tablets_are_read_at_one_look_as_one_by_one() -> None:
    of = schema(keys=False)
    usual = {"k": 1, "u": yson.YsonUint64(1), "small": 5, "text": "т", "bytes": b"", "number": 1.5,
             "flag": True, "time": 1, "any": None}  # fmt: skip
    odd = [{name: values[0] for name, values in GOOD.items()} | item for item in items(20)]
    whole: list[dict[str, Any]] = [{**usual, "k": n} for n in range(40)] + odd
    names, rows = encode(of, [*whole, *whole])
    width, source = len(names), random.Random(6)
    indexes = [0, *(source.choice([0, 1, 3, 3, 3, None]) for _ in rows[1:])]
    indexes[1:20] = range(1, 20)
    kinds = [wire.NULL if index is None else wire.INT64 for index in indexes]
    named = [
        wire.extended(row, wire.encode_value(width, kind, index), 1)
        for row, kind, index in zip(rows, kinds, indexes, strict=True)
    ]
    reader = RowReader(of, [*names, "$tablet_index"], "//t")
    found = reader.rowset(wire.join(named), [WRITE] * len(named))
    assert found == ({}, [reader.modification(WRITE, row) for row in named])
    assert [index for _, index, _ in found[1]] == indexes
    wrong = wire.extended(rows[0], wire.encode_value(width, wire.UINT64, 1), 1)
    with pytest.raises(YtError, match="tablet_index"):
        reader.rowset(wire.join([named[0], wrong]), [WRITE] * 2)


ADDED: list[dict[str, Any]] = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "n", "type": "int64", "aggregate": "sum"},
    {"name": "most", "type": "double", "aggregate": "max"},
    {"name": "plain", "type": "uint64"},
]


def test_numbers_to_be_added_are_read_alike_at_one_look_and_one_by_one() -> None:
    of = schema_of(ADDED)
    flags = [wire.AGGREGATE if "aggregate" in column else 0 for column in ADDED]
    numbers = [(wire.INT64, -5), (wire.INT64, -1), (wire.DOUBLE, 0.5), (wire.UINT64, 1 << 63)]
    pieces = [
        wire.encode_value(index, *value, flag)
        for index, (value, flag) in enumerate(zip(numbers, flags, strict=True))
    ]
    usual = wire.from_chunks(pieces)
    null = wire.from_chunks([*pieces[:3], wire.encode_value(3, wire.NULL, None)])
    reader = RowReader(of, [column["name"] for column in ADDED], "//t")
    expected = (UPDATE, None, dict(enumerate(pieces)))
    assert modifications(reader, wire.join([usual, usual]), [WRITE] * 2) == [expected] * 2
    mixed = modifications(reader, wire.join([usual, null, usual]), [WRITE] * 3)
    assert mixed[::2] == [expected] * 2
    assert [kind for kind, _, _ in mixed] == [UPDATE] * 3
    whole = wire.from_chunks([without_flag(piece) for piece in pieces])
    assert modifications(reader, wire.join([whole]), [WRITE]) == [(WRITE, None, whole)]
    assert of.pieces_of(whole) == wire.chunks(whole)
    assert of.pieces_of(null) == wire.chunks(null)


@pytest.mark.parametrize(
    ("old", "new"),
    [(5, 7), (7, 5), (-3, 3), ((1 << 63) - 1, 1), (-(1 << 63), -1)],
)
def test_a_row_of_numbers_is_added_to_as_each_of_its_values_is(old: int, new: int) -> None:
    """A sum that wraps is left to the long way."""
    functions = ("sum", "min", "max", "first")
    columns = [{"name": name, "type": "int64", "aggregate": name} for name in functions]
    of = schema_of([ADDED[0], *columns])
    row = wire.encode((at, wire.INT64, 1 if at == 0 else old) for at in range(5))
    update = {
        at: wire.encode_value(at, wire.INT64, *((1, 0) if at == 0 else (new, wire.AGGREGATE)))
        for at in range(5)
    }
    assert of.number_rows is not None
    found = of.number_rows.after(row, update)
    wraps = not -(1 << 63) <= old + new < 1 << 63
    assert found == (None if wraps else merged(of, wire.chunks(row), update))
    plain = {at: without_flag(piece) for at, piece in update.items()}
    assert of.number_rows.after(row, plain) is None
    kept = wire.chunks(row)
    null = wire.from_chunks(
        [*map(kept.__getitem__, range(4)), wire.encode_value(4, wire.NULL, None)]
    )
    assert of.number_rows.after(null, update) is None


@pytest.mark.thorough
def test_a_damaged_rowset_is_refused_whatever_came_before_the_damage() -> None:
    of = schema(keys=False)
    names, rows = encode(of, items(20))
    reader = RowReader(of, names, "//t")
    whole = wire.join(rows)
    assert len(modifications(reader, whole, [WRITE] * 20)) == 20
    for length in range(0, len(whole), 8):
        with pytest.raises(YtError):
            modifications(reader, whole[:length], [WRITE] * 20)
    with pytest.raises(YtError, match="bytes too many"):
        modifications(reader, whole + bytes(8), [WRITE] * 20)
    with pytest.raises(YtError, match="20 rows"):
        modifications(reader, whole, [WRITE] * 19)
    with pytest.raises(YtError, match="a missing row"):
        modifications(reader, wire.join([rows[0], None]), [WRITE] * 2)
    source = random.Random(6)
    for _ in range(2_000):
        damaged = bytearray(whole)
        place = source.randrange(1, len(whole) // 8) * 8
        damaged[place : place + 8] = struct.pack("<Q", source.choice((0, 1 << 40, (1 << 64) - 1)))
        try:
            found = modifications(reader, bytes(damaged), [WRITE] * 20)
        except YtError:
            continue
        # What is taken can be read.
        for _, _, row in found:
            assert isinstance(row, bytes)
            assert len(wire.values(row)) == len(of.columns)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"{a=", 'Unexpected "finish", expected "value"'),
        (b"", 'Unexpected "finish", expected "value"'),
        (b"1 2", 'expected "no further tokens'),
        (b"[" * 300 + b"]" * 300, "Depth limit exceeded while parsing YSON"),
        (b" <a=1>2", "Table values cannot have top-level attributes"),
        (b"<>2", "Table values cannot have top-level attributes"),
        (b"[<a=1>2]", None),
        (b"#", None),
    ],
    ids=lambda value: str(value)[:20],
)
@pytest.mark.parametrize("keys", [True, False])
def test_an_any_is_valid_yson(
    monkeypatch: pytest.MonkeyPatch, keys: bool, value: bytes, why: str | None
) -> None:
    """Source: client/table_client/unversioned_row.cpp (ValidateAnyValue)"""
    monkeypatch.setattr(bulk, "ROWS_BEFORE", 0)
    columns = [{**column} for column in COLUMNS if column["name"] in ("u", "any")]
    if not keys:
        columns[0].pop("sort_order")
    of = TableSchema.from_yson(yson.to_yson_type(columns, attributes={"unique_keys": keys}))
    reader = RowReader(of, ["u", "any"], "//t")
    row = wire.encode([(0, wire.UINT64, 1), (1, wire.ANY, value)])
    if why is None:
        assert modifications(reader, wire.join([row] * 3), [WRITE] * 3) == [(WRITE, None, row)] * 3
        return
    with pytest.raises(YtError, match="Error occurred while parsing YSON") as refused:
        modifications(reader, wire.join([row] * 3), [WRITE] * 3)
    assert why in refused.value.inner[0].message


@pytest.mark.parametrize("column", ["text", "bytes"])
def test_a_string_of_any_length_is_taken_at_one_look_or_one_by_one(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "ROWS_BEFORE", 0)
    of = TableSchema.from_yson([c for c in COLUMNS if c["name"] in (column, "time")])
    reader = RowReader(of, [c.name for c in of.columns], "//t")
    for length in range(bulk.MOST_BYTES + 20):
        row = encode(of, [{column: "x" * length, "time": 5}])[1]
        whole, others = reader.rowset(wire.join(row), [WRITE])
        at_one_look = whole.get(None, [])
        assert at_one_look + [stored for _, _, stored in others] == row
        assert bool(at_one_look) == (length <= bulk.MOST_BYTES - 8)


@pytest.mark.thorough
@pytest.mark.parametrize("last", ["bytes", "time", "number"])
def test_rows_at_one_look_are_judged_as_one_by_one(
    last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with and without nulls, whole and damaged; `last` ends the row in another kind."""
    usually = [column["name"] for column in COLUMNS if column["type"] != "any"]
    names = [name for name in usually if name != last] + [last]
    of = TableSchema.from_yson(
        [{"name": name, "type": c["type"]} for name in names for c in COLUMNS if c["name"] == name]
    )
    hasty, patient = RowReader(of, names, "//t"), RowReader(of, names, "//t")
    monkeypatch.setattr(bulk, "ROWS_BEFORE", 0)
    patient._usual = bulk.UsualRows([])
    source = random.Random(7)
    given = [{name: item[name] for name in usually if name in item} for item in items(3000)]
    full = [item for item in given if None not in item.values() and len(item) == len(usually)]
    mixed = encode(of, [*full[:40], *given[:40], *full[40:80]])[1]
    odd: list[dict[str, Any]] = [{}, {"text": None}, {"bytes": None}, {"text": "т", "bytes": None}]
    usual = [{**item, "small": 5, "k": 1, "text": "text"} for item in full[:40]]
    assert len(hasty.rowset(wire.join(encode(of, usual)[1]), [WRITE] * 40)[0][None]) == 40
    whole = encode(of, [{**item, **source.choice(odd)} for item in usual])[1]
    rowset = wire.join(whole)
    no_text = rowset.replace("т".encode(), b"\xff\xff")
    cut = [rowset[:-size] for size in range(8, 200, 8)]
    for spoilt in (no_text, *cut):
        outcome = _outcome(hasty, spoilt, [WRITE] * 40)
        assert isinstance(outcome, dict)
        assert outcome == _outcome(patient, spoilt, [WRITE] * 40)
    for rows in (mixed, whole):
        rowset, kinds = wire.join(rows), [WRITE] * len(rows)
        assert modifications(hasty, rowset, kinds) == modifications(patient, rowset, kinds)
        for _ in range(80):
            damaged = bytearray(rowset)
            damaged[source.randrange(8, len(rowset))] ^= 1 << source.randrange(8)
            found = [_outcome(reader, bytes(damaged), kinds) for reader in (hasty, patient)]
            assert found[0] == found[1]


def _outcome(reader: RowReader, rowset: bytes, kinds: list[int]) -> Any:
    try:
        return modifications(reader, rowset, kinds)
    except YtError as error:
        return error.to_dict()


def test_usual_rows_are_taken_apart_as_a_whole_and_judged_as_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that name their tablets and others, whole, damaged and with texts that are none."""
    monkeypatch.setattr(bulk, "ROWS_BEFORE", 0)
    of = TableSchema.from_yson([{"name": "n", "type": "int64"}, {"name": "t", "type": "utf8"},
                                {"name": "b", "type": "string"}])  # fmt: skip
    texts = ("", "text", "длинный текст", "т", None)
    given = [{"n": n, "t": texts[n % 5], "b": bytes(n % 9)} for n in range(60)]
    names, rows = encode(of, given)
    named = [
        wire.extended(r, wire.encode_value(3, wire.INT64, n % 4), 1) for n, r in enumerate(rows)
    ]
    source = random.Random(8)
    for columns, written in ((names, rows), ([*names, "$tablet_index"], named)):
        hasty, patient = RowReader(of, columns, "//t"), RowReader(of, columns, "//t")
        for usual in (patient._usual, patient._spread):
            monkeypatch.setattr(usual, "whole", lambda *_: None)
        rowset, kinds = wire.join(written), [WRITE] * len(written)
        whole, others = hasty.rowset(rowset, kinds)
        assert not others
        assert sum(map(len, whole.values())) == len(written)
        assert _by_tablet(whole, others) == _by_tablet(*patient.rowset(rowset, kinds))
        odd = [rowset.replace("т".encode(), b"\xd1\xd1"), rowset[:-8], rowset + bytes(8)]
        for _ in range(500):
            damaged = bytearray(rowset)
            damaged[source.randrange(len(rowset))] ^= 1 << source.randrange(8)
            odd.append(bytes(damaged))
        for data in odd:
            found = [_taken(reader, data, kinds) for reader in (hasty, patient)]
            assert found[0] == found[1]


def _taken(reader: RowReader, rowset: bytes, kinds: list[int]) -> Any:
    try:
        return _by_tablet(*reader.rowset(rowset, kinds))
    except YtError as error:
        return error.to_dict()


def _by_tablet(whole: bulk.ByTablet, others: list[Modification]) -> bulk.ByTablet:
    found = {index: list(rows) for index, rows in whole.items()}
    for _, index, row in others:
        assert isinstance(row, bytes)
        found.setdefault(index, []).append(row)
    return found


@pytest.mark.parametrize("form", ["string", "any"])
def test_a_value_of_a_rowset_is_at_most_16_megabytes_long(form: str) -> None:
    columns = [COLUMNS[0], {"name": "v", "type": form}]
    of = TableSchema.from_yson(yson.to_yson_type(columns, attributes={"unique_keys": True}))
    reader = RowReader(of, ["k", "v"], "//t")
    kind = of.columns[1].wire_type

    def row(length: int) -> bytes:
        return wire.encode([(0, wire.INT64, 1), (1, kind, b'"' + b"a" * (length - 2) + b'"')])

    longest = row(wire.MAX_VALUE_LENGTH)
    assert modifications(reader, wire.join([longest]), [WRITE]) == [(WRITE, None, longest)]
    with pytest.raises(YtError, match=f'"{form}" is too long .* limit 16777216') as refused:
        modifications(reader, wire.join([row(wire.MAX_VALUE_LENGTH + 1)]), [WRITE])
    assert refused.value.code == codes.STRING_TOO_LONG


def test_a_key_is_read_at_one_go_as_by_its_values() -> None:
    of = schema(keys=True)
    of_integers = key_reader(of)
    _, rows = encode(of, items(200))
    assert [of_integers(row) for row in rows] == [key_of(row, 2) for row in rows]
    text = TableSchema.from_yson(
        yson.to_yson_type(
            [{"name": "k", "type": "string", "sort_order": "ascending"}, COLUMNS[3]],
            attributes={"strict": True, "unique_keys": True},
        )
    )
    _, (row,) = encode(text, [{"k": "a"}])
    assert key_reader(text)(row) == (wire.STRING, b"a")


@pytest.mark.parametrize(
    "wanted", [[0], [3, 4], [1, 2, 5, 7], [*range(8)], [7, 0], [4, 4], []], ids=str
)
def test_rows_are_narrowed_together_as_one_by_one(
    wanted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "ROWS_BEFORE", 0)
    of = schema_of(COLUMNS[:-1])
    reader = ItemReader(of, lambda names: RowReader(of, names, "//t"))
    given = [{name: item[name] for name in item if name != "any"} for item in items(100)]
    usual = [bytes(reader.modification(WRITE, item)[2]) for item in given]
    # Its text holds whole rows, and is longer than a usual one.
    values = wire.values(usual[0])
    odd = wire.encode([*values[:4], (4, wire.STRING, usual[1] * 9), *values[5:]])
    one_by_one = wire.narrowing(wanted)
    for rows in ([], usual, [odd], [*usual, odd], [odd, *usual]):
        assert narrowing(of, wanted).of(rows) == [*map(one_by_one, rows)]


def test_keys_of_a_rowset_are_read_together_as_one_by_one() -> None:
    of = schema_of(COLUMNS[:2])
    reader = RowReader(of, ["k", "u"], "//t")

    def row(*values: Any) -> bytes:
        return wire.encode([(place, *value) for place, value in enumerate(values)])

    usual = [row((wire.INT64, n - 5), (wire.UINT64, (1 << 64) - 1 - n)) for n in range(10)]
    null = row((wire.INT64, 1), (wire.NULL, None))
    for rows in ([], usual, [null], [*usual, null], [null, *usual]):
        assert reader.keys(wire.join(rows)) == [key_of(row, 2) for row in rows]
    for wrong in (row((wire.INT64, 1)), row((wire.UINT64, 1), (wire.INT64, 1)), None):
        with pytest.raises(YtError):
            reader.keys(wire.join([*usual, wrong]))
