"""A building is killed at each of its requests: a whole reference serves on, and nothing is left.

The process is a fork of this one, so it has imported everything. The minicluster kills it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from io import StringIO
from itertools import count
from typing import Any

import pytest
from rich.console import Console

from minicluster.testing import Running
from tests.support.reference_steps import Source, titles
from ytstream.cluster.client import connect
from ytstream_tools.reference.building import _LIFETIME_MS, build
from ytstream_tools.reference.places import KEEP_SECONDS, folder_of
from ytstream_tools.reference.screen import Screen

FORMER, NEXT = titles(*range(6)), titles(*range(20))


def _pages(source: Source) -> list[int]:
    return _sorted(source.rows())


def _sorted(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["page"] for row in rows)


def _build(source: Source, tablets: int = 2) -> None:
    build(source.context, source.wanted(tablets=tablets), Screen(Console(file=StringIO())))


def _requests(source: Source, cluster: Running) -> set[str]:
    """Return which requests a building makes that nothing happens to. Pings come at any time."""
    for _ in range(2):
        _build(source)
    cluster.client.clock.advance(KEEP_SECONDS + 1)  # it removes the first table
    cluster.client.journal.clear()
    _build(source)
    return {entry.method for entry in cluster.client.journal()} - {"ping_transaction"}


def _killed(source: Source, cluster: Running, methods: set[str], skip: int, when: str) -> bool:
    """Build in a process that the request after ``skip`` others kills; return whether it has."""
    ready, go = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.read(ready, 1)
            settings = source.context.settings
            source.context = replace(source.context, client=connect(settings))
            _build(source)
        finally:
            os._exit(0)
    rule = cluster.client.faults.add(
        action="kill", method=sorted(methods), when=when, skip=skip, pid=child
    )
    os.write(go, b".")
    os.waitpid(child, 0)
    os.close(ready)
    os.close(go)
    hits = cluster.client.faults.get(rule).hits
    cluster.client.faults.clear()
    return hits == 1


@pytest.mark.slow
@pytest.mark.parametrize(("when", "step"), [("before", 13), ("before", 1), ("after", 1)])
def test_a_killed_building(source: Source, cluster: Running, when: str, step: int) -> None:
    """The rows are those of before or those of after, whole. The next call removes all else."""
    now, new = FORMER, NEXT
    source.write(now)
    methods = _requests(source, cluster)
    cluster.client.clock.advance(KEEP_SECONDS + 1)
    switched = set()
    for skip in count(0, step):
        former = source.client.get(f"{source.link}/@path")
        source.write(new)
        if not _killed(source, cluster, methods, skip, when):
            break
        found = source.client.get(f"{source.link}/@path")
        switched.add(found != former)
        assert _pages(source) == _sorted(now if found == former else new)
        assert source.client.get(f"{former}/@tablet_state") == "frozen"
        cluster.client.clock.advance(_LIFETIME_MS / 1000 + 1)  # its transactions expire
        _build(source)
        assert _pages(source) == _sorted(new)
        listed = {*source.client.list(folder_of(source.link), absolute=True)}
        assert listed == {former, found, source.client.get(f"{source.link}/@path")}
        cluster.client.clock.advance(KEEP_SECONDS + 1)
        now, new = new, now
    assert switched == {True, False}
