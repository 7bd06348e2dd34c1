"""A start whose requests fail or lose their reply: it has happened whole, or not at all.

Starts that die between two requests are in test_start.py and test_repositioning.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from yt.common import YtError

from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import (
    ContextOf,
    refusal_code,
)
from tests.support.server_errors import LOCKED, NO_TRANSACTION, UNAVAILABLE
from ytstream import RestartableError
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows, positions
from ytstream.recovery.epoch import Epoch
from ytstream.recovery.migration import migrate
from ytstream.recovery.start import prepare
from ytstream_tools.demo.demo_tables import produce

pytestmark = pytest.mark.spark


class Cut(NamedTuple):
    """A request of a start that goes wrong."""

    rule: Mapping[str, Any]
    is_late: bool = False
    """Whether the start is committed by then."""


_FAIL = {"action": "fail", "error": UNAVAILABLE}
CUTS = {
    "epoch's reply": Cut({"method": "CommitTransaction", "action": "lose_reply"}),
    # The HTTP client sends a request again that an unavailable proxy has refused.
    "folder": Cut(
        {"method": ["commit_tx", "commit_transaction"], "action": "fail", "error": NO_TRANSACTION}
    ),
    "second move": Cut({"method": "AdvanceConsumer", "skip": 1, **_FAIL}),
    "commit": Cut({"method": "CommitTransaction", "skip": 1, **_FAIL}),
    "reply": Cut({"method": "CommitTransaction", "skip": 1, "action": "lose_reply"}, is_late=True),
    "marker": Cut(
        {"method": "set", "where": {"path": "*ytstream_job"}, "action": "fail", "error": LOCKED},
        is_late=True,
    ),
}
FAILURES = (RestartableError, YtError, OSError)
"""What the cut off start ends with: the supervisor tries again after each of them."""


def _filled(context: JobContext) -> JobContext:
    """Put ten rows into each partition."""
    rows = example(context.guarantee.name, "map").sample.make(40)
    produce(context.client, context.settings.queues[0], rows, tablets=4)
    return context


def _stands(context: JobContext) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Return where head and consumer are; a partition at row 0 may be absent in the latter."""
    found = positions.read(context.client, context.settings)
    (queue,) = found.queues
    ends = found.begun.ends[queue.path] if found.begun is not None else {}
    return ends, {partition: row for partition, row in queue.consumed.items() if row}


@pytest.mark.parametrize("cut", CUTS)
def test_a_first_start(
    provisioned_of: ContextOf, tablets: Tablets, cluster: Running, cut: str
) -> None:
    """With half its moves done, `latest` would read the history of the other partitions."""
    context = _filled(provisioned_of("transactional"))
    context = replace(context, settings=replace(context.settings, start_from="latest"))
    ends = dict.fromkeys(range(4), 10)
    cluster.client.faults.add(**CUTS[cut].rule)
    with pytest.raises(FAILURES):
        prepare(context, tablets, Epoch())
    assert _stands(context) == ((ends, ends) if CUTS[cut].is_late else ({}, {}))
    prepare(context, tablets, Epoch())
    assert _stands(context) == (ends, ends)


@pytest.mark.parametrize("cut", [name for name in CUTS if name != "marker"])  # it stays as it is
def test_a_migration(
    provisioned_of: ContextOf, tablets: Tablets, cluster: Running, cut: str
) -> None:
    """The consumer is behind the ledger before it, and where the ledger is after it."""
    before = _filled(provisioned_of("at_least_once"))
    after = provisioned_of("transactional")
    prepare(before, tablets, Epoch())
    head = positions.read(before.client, before.settings).head
    assert head is not None
    ends = dict.fromkeys(range(4), 10)
    ran = replace(head, batch=0, number=1, ends={before.settings.queues[0]: ends})
    with tablets.transaction() as transaction:
        transaction.modify(before.settings.ledger, ledger_rows.COLUMNS, [ledger_rows.head_row(ran)])
    cluster.client.faults.add(**CUTS[cut].rule)
    with pytest.raises(FAILURES):
        migrate(after, tablets)
    if CUTS[cut].is_late:
        assert migrate(after, tablets) == ["nothing to do: the job's guarantee is transactional"]
    else:
        assert _stands(before) == (ends, {})
        assert refusal_code(lambda: prepare(after, tablets, Epoch())) == ErrorCode.JOB_CHANGED
        assert migrate(after, tablets)
    prepare(after, tablets, Epoch())
    assert _stands(after) == (ends, ends)
