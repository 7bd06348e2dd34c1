"""The rowset wire format: what goes in comes out, and malformed bytes are refused."""

from __future__ import annotations

import random
import struct

import pytest
from yt import yson

from minicluster.core.errors import YtError
from minicluster.rows import wire
from minicluster.rows.rowset import Rowset, RowsetColumn

ROW: list[tuple[int, int, wire.Value]] = [
    (0, wire.INT64, -5),
    (1, wire.UINT64, 2**64 - 1),
    (2, wire.DOUBLE, 2.5),
    (3, wire.BOOLEAN, True),
    (4, wire.STRING, b"\xff\x00nine byte"),
    (5, wire.ANY, b"{a=1}"),
    (6, wire.NULL, None),
    (7, wire.STRING, b""),
    (8, wire.COMPOSITE, b"[1;2;3;4]"),
]


def test_values_survive_encoding() -> None:
    assert wire.values(wire.encode(ROW)) == ROW


def test_a_known_row_has_the_documented_bytes() -> None:
    row = wire.encode([(1, wire.INT64, 7), (2, wire.STRING, b"abc"), (3, wire.NULL, None)])
    assert row == (
        struct.pack("<Q", 3)
        + struct.pack("<HBBIq", 1, 3, 0, 0, 7)
        + struct.pack("<HBBI", 2, 16, 0, 3)
        + b"abc\0\0\0\0\0"
        + struct.pack("<HBBI", 3, 2, 0, 0)
    )


def test_split_is_the_reverse_of_join() -> None:
    rows = [wire.encode(ROW), None, wire.encode([]), wire.encode(ROW[:2])]
    assert wire.split(wire.join(rows)) == rows


def test_first_values_only() -> None:
    assert wire.values(wire.encode(ROW), 2) == ROW[:2]


@pytest.mark.parametrize("wanted", [[], [0], [4, 5], [1, 3, 6, 8], [*range(9)], [8, 0], [4, 4]])
def test_a_row_is_narrowed_to_some_columns_in_any_order(wanted: list[int]) -> None:
    values = [(place, *ROW[index][1:]) for place, index in enumerate(wanted)]
    assert wire.narrowing(wanted)(wire.encode(ROW)) == wire.encode(values)


def test_chunks_are_the_encoded_values() -> None:
    row = wire.encode(ROW)
    pieces = wire.chunks(row)
    assert list(pieces) == [column for column, _, _ in ROW]
    assert wire.from_chunks(list(pieces.values())) == row
    assert wire.values(wire.from_chunks([wire.renumbered(pieces[4], 300)])) == [
        (300, wire.STRING, b"\xff\x00nine byte")
    ]


def test_every_truncation_is_refused() -> None:
    whole = wire.join([wire.encode(ROW), wire.encode(ROW)])
    for length in range(len(whole)):
        with pytest.raises(YtError, match="Malformed rowset"):
            wire.split(whole[:length])


def test_trailing_bytes_are_refused() -> None:
    with pytest.raises(YtError, match="8 bytes too many"):
        wire.split(wire.join([wire.encode(ROW)]) + bytes(8))


@pytest.mark.parametrize(
    "rowset",
    [
        struct.pack("<Q", 2**63),
        struct.pack("<QQ", 1, 2**40),
        struct.pack("<QQHBBI", 1, 1, 0, 99, 0, 0),
        struct.pack("<QQHBBI", 1, 1, 0, 16, 0, 2**32 - 1),
    ],
    ids=["row count", "value count", "type", "length"],
)
def test_absurd_headers_are_refused(rowset: bytes) -> None:
    with pytest.raises(YtError, match=r"Malformed rowset|Too many rows"):
        wire.split(rowset)


def test_random_bytes_never_do_worse_than_an_error() -> None:
    generator = random.Random(1)
    good = wire.join([wire.encode(ROW)] * 3)
    refused = 0
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        try:
            for row in wire.split(bytes(data)):
                if row is not None:
                    wire.values(row)
        except YtError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, (wire.INT64, 1)),
        (2**63, (wire.UINT64, 2**63)),
        (yson.YsonUint64(1), (wire.UINT64, 1)),
        (True, (wire.BOOLEAN, True)),
        (yson.YsonBoolean(False), (wire.BOOLEAN, False)),
        (0.5, (wire.DOUBLE, 0.5)),
        ("é", (wire.STRING, "é".encode())),
        (b"\xff", (wire.STRING, b"\xff")),
        (None, (wire.NULL, None)),
        (yson.YsonEntity(), (wire.NULL, None)),
    ],
)
def test_wire_type_of_a_yson_scalar(value: object, expected: tuple[int, wire.Value]) -> None:
    assert wire.guess(value) == expected


@pytest.mark.parametrize("value", [[1, "a"], {"a": None}, yson.to_yson_type("a", {"x": 1})])
def test_what_is_no_scalar_becomes_any(value: object) -> None:
    kind, encoded = wire.guess(value)
    assert kind == wire.ANY
    assert isinstance(encoded, bytes)
    assert yson.loads(encoded) == value


def test_rows_as_maps_keep_unsigned_apart_and_parse_any() -> None:
    row = wire.encode([(0, wire.UINT64, 3), (1, wire.ANY, b"{a=[1]}"), (2, wire.STRING, b"x")])
    names = [RowsetColumn(name, kind) for name, kind in (("u", 4), ("y", 17), ("s", 16))]
    (found,) = Rowset(names, [row]).to_dicts()
    assert found is not None
    assert isinstance(found["u"], yson.YsonUint64)
    assert found == {"u": 3, "y": {b"a": [1]}, "s": b"x"}


def test_a_rowset_has_no_more_rows_than_a_server_takes() -> None:
    """Source: client/table_client/unversioned_row.cpp, ValidateRowCount."""
    count = 5 * 1024 * 1024 + 1
    with pytest.raises(YtError, match=f"Too many rows in rowset: actual {count}") as caught:
        wire.split(count.to_bytes(8, "little"))
    assert caught.value.code == 319
