"""`//sys/@config`, the dynamic configuration of a cluster's masters: what of it holds here.

A cluster's has hundreds of settings (server/master/cell_server/config.cpp). Here are those with one
answer that is true of the minicluster, and none can be changed: a setting that was kept and
had no effect would let a test pass that proves nothing.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import not_supported
from .kinds import Kind
from .model import Node

SETTINGS: dict[str, Any] = {
    "enable_safe_mode": False,
    "queue_agent_server": {"default_queue_agent_stage": "production"},
    "tablet_manager": {"tablet_balancer": {"enable_tablet_balancer": False}},
}


def _get(node: Node) -> Any:
    return SETTINGS


def _set(node: Node, value: Any) -> None:
    """Accept what holds already. Raises YtError for anything else."""
    if value != SETTINGS:
        raise not_supported("changing //sys/@config")


SYS_NODE = Kind(
    "sys_node",
    602,
    composite=True,
    builtin={"config": _get},
    settable={"config": _set},
    opaque=frozenset({"config"}),
)
"""The kind of `//sys` alone."""
