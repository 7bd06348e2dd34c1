"""JSON, YSON and DSV: what a client gets and may send, byte by byte."""

from __future__ import annotations

from typing import Any

import pytest
import yt.wrapper as yt
from yt.wrapper.errors import YtResponseError

from packages.minicluster.tests.conformance.conftest import Row, make_table, over_http
from tests.support import codes

SCHEMA: list[Row] = [{"name": "data", "type": "string"}, {"name": "n", "type": "int64"}]
DSV = yt.DsvFormat()
TYPED_DSV = yt.DsvFormat(attributes={"enable_type_conversion": True})


@pytest.fixture
def queue(client: Any, root: str) -> str:
    """A queue with two tablets."""
    return make_table(client, f"{root}/q", SCHEMA, tablet_count=2)


@pytest.fixture
def table(client: Any, root: str) -> str:
    """A static table."""
    client.create("table", f"{root}/t", attributes={"schema": SCHEMA})
    return f"{root}/t"


def json_format(**attributes: Any) -> Any:
    return yt.JsonFormat(attributes=attributes)


def written(client: Any, path: str, data: bytes, format: Any) -> None:
    """Write the bytes to a static table, in one request."""
    client.write_table(path, data, format=format, raw=True)


def inserted(client: Any, path: str, data: bytes, format: Any) -> None:
    client.insert_rows(path, data, format=format, raw=True)


def bytes_of(client: Any, path: str, format: Any) -> bytes:
    """Return a static table as it comes in a format."""
    data: bytes = client.read_table(path, format=format, raw=True).read()
    return data


def strings(client: Any, queue: str) -> list[bytes]:
    query = f"data from [{queue}] order by n limit 100"
    rows = client.select_rows(query, format=yt.YsonFormat(encoding=None))
    return [row[b"data"] for row in rows]


# JSON


def test_json_has_no_spaces_and_a_line_for_each_row(client: Any, table: str) -> None:
    """Source: server test, core/json/unittests/writer_ut.cpp (DoubleMap)"""
    client.write_table(table, [{"data": "a", "n": 1}, {"data": None, "n": -2}])
    shown = b'{"data":"a","n":1}\n{"data":null,"n":-2}\n'
    assert bytes_of(client, table, json_format()) == shown


def test_structured_json(client: Any, root: str) -> None:
    """Source: server test, core/json/unittests/writer_ut.cpp (MapWithAttributes, SpecialKeys)"""
    client.set(f"{root}/@x", yt.yson.loads(b'<foo="bar">{"$spam"=[1;%true;#]}'))
    shown = client.get(f"{root}/@x", format="json")
    assert shown == b'{"$attributes":{"foo":"bar"},"$value":{"$$spam":[1,true,null]}}'


def test_pretty_json(client: Any, root: str) -> None:
    """Source: server test, core/json/unittests/writer_ut.cpp (TestPrettyFormat)"""
    client.set(f"{root}/@x", {"hello": 1})
    shown = client.get(f"{root}/@x", format=json_format(format="pretty"))
    assert shown.strip() == b'{\n    "hello": 1\n}'


@pytest.mark.parametrize(
    ("stored", "shown"),
    [("ж".encode(), "Ð¶"), (b"\xff\x00\x80", "ÿ\\u0000\x80"), (b'"\\\n', '\\"\\\\\\n')],
    ids=["text", "bytes", "escaped"],
)
def test_a_character_of_json_stands_for_a_byte(
    client: Any, table: str, queue: str, stored: bytes, shown: str
) -> None:
    """Source: documentation, user-guide/storage/formats (encode_utf8=%true)"""
    line = f'{{"data":"{shown}","n":1}}\n'.encode()
    client.write_table(table, [{"data": stored, "n": 1}])
    assert bytes_of(client, table, json_format()) == line
    inserted(client, queue, line, json_format())
    assert strings(client, queue) == [stored]


def test_a_character_beyond_bytes_is_refused(client: Any, queue: str) -> None:
    """Source: server test, core/json/unittests/parser_ut.cpp (OutOfRangeUnicodeSymbols)"""
    for text in ("ж", "\\u0100"):
        with pytest.raises(YtResponseError, match="codes greater than 255 are not supported"):
            inserted(client, queue, f'{{"data":"{text}"}}'.encode(), json_format())
    assert strings(client, queue) == []


