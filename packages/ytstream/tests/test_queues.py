"""Several queues: their order, and a second one for a job that had one."""

from __future__ import annotations

from typing import Any

import pytest

from packages.ytstream.tests import mutants
from packages.ytstream.tests.examples import example
from packages.ytstream.tests.helpers import MIGRATED, StreamOf, another_process, refusal
from ytstream import provision
from ytstream.declaration import verify_configuration
from ytstream.recovery import folder, operator
from ytstream.testing.stream import Stream

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("guarantee", "cured"),
    [("transactional", True), ("idempotent", True), ("at_least_once", True), ("idempotent", False)],
)
def test_queues_in_another_order(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, guarantee: str, cured: bool
) -> None:
    """Spark matches queues and offsets by position, and SPYT ignores the path in an offset.

    The head knows them by path, and a job without state starts with an empty checkpoint. In a copy
    of the last one each queue would begin where the other one has ended.
    """
    stream = stream_of(guarantee, "map", 2)
    stream.send(400, queues=(0,))
    stream.send(200, queues=(1,))
    stream.drain()
    stream.send(200)
    stream.configure(queues=stream.settings.queues[::-1])
    if not cured:
        new_folder = folder.new_folder

        def copied(*given: Any, stateful: bool) -> int:
            return new_folder(*given, stateful=True)

        monkeypatch.setattr(folder, "new_folder", copied)
        mutants.keep_the_sources(monkeypatch)
        mutants.verify_no_start(monkeypatch)  # it would end the batch
    stream.drain()
    assert stream.outcome().duplicated == 0
    assert (stream.outcome().lost > 0) == (not cured)


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
        connection = stream.connection
        verify_configuration(connection.job, connection.settings, connection.guarantee)

    if "output" in changed:  # REJECTED of tables.py follows by itself
        said = refusal(verify)
        assert "OUTPUTS['output']" in said
        assert "OUTPUTS['rejected']" not in said

    stream.redeclare(outputs=example(guarantee, "map", 2, rejects=True).job.outputs)
    stream.redeclare(transform=example(guarantee, "map", 2, rejects=True).job.transform)
    verify()
    said = refusal(lambda: provision.provision(stream.connection))
    assert all(outputs[name] in said for name in changed)
    assert "or configure another" in said

    stream.configure(outputs={**outputs, **{name: f"{outputs[name]}-2" for name in changed}})
    provision.provision(stream.connection)
    assert "run `migrate`" in refusal(stream.recover)
    assert operator.migrate(stream.connection, stream.tablets)[-1] == MIGRATED
    stream.send(400)
    another_process(stream).drain()

    before = {name: _count(stream, outputs[name]) for name in changed}
    assert all(before.values())
    for name, outcome in stream.outcomes().items():
        # What the first queue gave before is in the former tables.
        assert (outcome.lost, outcome.duplicated) == (before.get(name, 0), 0)


def _count(stream: Stream, path: str) -> int:
    return sum(1 for _ in stream.client.select_rows(f"* from [{path}]"))
