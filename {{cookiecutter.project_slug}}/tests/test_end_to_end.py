"""The whole job on the minicluster: queues, SPYT, checkpoint, output table."""

from __future__ import annotations

from typing import Any

import pytest


def test_every_row_arrives_once_and_right(stream: Any) -> None:
    stream.send(3_000)
    stream.recover()
    stream.close()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)
    assert outcome.rows_out > 0


def test_a_second_run_goes_on_where_the_first_one_stopped(stream: Any) -> None:
    for _ in range(2):
        stream.send(1_000)
        stream.recover()
        stream.drain()
    stream.close()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)


def test_changed_columns_are_said_once(stream: Any) -> None:
    stream.recover()
    stream.client.set(f"{stream.settings.consumer}/@ytstream_job/schema", "of other columns")
    assert stream.recover() == ["tables.py has changed: rows written before stay as they are"]
    assert stream.recover() == []


def test_what_belongs_to_another_job_is_not_rewound(stream: Any) -> None:
    stream.send(100)
    stream.recover()
    stream.client.set(f"{stream.settings.checkpoint}/@ytstream_job/job", "another")
    with pytest.raises(stream.module("errors").JobError, match="belongs to another job"):
        stream.module("maintenance").rewind(stream.client, stream.settings, "latest", [])


@pytest.mark.parametrize(
    "damage",
    [{"queues": "nonsense"}, {"guarantee": None, "queues": [1]}, {"begun": [5]}, {"begun": 5}],
    ids=["queues", "no guarantee", "rows", "begun"],
)
def test_a_damaged_marker_is_refused_in_one_line(stream: Any, damage: dict[str, Any]) -> None:
    stream.recover()
    path = f"{stream.settings.checkpoint}/@ytstream_job"
    stream.client.set(path, {**stream.client.get(path), **damage})
    with pytest.raises(stream.module("errors").JobError, match="not as the job writes it"):
        stream.recover()


@pytest.mark.parametrize(
    "mistake", [KeyError("price"), ZeroDivisionError("division by zero"), None]
)
def test_a_mistake_in_transform_is_one_line(
    stream: Any, monkeypatch: pytest.MonkeyPatch, mistake: Exception | None
) -> None:
    def transform(*_: object) -> None:
        if mistake is not None:
            raise mistake

    pipeline = stream.module("pipeline")
    monkeypatch.setattr(pipeline, "transform", transform)
    with pytest.raises(stream.module("errors").JobError, match=r"transform\(\) failed"):
        pipeline.result(stream.spark, stream.client, stream.settings)
