"""What a table with totals must make of rows, in plain Python: the oracle of its tests."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ytstream import Column

QUEUE = [
    Column("key", "int64", required=True),
    Column("number", "int64"),
    Column("size", "uint64"),
    Column("part", "double"),
    Column("text", "utf8"),
    Column("flag", "boolean"),
]
"""A queue of contributions."""
TOTALS = [
    Column("key", "int64", key=True),
    Column("rows", "int64", required=True, aggregate="sum"),
    Column("numbers", "int64", aggregate="sum"),
    Column("sizes", "uint64", aggregate="sum"),
    Column("parts", "double", aggregate="sum"),
    Column("lowest", "int64", aggregate="min"),
    Column("largest", "uint64", aggregate="max"),
    Column("least_part", "double", aggregate="min"),
    Column("last", "string", aggregate="max"),
    Column("is_any", "boolean", aggregate="max"),
    Column("first", "string", aggregate="first"),
]
"""The totals of each key."""


def contributions(events: DataFrame) -> DataFrame:
    """What each row adds to the totals of its key."""
    return events.select(
        "key", F.lit(1).cast("long").alias("rows"),
        *(F.col(old).alias(new) for old, new in (
            ("number", "numbers"), ("size", "sizes"), ("part", "parts"), ("number", "lowest"),
            ("size", "largest"), ("part", "least_part"), ("text", "last"), ("flag", "is_any"),
            ("text", "first"),
        )),
    )  # fmt: skip


def history(seed: int, count: int, keys: int) -> list[dict[str, Any]]:
    """Return contributions with nulls. Few keys have most of them, and some have only nulls.

    The totals of two keys come near the ends of int64, and that of one near the end of uint64.
    """
    chance = random.Random(seed)

    def some(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    rows = [
        {
            "key": int(keys * chance.random() ** 3),
            "number": some(chance.choice((0, -1, 10**12, chance.randint(-(10**15), 10**15)))),
            "size": some(chance.choice((0, 1, chance.randrange(2**40)))),
            "part": some(chance.choice((0.0, -0.25, 1e-9, chance.uniform(-1e6, 1e6)))),
            "text": some(chance.choice(("", "é", "\"'", f"{chance.randrange(10**6)}"))),
            "flag": some(chance.random() < 0.1),
        }
        for _ in range(count)
    ]
    nothing = dict.fromkeys(("number", "size", "part", "text", "flag"))
    for number, (key, name, value) in enumerate((
        (-1, "number", 2**62), (-1, "number", 2**62 - 5), (-1, "number", 4),
        (-2, "number", -(2**62)), (-2, "number", -(2**62)),
        (-3, "size", 2**63), (-3, "size", 2**62), (-3, "size", 2**62 - 7),
        (-4, "number", None), (-4, "number", None),
    )):  # fmt: skip
        at = (2 * number + 1) * count // 20
        rows[at] = {**nothing, "key": key, name: value}
    return rows


def totals_of(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[Any]]:
    """Return key -> its totals, in the order of TOTALS. Rows of a key come in their order."""
    groups: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["key"]].append(row)
    found: dict[int, list[Any]] = {}
    for key, group in groups.items():
        numbers, sizes, parts, texts, flags = (
            [row[name] for row in group if row[name] is not None]
            for name in ("number", "size", "part", "text", "flag")
        )
        found[key] = [
            len(group),
            sum(numbers) if numbers else None,
            sum(sizes) if sizes else None,
            math.fsum(parts) if parts else None,
            min(numbers, default=None),
            max(sizes, default=None),
            min(parts, default=None),
            max(texts, default=None, key=str.encode),
            max(flags, default=None),
            texts[0] if texts else None,
        ]
    return found
