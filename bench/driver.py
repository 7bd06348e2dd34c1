"""One way of a case as a process of its own, which runs it as often as it is told.

    python -m bench.driver CASE WAY TINY PROXY ANSWERS

Each line of standard input is a root in Cypress, and a number of seconds to be idle after the run;
the answer to it is a line of JSON in the file descriptor ANSWERS. It ends with its input, or with
a run that fails: the answer then says why.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import IO, Any, NoReturn

from pyspark.sql import SparkSession

from bench import jobs, state, ways
from bench.cases import FULL, LISTING, NOOP, TINY, Case, Size
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream_tools.demo.demo_tables import row_count

FAILED = "failed"
"""The key of an answer that says why the run has failed."""


def main(case: Case, way: str, size: Size, proxy: str, answers: int) -> None:
    """Answer every line of the input."""
    spark: SparkSession | None = None
    with open(answers, "w", encoding="utf-8") as out:
        for line in sys.stdin:
            root, idle = line.split()
            context = jobs.context_of(case, way, size, proxy, root)
            if spark is None:
                spark = ways.opened(context, way)
            fail = partial(_fail, out)
            answer = run(case, way, size, context, spark, float(idle), fail)
            print(json.dumps(answer), file=out, flush=True)
    if spark is not None:
        spark.stop()


def _fail(out: IO[str], reason: str) -> NoReturn:
    """Answer why the run has failed, and end: a query that hangs cannot be stopped."""
    print(json.dumps({FAILED: reason}), file=out, flush=True)
    os._exit(1)


def run(
    case: Case,
    way: str,
    size: Size,
    context: JobContext,
    spark: SparkSession,
    idle: float,
    fail: Callable[[str], NoReturn],
) -> dict[str, Any]:
    """Run the case once; return its batches and, after ``idle`` seconds, the idle period.

    Calls ``fail`` if a batch does not come.
    """
    first = case.known_batches(size)
    wanted, rows = first + size.batches - 1, case.batch_rows(size)
    if way != NOOP:
        context = ways.provisioned(context)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ways.running(way, case, size, context, spark, f"file://{folder}") as query,
    ):
        try:
            ways.wait(query, wanted)
        except RuntimeError as error:
            fail(str(error))
        answer: dict[str, Any] = {"first": first, "batches": batches(query.recentProgress, wanted)}
        if idle and way != NOOP:
            time.sleep(jobs.TRIGGER_SECONDS)
            answer["idle"] = {"behind": behind(context), "begin": time.time()}
            time.sleep(idle)
            answer["idle"]["end"] = time.time()
        if case.keys:
            answer["state"] = state.sizes(context, spark)
        if case.reference:
            answer["heap"] = state.heap(spark)
    if way not in (LISTING, NOOP) and context.job.kind.is_stateful:
        head = positions.read_head(context.settings.ledger, context.client.select_rows)
        answer["batches"][-1]["keys"] = head.state_rows if head is not None else None
    if (found := {batch["rows"] for batch in answer["batches"]}) != {rows}:
        raise RuntimeError(f"batches of {found} rows, wanted {rows}")
    answer["written"] = None if way == NOOP else written(context)
    return answer


def batches(progress: list[Any], wanted: int) -> list[dict[str, Any]]:
    """Return when each batch with rows began and ended, by the wall clock, and its parts."""
    found = []
    for facts in progress:
        if facts["numInputRows"] and facts["batchId"] < wanted:
            milliseconds = dict(facts["durationMs"])
            begin = datetime.fromisoformat(facts["timestamp"].replace("Z", "+00:00")).timestamp()
            seconds = milliseconds["triggerExecution"] / 1000
            batch = {"rows": facts["numInputRows"], "begin": begin, "seconds": seconds}
            operators = facts["stateOperators"]
            keys = sum(int(operator["numRowsTotal"]) for operator in operators)
            about = {
                "milliseconds": milliseconds,
                "keys": keys,
                "state": state.of_operators(operators),
            }
            found.append({**batch, **about, "id": facts["batchId"]})
    return found


def written(context: JobContext) -> int:
    """Return the rows of all outputs."""
    return sum(row_count(context, name) for name in context.settings.outputs)


def behind(context: JobContext) -> int:
    """Return how many rows the consumer has not passed."""
    found = positions.read(context.client, context.settings)
    return sum(
        end - queue.consumed.get(partition, 0)
        for queue in found.queues
        for partition, end in enumerate(queue.upper)
    )


if __name__ == "__main__":
    _, case, way, tiny, proxy, answers = sys.argv
    # The answers are this process' alone: its JVM must not keep them open.
    os.set_inheritable(int(answers), False)
    main(Case(**json.loads(case)), way, TINY if tiny == "tiny" else FULL, proxy, int(answers))
