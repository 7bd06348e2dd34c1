"""Random sequences of operations: no row lost, none repeated where that is promised, no refusal.

`make fuzz` plays more of them. What fails is made short and printed; it belongs into found.py.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.faults.model.guards import GUARDS, SEQUENCES
from tests.faults.sequences import driver as of_driver
from tests.faults.sequences.driver import Driver
from tests.faults.sequences.found import FOUND
from tests.faults.sequences.generate import (
    CONNECTORS,
    KINDS,
    OPERATIONS,
    Case,
    described,
    sequence,
    shrunk,
)
from tests.faults.sequences.inside import InsideTransaction
from tests.faults.sequences.job_site import Form, Op
from tests.support import without_fix
from ytstream.settings.job_settings import OWN

CHUNK, CHUNKS = 55, 8
"""Sequences of one test; the first ones are in `make test-quick`."""


@pytest.mark.parametrize(
    "chunk", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, CHUNKS))]
)
def test_whatever_happens_each_row_is_counted_as_promised(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        one = sequence(seed)
        if problem := one.run():
            pytest.fail(f"seed {seed}: {problem}\n{described(shrunk(one))}")


def test_every_kind_and_every_operation_comes() -> None:
    played = [sequence(seed) for seed in range(CHUNK * CHUNKS)]
    kinds = Counter((one.form.guarantee, one.form.processing, one.form.is_static) for one in played)
    assert kinds.keys() == {*KINDS}
    connectors = Counter(one.form.connector for one in played)
    assert min(connectors[one] for one in CONNECTORS) >= 100
    names = Counter(op.name for one in played for op in one.ops)
    assert names.keys() == OPERATIONS.keys()
    assert names.pop("queue_in") >= 25  # after a queue_out alone, of a job with several queues
    assert min(names.values()) >= 100


def test_the_oracle_follows_each_process_that_goes_on_at_the_end() -> None:
    ops = (Op("pause_in_start"), Op("send"), Op("pause_in_start"))
    assert not Case(Form("idempotent", queues=1), ops, finish=1).run()


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_stays_closed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes back without its fix. What has none yet is not in the random sequences."""
    found = FOUND[name]
    if found.take_out is not None:
        assert not found.case.run(without=())
        found.take_out(monkeypatch)
    assert found.gave in found.case.run(without=())


def _move_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with the consumer wherever it is; SPYT's own moves stay, which name no old offset."""
    whole = InsideTransaction.advance

    def advanced(self: InsideTransaction, *given: Any) -> None:
        if given[3] is None:
            whole(self, *given)

    monkeypatch.setattr(InsideTransaction, "advance", advanced)


def _verify_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each batch read from wherever the consumer is: two guards would show it."""
    without_fix.verify_no_consumer(monkeypatch)
    without_fix.verify_no_start(monkeypatch)


FIXES = {
    **{g.twin: getattr(without_fix, g.twin) for g in GUARDS.values() if g.test == SEQUENCES},
    "verify_no_consumer": _verify_no_consumer,
    "audit_nothing": without_fix.audit_nothing,
    "move_no_consumer": _move_no_consumer,
    "tell_no_move": without_fix.tell_no_move,
}
"""The guards that the model has, and those that it has not."""
HARD = {
    "plan_behind_the_head": (
        Case(
            Form("transactional", "aggregate", on_data_loss="skip", queues=1),
            (
                *(Op("send", 1), Op("send", 2), Op("batch"), Op("batch")),
                *(Op("moved_by_hand"), Op("batch")),
            ),
        ),
    ),
    "audit_nothing": (
        Case(
            Form("idempotent", is_static=True, start_from="latest", queues=1, most_rows=50),
            (Op("send"), Op("restart"), Op("recreate"), Op("send", 1), Op("pause_in_batch")),
            finish=1,
        ),
    ),
    "raise_no_epoch_before_the_start": (
        Case(
            Form("idempotent", queues=1, connector=OWN),
            (Op("restart"), Op("pause_in_start", 20), Op("send"), Op("batch")),
            finish=1,
        ),
    ),
    "tell_no_move": (
        Case(
            Form("transactional", on_data_loss="skip", most_rows=50),
            (
                *(Op("send", 3), Op("batch"), Op("batch"), Op("send", 3), Op("trim", 2)),
                *(Op("restart", 1), Op("batch")),
            ),
        ),
    ),
    "remove_before_the_epoch": [
        Case(
            Form("transactional", is_static=True),
            (
                *(Op("send", 3), Op("batch"), Op("send", 2), Op("pause_in_batch", n)),
                *(Op("pause_in_start", before), Op("older"), Op("older")),
            ),
        )
        for n in range(16, 34, 2)
        for before in (10, 13, 16)
    ],
    "remove_of_newer_epochs": [
        Case(
            Form("transactional", is_static=True),
            (
                *(Op("send"), Op("restart"), Op("pause_in_batch"), Op("restart")),
                *(Op("pause_in_batch", n), Op("older"), Op("older")),
            ),
        )
        for n in range(16, 40)
    ],
}
"""Where chance would have to be kind: two drivers are paused, one of them while its table waits, or
rows are trimmed that a job which skips them has not read."""


@pytest.mark.parametrize(("table", "rest"), [("output", -1), ("rejected", 0)])
def test_a_row_in_the_table_of_others_is_seen(
    table: str, rest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key hides no mistake: all rows are written into both tables, or into one too many."""
    case = Case(Form("idempotent"), (Op("send", 8), Op("batch"), Op("batch")))
    assert not case.run()
    whole = Driver._write_outputs

    def written(driver: Driver, *given: Any) -> None:
        whole(driver, *given)
        with monkeypatch.context() as patch:
            patch.setattr(of_driver, "BAD", 1)
            patch.setattr(of_driver, "BAD_REST", rest)
            whole(driver, *given)

    monkeypatch.setattr(Driver, "_write_outputs", written)
    said = case.run()
    assert f"/{table}" in said
    assert "of the other table" in said


@pytest.mark.slow
@pytest.mark.parametrize("fix", FIXES)
def test_without_a_fix_some_sequence_fails(fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sequences of `make test` would show that it is gone."""
    assert not any(case.run() for case in HARD.get(fix, ()))
    FIXES[fix](monkeypatch)
    assert any(case.run() for case in HARD.get(fix) or map(sequence, range(CHUNK * CHUNKS)))