def test_json_as_text(client: Any, table: str, queue: str) -> None:
    """Source: documentation, user-guide/storage/formats (encode_utf8=%false)"""
    plain = json_format(encode_utf8=False)
    client.write_table(table, [{"data": "ж", "n": 1}])
    assert bytes_of(client, table, plain) == '{"data":"ж","n":1}\n'.encode()
    inserted(client, queue, '{"data":"ж","n":1}{"data":"\\u00ff","n":2}'.encode(), plain)
    assert strings(client, queue) == ["ж".encode(), "\u00ff".encode()]


def test_bytes_that_are_no_text_cannot_be_json_text(client: Any, root: str) -> None:
    """Source: server test, core/json/unittests/writer_ut.cpp (IncorrectUtfWithoutEscaping)"""
    client.set(f"{root}/@x", yt.yson.loads(b'"\\xff"'))
    with pytest.raises(YtResponseError, match="Invalid UTF-8"):
        client.get(f"{root}/@x", format=json_format(encode_utf8=False))


@pytest.mark.parametrize(
    "data",
    [
        b'{"data":"a","n":1}{"data":"b","n":2}',
        b'{"data":"a","n":1} {"data":"b","n":2}',
        b'{\n  "data": "a",\n  "n": 1\n}\n{"data":\n"b","n":2}\n\n',
        b'\n\n{"data":"a","n":1}\n\t{"data":"b",\r\n"n":2}',
    ],
    ids=["on one line", "with a space", "over several lines", "with white space"],
)
def test_rows_follow_each_other_anyhow(client: Any, queue: str, data: bytes) -> None:
    """Source: server source, core/json/json_parser.cpp (yajl_allow_multiple_values)"""
    inserted(client, queue, data, json_format())
    assert strings(client, queue) == [b"a", b"b"]


def test_no_rows_at_all(client: Any, queue: str) -> None:
    """Source: server test, core/json/unittests/parser_ut.cpp (EmptyListFragment)"""
    inserted(client, queue, b"", json_format())
    assert strings(client, queue) == []


@over_http
@pytest.mark.parametrize(
    "data",
    [b'{"data":"a"', b'{"data"="a"}', b'{"data":"a"},', b"fdsl", b'{"n":18446744073709551616}'],
    ids=["cut", "yson", "comma", "trash", "overflow"],
)
def test_malformed_json_writes_nothing(client: Any, queue: str, data: bytes) -> None:
    """Source: server test, core/json/unittests/parser_ut.cpp (InvalidJson, Trash)"""
    with pytest.raises(YtResponseError, match="Error parsing JSON"):
        inserted(client, queue, b'{"data":"first"}' + data, json_format())
    assert strings(client, queue) == []


def test_service_columns_have_two_dollars_in_json(client: Any, queue: str) -> None:
    """Source: server test, core/json/unittests/parser_ut.cpp (SpecialKeys)"""
    inserted(client, queue, b'{"data":"a","$$tablet_index":1}', json_format())
    rows = client.select_rows(
        f"[$tablet_index], [$row_index], data from [{queue}]", format="json", raw=True
    )
    assert rows.read() == b'{"$$tablet_index":1,"$$row_index":0,"data":"a"}\n'


def test_one_dollar_is_refused_in_json(client: Any, queue: str) -> None:
    """Source: server source, core/json/json_callbacks.cpp (ConsumeMapFragment)"""
    with pytest.raises(YtResponseError, match='starts with single "\\$"'):
        inserted(client, queue, b'{"data":"a","$tablet_index":1}', json_format())
    plain = json_format(plain=True)
    inserted(client, queue, b'{"data":"a","$tablet_index":1}', plain)
    assert strings(client, queue) == [b"a"]


@pytest.mark.parametrize(
    ("data", "stored"),
    [
        (b'{"$value":"42","$type":"int64"}', 42),
        (b'{"$value":"123","$type":"uint64"}', 123),
        (b'{"$value":89,"$type":"double"}', 89.0),
        (b'{"$value":"false","$type":"boolean"}', False),
        (b'{"$value":"aaa","$type":"string"}', "aaa"),
        (b"9223372036854775808", 1 << 63),
    ],
)
def test_values_with_their_types(client: Any, root: str, data: bytes, stored: Any) -> None:
    """Source: server test, core/json/unittests/parser_ut.cpp (AnnotateWithTypes,
    UnsignedInteger2)"""
    client.set(f"{root}/@x", data, format="json")
    found = client.get(f"{root}/@x")
    assert found == stored
    assert isinstance(found, yt.yson.YsonUint64) == (stored in (123, 1 << 63))
    assert isinstance(found, float) == isinstance(stored, float)


