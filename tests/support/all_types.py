"""A job for each kind of processing with columns of every type that SPYT reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import yt.type_info as ti
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.support.examples import example
from ytstream import Column, Job

START = 1_704_067_200_000_000
"""2024-01-01T00:00:00Z in microseconds."""

VALUES: dict[str, tuple[Any, list[Any]]] = {
    **{f"int{n}": (f"int{n}", [-(2 ** (n - 1)), 2 ** (n - 1) - 1, 0]) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (f"uint{n}", [0, 2**n - 1, 7]) for n in (8, 16, 32, 64)},
    "float": ("float", [1.5, -0.25, 0.0]),
    "double": ("double", [0.1, -1e300, 0.0]),
    "bool": ("bool", [True, False, True]),
    "string": ("string", ["привет", "", b"\x00\xff\x1f\x8b"]),
    "utf8": ("utf8", ["a", "", 'a "quoted" \\ text']),
    "json": ("json", ['{"a": [1, null]}', "[]", "5"]),
    "date": ("date", [0, 19_723, 49_672]),
    "datetime": ("datetime", [0, START // 1_000_000, 4_291_747_199]),
    "timestamp": ("timestamp", [0, START + 1, 4_291_747_199_999_999]),
    "interval": ("interval", [-5, 0, 10**12]),
    "date32": ("date32", [-1, 0, 19_723]),
    "datetime64": ("datetime64", [-1, 0, START // 1_000_000]),
    "timestamp64": ("timestamp64", [-1, 0, START + 1]),
    "interval64": ("interval64", [-1, 0, 10**12]),
    "any": ("any", [{"a": [1, b"\xff"]}, [], "text"]),
    "list": (ti.List[ti.Utf8], [["a", ""], [], ["ы"]]),
    "strings": (ti.List[ti.String], [["a", b"\xff"], [], [b"\x80" * 100]]),
    "bytes_by_bytes": (
        ti.Dict[ti.String, ti.Optional[ti.String]],
        [[[b"\xfe", b"\xff"]], [], [["ы", None]]],
    ),
    "struct_of_bytes": (
        ti.Struct["a" : ti.Int64, "b" : ti.Optional[ti.String]],
        [{"a": 1, "b": b"\xff"}, {"a": -1, "b": None}, {"a": 0, "b": ""}],
    ),
    "struct": (
        ti.Struct["a" : ti.Int64, "b" : ti.Optional[ti.Utf8]],
        [{"a": 1, "b": "x"}, {"a": -1, "b": None}, {"a": 0, "b": ""}],
    ),
    "dict": (ti.Dict[ti.Utf8, ti.Int64], [[["a", 1]], [], [["b", -2]]]),
    "tuple": (ti.Tuple[ti.Int64, ti.Utf8], [[1, "a"], [2, ""], [-3, "ы"]]),
}
"""Name -> type of tables.py and values; a null is sent for each as well."""
READ_BY_THE_DRIVER = [
    name
    for name in VALUES
    if name.rstrip("0123456789") in {"int", "float", "double", "bool", "string", "utf8", "json"}
    or name in {"uint8", "uint16", "uint32", "date", "timestamp", "interval"}
]
"""Those that the reference table of a join may have."""
GROUPED = {"c_uint64", "c_datetime", "c_date32", "c_datetime64", "c_timestamp64", "c_interval64"}
"""SPYT's own types can be grouped by; Spark 3.5 cannot keep them as an aggregate's value
(SpecificInternalRow gives them a MutableAny, the generated code wants a MutableInt)."""

COLUMNS = [Column(f"c_{name}", type_) for name, (type_, _) in VALUES.items()]
NAMES = [column.name for column in COLUMNS]
ID = Column("id", "utf8", required=True)

ODD = (
    Column("money", ti.Decimal(20, 4)),
    Column("who", ti.Uuid),
    Column("a.b", ti.Int64),
    Column("C_UTF8", ti.Utf8),
    Column("either", ti.Variant[ti.Int64, ti.Utf8]),
    Column('with "quotes" and \\', ti.Int64),
)
"""More columns of a queue: those that no output can have, and those that no job can read."""


def rows() -> list[dict[str, Any]]:
    """Return a row for each position in the lists of values, and one of nulls."""
    return [
        {
            "id": f"row-{number}",
            **{
                f"c_{name}": values[number] if number < len(values) else None
                for name, (_, values) in VALUES.items()
            },
        }
        for number in range(4)
    ]


def odd_rows() -> list[dict[str, Any]]:
    """Return rows that have ODD, too."""
    money, who = bytes([0x80] + [0] * 14 + [7]), b"\x00" * 15 + b"\xff"
    return [{**row, "money": money, "who": who} for row in rows()]


def reference_rows() -> list[dict[str, Any]]:
    """Return the same values under the columns of REFERENCE."""
    return [
        {"id": row["id"], **{f"r_{name}": row[f"c_{name}"] for name in READ_BY_THE_DRIVER}}
        for row in rows()
    ]


def job(processing: str) -> Job:
    """Return the job of that kind; its outputs are its inputs."""
    is_join = processing == "join"
    return replace(
        example("transactional", processing).job,
        queue=[ID, Column("at", "timestamp", required=True), *COLUMNS],
        outputs={"output": [ID, *COLUMNS]},
        transform=_TRANSFORMS[processing],
        reference=[
            Column("id", "utf8", key=True),
            *(Column(f"r_{name}", VALUES[name][0]) for name in READ_BY_THE_DRIVER),
        ]
        if is_join
        else (),
    )


def _passed(events: DataFrame) -> DataFrame:
    """Return the columns as they come."""
    return events.select("id", *NAMES)


def _windowed(events: DataFrame) -> DataFrame:
    """Make each row the only one of its group, so its values are the group's first ones."""
    window = F.window("at", "1 second")
    groups = events.withWatermark("at", "1 second").groupBy(window, "id", *sorted(GROUPED))
    kept = (F.first(name).alias(name) for name in NAMES if name not in GROUPED)
    return groups.agg(*kept).select("id", *NAMES)


def _deduplicated(events: DataFrame) -> DataFrame:
    """Keep one of each two rows."""
    return _passed(events.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"]))


def _joined(events: DataFrame, reference: DataFrame) -> DataFrame:
    """Put the reference's values in the place of the queue's, where it can have them."""
    taken = {f"c_{name}": f"r_{name}" for name in READ_BY_THE_DRIVER}
    kept = events.select("id", *(name for name in NAMES if name not in taken))
    return kept.join(F.broadcast(reference), "id", "left").select(
        "id", *(F.col(taken.get(name, name)).alias(name) for name in NAMES)
    )


_TRANSFORMS: dict[str, Callable[..., DataFrame]] = {
    "map": _passed,
    "window": _windowed,
    "deduplicate": _deduplicated,
    "join": _joined,
}
