"""The rows of the proof: what a job would do wrong must show in the rows that are expected."""

from __future__ import annotations

import pytest

from tests.faults.sweep import oracle
from tests.faults.sweep.jobs import JOBS
from tests.faults.sweep.lab import PARTITIONS, WRITE_ROWS, made_of
from tests.faults.sweep.recording import BATCH_ROWS, MORE, SEED, WAITING
from tests.faults.variants import Variant

Rows = list[dict[str, object]]

KINDS = [
    Variant(guarantee, processing, queues)
    for guarantee, processing, queues in dict.fromkeys(
        (variant.guarantee, variant.processing, variant.queues) for variant in JOBS
    )
]
"""The variants whose rows differ."""


def _name(variant: Variant) -> str:
    return variant.name


def recorded(variant: Variant) -> list[list[Rows]]:
    """Return the batches of the recording, for each queue."""
    sample = made_of(variant).sample
    return [
        oracle.batches_of(
            variant, sample.make, sample.start_us, SEED + queue, WAITING + MORE, 0, BATCH_ROWS
        )
        for queue in range(variant.queues)
    ]


@pytest.mark.parametrize("variant", KINDS, ids=_name)
def test_each_batch_of_each_queue_has_rejected_rows(variant: Variant) -> None:
    rejected = made_of(variant).sample.others["rejected"]
    for batches in recorded(variant):
        assert all([*rejected(rows)] for rows in batches)
        # Both tasks of the middle batch write some: one of them may be held.
        for partition in range(PARTITIONS):
            part = batches[1][partition::PARTITIONS]
            assert 0 < len([*rejected(part)]) < len(part) - WRITE_ROWS
