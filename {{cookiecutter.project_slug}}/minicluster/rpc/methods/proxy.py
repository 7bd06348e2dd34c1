"""The proxy itself: the health check of its clients, and the RPC form of discovery."""

from __future__ import annotations

from ..protos import RPC
from ..service import API_SERVICE, DISCOVERY_SERVICE, Invocation, method

CORE = f"{RPC}T%s"


@method("Discover", messages=f"{CORE}Discover", service=API_SERVICE)
@method("Discover", messages=f"{CORE}Discover", service=DISCOVERY_SERVICE)
def discover(call: Invocation) -> None:
    """Every 5 s from each pooled connection; anything but `up` makes the client drop the proxy."""
    call.reply.up = True


@method("DiscoverProxies", service=DISCOVERY_SERVICE)
def discover_proxies(call: Invocation) -> None:
    call.reply.addresses.extend(sorted(call.gate.proxies))
