"""Faults that break SPYT's transactional mode with state, with the job's fix and without it.

Each test of a pair plays the same break. "bare" leaves the fix out and shows what it is for.
"""

from __future__ import annotations

import pytest

from minicluster.testing import Running
from tests.support import without_fix
from tests.support.examples import STATEFUL
from tests.support.helpers import (
    StreamOf,
    adopt,
    die_between_the_logs,
    fail_in_the_middle_of_a_batch,
    fails_with,
    lose_the_commits_reply,
    run_until_it_fails,
    several_triggers,
    trim_unread,
)
from tests.support.server_errors import UNAVAILABLE
from ytstream.errors.error_codes import ErrorCode
from ytstream_tools.testing.job_stream import wait

pytestmark = pytest.mark.spark

_BARE = (
    pytest.param("window", False, id="window-bare"),
    pytest.param("deduplicate", False, id="deduplicate-bare", marks=pytest.mark.journey),
)
"""Without the fix the break shows in one kind of state as in the other."""
_FIXED = {
    kind: pytest.param(
        *(kind, True),
        id=f"{kind}-fixed",
        marks=[] if kind == "window" else [pytest.mark.journey],
    )
    for kind in STATEFUL
}
"""One kind shows it in `make test`."""
with_and_without = pytest.mark.parametrize(("processing", "fixed"), [*_FIXED.values(), *_BARE])
watermarked = pytest.mark.parametrize(
    ("processing", "fixed"), [_FIXED["window"], _FIXED["deduplicate"], _FIXED["sessions"], *_BARE]
)
"""Kinds with a watermark, which moves in a batch without rows."""
for_each = pytest.mark.parametrize("processing", STATEFUL)


@pytest.mark.thorough
@with_and_without
def test_death_between_commit_log_and_transaction(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    fixed: bool,
) -> None:
    """The state has seen the batch, the consumer has not: its rows come a second time.

    A folder that keeps that batch's commit is refused by the next batch, which does not follow the
    head's. Without both the state counts the rows twice, or takes them for repeats.
    """
    stream = stream_of("transactional", processing)
    stream.send(200)
    stream.drain()
    stream.send(300)
    die_between_the_logs(stream, cluster)
    stream.send(100)
    if not fixed:
        without_fix.repair_no_folder(monkeypatch)
        with fails_with(ErrorCode.OTHER_ROWS):
            stream.drain()
        without_fix.verify_no_head(monkeypatch)
    stream.close()
    assert fixed == stream.is_exact()
    assert (stream.outcome().lost > 0) == (not fixed)


@pytest.mark.thorough
@with_and_without
def test_the_commits_reply_is_lost(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    fixed: bool,
) -> None:
    """The transaction is in, SPYT does not know it and removes ``commits/N``.

    The replay would be an empty batch: it writes the same windows again, and leaves a state that
    has never seen the rows.
    """
    stream = stream_of("transactional", processing)
    stream.send(3_000)
    stream.drain()
    # The batch of these rows writes windows that the first ones have filled.
    stream.send(1_000)
    lose_the_commits_reply(stream, cluster)
    if not fixed:
        without_fix.repair_no_folder(monkeypatch)
        without_fix.verify_no_head(monkeypatch)
    # The newest rows once more: a state that knows the first ones treats them otherwise.
    stream.publish(stream.sent[-100:])
    stream.close()
    assert stream.is_exact() == fixed


@pytest.mark.thorough
def test_the_commits_reply_is_lost_and_rows_are_trimmed(
    stream_of: StreamOf, cluster: Running
) -> None:
    """The batch is entered in the log, and its entry moved behind the gap."""
    stream = stream_of("transactional", "window")
    stream.send(200)
    stream.drain()
    stream.send(200)
    lose_the_commits_reply(stream, cluster)
    trim_unread(stream, 20)
    stream.configure(on_data_loss="skip")
    assert any("20 rows" in note for note in stream.recover())
    stream.close()
    assert stream.is_exact()


@watermarked
def test_a_batch_without_rows_whose_transaction_is_lost(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    processing: str,
    fixed: bool,
) -> None:
    """It moves no consumer, but the head: it runs again, and its windows need no next row.

    With a head that is written apart the windows that it closed never come.
    """
    stream = stream_of("transactional", processing)
    stream.send(300)
    if not fixed:
        without_fix.write_the_head_apart(monkeypatch, stream)
    later, *_ = stream.sample.closing(stream.context.job, stream.sent) or [stream.sent[-1]]
    stream.publish([later])
    die_between_the_logs(stream, cluster, after=1)
    # Only windows had something to write in that batch.
    is_whole = fixed or processing == "deduplicate"
    with stream.running() as query:
        if is_whole:
            wait(lambda: stream.found().total() >= stream.wanted().total(), query)
        else:
            several_triggers(query, stream, cluster)
    assert stream.is_exact() == is_whole


@pytest.mark.thorough
@for_each
def test_death_in_a_first_batch_without_rows(
    stream_of: StreamOf, cluster: Running, processing: str
) -> None:
    """Spark plans batch 0 of empty queues too, and no consumer shows whether it committed."""
    stream = stream_of("transactional", processing)
    cluster.client.faults.add(
        method="MoveNode",
        where={"destination_path": f"{stream.settings.checkpoint}/*/state/*"},
        times=None,
        action="fail",
        error=UNAVAILABLE,
    )
    run_until_it_fails(stream)
    cluster.client.faults.clear()
    assert stream.recover() == []
    stream.send(200)
    stream.close()
    assert stream.is_exact()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "processing",
    ["deduplicate", *(pytest.param(k, marks=pytest.mark.journey) for k in ("window", "sessions"))],
)
def test_an_at_least_once_batch_that_runs_again_counts_nothing_twice(
    stream_of: StreamOf, cluster: Running, processing: str
) -> None:
    """A write fails in a later batch; other writes of that batch are in the output already.

    The state is exact all the same, and only whole results repeat.
    """
    stream = stream_of("at_least_once", processing)
    stream.configure(dyn_batch_size=50)
    adopt(stream.spark, stream.context)
    stream.send(3_000)
    stream.drain()
    stream.send(3_000)
    fail_in_the_middle_of_a_batch(stream, cluster, skip=2)
    stream.close()
    assert stream.outcome().lost == 0
    assert stream.found().keys() == stream.wanted().keys()
