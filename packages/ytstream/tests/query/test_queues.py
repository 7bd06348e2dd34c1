"""Several queues: their order, and a second one for a job that had one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import without_fix
from tests.support.examples import example
from tests.support.helpers import (
    MIGRATED,
    StreamOf,
    another_process,
    fails_with,
    refusal,
    refusal_code,
)
from ytstream.declaration.validation import verify_configuration
from ytstream.errors.error_codes import ErrorCode
from ytstream.provisioning import job_objects
from ytstream.query import pipeline
from ytstream.recovery import migration
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark


@pytest.mark.thorough
@pytest.mark.parametrize("guarantee", ["transactional", "idempotent", "at_least_once"])
def test_queues_in_another_order(stream_of: StreamOf, guarantee: str) -> None:
    """Spark matches queues and offsets by position, and SPYT ignores the path in an offset.

    The head knows them by path, and a job without state starts with an empty checkpoint.
    """
    stream = _reordered(stream_of, guarantee)
    stream.drain()
    assert (stream.outcome().lost, stream.outcome().duplicated) == (0, 0)


@pytest.mark.thorough
def test_a_checkpoint_that_stays_is_refused_by_its_first_batch(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In it each queue would begin where the other one has ended."""
    kept = SimpleNamespace(name=str(tmp_path), cleanup=lambda: None)
    monkeypatch.setattr(pipeline, "made_folder", lambda: kept)
    without_fix.verify_no_start(monkeypatch)  # it would end the batch as well
    stream = _reordered(stream_of, "idempotent")
    with fails_with(ErrorCode.OTHER_ROWS):
        stream.drain()
    assert stream.outcome().duplicated == 0


def _reordered(stream_of: StreamOf, guarantee: str) -> Stream:
    """Read two queues, send more rows and name the queues the other way round."""
    stream = stream_of(guarantee, "map", 2)
    stream.send(400, queues=(0,))
    stream.send(200, queues=(1,))
    stream.drain()
    stream.send(200)
    stream.configure(queues=stream.settings.queues[::-1])
    return stream


@pytest.mark.parametrize(
    ("guarantee", "changed"),
    [
        ("transactional", ["rejected"]),
        ("idempotent", ["output", "rejected"]),
        ("at_least_once", ["rejected"]),
    ],
)
def test_a_second_queue_where_a_key_has_the_position(
    stream_of: StreamOf, guarantee: str, changed: list[str]
) -> None:
    """The steps of the README: the columns, another table for them, `provision`, `migrate`."""
    stream = stream_of(guarantee, "map", 1, rejects=True)
    first, outputs = stream.settings.queues[0], stream.settings.outputs
    stream.send(400)
    stream.drain()

    stream.configure(queues=(first, f"{first}-more"))

    def verify() -> None:
        context = stream.context
        verify_configuration(context.job, context.settings, context.guarantee)

    if "output" in changed:  # REJECTED of tables.py follows by itself
        said = refusal(verify)
        assert "OUTPUTS['output']" in said
        assert "OUTPUTS['rejected']" not in said

    stream.redeclare(outputs=example(guarantee, "map", 2, rejects=True).job.outputs)
    stream.redeclare(transform=example(guarantee, "map", 2, rejects=True).job.transform)
    verify()
    said = refusal(lambda: job_objects.provision(stream.context))
    assert all(outputs[name] in said for name in changed)
    assert ("or configure another table" in said) == ("output" in changed)
    assert "name a new table under [outputs], then `provision` and `migrate`" in said

    stream.configure(outputs={**outputs, **{name: f"{outputs[name]}-2" for name in changed}})
    job_objects.provision(stream.context)
    assert refusal_code(stream.recover) == ErrorCode.JOB_CHANGED
    assert migration.migrate(stream.context, stream.tablets)[-1] == MIGRATED
    stream.send(400)
    another_process(stream).drain()

    before = {name: _count(stream, outputs[name]) for name in changed}
    assert all(before.values())
    for name, outcome in stream.outcomes().items():
        # What the first queue gave before is in the former tables.
        assert (outcome.lost, outcome.duplicated) == (before.get(name, 0), 0)


def _count(stream: Stream, path: str) -> int:
    return sum(1 for _ in stream.client.select_rows(f"* from [{path}]"))
