"""The fuzzer's inputs: values that are nearly right, and bytes that were right once."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from yt import yson

from minicluster.cluster import Cluster
from minicluster.core import ids
from minicluster.rows import wire
from minicluster.rpc import bus

SIZES = [0, 1, 0x7F, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 28]
NUMBERS = [0, 1, 2, -1, 3, 10, 255, 100_001, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
TEXTS = ["", "a", "x", "ж", "a/b", "\0", "é" * 300, "table", "%true", "null", "1-2-3-4", "$value"]
PATHS = [
    "//fuzz",
    "//fuzz/map",
    "//fuzz/map/deep",
    "//fuzz/document",
    "//fuzz/document/a/1",
    "//fuzz/file",
    "//fuzz/link",
    "//fuzz/link&",
    "//fuzz/queue",
    "//fuzz/keyed",
    "//fuzz/static",
    "//fuzz/consumer",
    "//fuzz/producer",
    "//fuzz/new",
    "//fuzz/new/er",
    "//fuzz/*",
    "//fuzz/queue/@",
    "//fuzz/map/@mine",
    "//fuzz/queue/@queue_partitions",
    "//fuzz/queue/@schema",
    "//sys/@cluster_name",
    "//tmp",
]
SUFFIXES = ["", "", "", "/@", "/@type", "/x", "&", "[#1:#3]", "{n}", "[(1):(2)]", "/@a/b", "/-1"]
QUERIES = [
    "* from [//fuzz/queue]",
    "* from [//fuzz/keyed] where k = 1 order by k desc limit 2",
    "sum(n) as s, k % 2 as odd from [//fuzz/keyed] group by k % 2 as odd having s > 0",
    "n from [//fuzz/queue] where [$tablet_index] in (0, 1) and [$row_index] between 0 and 5",
    'if(is_null(t.v), "x", concat(t.v, "y")) as z from [//fuzz/keyed] as t offset 1 limit 2',
    "(k, v) from [//fuzz/keyed] where (k, v) >= (1, 'a')",
    "case k when 1 then v when null then 'x' else 'y' end as z, cast(k as [string?]) as s, "
    "v like '%a_|%' escape '|' as w from [//fuzz/keyed]",
    "t.k, u.v from [//fuzz/keyed] as t left join [//fuzz/keyed] as u on (t.k, 1) = (u.k, 1) "
    "and u.k > 0 where t.k in (1, 2)",
    "try_get_int64(cast(v as any), '/a/@b/0') as a, farm_hash(k, v, null) as h, "
    "parse_double(v) as d from [//fuzz/keyed]",
    "timestamp_floor_week(k) as w, timestamp_floor_day_tz(k, v) as d, "
    "format_timestamp(k * 1000000, '%Y %q') as f from [//fuzz/keyed]",
    "argmax(v, k) as m, first(v) as f, cardinality(k) as c from [//fuzz/keyed] group by k % 2",
]
TYPES = ["int64", "uint8", "string", "utf8", "any", "boolean", "double", "timestamp", "nonsense"]
NODE_TYPES = [
    "map_node",
    "document",
    "file",
    "table",
    "link",
    "queue_consumer",
    "queue_producer",
    "string_node",
    "list_node",
    "account",
    "nonsense",
]
ATTRIBUTES = [
    "schema",
    "dynamic",
    "tablet_count",
    "pivot_keys",
    "trimmed_row_counts",
    "value",
    "target_path",
    "atomicity",
    "auto_trim_config",
    "treat_as_queue_consumer",
    "account",
    "acl",
    "mine",
    "expiration_time",
    "type",
    "id",
    "name",
]


class Inputs:
    """Everything random comes from one generator, so that a seed repeats a run."""

    def __init__(self, seed: int, cluster: Cluster) -> None:
        self.random = random.Random(seed)
        self.cluster = cluster

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, items: Sequence[Any]) -> Any:
        return self.random.choice(items)

    # Text

    def path(self) -> str:
        text = str(self.pick(PATHS)) + str(self.pick(SUFFIXES))
        if self.chance(0.1):
            text = f"#{self.pick(list(self.cluster.cypress.nodes))}{self.pick(SUFFIXES)}"
        if self.chance(0.1):
            text = f"<append={self.pick(['%true', '5', '{', '>'])}>{text}"
        return self.garbled(text) if self.chance(0.15) else text

    def query(self) -> str:
        text = str(self.pick(QUERIES))
        return self.garbled(text) if self.chance(0.7) else text

    def garbled(self, text: str) -> str:
        return self.damaged(text.encode()).decode("utf-8", "replace")

    def number(self) -> int:
        small = self.random.randint(-2, 12)
        return small if self.chance(0.6) else int(self.pick(NUMBERS))

    def identifier(self) -> str:
        known = [*self.cluster.transactions.running]
        known += [f"{self.number():x}-1-{kind:x}-1" for kind in (1, 2, 4)]
        return str(self.pick([*known, ids.NULL, "", "1-2-3", "zz"]))

    # YSON

    def value(self, depth: int = 0) -> Any:
        kind = self.random.randrange(9 if depth < 4 else 6)
        match kind:
            case 0:
                return self.number()
            case 1:
                return str(self.pick(TEXTS))
            case 2:
                return self.pick([True, False, None, 0.5, float("inf"), float("nan"), -0.0])
            case 3:
                return yson.YsonUint64(abs(self.number()))
            case 4:
                return self.random.randbytes(self.random.randint(0, 12))
            case 5:
                return self.path()
            case 6:
                return [self.value(depth + 1) for _ in range(self.random.randint(0, 3))]
            case 7:
                return {self.key(): self.value(depth + 1) for _ in range(self.random.randint(0, 3))}
        inner: Any = yson.to_yson_type(self.value(depth + 1))
        if hasattr(inner, "attributes"):
            inner.attributes = {self.key(): self.value(depth + 1)}
        return inner

    def key(self) -> str:
        return str(self.pick([*TEXTS, *ATTRIBUTES, "k", "v", "n", "$tablet_index"]))

    def schema(self) -> Any:
        columns = []
        for name in self.random.sample(["k", "v", "n", "$timestamp", "", "a"], 3):
            column: dict[str, Any] = {"name": name, "type": self.pick(TYPES)}
            if self.chance(0.3):
                column["sort_order"] = self.pick(["ascending", "descending", None, 5])
            if self.chance(0.3):
                inner = self.pick([*TYPES, self.composite(), self.composite(), {}, 5])
                column["type_v3"] = self.pick([inner, {"type_name": "optional", "item": inner}])
            if self.chance(0.2):
                column["required"] = self.pick([True, False, 5])
            if self.chance(0.2):
                column[self.key()] = self.value(2)
            columns.append(column)
        found = yson.to_yson_type(columns)
        found.attributes = {"strict": self.chance(0.8), "unique_keys": self.chance(0.5)}
        return found if self.chance(0.9) else self.value()

    def composite(self) -> dict[str, Any]:
        """Return a type that is nearly a composite one."""
        part = self.composite() if self.chance(0.4) else self.pick([*TYPES, 5, None])
        parts = self.pick([[{"name": self.key(), "type": part}, {"type": part}], [], part])
        name = self.pick(["list", "optional", "tagged", "dict", "tuple", "struct", "variant"])
        found = {"item": part, "key": part, "value": part, "elements": parts, "members": parts}
        return {"type_name": name, **{k: v for k, v in found.items() if self.chance(0.8)}}

    def attributes(self) -> dict[str, Any]:
        names = self.random.sample(ATTRIBUTES, self.random.randint(0, 3))
        return {name: self.attribute(name) for name in names}

    def attribute(self, name: str) -> Any:
        if self.chance(0.2):
            return self.value()
        makers: dict[str, Callable[[], Any]] = {
            "schema": self.schema,
            "dynamic": lambda: True,
            "tablet_count": self.number,
            "pivot_keys": lambda: [[], [self.number()], [self.value()]],
            "trimmed_row_counts": lambda: [self.number(), self.number()],
            "target_path": self.path,
            "atomicity": lambda: self.pick(["full", "none", "half"]),
            "auto_trim_config": lambda: {"enable": True, "retained_rows": self.number()},
        }
        return makers.get(name, self.value)()

    # Rows

    def row(self) -> Any:
        """Return nearly a row of one of the tables."""
        row: dict[str, Any] = {"k": self.number(), "v": self.pick(TEXTS), "n": self.number()}
        for name in self.random.sample(["k", "v", "n"], self.random.randint(0, 2)):
            del row[name]
        if self.chance(0.3):
            row[self.pick(["$tablet_index", "$sequence_number", "$timestamp"])] = self.number()
        if self.chance(0.2):
            row[self.key()] = self.value(2)
        return row if self.chance(0.95) else self.value()

    def rows(self) -> list[Any]:
        return [self.row() for _ in range(self.random.randint(0, 4))]

    def rowset(self) -> bytes:
        """Return rows on the wire, some of them damaged."""
        kinds = (wire.INT64, wire.STRING, wire.NULL, wire.UINT64, wire.BOOLEAN, wire.DOUBLE)
        plain: dict[int, Any] = {wire.STRING: b"abc", wire.NULL: None, wire.BOOLEAN: True}
        rows: list[bytes | None] = []
        for _ in range(self.random.randint(0, 3)):
            cells = []
            for column in range(self.random.randint(0, 3)):
                kind = (
                    self.pick(kinds) if self.chance(0.5) else (wire.INT64, wire.STRING)[column % 2]
                )
                value = plain.get(kind, 0.5 if kind == wire.DOUBLE else self.random.randint(0, 9))
                cells.append((column if self.chance(0.9) else 99, kind, value))
            rows.append(wire.encode(cells) if self.chance(0.95) else None)
        data = bytes(wire.join(rows))
        return self.damaged(data) if self.chance(0.5) else data

    # Damage

    def damaged(self, data: bytes) -> bytes:
        """Return a few flipped bits, cuts, insertions and sizes that lie."""
        found = bytearray(data)
        for _ in range(self.random.randint(1, 4)):
            position = self.random.randrange(len(found) + 1)
            match self.random.randrange(5):
                case 0 if position < len(found):
                    found[position] ^= 1 << self.random.randrange(8)
                case 1:
                    del found[position : position + self.random.randint(1, 40)]
                case 2:
                    found[position:position] = self.random.randbytes(self.random.randint(1, 20))
                case 3:
                    found[position : position + 4] = struct.pack("<I", self.pick(SIZES))
                case 4:
                    del found[position:]
        return bytes(found)

    def packet(self, parts: list[bus.Part]) -> bytes:
        """Return a bus packet, damaged in one of the ways a packet can be."""
        whole = b"".join(bus.pack(self.random.randbytes(16), parts, acknowledge=self.chance(0.5)))
        match self.random.randrange(6):
            case 0:
                return whole[: self.random.randrange(len(whole))]
            case 1:  # a checksum that is none
                return whole[:28] + self.random.randbytes(8) + whole[36:]
            case 2:  # part counts and sizes
                offset = self.pick([24, 36, 40])
                return whole[:offset] + struct.pack("<I", self.pick(SIZES)) + whole[offset + 4 :]
            case 3:  # parts that were never a message
                junk: list[bus.Part] = [
                    self.pick([None, b"", b"rpci", b"rpco", self.random.randbytes(30)])
                    for _ in range(self.random.randint(0, 5))
                ]
                return b"".join(bus.pack(bytes(16), junk))
            case 4:
                return self.random.randbytes(self.random.randint(1, 200))
        return self.damaged(whole)

    # Protobuf

    def fill(self, message: Any, depth: int = 0) -> Any:
        """Fill a message's fields by their names and types."""
        for field in message.DESCRIPTOR.fields:
            if not self.chance(0.95 if field.is_required else 0.45 if depth < 2 else 0.2):
                continue
            if field.is_repeated:
                self._repeat(message, field, depth)
            elif field.message_type is not None:
                self._submessage(getattr(message, field.name), field, depth)
            else:
                setattr(message, field.name, self._scalar(field))
        return message

    def _repeat(self, message: Any, field: Any, depth: int) -> None:
        target = getattr(message, field.name)
        for _ in range(self.random.randint(0, 3)):
            if field.message_type is not None:
                self._submessage(target.add(), field, depth)
            else:
                target.append(self._scalar(field))

    def _submessage(self, target: Any, field: Any, depth: int) -> None:
        target.SetInParent()
        fields = set(field.message_type.fields_by_name)
        if field.message_type.name == "TGuid":
            text = self.identifier()
            if ids.is_id(text):
                target.first, target.second = ids.to_parts(text)
            else:
                target.first = target.second = 5
        elif fields == {"name", "type"}:
            target.name = self.pick(["k", "v", "n", "$tablet_index", "other"])
        elif fields == {"key", "value"}:
            key = self.pick(ATTRIBUTES)
            target.key = key
            data = self.yson(self.attribute(key))
            target.value = self.damaged(data) if self.chance(0.2) else data
        elif depth < 4:
            self.fill(target, depth + 1)

    def _scalar(self, field: Any) -> Any:
        if field.enum_type is not None:
            return self.pick(field.enum_type.values).number
        if field.cpp_type == field.CPPTYPE_STRING:
            found = self._text(field.name)
            if field.type == field.TYPE_BYTES:
                return found.encode() if self.chance(0.95) else self.random.randbytes(9)
            return found
        if field.cpp_type == field.CPPTYPE_BOOL:
            return self.chance(0.5)
        if field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            return 0.5
        if field.name == "type":
            return self.pick([1, 2, 303, 400, 401, 417, 421, 1700, 65_000])
        if field.name in ("wire_format_version", "rowset_kind", "row_modification_types"):
            return 1 if self.chance(0.8) else self.random.randint(0, 4)
        low, high = {
            field.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
            field.CPPTYPE_UINT32: (0, 2**32 - 1),
            field.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
            field.CPPTYPE_UINT64: (0, 2**64 - 1),
        }[field.cpp_type]
        return min(max(self.number(), low), high)

    def _text(self, name: str) -> str:
        if "path" in name:
            return self.path()
        if "query" in name:
            return self.query()
        return str(self.pick(TEXTS))

    def yson(self, value: Any) -> bytes:
        data: bytes = yson.dumps(value, yson_format=self.pick(["text", "binary"]))
        return data
