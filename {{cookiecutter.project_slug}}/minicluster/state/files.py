"""File nodes and links."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import generic
from ..ypath import parse
from .branches import MISSING
from .nodes import Node, kind

if TYPE_CHECKING:
    from .cluster import Cluster


@dataclass(frozen=True, slots=True)
class File:
    """A file's content, which is replaced as a whole."""

    data: bytes = b""
    md5: str | None = None

    @classmethod
    def of(cls, data: bytes, compute_md5: bool) -> File:
        return cls(data, hashlib.md5(data).hexdigest() if compute_md5 else None)


def _size(cluster: Cluster, node: Node) -> int:
    return len(node.payload.data)


def _link_target(cluster: Cluster, attributes: dict[str, Any]) -> str:
    target = attributes.pop("target_path", None)
    if target is None:
        raise generic('Attribute "target_path" is not found')
    parse(str(target))
    return str(target)


def _broken(cluster: Cluster, node: Node) -> bool:
    return not cluster.cypress.exists(node.payload)


kind(
    "file",
    400,
    create=lambda cluster, attributes: File(),
    builtin={
        "uncompressed_data_size": _size,
        "compressed_data_size": _size,
        "chunk_count": lambda cluster, node: int(bool(node.payload.data)),
        "chunk_row_count": lambda cluster, node: int(bool(node.payload.data)),
        "compression_ratio": lambda cluster, node: 1.0,
        "md5": lambda cluster, node: node.payload.md5 or MISSING,
    },
)
kind(
    "link",
    417,
    create=_link_target,
    builtin={
        "target_path": lambda cluster, node: node.payload,
        "broken": _broken,
    },
)
