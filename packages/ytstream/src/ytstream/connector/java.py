"""The JVM of a session: classes by their names, and values of Java and Scala."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from yt import yson

from ..schema.columns import Column
from ..schema.table_schema import table_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"
_FOUND: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
_SCHEMAS: WeakKeyDictionary[Any, dict[Sequence[Column], Any]] = WeakKeyDictionary()


def jvm_of(spark: SparkSession) -> Any:
    """Return the session's JVM."""
    return spark._jvm


@dataclass
class Java:
    """Names in the JVM, each looked up once, and a class by its whole name.

    For each part that is asked for alone, such as "org", the JVM searches all of Spark's jars for a
    class of that name, also in each package that PySpark imports (py4j, TypeUtil.forName).

    Schemas of tables are made once, too.
    """

    jvm: Any

    def __getitem__(self, name: str) -> Any:
        """Return a class, or a static method of one."""
        if name not in (found := _FOUND.setdefault(self.jvm, {})):
            parts = name.split(".")
            end = 1 + next((n for n, part in enumerate(parts) if part[0].isupper()), 0)
            of_class = getattr(self.jvm, ".".join(parts[:end]))
            found[name] = reduce(getattr, parts[end:], of_class)
        return found[name]

    def node(self, value: object) -> Any:
        """Return a Python value as a YSON tree of Java's."""
        text = yson.dumps(value, yson_format="text").decode("latin-1")
        return self["tech.ytsaurus.ysontree.YTreeTextSerializer.deserialize"](text)

    def value(self, node: Any) -> Any:
        """Return a YSON tree of Java's, or a list of them, as a Python value.

        A string is a str where its bytes are UTF-8, else bytes.
        """
        tree = self["tech.ytsaurus.ysontree.YTree.node"](node)
        # Not as text, where U+FFFD replaces bytes that are not UTF-8 (YTreeTextSerializer).
        stream = self["java.io.ByteArrayOutputStream"]()
        self["tech.ytsaurus.ysontree.YTreeBinarySerializer.serialize"](tree, stream)
        return yson.yson_to_json(yson.loads(stream.toByteArray()), use_byte_strings=True)

    def schema(self, columns: Sequence[Column]) -> Any:
        """Return the schema of a table with these columns."""
        if columns not in (known := _SCHEMAS.setdefault(self.jvm, {})):
            made = self["tech.ytsaurus.core.tables.TableSchema.fromYTree"]
            known[columns] = made(self.node(table_schema(columns).to_yson_type()))
        return known[columns]

    def option(self, value: object) -> Any:
        """Return Scala's Option of a value; of None the empty one."""
        return self["scala.Option.apply"](value)


def each(sequence: Any) -> Iterator[Any]:
    """Yield the items of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))


def class_name(node: Any) -> str:
    """Return the name of the class of an object in the JVM."""
    return str(node.getClass().getSimpleName())
