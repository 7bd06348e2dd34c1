"""Run by the interpreter inside a generated project, as a script of its user's would be.

    python played.py PACKAGE SHAPE OUTCOME

Builds the reference of SHAPE from a static table with `make reference`, then plays the project's
demonstration with the shape's rows: the job is killed, started again, and every row compared with
what pandas computes. Pickles the figures into OUTCOME.
"""

from __future__ import annotations

import io
import pickle
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from minicluster import testing
from tests.journeys.enriched.shapes import SHAPES, Shape, expected
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import play
from ytstream_tools.demo.job_sample import Sample
from ytstream_tools.reference.building import Wanted, build
from ytstream_tools.reference.screen import Screen

_TRANSACTION_MS = 600_000


def make_reference(context: JobContext, shape: Shape) -> None:
    """Write the static table, and let the link of the configuration lead to what is built of it."""
    link = context.settings.references[shape.reference]
    source = f"{link}-static"
    client: Any = context.client
    # The minicluster answers no ping while it takes rows.
    client.config["transaction_timeout"] = _TRANSACTION_MS
    schema = [{"name": name, "type": kind} for name, kind in shape.schema]
    client.create("table", source, recursive=True, attributes={"schema": schema})
    client.write_table(source, shape.rows_of_reference())
    screen = Screen(Console(file=io.StringIO()))
    build(context, Wanted(source, link, shape.key, tablets=3), screen)


def main(package: str, name: str, outcome_file: Path) -> None:
    job, shape = import_module(f"{package}.job").JOB, SHAPES[name]
    sample = Sample(
        rows=lambda count, _seed, _start: shape.rows(count),
        event_time=None,
        expected=lambda rows: expected(shape, [{**row} for row in rows]),
    )
    demo_tables.fill_reference = lambda *_: None  # it is frozen
    log = Path.cwd() / "build" / "job.log"
    log.parent.mkdir(exist_ok=True)
    with testing.start() as cluster:
        settings = load(Path.cwd() / "config/local.toml", {"YT_PROXY": cluster.http})
        context = JobContext(connect(settings), settings, job, guarantee_of(job))
        make_reference(context, shape)
        result = play(replace(job), sample, cluster, log, print)
        rows = context.client.select_rows(
            f'state, rows_read from [{settings.ledger}] where kind = "batch" limit 100'
        )
        looked = [ledger_rows.lookups_of(row)[shape.reference] for row in rows if row["rows_read"]]
    outcome = {
        "kills": result.kills,
        "restarts": result.restarts,
        "rows_in": result.rows_in,
        "outcomes": {
            output: (one.rows_out, one.lost, one.duplicated)
            for output, one in result.outcomes.items()
        },
        "ways": sorted({one.by for one in looked}),
        "missing": sum(one.missing for one in looked),
    }
    print(outcome)
    outcome_file.write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
