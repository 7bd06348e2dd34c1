"""Run by the interpreter inside a generated project, as a script of its user's would be.

    python killed.py PLACE OUTCOME

Plays the project's demonstration with flights for a sample: the job is killed at PLACE in its
second batch, and started again. Pickles into OUTCOME what was in the tables between the two and
what is in them at the end.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flights.job import JOB

from minicluster import testing
from tests.journeys.flights import reference
from ytstream.cluster.client import Client, connect
from ytstream.job import JobContext
from ytstream.settings.job_settings import Settings, load
from ytstream_tools.demo import kill
from ytstream_tools.demo.crash_scenario import play
from ytstream_tools.demo.job_sample import Sample, SampleRow

FLIGHTS = reference.read_flights()
POSITION = {"tablet_index", "row_index"}


def _expected(output: str) -> Callable[[Sequence[SampleRow]], list[dict[str, Any]]]:
    """Return what makes the rows of that output out of the first flights, as many as were sent."""

    def made(rows: Sequence[SampleRow]) -> list[dict[str, Any]]:
        found = reference.outputs(FLIGHTS.head(len(rows)))[output]
        return [{n: row[n] for n in row if n not in POSITION} for row in found]

    return made


def _rejected(rows: Sequence[SampleRow]) -> Iterator[tuple[str, SampleRow]]:
    reasons = reference.rejected(FLIGHTS.head(len(rows)))
    yield from ((why, row) for why, row in zip(reasons, rows, strict=True) if isinstance(why, str))


SAMPLE = Sample(
    rows=lambda count, _seed, _start: reference.queue_rows(FLIGHTS.head(count)),
    event_time="time_hour",
    expected=_expected("output"),
    others={"delayed": _expected("delayed"), "rejected": _rejected},
)


def in_an_output(name: str) -> Callable[..., Any]:
    """Return what arms the kill at the second batch's first write into that output."""

    def arm(faults: Any, context: JobContext, *, pgid: int) -> Any:
        settings = context.settings
        rule = faults.add(
            method="ModifyRows",
            where={"path": settings.outputs[name]},
            armed_by=kill.first_batch(faults, settings),
            when="after",
            action="kill",
            pgid=pgid,
        )
        return {f"after a write into {name}": rule}

    return arm


PLACES: Mapping[str, Callable[..., Any] | None] = {
    "commit": None,
    **{name: in_an_output(name) for name in JOB.outputs},
}
"""None is the place of the demonstration itself: the commit, after Spark's commits/1."""


def look(client: Client, settings: Settings) -> dict[str, Any]:
    """Return the rows that each output has, and those that the ledger says its batches wrote."""
    batches = client.select_rows(f'rows_written from [{settings.ledger}] where kind = "batch"')
    return {
        "rows": {
            name: int(client.get(f"{path}/@row_count")) for name, path in settings.outputs.items()
        },
        "batches": [dict(row["rows_written"]) for row in batches],
    }


def main(place: str, outcome_file: str) -> None:
    log = Path.cwd() / "build" / "job.log"
    log.parent.mkdir(exist_ok=True)
    kill.arm = PLACES[place] or kill.arm
    looks: list[dict[str, Any]] = []
    with testing.start() as cluster:
        settings = load(Path.cwd() / "config/local.toml", {"YT_PROXY": cluster.http})
        client = connect(settings)

        def say(line: str) -> None:
            print(line)
            if line.startswith("kill -9"):  # said between the kill and the restart
                looks.append(look(client, settings))

        result = play(JOB, SAMPLE, cluster, log, say)
        looks.append(look(client, settings))
    outcome = {
        "kills": result.kills,
        "restarts": result.restarts,
        "rows_in": result.rows_in,
        "looks": looks,
        "outcomes": {
            name: (one.rows_out, one.lost, one.duplicated) for name, one in result.outcomes.items()
        },
    }
    print(outcome)
    Path(outcome_file).write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
