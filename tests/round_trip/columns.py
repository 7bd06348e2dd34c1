"""Columns of every type that goes through SPYT both ways, and values at their limits."""

from __future__ import annotations

from typing import Any

import yt.type_info as ti

#: 2024-01-01T00:00:00Z in microseconds.
START = 1_704_067_200_000_000

#: Type of tables.py -> values; a null is sent for each as well.
VALUES: dict[str, tuple[Any, list[Any]]] = {
    **{f"int{n}": (f"int{n}", [-(2 ** (n - 1)), 2 ** (n - 1) - 1, 0]) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (f"uint{n}", [0, 2**n - 1, 7]) for n in (8, 16, 32, 64)},
    "float": ("float", [1.5, -0.25, 0.0]),
    "double": ("double", [0.1, -1e300, 0.0]),
    "bool": ("bool", [True, False, True]),
    "string": ("string", ["a", "", "привет"]),
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
    "any": ("any", [{"a": [1, "b"]}, [], "text"]),
    "list": (ti.List[ti.Utf8], [["a", ""], [], ["ы"]]),
    "struct": (
        ti.Struct["a" : ti.Int64, "b" : ti.Optional[ti.Utf8]],
        [{"a": 1, "b": "x"}, {"a": -1, "b": None}, {"a": 0, "b": ""}],
    ),
    "dict": (ti.Dict[ti.Utf8, ti.Int64], [[["a", 1]], [], [["b", -2]]]),
    "tuple": (ti.Tuple[ti.Int64, ti.Utf8], [[1, "a"], [2, ""], [-3, "ы"]]),
}
#: Those that the reference table of a join may have.
READ_BY_THE_DRIVER = [
    name
    for name in VALUES
    if name.rstrip("0123456789") in {"int", "float", "double", "bool", "string", "utf8", "json"}
    or name in {"uint8", "uint16", "uint32", "date", "timestamp", "interval"}
]
COLUMNS: list[tuple[str, Any, bool]] = [
    (f"c_{name}", type_, False) for name, (type_, _) in VALUES.items()
]
REFERENCE: list[tuple[str, Any, bool]] = [
    (f"r_{name}", VALUES[name][0], False) for name in READ_BY_THE_DRIVER
]
KEY: list[tuple[str, Any, bool]] = [("id", "utf8", True)]


def rows() -> list[dict[str, Any]]:
    """One row per position in the lists of values, and one of nulls."""
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


def reference_rows() -> list[dict[str, Any]]:
    """The same values under the columns of REFERENCE."""
    return [
        {"id": row["id"], **{f"r_{name}": row[f"c_{name}"] for name in READ_BY_THE_DRIVER}}
        for row in rows()
    ]
