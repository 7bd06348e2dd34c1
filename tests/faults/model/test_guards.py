"""Steps and guards of the model are in the runtime; a guard has a twin of its mutant and a test."""

from __future__ import annotations

import ast
from concurrent.futures import Future
from dataclasses import replace
from functools import reduce
from importlib import import_module
from typing import Any

import pytest

from tests.faults.model.guards import GUARDS, SEQUENCES
from tests.faults.model.options import MUTANTS, STEPS
from tests.support import without_fix
from tests.support.helpers import unconnected
from tests.support.project import ROOT
from ytstream.connector.tablet_transactions import Tablets
from ytstream.errors import JobError
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.outputs.output_frames import OutputFrames
from ytstream.outputs.static_outputs import StaticTables
from ytstream.query.batch import Batch
from ytstream.recovery.epoch import Epoch


def _found(name: str) -> Any:
    """Return what ``name`` means, a function of a class too."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[end:], module)
    raise AssertionError(f"{name} is in no module")


@pytest.mark.parametrize("name", [name for name in STEPS.values() if name.startswith("ytstream.")])
def test_a_step_is_a_function_of_the_runtime(name: str) -> None:
    assert callable(_found(name))


def test_every_mutant_of_the_model_has_its_guard_in_the_runtime() -> None:
    assert {*GUARDS} == {*MUTANTS}


@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_and_its_twin_are_there(name: str) -> None:
    guard = GUARDS[name]
    found = _found(guard.function)
    assert callable(found) or isinstance(found, property)
    assert callable(getattr(without_fix, guard.twin))


@pytest.mark.parametrize("test", sorted({guard.test for guard in GUARDS.values()}))
def test_the_test_of_a_twin_is_there(test: str) -> None:
    path, _, test = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", [name for name in GUARDS if GUARDS[name].test != SEQUENCES])
def test_that_test_or_one_beside_it_plays_the_twin(name: str) -> None:
    path, _, _ = GUARDS[name].test.partition("::")
    assert f"without_fix.{GUARDS[name].twin}" in (ROOT / path).read_text(encoding="utf-8")


def test_a_total_needs_the_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it comes to without: test_late_writes.py, which counts the totals that are wrong."""
    job = replace(unconnected("transactional", "aggregate").job, guarantee="at_least_once")
    with pytest.raises(JobError, match="aggregate goes with guarantee transactional only"):
        guarantee_of(job)
    without_fix.admit_any_pair(monkeypatch)
    assert guarantee_of(job).name == "at_least_once"


def _batch(context: JobContext) -> Batch:
    outputs, tablets = OutputFrames(context), Tablets(None, context.settings)
    return Batch(context, tablets, Epoch(), outputs, StaticTables(Epoch()), Future())


def test_a_job_with_state_is_verified_before_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without state, a transaction undoes all that was written before the head was verified."""
    kinds = {("transactional", "map"): True, ("transactional", "window"): False}
    kinds |= {("at_least_once", "map"): False}
    for kind, is_undone in kinds.items():
        context = unconnected(*kind)
        assert _batch(context)._is_undone_whole == is_undone
    without_fix.verify_after_the_state(monkeypatch)
    context = unconnected("transactional", "window")
    assert _batch(context)._is_undone_whole
