"""The proxy itself: the health check of its clients, discovery, who is asking."""

from __future__ import annotations

from ...control.parameters import AT_ONCE, ONE_KIND, each
from ...cypress.model import ADMIN
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
    parameters=each("role address_type network_name", ONE_KIND),
    service=DISCOVERY_SERVICE,
)
def discover_proxies(call: Invocation) -> None:
    proxies = call.gate.proxies.items()
    call.reply.addresses.extend(sorted(address for address, proxy in proxies if proxy.is_up))


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
