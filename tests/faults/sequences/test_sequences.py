"""Random sequences of operations: no row lost, none repeated where that is promised, no refusal.

`make fuzz` plays more of them. What fails is made short and printed; it belongs into found.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.model.guards import GUARDS, SEQUENCES
from tests.faults.sequences.found import FOUND
from tests.faults.sequences.generate import (
    CONNECTORS,
    KINDS,
    OPERATIONS,
    Life,
    described,
    sequence,
    shrunk,
)
from tests.faults.sequences.inside import InsideTransaction
from tests.faults.sequences.unfixed import UNFIXED
from tests.faults.sequences.world import Form, Op
from tests.support import mutants
from ytstream.recovery import job_ownership, output_ownership, staging

#: Sequences of one test; the first ones are in `make test-quick`.
CHUNK, CHUNKS = 55, 8


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
    assert names.keys() == OPERATIONS.keys() - UNFIXED.keys()
    assert names.pop("queue_in") >= 25  # after a queue_out alone, of a job with several queues
    assert min(names.values()) >= 100


@pytest.mark.parametrize(
    "name", [name for name, found in FOUND.items() if found.needs not in UNFIXED]
)
def test_what_was_found_once_stays_closed(name: str) -> None:
    assert not FOUND[name].life.run(without=())


@pytest.mark.parametrize("name", [name for name, found in FOUND.items() if found.needs in UNFIXED])
def test_what_is_known_to_be_broken_is_found(name: str) -> None:
    """The entry of UNFIXED goes when this fails: the hole is closed."""
    assert FOUND[name].gave in FOUND[name].life.run(without=())


def _move_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with the consumer wherever it is; SPYT's own moves stay, which name no old offset."""
    whole = InsideTransaction.advance

    def advanced(self: InsideTransaction, *given: Any) -> None:
        if given[3] is None:
            whole(self, *given)

    monkeypatch.setattr(InsideTransaction, "advance", advanced)


def _verify_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each batch read from wherever the consumer is: two guards would show it."""
    mutants.verify_no_consumer(monkeypatch)
    mutants.verify_no_start(monkeypatch)


#: The guards that the model has, and those that it has not.
FIXES = {
    **{g.twin: getattr(mutants, g.twin) for g in GUARDS.values() if g.test == SEQUENCES},
    "verify_no_consumer": _verify_no_consumer,
    "audit_nothing": mutants.audit_nothing,
    "move_no_consumer": _move_no_consumer,
    "tell_no_move": mutants.tell_no_move,
}
#: Where chance would have to be kind: two drivers are paused, one of them while its table waits, or
#: rows are trimmed that a job which skips them has not read.
HARD = {
    # The first of those of `make test` that show it: to play the ones before it takes a minute.
    "plan_behind_the_head": (sequence(334),),
    "audit_nothing": (sequence(193),),
    "raise_no_epoch_before_the_start": (sequence(1567),),
    "tell_no_move": (
        Life(
            Form("transactional", on_data_loss="skip", most_rows=50),
            (
                *(Op("send", 3), Op("batch"), Op("batch"), Op("send", 3), Op("trim", 2)),
                *(Op("restart", 1), Op("batch")),
            ),
        ),
    ),
    "remove_before_the_epoch": [
        Life(
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
        Life(
            Form("transactional", is_static=True),
            (
                *(Op("send"), Op("restart"), Op("pause_in_batch"), Op("restart")),
                *(Op("pause_in_batch", n), Op("older"), Op("older")),
            ),
        )
        for n in range(16, 40)
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("fix", FIXES)
def test_without_a_fix_some_sequence_fails(fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sequences of `make test` would show that it is gone."""
    assert not any(life.run() for life in HARD.get(fix, ()))
    FIXES[fix](monkeypatch)
    lives = HARD.get(fix) or map(sequence, range(CHUNK * CHUNKS))
    assert any(life.run() for life in lives)


#: An example -> the runtime without its fix.
WITHOUT: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "an older driver moves the consumer back behind a start": mutants.verify_no_start,
    "an older driver moves the consumer back, output by position": mutants.verify_no_start,
    "an older driver moves the consumer forward after a rewind": mutants.refuse_a_consumer_ahead,
    "a queue out and in again": mutants.forget_removed_queues,
    "a queue out and in again, from its latest rows": mutants.forget_removed_queues,
    "a recreated queue, output by position": lambda patch: patch.setattr(
        output_ownership, "verify_outputs", lambda *_, **__: None
    ),
    "a recreated queue, rejected rows": lambda patch: patch.setattr(
        output_ownership, "verify_outputs", lambda *_, **__: None
    ),
    "batch rows removed while a table waits": lambda patch: patch.setattr(
        staging, "forgotten", lambda *_: set()
    ),
    "ledger and consumer removed": lambda patch: patch.setattr(
        job_ownership, "is_nowhere", lambda *_: False
    ),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_an_example_needs_its_fix(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    WITHOUT[name](monkeypatch)
    assert FOUND[name].gave in FOUND[name].life.run()
