"""Paths of queues, consumers and producers, which may name a cluster."""

from __future__ import annotations

from typing import Any

from ..core.errors import not_supported
from ..cypress.ypath import parse_rich


def local(path: Any, cluster_name: str) -> str:
    """Return the path without its attributes. Raises YtError for one of another cluster."""
    rich = parse_rich(path)
    cluster = str(rich.attributes.get("cluster", cluster_name))
    if cluster != cluster_name:
        raise not_supported(f"queues and consumers of another cluster ({cluster}:{rich.path})")
    return rich.path
