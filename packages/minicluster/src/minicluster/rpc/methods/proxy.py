"""The proxy itself: the health check of its clients, discovery, who is asking."""

from __future__ import annotations

from ...control.parameters import AT_ONCE, ONE_KIND, each, read
from ...cypress.model import ADMIN
from ..messages import text
from ..protos import RPC
from ..service import API_SERVICE, DISCOVERY_SERVICE, Invocation, method

CORE = f"{RPC}T%s"


@method(
    "Discover", parameters={"reply_delay": AT_ONCE}, messages=f"{CORE}Discover", service=API_SERVICE
)
@method(
    "Discover",
    parameters={"reply_delay": AT_ONCE},
    messages=f"{CORE}Discover",
    service=DISCOVERY_SERVICE,
)
def discover(call: Invocation) -> None:
    """Answer `up`: each pooled connection asks every 5 s, and drops the proxy for anything else."""
    call.reply.up = True


@method(
    "DiscoverProxies",
    parameters={**read("role"), **each("address_type network_name", ONE_KIND)},
    service=DISCOVERY_SERVICE,
)
def discover_proxies(call: Invocation) -> None:
    role = text(call.message.role) if call.message.HasField("role") else None
    call.reply.addresses.extend(sorted(call.gate.rpc_proxies(role)))


@method(
    "CheckClusterLiveness",
    parameters=each(
        "check_cypress_root check_secondary_master_cells check_tablet_cell_bundle", AT_ONCE
    ),
)
def check_cluster_liveness(call: Invocation) -> None:
    """Answer: the client asks for nothing else."""


@method("GetCurrentUser")
def get_current_user(call: Invocation) -> None:
    call.reply.user = ADMIN
