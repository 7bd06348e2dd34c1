"""Sequences that broke a promise once: the holes of the runtime that they found stay closed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from tests.faults.sequences.generate import Case
from tests.faults.sequences.job_site import Form, Op
from tests.support import without_fix
from ytstream.ownership import job_marker, output_marks
from ytstream.staging import staged_tables

_TWO_BATCHES = (Op("send", 3), Op("batch"), Op("batch"))


def _verify_no_outputs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(output_marks, "verify_outputs", lambda *_, **__: None)


class Found(NamedTuple):
    """A sequence, what it gives without its fix, and what takes that out; None: not fixed yet."""

    case: Case
    gave: str
    take_out: Callable[[pytest.MonkeyPatch], None] | None


FOUND: Mapping[str, Found] = {
    # A is paused before SPYT confirms its first batch; B drains; B2 commits its start; A goes on.
    "an older driver moves the consumer back behind a start": Found(
        Case(
            Form("at_least_once", is_static=True, most_rows=50),
            (
                *(Op("send", 3), Op("batch"), Op("send", 2), Op("pause_in_batch", 5)),
                *(Op("batch"), Op("batch"), Op("restart", 1), Op("older"), Op("batch")),
            ),
        ),
        "repeated",
        without_fix.verify_no_start,
    ),
    "an older driver moves the consumer back, output by position": Found(
        Case(
            Form("idempotent", most_rows=50),
            (
                *(Op("send", 3), Op("batch"), Op("send", 2), Op("pause_in_batch", 5)),
                *(Op("batch"), Op("batch"), Op("restart", 1), Op("older"), Op("batch")),
            ),
        ),
        "read, ",
        without_fix.verify_no_start,
    ),
    "an older driver moves the consumer forward after a rewind": Found(
        Case(
            Form("at_least_once"),
            (
                *(Op("send", 3), Op("batch"), Op("send", 2), Op("pause_in_batch", 5)),
                *(Op("rewind"), Op("older"), Op("batch")),
            ),
        ),
        "the consumer was moved forward",
        without_fix.refuse_a_consumer_ahead,
    ),
    # A, which was paused, has moved the consumer back.
    "a queue out and in again": Found(
        Case(
            Form("at_least_once"),
            (
                *(Op("send", 3), Op("batch"), Op("send", 2), Op("pause_in_batch", 5)),
                *(Op("batch"), Op("batch"), Op("older")),
                *(Op("queue_out"), Op("migrate"), Op("queue_in")),
            ),
        ),
        "the head went back",
        without_fix.forget_removed_queues,
    ),
    "a queue out and in again, from its latest rows": Found(
        Case(
            Form("at_least_once", start_from="latest"),
            (Op("restart"), Op("send", 3), Op("queue_out"), Op("migrate"), Op("queue_in")),
        ),
        "lost",
        without_fix.forget_removed_queues,
    ),
    "a recreated queue, output by position": Found(
        Case(Form("idempotent"), (*_TWO_BATCHES, Op("recreate"), Op("send", 3))),
        "lost, there is",
        _verify_no_outputs,
    ),
    "a recreated queue, rejected rows": Found(
        Case(
            Form("transactional"),
            (Op("send"), Op("batch"), Op("batch"), Op("recreate"), Op("send", 2), Op("send")),
        ),
        "lost, there is",
        _verify_no_outputs,
    ),
    # A is paused after it has verified the head, and reads the new queue; B had read the old one.
    "a recreated queue, and an older driver that reads it": Found(
        Case(
            Form("idempotent", queues=1, most_rows=50),
            (
                *(Op("send", 3), Op("pause_in_batch", 11), Op("batch")),
                *(Op("recreate"), Op("send", 3), Op("older")),
            ),
        ),
        "lost, there is",
        None,
    ),
    "batch rows removed while a table waits": Found(
        Case(Form("at_least_once", is_static=True), (Op("send", 1), Op("batch"), Op("forget"))),
        "lost",
        lambda patch: patch.setattr(staged_tables, "forgotten", lambda *_: set()),
    ),
    "ledger and consumer removed": Found(
        Case(Form("transactional", "window"), (Op("send", 1), Op("batch"), Op("lose"))),
        "not refused",
        lambda patch: patch.setattr(job_marker, "is_nowhere", lambda *_: False),
    ),
}
