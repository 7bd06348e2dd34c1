"""`tests.faults.sweep.fixes [FIX...]`: what breaks when a fix of the runtime is taken out.

For each fix its cases of the sweep are played in turn until one breaks; that one is kept among the
results. Where another fix covers for it in every case of the sweep, a test of the runtime makes a
history that only this one withstands: it is run, and asserts what breaks.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.sweep import cases, lane, results
from tests.faults.sweep.play import HELD, MISSED, play
from tests.faults.sweep.scene import SEED, Scene, recorded
from tests.faults.sweep.worker import line_of
from tests.support import mutants
from tests.support.project import ROOT
from ytstream.connector.java import jvm_of
from ytstream.connector.tablet_transactions import Tablets

Mutant = Callable[[pytest.MonkeyPatch, Scene], None]


def _plain(mutant: Callable[[pytest.MonkeyPatch], None]) -> Mutant:
    return lambda patch, scene: mutant(patch)


def _head_apart(patch: pytest.MonkeyPatch, scene: Scene) -> None:
    tablets = Tablets(jvm_of(scene.lane.spark), scene.context.settings)
    stream: Any = SimpleNamespace(tablets=tablets)
    mutants.write_the_head_apart(patch, stream)


_MAP, _WINDOW = "transactional-map-1", "transactional-window-1"
#: What is left out, how, and the cases of the sweep that may show it.
FIXES: Mapping[str, tuple[Mutant, Sequence[str]]] = {
    "the head in the batch's own transaction": (
        _head_apart,
        (
            f"{_MAP}:middle:AdvanceConsumer.consumer:refused",
            f"{_MAP}:middle:AdvanceConsumer.consumer:dropped",
        ),
    ),
    "the epoch raised before the start": (
        _plain(mutants.raise_no_epoch_before_the_start),
        (
            f"{_MAP}:middle:CommitTransaction.ledger:late-in-start",
            f"{_WINDOW}:middle:CommitTransaction.ledger:late-in-start",
        ),
    ),
    "a start committed in its own epoch alone": (
        _plain(mutants.begin_in_any_epoch),
        (
            f"{_MAP}:start-begin:StartTransaction.tablet:paused",
            f"{_MAP}:start-begin:commit_transaction.checkpoint/N:paused",
        ),
    ),
    "the logs of the checkpoint repaired": (
        _plain(mutants.repair_no_folder),
        (
            f"{_WINDOW}:middle:CommitTransaction.ledger:killed-before",
            f"{_WINDOW}:middle:AdvanceConsumer.consumer:killed-before",
            f"{_WINDOW}:middle:CommitTransaction.ledger:refused",
        ),
    ),
}

_TESTS = "packages/ytstream/tests"
#: What is left out, the test that leaves it out, and what it asserts then.
TESTS: Mapping[str, tuple[str, str]] = {
    "the head verified in each batch": (
        "test_older_drivers.py::test_a_frozen_driver_comes_back_with_a_batch_that_has_happened[bare]",
        "a driver that was frozen moves the head back, behind its successor's batches",
    ),
    "the batch begins where the head ends": (
        "test_where_a_batch_begins.py::"
        "test_an_older_driver_moves_the_consumer_back_without_spark[at_least_once-bare]",
        "rows of a batch that has happened are written again",
    ),
    "a planned batch kept for its state": (
        "test_checkpoint_repair.py::test_without_that_a_planned_batch_is_planned_again",
        "a batch that has begun is planned again, with other rows",
    ),
    "later states removed": (
        "test_checkpoint_repair.py::test_a_batch_that_runs_again_finds_no_state_of_its_own[bare]",
        "a batch that runs again finds the state that it has left",
    ),
    "the logs repaired, when the commit's reply is lost": (
        "test_fixes_stateful.py::test_the_commits_reply_is_lost[window-bare]",
        "the state never sees the rows of that batch: windows with wrong totals",
    ),
    "a batch without rows in the head's transaction": (
        "test_fixes_stateful.py::test_a_batch_without_rows_whose_transaction_is_lost[window-bare]",
        "the windows that it closed never come",
    ),
    "the rows that a batch reads audited": (
        "test_batch.py::"
        "test_without_the_audit_rows_of_a_trimmed_queue_are_lost_and_others_repeated[transactional]",
        "15 rows lost and 15 repeated, when a queue is trimmed under a batch",
    ),
    "a queue's first rows looked up at a start": (
        "test_fixes_replaying.py::test_rows_trimmed_before_they_were_read[transactional-bare]",
        "rows repeated, when a queue was trimmed before they were read",
    ),
    "the consumer put where the head is": (
        "test_batch.py::test_the_consumer_is_moved_back[bare]",
        "10 rows repeated, when something else moves the consumer back",
    ),
    "an idle query's consumer put back": (
        "test_stall_watchdog.py::test_a_consumer_that_is_behind_is_put_back[bare]",
        "the consumer stays behind the head while the queue is idle",
    ),
    "the key of an idempotent output": (
        "test_fixes_replaying.py::test_an_idempotent_batch_that_runs_again_changes_nothing[1-bare]",
        "rows of a batch that runs again are there twice",
    ),
    "an epoch told by its process, too": (
        "test_epoch.py::test_by_its_number_alone_another_processs_epoch_is_its_own",
        "the epoch of another process passes for one's own",
    ),
    "the sources of a checkpoint moved with the queues": (
        "test_added_queue.py::"
        "test_a_queue_in_front_of_a_planned_batch_needs_two_entries_with_its_sources",
        "Spark refuses the checkpoint: the job starts no more",
    ),
    "rows that are skipped written down": (
        "test_moves.py::test_only_the_moves_explain_the_gaps[False]",
        "a gap between two batches that nothing explains",
    ),
}


def main(wanted: Sequence[str]) -> int:
    """Return 0 when something breaks without each fix."""
    unknown = {*wanted} - {*FIXES, *TESTS}
    if unknown:
        print(f"no such fix: {', '.join(sorted(unknown))}; known: {', '.join((*FIXES, *TESTS))}")
        return 2
    commit = results.commit()
    left_out = {name: FIXES[name] for name in FIXES if not wanted or name in wanted}
    tests = {name: TESTS[name] for name in TESTS if not wanted or name in wanted}
    return int(not all([_played(left_out, commit), _tested(tests, commit)]))


def _played(chosen: Mapping[str, tuple[Mutant, Sequence[str]]], commit: str) -> bool:
    """Play cases without each fix; return whether one breaks without each."""
    if not chosen:
        return True
    missing = 0
    known = {case.name: case for case in cases.all_cases()}
    with ExitStack() as stack:
        opened = stack.enter_context(lane.opened())
        scenes: dict[str, Scene] = {}
        for fix, (mutant, names) in chosen.items():
            for name in names:
                case = known.get(name)
                if case is None:
                    print(f"{fix}: no such case: {name}", flush=True)
                    continue
                variant = case.variant
                scene = scenes.get(variant.name) or recorded(variant, opened)
                scenes[variant.name] = scene
                opened.adopt(scene.context)
                started = time.monotonic()
                with pytest.MonkeyPatch.context() as patch:
                    mutant(patch, scene)
                    result = play(case, scene)
                print(f"without {fix}: {result.verdict}: {name} {result.said}", flush=True)
                if result.verdict not in (HELD, MISSED):
                    line = line_of(name, result, time.monotonic() - started, commit)
                    results.append(replace(line, of=f"{results.FIX}{fix}"))
                    break
            else:
                missing += 1
    return not missing


def _tested(chosen: Mapping[str, tuple[str, str]], commit: str) -> bool:
    """Run the tests that leave a fix out; return whether each has seen what it asserts."""
    are_red = True
    for fix, (test, breaks) in chosen.items():
        started = time.monotonic()
        words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", f"{_TESTS}/{test}")
        done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
        is_red = done.returncode == 0  # 5: there is no such test
        seconds = round(time.monotonic() - started, 1)
        print(f"without {fix}: {'red' if is_red else done.stdout[-2000:]}: {test}", flush=True)
        if is_red:
            results.append(
                results.Line(
                    test, results.RED, 0, 0, seconds, SEED, commit,
                    of=f"{results.FIX}{fix}", said=breaks,
                )
            )  # fmt: skip
        are_red &= is_red
    return are_red


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
