"""Object identifiers: a GUID whose text says what kind of object it names.

The text form is four hexadecimal groups; the low 16 bits of the third one are the object type, the
high 16 bits the cell tag. The Python client reads the type to tell master transactions from tablet
ones.
"""

from __future__ import annotations

import re
import secrets

NULL = "0-0-0-0"
CLUSTER_NAME = "minicluster"

MASTER_TRANSACTION = 1
TABLET_TRANSACTION = 2
NESTED_TRANSACTION = 4
LOCK = 200
TABLET_CELL = 700
TABLET = 702
TABLET_CELL_BUNDLE = 706
JOB = 900
OPERATION = 1000

CELL_TAG = 1

_TEXT = re.compile(r"[0-9a-fA-F]{1,8}(-[0-9a-fA-F]{1,8}){3}")


def new(object_type: int) -> str:
    """Return a fresh identifier of an object of that type."""
    return from_words(
        secrets.randbits(32),
        secrets.randbits(32),
        CELL_TAG << 16 | object_type,
        secrets.randbits(32),
    )


def from_words(a: int, b: int, c: int, d: int) -> str:
    return f"{a:x}-{b:x}-{c:x}-{d:x}"


def is_id(text: str) -> bool:
    return _TEXT.fullmatch(text) is not None


def type_of(identifier: str) -> int:
    return int(identifier.split("-")[2], 16) & 0xFFFF


def is_master_transaction(identifier: str) -> bool:
    return type_of(identifier) in (MASTER_TRANSACTION, NESTED_TRANSACTION)


def from_parts(first: int, second: int) -> str:
    """Return the text of the two 64-bit halves that protobuf messages carry."""
    return from_words(second >> 32, second & 0xFFFFFFFF, first >> 32, first & 0xFFFFFFFF)


def to_parts(identifier: str) -> tuple[int, int]:
    """Return the two 64-bit halves of an id: (first, second)."""
    a, b, c, d = (int(group, 16) for group in identifier.split("-"))
    return c << 32 | d, a << 32 | b
