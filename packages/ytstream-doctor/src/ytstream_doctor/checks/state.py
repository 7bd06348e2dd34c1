"""Checks of queries that keep state between batches."""

from collections.abc import Iterator

from ..reading.inspected_job import InspectedJob
from ..reading.queries import Query
from ..reading.syntax import Step
from ..rules import Finding

_PARTITIONS = "spark.sql.shuffle.partitions"
_DEDUPLICATED = {"distinct", "dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark"}
_GROUPED = {"groupBy", "groupby", "rollup", "cube"}
_OWN = {"applyInPandasWithState", "transformWithState", "transformWithStateInPandas"}
"""The function that is given to these keeps the state and says when it ends."""


def findings(job: InspectedJob) -> Iterator[Finding]:
    """Yield what is wrong with state. Under the key of a position there must be none at all."""
    for query in job.queries:
        step = _stateful(query)
        if step is None or job.has_positions(query):
            continue
        file = step.context.module.file
        names = {each.name for each in query.flow.steps}
        if "withWatermark" not in names and not names & _OWN:
            what = f"{step.name}() without withWatermark()"
            yield Finding(file, step.line, "no-watermark", what)
        if not job.settings.of(_PARTITIONS):
            what = f"{step.name}() keeps state, and {_PARTITIONS} is not set: 200"
            yield Finding(file, step.line, "state-partitions", what)


def _stateful(query: Query) -> Step | None:
    steps = query.flow.steps if query.is_traced else ()
    return next((step for step in steps if step.name in _DEDUPLICATED | _GROUPED), None)
