"""File nodes and links."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.errors import generic
from .kinds import Kind, Kinds
from .model import MISSING, Node
from .ypath import parse


@dataclass(frozen=True, slots=True)
class File:
    """A file's content, which is replaced as a whole."""

    data: bytes = b""
    md5: str | None = None

    @classmethod
    def of(cls, data: bytes, compute_md5: bool) -> File:
        return cls(data, hashlib.md5(data).hexdigest() if compute_md5 else None)


def _size(node: Node) -> int:
    return len(node.payload.data)


def _link_target(attributes: dict[str, Any]) -> str:
    target = attributes.pop("target_path", None)
    if target is None:
        raise generic('Attribute "target_path" is not found')
    parse(str(target))
    return str(target)


FILE = Kind(
    "file",
    400,
    create=lambda attributes: File(),
    builtin={
        "uncompressed_data_size": _size,
        "compressed_data_size": _size,
        "chunk_count": lambda node: int(bool(node.payload.data)),
        "chunk_row_count": lambda node: int(bool(node.payload.data)),
        "compression_ratio": lambda node: 1.0,
        "md5": lambda node: node.payload.md5 or MISSING,
    },
)


def register(kinds: Kinds, exists: Callable[[str], bool]) -> None:
    """Add the kinds of files and links; `exists` tells whether a path leads to a node."""
    kinds.add(FILE)
    kinds.add(
        Kind(
            "link",
            417,
            create=_link_target,
            builtin={
                "target_path": lambda node: node.payload,
                "broken": lambda node: not exists(node.payload),
            },
        )
    )
