"""`replay-rejected` into an output with a key of its own asks for a choice; no JVM."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Any

import pytest

from tests.support.examples import TOTALS
from tests.support.helpers import ContextOf, refusal
from ytstream.commands import rewind
from ytstream.instance.lock import InstanceLock
from ytstream.job import JobContext
from ytstream.recovery import repositioning
from ytstream.schema.columns import Column
from ytstream.spark import session
from ytstream_tools.commands import replay_rejected
from ytstream_tools.replay import rejected_replay

ENDS = ("", "-replay")
"""Of the paths whose locks the job has: its own, and that of replays."""


@pytest.fixture
def keyed(provisioned_of: ContextOf) -> JobContext:
    """Return a job that rejects rows and has such an output."""
    context = provisioned_of("transactional", "map", 1, rejects=True)
    rejected_replay.verify_keys(context, replace=False)
    job, settings = context.job, context.settings
    outputs = {**job.outputs, "newest": (Column("id", "utf8", key=True),)}
    paths = {**settings.outputs, "newest": "//home/newest"}
    settings = replace(settings, outputs=paths)
    return replace(context, job=replace(job, outputs=outputs), settings=settings)


def test_an_output_with_a_key_of_its_own_asks_for_a_choice(keyed: JobContext) -> None:
    said = refusal(lambda: rejected_replay.verify_keys(keyed, replace=False))
    assert "an older row over a newer one: //home/newest has a key of its own" in said
    rejected_replay.verify_keys(keyed, replace=True)


def test_without_a_choice_nothing_is_replayed_and_no_spark_starts(
    keyed: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Any = None
    said = refusal(lambda: rejected_replay.replay(nothing, keyed, nothing, print))
    assert "has a key of its own" in said
    monkeypatch.setattr(session, "opened", None)
    given = Namespace(dry_run=False, replace=False, remove_dropped=False)
    assert "has a key of its own" in refusal(lambda: replay_rejected._run(keyed, given))


def test_totals_need_no_choice_and_a_stopped_job(provisioned_of: ContextOf) -> None:
    """Contributions replace nothing. But two transactions that add to one key conflict."""
    context = provisioned_of("transactional", TOTALS, 1, rejects=True)
    rejected_replay.verify_keys(context, replace=False)
    rejected_replay.verify_alone(context)
    lock = InstanceLock(context.client, context.settings.consumer)
    lock.acquire(print)
    try:
        assert "a replay changes the same rows" in refusal(
            lambda: rejected_replay.verify_alone(context)
        )
    finally:
        lock.release()


@pytest.mark.parametrize("processing", [TOTALS, "map"])
def test_a_replay_keeps_out_what_would_change_its_rows(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch, processing: str
) -> None:
    """`rewind`, for its whole time; the job, where both would write the same keys. It says so."""
    context = provisioned_of("transactional", processing, 1, rejects=True)
    nothing: Any = None
    locks = [InstanceLock(context.client, f"{context.settings.consumer}{end}") for end in ENDS]

    def owners() -> list[list[str]]:
        return [[owner for _, owner, _ in lock.holders()] for lock in locks]

    monkeypatch.setattr(rejected_replay, "_replayed", lambda *_, **__: owners())
    found: Any = rejected_replay.replay(nothing, context, nothing, print)
    of_the_job, of_replays = found
    assert bool(of_the_job) == (processing == TOTALS)
    assert all(owner.startswith("`replay-rejected`, process ") for owner in of_the_job)
    assert len(of_replays) == 1
    assert owners() == [[], []]


def test_a_rewind_is_kept_out_by_a_replay(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = provisioned_of("transactional", "map", 1, rejects=True)
    done: list[Any] = []

    def rewound(*_: Any, **__: Any) -> list[str]:
        lock = InstanceLock(context.client, f"{context.settings.consumer}-replay")
        done.extend(lock.holders())
        return []

    monkeypatch.setattr(session, "open_tablets", lambda _: None)
    monkeypatch.setattr(repositioning, "rewind", rewound)
    given = Namespace(to="earliest", rows=[], overwrite=False, totals=None, dry_run=False)
    rewind._run(context, given)
    assert len(done) == 1