def test_attributes_without_a_value(client: Any, root: str) -> None:
    """Source: server test, core/json/unittests/parser_ut.cpp (AttributesWithoutValue)"""
    with pytest.raises(YtResponseError, match=r'"\$attributes" without key "\$value"'):
        client.set(f"{root}/@x", b'{"$attributes":{"a":1}}', format="json")


# DSV


def test_rows_in_dsv(client: Any, table: str) -> None:
    """Source: server test, library/formats/unittests/dsv_writer_ut.cpp (SimpleTabular)"""
    client.write_table(table, [{"data": "some", "n": 42}, {"data": None, "n": -1}])
    assert bytes_of(client, table, DSV) == b"data=some\tn=42\nn=-1\n"
    format = yt.DsvFormat(attributes={"field_separator": ";", "key_value_separator": ":"})
    assert bytes_of(client, table, format) == b"data:some;n:42\nn:-1\n"


def test_scalars_in_dsv(client: Any, root: str) -> None:
    """Source: server source, client/formats/helpers.cpp (WriteUnversionedValue)"""
    client.write_table(f"{root}/t", [{"b": True, "d": 10.0, "e": 0.5, "u": yt.yson.YsonUint64(7)}])
    fields = bytes_of(client, f"{root}/t", DSV).rstrip(b"\n").split(b"\t")
    assert sorted(fields) == [b"b=true", b"d=10.", b"e=0.5", b"u=7"]


def test_escaped_dsv(client: Any, root: str) -> None:
    """Source: server test, library/formats/unittests/dsv_writer_ut.cpp (Escaping)"""
    row = {"a\t=b": "c\n=\\d\r\0"}
    client.write_table(f"{root}/t", [row])
    shown = bytes_of(client, f"{root}/t", DSV)
    assert shown == b"a\\t\\=b=c\\n=\\\\d\\r\\0\n"
    written(client, f"{root}/back", shown, DSV)
    assert list(client.read_table(f"{root}/back")) == [row]


def test_lists_are_not_in_dsv(client: Any, root: str) -> None:
    """Source: server test, integration/formats/test_dsv_format.py (test_ignore_unknown_types)"""
    client.create(
        "table",
        f"{root}/t",
        attributes={
            "schema": [
                {"name": "int", "type_v3": "int64"},
                {"name": "text", "type": "string"},
                {"name": "list", "type_v3": {"type_name": "list", "item": "string"}},
            ]
        },
    )
    rows = [{"int": 53, "text": "x", "list": ["a"]}, {"int": 82, "text": None, "list": []}]
    client.write_table(f"{root}/t", rows)
    with pytest.raises(YtResponseError, match="are not supported by the chosen format") as caught:
        bytes_of(client, f"{root}/t", DSV)
    assert caught.value.contains_code(codes.FORMAT_CANNOT_REPRESENT_ROW)
    format = yt.DsvFormat(attributes={"skip_unsupported_types": True})
    assert bytes_of(client, f"{root}/t", format) == b"int=53\ttext=x\t\nint=82\t\n"


def test_all_of_dsv_is_strings(client: Any, root: str) -> None:
    """Source: server test, library/formats/unittests/dsv_parser_ut.cpp (Simple, EmptyRecord,
    UndefinedValues)"""
    written(client, f"{root}/t", b"n=42\ts=some=x\n\nfield\tn=\t\n", DSV)
    rows = list(client.read_table(f"{root}/t"))
    assert rows == [{"n": "42", "s": "some=x"}, {}, {"n": ""}]


def test_strings_of_dsv_do_not_fit_into_other_columns(client: Any, queue: str) -> None:
    """Source: documentation, user-guide/storage/formats (DSV: no typed values)"""
    with pytest.raises(YtResponseError) as caught:
        inserted(client, queue, b"data=a\tn=1\n", DSV)
    assert caught.value.contains_code(codes.SCHEMA_VIOLATION)


