"""What `rewind` tells of rows that are read again; no cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.helpers import unconnected
from ytstream import newest
from ytstream.recovery.rewind_consequences import written_again
from ytstream.schema.changes import Merge


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [(newest("date_time", apply_as_deletes="is_closed"), True), (newest("date_time"), False)],
)
def test_a_delete_that_nothing_remembers(rule: Merge, is_told: bool) -> None:
    """An older update that is read again brings its key back."""
    context = unconnected("transactional")
    settings = replace(context.settings, deleted_keep=3 * 86_400_000)
    job = replace(context.job, merge={"output": rule})
    said = written_again(replace(context, job=job, settings=settings))
    told = [line for line in said if "a key that was deleted more than 3.0 days ago" in line]
    assert bool(told) == is_told
