"""`read_table` in Arrow, which pandas and polars ask for; what it refuses, and Skiff."""

from __future__ import annotations

import io
import sys
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
import yt.wrapper as yt
from yt import yson
from yt.wrapper.errors import YtResponseError
from yt.wrapper.format import ArrowFormat

from minicluster.core.errors import YtError
from minicluster.http import formats
from minicluster.testing import Running
from packages.minicluster.tests.conftest import connect

ARROW = ArrowFormat(raw=True)

SCALARS: list[tuple[str, Any, str, Any]] = [
    *((f"int{bits}", -7, f"int{bits}", -7) for bits in (8, 16, 32, 64)),
    *((f"uint{bits}", yson.YsonUint64(7), f"uint{bits}", 7) for bits in (8, 16, 32, 64)),
    ("double", 0.1, "double", 0.1),
    ("float", 0.5, "float", 0.5),
    ("boolean", True, "bool", True),
    ("string", b"\xff", "binary", b"\xff"),
    ("utf8", "ы", "string", "ы"),
    ("json", "[1]", "string", "[1]"),
    ("date", yson.YsonUint64(19_000), "date32[day]", date(2022, 1, 8)),
    ("datetime", yson.YsonUint64(86_400), "timestamp[s]", datetime(1970, 1, 2)),
    ("timestamp", yson.YsonUint64(1_000_001), "timestamp[us]", datetime(1970, 1, 1, 0, 0, 1, 1)),
    ("interval", -5, "int64", -5),
    ("any", {"x": [1]}, "binary", yson.dumps({"x": [1]}, yson_format="binary")),
]
"""Type, a value, what is in the stream. Source: library/formats/arrow_writer.cpp,
SerializeLeafColumnType."""


@pytest.fixture
def client(running: Running) -> Any:
    return connect(running)


def _made(client: Any, name: str, columns: list[dict[str, Any]]) -> str:
    path = f"//tmp/arrow/{name}"
    client.create("table", path, recursive=True, attributes={"schema": columns})
    return path


def _read(client: Any, path: Any) -> pa.Table:
    data = client.read_table(path, format=ARROW, raw=True).read()
    with pa.ipc.open_stream(io.BytesIO(data)) as stream:
        return stream.read_all()


@pytest.mark.parametrize(("name", "value", "kind", "shown"), SCALARS)
def test_a_scalar_keeps_its_type(client: Any, name: str, value: Any, kind: str, shown: Any) -> None:
    path = _made(client, name, [{"name": "a", "type": name}])
    client.write_table(path, [{"a": value}, {"a": None}])
    found = _read(client, path)
    assert str(found.schema.field("a").type) == kind
    assert found.column("a").to_pylist() == [shown, None]


def test_what_is_required_is_not_nullable(client: Any) -> None:
    columns = [{"name": n, "type": "int64", "required": n == "a"} for n in ("a", "b")]
    path = _made(client, "required", columns)
    client.write_table(path, [{"a": 1, "b": 2}])
    assert [field.nullable for field in _read(client, path).schema] == [False, True]


def test_a_composite_value_is_yson(client: Any) -> None:
    """Source: library/formats/arrow_writer.cpp, SerializeColumnType (enable_complex_types)"""
    listed = {"type_name": "list", "item": "int64"}
    path = _made(client, "list", [{"name": "a", "type_v3": listed}])
    client.write_table(path, [{"a": [1, 2]}])
    (value,) = _read(client, path).column("a").to_pylist()
    assert yson.loads(value) == [1, 2]


def test_ranges_columns_and_many_batches(client: Any) -> None:
    path = _made(client, "many", [{"name": n, "type": "int64"} for n in ("a", "b")])
    client.write_table(path, [{"a": a, "b": -a} for a in range(25_000)])
    chosen = yt.TablePath(path, columns=["b"], start_index=10, end_index=24_000)
    assert _read(client, chosen).to_pydict() == {"b": [-b for b in range(10, 24_000)]}


def test_a_table_without_rows(client: Any) -> None:
    path = _made(client, "empty", [{"name": "a", "type": "utf8"}])
    assert _read(client, path).to_pydict() == {"a": []}


def test_pandas_and_parquet(client: Any, tmp_path: Any) -> None:
    """The client's own reader of Arrow writes Parquet (ytsaurus-yson, dump_parquet)."""
    path = _made(client, "parquet", [{"name": "a", "type": "int64"}, {"name": "b", "type": "utf8"}])
    client.write_table(path, [{"a": 1, "b": "x"}, {"a": 2, "b": None}])
    client.dump_parquet(path, str(tmp_path / "f"))
    import pandas

    assert pandas.read_parquet(tmp_path / "f")["a"].tolist() == [1, 2]
    assert _read(client, path).to_pandas()["b"].tolist() == ["x", None]


@pytest.mark.parametrize("name", ["uuid", "date32", "timestamp64"])
def test_types_that_arrow_has_not(client: Any, name: str) -> None:
    """Source: library/formats/arrow_writer.cpp, SerializeLeafColumnType (default)"""
    path = _made(client, name, [{"name": "a", "type": name}])
    with pytest.raises(YtResponseError, match="is not currently supported by Arrow encoder"):
        _read(client, path)


def test_other_answers_are_not_in_arrow(client: Any) -> None:
    """Source: library/formats/format.cpp (CreateSchemafulWriterForFormat,
    CreateConsumerForFormat)"""
    path = "//tmp/arrow/dynamic"
    columns = [{"name": "a", "type": "int64"}]
    client.create("table", path, recursive=True, attributes={"dynamic": True, "schema": columns})
    client.mount_table(path, sync=True)
    with pytest.raises(YtResponseError, match='Unsupported output format "arrow"'):
        client.select_rows(f"* from [{path}]", format=ARROW, raw=True)
    with pytest.raises(YtResponseError, match='Unsupported output format "arrow"'):
        client.get("//tmp/@", format=ARROW)


def test_what_is_refused_in_words(client: Any) -> None:
    path = _made(client, "refused", [{"name": "a", "type": "int64"}])
    skiff = yt.SkiffFormat([{"wire_type": "tuple", "children": []}])
    with pytest.raises(YtResponseError, match='not supported by minicluster: format "skiff"'):
        client.read_table(path, format=skiff, raw=True)
    with pytest.raises(YtResponseError, match=r'not supported by minicluster: input in .*"arrow"'):
        client.write_table(path, b"x", format=ARROW, raw=True)


def test_without_pyarrow_it_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(YtError, match='format "arrow" without the package "pyarrow"'):
        formats.Format.parse("arrow")
