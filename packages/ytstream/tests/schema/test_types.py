"""Every type that SPYT reads and writes, lists, structs and dicts included, round-trips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import all_types
from tests.support.examples import STATELESS, example
from tests.support.helpers import ContextOf, adopt
from ytstream.provisioning import job_objects
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait

pytestmark = pytest.mark.spark


# Totals keep their values as windows do.
@pytest.mark.parametrize("processing", [*STATELESS, "window", "deduplicate"])
def test_every_type_comes_out_as_it_went_in(
    context_of: ContextOf, spark: SparkSession, processing: str
) -> None:
    context = context_of("transactional", processing)
    context = replace(context, job=all_types.job(processing))
    client, settings = context.client, context.settings
    job_objects.provision(context)
    if settings.reference is not None:
        client.insert_rows(settings.reference, all_types.reference_rows())
    adopt(spark, context)
    stream = Stream(context, example("transactional", processing).sample, spark)
    stream.recover()
    sent = all_types.rows() * (2 if processing == "deduplicate" else 1)
    # The last two, hours later, bring the windows of the others out.
    later = [{"id": f"later-{number}"} for number in (1, 2)] if processing == "window" else []
    with stream.running() as query:
        for batch in (sent, *([row] for row in later)):
            at = all_types.START + (7_200_000_000 if batch[0] in later else 0)
            stamped = [{**row, "at": at, "$tablet_index": 0} for row in batch]
            client.insert_rows(settings.queues[0], stamped)
            wait(drained(context), query)
    found: list[dict[str, Any]] = list(client.select_rows(f"* from [{settings.output}]"))
    assert len(found) == 4
    by_id = {row["id"]: row for row in found}
    wrong = {
        (row["id"], name): (value, by_id[row["id"]][name])
        for row in all_types.rows()
        for name, value in row.items()
        if by_id[row["id"]][name] != value
    }
    assert wrong == {}
