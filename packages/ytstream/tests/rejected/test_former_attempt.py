"""What a former attempt at a batch has rejected, and this one has not; no JVM."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.helpers import ContextOf
from ytstream.ledger.batch_row_ranges import RowRange
from ytstream.ledger.ledger_rows import microseconds
from ytstream.rejected import former_attempt

STARTED = datetime(2026, 11, 22, tzinfo=UTC)
BEFORE, AFTER = STARTED - timedelta(seconds=1), STARTED + timedelta(seconds=1)


class Transacted:
    """A transaction's calls, made at once."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def select(self, query: str) -> list[Any]:
        return [*self.client.select_rows(query)]

    def modify(self, path: str, columns: Any, rows: Any, deleted: Any = ()) -> None:
        assert not rows
        self.client.delete_rows(path, [*deleted])


@pytest.mark.parametrize("queues", [1, 2])
def test_only_rows_of_the_batch_that_it_has_not_rejected_go(
    provisioned_of: ContextOf, queues: int
) -> None:
    context = provisioned_of("at_least_once", "map", queues, rejects=True)
    client: Any = context.client
    path, names = context.settings.outputs["rejected"], context.settings.queues

    def row(number: int, time: datetime, partition: int = 0, queue: int = 0) -> dict[str, Any]:
        key = {"tablet_index": partition, "row_index": number}
        of_queue = {"queue_id": names[queue]} if queues > 1 else {}
        written = {"reason": "archive: ahead of the clock", "time": microseconds(time)}
        return {**of_queue, **key, **written, "row": "{}"}

    kept = [row(3, BEFORE), row(4, AFTER), row(8, BEFORE), row(5, BEFORE, partition=1)]
    kept += [row(5, BEFORE, queue=1)] if queues > 1 else []
    gone = [row(5, BEFORE), row(7, BEFORE)]
    client.insert_rows(path, [*kept, *gone])
    planned = {names[0]: {0: RowRange(4, 8), 1: RowRange(5, 5)}}
    transaction: Any = Transacted(client)
    for _ in range(2):  # the closing transaction may be repeated
        former_attempt.remove(context, transaction, planned, STARTED)
        found = [
            {k: v for k, v in one.items() if k in kept[0]}
            for one in client.select_rows(f"* from [{path}]")
        ]
        order = [*(["queue_id"] if queues > 1 else []), "tablet_index", "row_index"]
        assert found == sorted(kept, key=lambda one: [one[name] for name in order])