def test_dsv_is_converted_on_request(client: Any, queue: str, table: str) -> None:
    """Source: documentation, user-guide/storage/formats (DSV: enable_type_conversion)"""
    inserted(client, queue, b"data=a\tn=2u\t$tablet_index=1\ndata=b\tn=-1\n", TYPED_DSV)
    assert strings(client, queue) == [b"b", b"a"]
    assert list(client.select_rows(f"n from [{queue}] where [$tablet_index] = 1 and n = 2"))
    written(client, table, b"data=a\tn=5\n", TYPED_DSV)
    assert list(client.read_table(table)) == [{"data": "a", "n": 5}]
    with pytest.raises(YtResponseError, match="Error while performing type conversion") as caught:
        inserted(client, queue, b"data=c\tn=few\n", TYPED_DSV)
    assert caught.value.contains_code(codes.SCHEMA_VIOLATION)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"data=a\ndata=b", "terminated with record separator"),
        (b"data=a\ndata=b\\", "Incomplete escape sequence"),
        (b"data=a\0\n", "Unescaped"),
    ],
    ids=["no end", "half an escape", "a zero byte"],
)
def test_malformed_dsv(client: Any, queue: str, data: bytes, message: str) -> None:
    """Source: server test, library/formats/unittests/dsv_parser_ut.cpp (UnterminatedRecord,
    UnescapedZeroInInput)"""
    with pytest.raises(YtResponseError, match=message):
        inserted(client, queue, data, DSV)
    assert strings(client, queue) == []


def test_lines_with_a_prefix(client: Any, root: str) -> None:
    """Source: server test, library/formats/unittests/dsv_parser_ut.cpp (TTskvParserTest)"""
    tskv = yt.DsvFormat(attributes={"line_prefix": "tskv"})
    written(client, f"{root}/t", b"tskv\ntskv\tid=1\n", tskv)
    assert bytes_of(client, f"{root}/t", tskv) == b"tskv\ntskv\tid=1\n"
    with pytest.raises(YtResponseError, match="Malformed line prefix"):
        written(client, f"{root}/t", b"tZkv\tid=1\n", tskv)


def test_rows_of_one_schema_do_not_come_as_dsv(client: Any, queue: str) -> None:
    """Source: server source, library/formats/format.cpp (CreateSchemafulWriterForFormat)"""
    with pytest.raises(YtResponseError, match='Unsupported output format "dsv"'):
        client.select_rows(f"data from [{queue}]", format="dsv", raw=True)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"missing_value_mode": "skip_row"}, b"1\tsome\n"),
        ({"missing_value_mode": "print_sentinel"}, b"1\tsome\n2\t\n"),
        (
            {
                "missing_value_mode": "print_sentinel",
                "missing_value_sentinel": "-",
                "enable_column_names_header": True,
                "field_separator": ";",
            },
            b"n;data\n1;some\n2;-\n",
        ),
    ],
)
@over_http
def test_rows_of_one_schema_in_schemaful_dsv(
    client: Any, queue: str, options: dict[str, Any], shown: bytes
) -> None:
    """Source: server source, library/formats/schemaful_dsv_writer.cpp
    (TSchemafulWriterForSchemafulDsv)"""
    client.insert_rows(queue, [{"data": "some", "n": 1, "$tablet_index": 0}])
    client.insert_rows(queue, [{"n": 2, "$tablet_index": 0}])
    format = yt.SchemafulDsvFormat(["n", "data"], attributes=options)
    query = f"n, data from [{queue}]"
    assert client.select_rows(query, format=format, raw=True).read() == shown
    with pytest.raises(YtResponseError, match='Column "data" is in schema but missing'):
        client.select_rows(query, format=yt.SchemafulDsvFormat(["n", "data"]), raw=True).read()
    with pytest.raises(YtResponseError, match='Missing schema column "m"'):
        client.select_rows(query, format=yt.SchemafulDsvFormat(["m"]), raw=True).read()


def test_structured_dsv(client: Any, root: str) -> None:
    """Source: server test, library/formats/unittests/dsv_writer_ut.cpp (ListUsingOnRaw,
    MapUsingOnRaw, ListInsideMap)"""
    for value, shown in (
        ([10, 20], b"10\n20\n"),
        ({"a": "b", "c": True}, b"a=b\tc=true"),
        ("x\ty", b"x\\ty"),
    ):
        client.set(f"{root}/@x", value)
        assert client.get(f"{root}/@x", format="dsv") == shown
    client.set(f"{root}/@x", {"a": []})
    with pytest.raises(YtResponseError, match="Embedded lists are not supported by DSV"):
        client.get(f"{root}/@x", format="dsv")
