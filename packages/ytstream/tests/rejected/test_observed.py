"""What the runtime observes of rows is in the code that Spark generates for them.

Tests that share a session interpret their plans (tests/support/jvm.py). There Spark's own operator
observes the rows, and all other tests of rejected rows say that it does so rightly.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from minicluster.testing import Running
from tests.support.helpers import StreamOf, begin_at, head_of
from ytstream.connector.spark_plan import Node
from ytstream.job import REJECTED
from ytstream.rejected import collected
from ytstream.settings.job_settings import OWN
from ytstream_tools.testing.job_stream import Stream

_GENERATED = {"wholeStage": "true", "factoryMode": "CODEGEN_ONLY"}


@pytest.fixture
def generating(spark: SparkSession) -> Iterator[None]:
    """Let the session generate code, and report code that does not compile."""
    names = [f"spark.sql.codegen.{name}" for name in _GENERATED]
    before = {name: str(spark.conf.get(name)) for name in names}
    for name, value in zip(names, _GENERATED.values(), strict=True):
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def _stages(stream: Stream, rows: int) -> list[tuple[str, bool]]:
    """Run a batch; return what it observes, and whether in generated code."""
    stream.send(rows)
    with stream.running() as query:
        while not any(progress.numInputRows for progress in query.recentProgress):
            assert query.isActive, query.exception()
        plan = Node(query._jsq.streamingQuery().lastExecution().executedPlan())
    # Each batch would optimize and print what makes the JSON of a row.
    seen = [str(node.jvm.simpleString(100)) for node in plan.walk() if node.name == "ObservedExec"]
    (lines,) = (text for text in seen if "lines" in text.lower())
    assert "json" not in lines.lower(), lines
    return [*_observing(plan, False)]


def _observing(node: Node, is_generated: bool) -> Iterator[tuple[str, bool]]:
    is_generated = {"WholeStageCodegenExec": True, "InputAdapter": False}.get(
        node.name, is_generated
    )
    if node.name in ("ObservedExec", "CollectMetricsExec"):
        yield str(node.jvm.name()), is_generated
    for child in node.children:
        yield from _observing(child, is_generated)


@pytest.mark.spark
@pytest.mark.parametrize("connector", [OWN], indirect=True)
@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    [
        ("transactional", "map", 1),
        pytest.param("transactional", "window", 2, marks=pytest.mark.thorough),
        pytest.param("idempotent", "map", 2, marks=pytest.mark.thorough),
    ],
)
def test_rows_are_observed_in_generated_code(
    stream_of: StreamOf,
    cluster: Running,
    monkeypatch: pytest.MonkeyPatch,
    generating: None,
    guarantee: str,
    processing: str,
    queues: int,
    connector: str,
) -> None:
    stream = stream_of(guarantee, processing, queues, rejects=True)
    stream.redeclare(warn={"no channel": "channel IS NULL"})
    found = _stages(stream, 300)
    assert [is_generated for _, is_generated in found] == [True] * len(found)
    names = [REJECTED, *(f"ytstream:{queue}" for queue in stream.settings.queues)]
    assert {*names} <= {name for name, _ in found}
    assert all((one.lost, one.duplicated) == (0, 0) for one in stream.outcomes().values())
    kept = [*stream.sample.passing(stream.context.job, stream.sent)]
    totals = head_of(stream).totals
    assert totals.warned == {"no channel": sum(row["channel"] is None for row in kept)}
    assert totals.written[REJECTED] == len(stream.sent) - len(kept) > 0
    # Lines that are too long are not taken, and the rows are read once more.
    monkeypatch.setattr(collected, "MOST_OF_A_TASK", 100)
    cluster.client.journal.clear()
    stream.send(300)
    stream.drain()
    pulls = sum(entry.method == "PullConsumer" for entry in cluster.client.journal())
    tablets = sum(int(stream.client.get(f"{q}/@tablet_count")) for q in stream.settings.queues)
    assert pulls == 2 * tablets
    stream.close()
    assert all((one.lost, one.duplicated) == (0, 0) for one in stream.outcomes().values())


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_numbers_of_rows_that_have_no_sum_have_none_in_generated_code(
    stream_of: StreamOf, generating: None, connector: str
) -> None:
    """As Spark's try_sum: null, and no other number. The audit counts on it (read_again.py)."""
    stream = stream_of("transactional", "map", 1, rejects=True)
    (queue,) = stream.settings.queues
    begin_at(queue, stream.client, 1 << 62)
    stream.send(300)
    stream.drain()
    assert all((one.lost, one.duplicated) == (0, 0) for one in stream.outcomes().values())
