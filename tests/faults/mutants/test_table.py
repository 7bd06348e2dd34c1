"""Each mutant still changes the source that it names. `make proof MUTANTS=1` runs them."""

from __future__ import annotations

import ast

import pytest

from tests.faults.mutants.table import MUTANTS, Edit, Mutant, applied
from tests.support.project import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_mutant_changes_its_files(mutant: Mutant) -> None:
    for edit in mutant.edits:
        source = (ROOT / edit.path).read_text(encoding="utf-8")
        changed = applied(edit, source)
        assert changed != source
        if edit.path.endswith(".py"):
            ast.parse(changed)
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists()


def test_a_text_that_is_not_there_once_is_an_error() -> None:
    with pytest.raises(ValueError, match="has this text 2 times"):
        applied(Edit("a.py", "x", "y"), "x x")


def test_names_tell_mutants_apart() -> None:
    names = [one.name for one in MUTANTS]
    assert len({*names}) == len(names)
