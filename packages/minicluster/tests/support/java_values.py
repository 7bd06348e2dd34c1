"""Java's values for Python's, in a JVM that has the Java client of YTsaurus and no Spark session.

The client's jars are SPYT's; what they need besides is among Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yt.wrapper as yt
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError
from yt import yson

REQUEST = "tech.ytsaurus.client.request"
ROWS = "tech.ytsaurus.client.rows"
TYPE = "tech.ytsaurus.core.tables.ColumnValueType"


class LacksError(Exception):
    """The client has no such call."""


def _installed(package: str) -> Path:
    return Path(str(find_spec(package).origin)).parent  # type: ignore[union-attr]


def class_path() -> str:
    """Return where the client and all that it needs are."""
    return f"{_installed('spyt')}/jars/common/*:{_installed('pyspark')}/jars/*"


@contextmanager
def jvm() -> Iterator[Any]:
    """Start a JVM with the client in its class path; it ends with this process at the latest."""
    (py4j,) = (_installed("pyspark") / "jars").glob("py4j-*.jar")
    port, token = launch_gateway(
        jarpath=str(py4j),
        classpath=class_path(),
        javaopts=["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        die_on_exit=True,
        enable_auth=True,
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()


class Java:
    """Names in the JVM, and values; trees go over as text of YSON."""

    def __init__(self, jvm: Any) -> None:
        self.jvm = jvm

    def find(self, name: str) -> Any:
        return reduce(getattr, name.split("."), self.jvm)

    def request(self, name: str) -> Any:
        return self.find(f"{REQUEST}.{name}")

    def builder(self, name: str) -> Any:
        return self.request(name).builder()

    def kind(self, name: str, value: str) -> Any:
        for item in self.find(name).values():
            if item.value() == value:
                return item
        raise LacksError(f"objects of type {value}")

    def long(self, number: int) -> Any:
        return self.jvm.java.lang.Long.valueOf(str(number))

    def timestamp(self, value: int) -> Any:
        return self.jvm.tech.ytsaurus.core.YtTimestamp.valueOf(value)

    def path(self, path: str | None) -> Any:
        if path is None:
            raise LacksError("objects without a path")
        return self.jvm.tech.ytsaurus.core.cypress.YPath.simple(path)

    def rich(self, path: Any) -> Any:
        """Return a path with the attributes that it has: append, ranges."""
        made = self.path(str(path))
        given = getattr(path, "attributes", {})
        if given.get("append"):
            made = made.append(True)
        for limits in given.get("ranges", ()):
            ends = [limits[name]["row_index"] for name in ("lower_limit", "upper_limit")]
            made = made.withRange(*ends)
        return made

    def node(self, value: object) -> Any:
        text = yson.dumps(value, yson_format="text").decode("latin-1")
        return self.jvm.tech.ytsaurus.ysontree.YTreeTextSerializer.deserialize(text)

    def value(self, node: Any) -> Any:
        text = self.jvm.tech.ytsaurus.ysontree.YTreeTextSerializer.serialize(node)
        return yson.loads(text.encode())

    def items(self, values: list[Any]) -> Any:
        return self.node(values).asList()

    def row(self, schema: Any, row: Mapping[str, Any]) -> Any:
        """Return a row of a static table."""
        made = self.find(f"{ROWS}.UnversionedRowDeserializer")()
        made.onNewRow(len(row))
        for name, value in row.items():
            place = schema.findColumn(name)
            made.setId(place)
            made.setType(
                self.find(f"{TYPE}.NULL") if value is None else schema.getColumnType(place)
            )
            if value is None:
                made.onEntity()
            elif isinstance(value, int):
                made.onInteger(value)
            else:
                made.onBytes(value.encode())
            made.build()
        return made.onCompleteRow()


def joined(future: Any) -> Any:
    """Return what a call of the client's comes to. Raises YtError with the cluster's codes."""
    try:
        return future.join()
    except Py4JJavaError as error:
        found = re.search(r"full error: (\{.*\})", str(error))
        if found is None:
            raise
        raise _error(yson.loads(found[1].encode())) from error


def _error(found: Any) -> yt.YtError:
    inner = [_error(item) for item in found.get("inner_errors", ())]
    return yt.YtError(str(found["message"]), code=int(found["code"]), inner_errors=inner)
