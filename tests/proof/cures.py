"""`python -m tests.proof.cures [CURE...]`: each cure of the runtime taken out, and a case for it.

For each cure its cases are played in turn until one breaks; that one is kept among the results.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from packages.ytstream.tests import mutants
from tests.proof import cases, lane, results
from tests.proof.play import HELD, MISSED, play
from tests.proof.scene import Scene, recorded
from tests.proof.worker import line_of
from ytstream.connector import jvm_of
from ytstream.tablets import Tablets

Mutant = Callable[[pytest.MonkeyPatch, Scene], None]


def _plain(mutant: Callable[[pytest.MonkeyPatch], None]) -> Mutant:
    return lambda patch, scene: mutant(patch)


def _head_apart(patch: pytest.MonkeyPatch, scene: Scene) -> None:
    tablets = Tablets(jvm_of(scene.lane.spark), scene.connection.settings)
    stream: Any = SimpleNamespace(tablets=tablets)
    mutants.write_the_head_apart(patch, stream)


_MAP, _WINDOW = "transactional-map-1", "transactional-window-1"
#: What is left out, how, and the cases that may show it.
CURES: Mapping[str, tuple[Mutant, Sequence[str]]] = {
    "the head in the batch's own transaction": (
        _head_apart,
        (
            f"{_MAP}:middle:CommitTransaction.ledger:killed-before",
            f"{_MAP}:middle:CommitTransaction.ledger:refused",
        ),
    ),
    "the epoch raised before the start": (
        _plain(mutants.raise_no_epoch_before_the_start),
        (
            f"{_MAP}:middle:CommitTransaction.ledger:late-in-start",
            f"{_WINDOW}:middle:CommitTransaction.ledger:late-in-start",
        ),
    ),
    "the head verified in each batch": (
        _plain(mutants.verify_no_head),
        (
            f"{_MAP}:middle:StartTransaction.tablet~last:paused",
            f"{_MAP}:middle:StartTransaction.tablet:paused",
            f"{_MAP}:middle:CommitTransaction.nothing:paused",
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
    "a planned batch kept for its state": (
        _plain(mutants.plan_anew),
        (
            f"{_WINDOW}:middle:ModifyRows.ledger:killed-after",
            f"{_WINDOW}:middle:CommitTransaction.ledger:killed-before",
        ),
    ),
    "later states removed": (
        _plain(mutants.keep_later_states),
        (
            f"{_WINDOW}:middle:CommitTransaction.ledger:killed-before",
            f"{_WINDOW}:rowless:CommitTransaction.ledger:killed-before",
        ),
    ),
}


def main(wanted: Sequence[str]) -> int:
    """Return 0 when each cure has a case that breaks without it."""
    missing = 0
    chosen = {name: CURES[name] for name in CURES if not wanted or name in wanted}
    known = {case.name: case for case in cases.all_cases()}
    commit = results.commit()
    with ExitStack() as stack:
        opened = stack.enter_context(lane.opened())
        scenes: dict[str, Scene] = {}
        for cure, (mutant, names) in chosen.items():
            for name in names:
                case = known.get(name)
                if case is None:
                    print(f"{cure}: no such case: {name}", flush=True)
                    continue
                variant = case.variant
                scene = scenes.get(variant.name) or recorded(variant, opened)
                scenes[variant.name] = scene
                opened.adopt(scene.connection)
                started = time.monotonic()
                with pytest.MonkeyPatch.context() as patch:
                    mutant(patch, scene)
                    result = play(case, scene)
                print(f"without {cure}: {result.verdict}: {name} {result.said}", flush=True)
                if result.verdict not in (HELD, MISSED):
                    line = line_of(name, result, time.monotonic() - started, commit)
                    results.append(replace(line, of=f"without {cure}"))
                    break
            else:
                missing += 1
    return int(missing > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
