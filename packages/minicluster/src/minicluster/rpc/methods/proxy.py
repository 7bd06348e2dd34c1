"""The proxy itself: the health check of its clients, discovery, who is asking."""

from __future__ import annotations

from ...cypress.model import ADMIN
from ..protos import RPC
from ..service import API_SERVICE, DISCOVERY_SERVICE, Invocation, method

CORE = f"{RPC}T%s"


@method("Discover", messages=f"{CORE}Discover", service=API_SERVICE)
@method("Discover", messages=f"{CORE}Discover", service=DISCOVERY_SERVICE)
def discover(call: Invocation) -> None:
    """Answer `up`: each pooled connection asks every 5 s, and drops the proxy for anything else."""
    call.reply.up = True


@method("DiscoverProxies", service=DISCOVERY_SERVICE)
def discover_proxies(call: Invocation) -> None:
    proxies = call.gate.proxies.items()
    call.reply.addresses.extend(sorted(address for address, proxy in proxies if proxy.is_up))


@method("CheckClusterLiveness")
def check_cluster_liveness(call: Invocation) -> None:
    """Answer: the client asks for nothing else."""


@method("GetCurrentUser")
def get_current_user(call: Invocation) -> None:
    call.reply.user = ADMIN
