"""The checkpoint in which `rewind state` executes batches again; no JVM."""

from __future__ import annotations

import pytest

from tests.support.helpers import ContextOf
from tests.support.simulated_driver import offsets_text, put, write
from ytstream.ledger.ledger_rows import Head
from ytstream.query import state_rebuild
from ytstream.query.state_rebuild import RebuildPlan


@pytest.mark.parametrize("version", [1, 3])
def test_the_batch_before_is_committed_though_its_reply_was_lost(
    context_of: ContextOf, version: int
) -> None:
    """SPYT removes ``commits/N`` then. Spark would execute that batch first, the first one too."""
    context = context_of("transactional", "window")
    client, source = context.client, f"{context.settings.checkpoint}/1"
    for number in range(version + 1):
        write(client, f"{source}/offsets/{number}", offsets_text([{0: 10 * (number + 1)}]))
        if number != version - 1:
            put(client, f"{source}/commits/{number}")
    work = f"{context.settings.checkpoint}/work"
    plan = RebuildPlan(Head(1, "me", 1, version), version, {}, (), ())
    state_rebuild._copy(context, plan, source, work)
    batches = [str(number) for number in range(version)]
    assert sorted(map(str, client.list(f"{work}/commits"))) == batches
    assert sorted(map(str, client.list(f"{work}/offsets"))) == batches
