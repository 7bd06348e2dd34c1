"""The tests' laboratory for RPC: a cluster and its proxies in the event loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from minicluster.cluster import Cluster
from minicluster.control.gate import Gate
from minicluster.rpc import server
from minicluster.rpc.server import RpcProxy
from packages.minicluster.tests.support.rpc_client import RpcClient


@dataclass
class Lab:
    """A cluster, its proxies and a connection to the first of them."""

    cluster: Cluster
    gate: Gate
    proxies: list[RpcProxy]
    client: RpcClient
    others: list[RpcClient] = field(default_factory=list)

    async def connect(self, proxy: int = 0) -> RpcClient:
        client = await RpcClient.connect(self.proxies[proxy].address)
        self.others.append(client)
        return client


@asynccontextmanager
async def lab(proxies: int = 1) -> AsyncIterator[Lab]:
    cluster = Cluster()
    gate = Gate(cluster.tick, cluster.committing)
    running = [await server.serve(cluster, gate, "127.0.0.1") for _ in range(proxies)]
    made = Lab(cluster, gate, running, await RpcClient.connect(running[0].address))
    try:
        yield made
    finally:
        for client in [made.client, *made.others]:
            await client.close()
        for proxy in running:
            await proxy.down()


def in_lab(proxies: int = 1) -> Callable[..., Callable[..., None]]:
    """Run a coroutine test with a fresh lab, and never longer than half a minute."""

    def wrap(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def scenario(**parameters: Any) -> None:
            async with lab(proxies) as made:
                await test(made, **parameters)

        def run(**parameters: Any) -> None:
            asyncio.run(asyncio.wait_for(scenario(**parameters), 30))

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return wrap
