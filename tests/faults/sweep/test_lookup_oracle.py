"""The oracle of lookups sees each kind of wrong row, in made-up tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.sweep.lookup_oracle import KEYS, LARGE, REFERENCES, WRITTEN, Change, Looked, text
from tests.faults.sweep.lookups import FORMS, LookupRun

CHANGES = [Change(name, version, f"{name} {version if name != WRITTEN else 0}",
                  100 * version, 100 * version + 10)
           for name in REFERENCES for version in (1, 2)]  # fmt: skip


def row_of(number: int, versions: dict[str, int]) -> dict[str, Any]:
    key = KEYS[number * 7 % len(KEYS)]
    values = {name: text(name, key, versions[name]) for name in REFERENCES}
    known = values[WRITTEN] is not None
    return {"event_id": f"{number}", "auction": key, **values, "is_known": known}


def batch_of(number: int, first: int, time: int, versions: dict[str, int]) -> dict[str, Any]:
    """Return a batch of ten rows of one tablet."""
    tables = {one.reference: one.table for one in CHANGES if one.version == versions[one.reference]}
    named = {name: {"table": tables[name], "timestamp": time} for name in REFERENCES}
    rows = [{"path": "queue", "rows": {"0": [first, first + 10]}}]
    return {"number": number, "queues": rows, "state": {"lookups": named}}


OLD, NEW = dict.fromkeys(REFERENCES, 1), dict.fromkeys(REFERENCES, 2)


def looked(drops_by: str | None = None) -> Looked:
    """Return two right batches, one in the old versions and one in the new ones."""
    rows = [row_of(n, OLD if n < 10 else NEW) for n in range(20)]
    queue = [
        {
            "$tablet_index": 0,
            "$row_index": n,
            "event_id": row["event_id"],
            "auction": row["auction"],
        }
        for n, row in enumerate(rows)
    ]
    kept = [row for row in rows if drops_by is None or row[drops_by] is not None]
    ledger = [batch_of(1, 0, 150, OLD), batch_of(2, 10, 250, NEW)]
    return Looked(queue, kept, ledger, CHANGES, drops_by)


@pytest.mark.parametrize("drops_by", [None, LARGE])
def test_right_rows_have_no_problems(drops_by: str | None) -> None:
    found = looked(drops_by)
    assert (len(found.output) < 20) == (drops_by is not None)
    assert [*found.problems()] == []


def _stale(found: Looked) -> Looked:
    """A task has looked up an old version."""
    stale = {f"{n}": row_of(n, {**NEW, LARGE: 1}) for n in range(15, 20)}
    return replace(found, output=[stale.get(row["event_id"], row) for row in found.output])


def _early(found: Looked) -> Looked:
    """The whole batch has looked up what was written after its moment."""
    rows = [row_of(n, {**OLD, WRITTEN: 2}) for n in range(10)]
    return replace(found, output=[*rows, *found.output[10:]])


def _late(found: Looked) -> Looked:
    """The ledger names a moment at which the table was not there."""
    return replace(found, ledger=[found.ledger[0], batch_of(2, 10, 150, NEW)])


def _over(found: Looked) -> Looked:
    """The batch has begun long after the link was switched, and has the old table."""
    rows = [row_of(n, {**NEW, LARGE: 1}) for n in range(10, 20)]
    ledger = [found.ledger[0], batch_of(2, 10, 250, {**NEW, LARGE: 1})]
    return replace(found, output=[*found.output[:10], *rows], ledger=ledger)


def _unknown(found: Looked) -> Looked:
    return replace(found, output=[{**row, "is_known": False} for row in found.output])


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (_stale, "batch 2, large: not as of 250"),
        (_early, "batch 1, written: not as of 150"),
        (_late, "batch 2, large: not as of 150"),
        (_over, "batch 2, large: not as of 250 in large 1, with version []"),
        (_unknown, "is_known is wrong"),
        (lambda found: replace(found, output=found.output[1:]), "lost: ['0']"),
        (lambda f: replace(f, output=[*f.output, f.output[3]]), "lost: [], repeated: ['3']"),
        (lambda found: replace(found, ledger=found.ledger[:1]), "have read 10 rows of 20"),
    ],
)
def test_what_is_wrong_is_seen(spoilt: Callable[[Looked], Looked], said: str) -> None:
    assert any(said in line for line in spoilt(looked()).problems())


def test_a_row_that_is_left_out_without_reason_is_lost() -> None:
    found = looked(LARGE)
    (said,) = replace(found, output=found.output[1:]).problems()
    assert said == f"lost: ['{found.output[0]['event_id']}'], repeated: []"


def test_the_state_after_a_held_request_has_the_change_meanwhile(tmp_path: Path) -> None:
    """It has the number of the request, which came before the change."""
    for time, n in enumerate((5, 9, 7), 1):
        path = tmp_path / f"{n}.state"
        path.touch()
        os.utime(path, (time, time))
    run: Any = LookupRun(FORMS[0], SimpleNamespace(folder=tmp_path))  # type: ignore[arg-type]
    run._recorded = [CHANGES[0], replace(CHANGES[1], n=9)]
    assert {n: len([*run._changes_by(n)]) for n in (5, 7, 9)} == {5: 1, 7: 2, 9: 2}
