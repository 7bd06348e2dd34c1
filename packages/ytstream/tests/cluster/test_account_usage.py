"""Which resource of an account is full, by what the cluster says of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server_errors import FULL_CHUNKS, FULL_TABLET
from ytstream.cluster.account_usage import ResourceUsage, refused_in

DISK = ResourceUsage("tmp", "disk space of default", 9, 10)
SSD = ResourceUsage("tmp", "disk space of ssd", 10, 10)
NODES = ResourceUsage("tmp", "node_count", 5, 10)
CHUNKS = ResourceUsage("tmp", "chunk_count", 6, 10)


def _innermost(error: dict[str, Any]) -> str:
    while error["inner_errors"]:
        (error,) = error["inner_errors"]
    return str(error["message"])


@pytest.mark.parametrize(
    ("said", "named"),
    [
        (_innermost(FULL_CHUNKS), DISK),
        (_innermost(FULL_TABLET), DISK),
        ('Account "tmp" is over Cypress node count limit', NODES),
        ('Account "tmp" violates chunk count limit', CHUNKS),
        ("no resource is named", SSD),
    ],
)
def test_the_resource_is_the_one_that_the_cluster_names(said: str, named: ResourceUsage) -> None:
    assert refused_in(said, [NODES, CHUNKS, SSD, DISK]) == [named]
