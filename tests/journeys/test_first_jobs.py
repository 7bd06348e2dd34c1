"""The first own job, by `make` alone: adopt, edit, approve, run; nobody edits sample/.

The rows are made like those that people brought (first_rows.py). Each output equals what pandas
makes of them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest
import yt.type_info as ti

from local_extensions.versions import SPARK
from minicluster import testing as minicluster
from tests.conftest import Generate
from tests.journeys import first_rows, make_commands
from tests.journeys.first_rows import Rows, records
from tests.support.jvm import submit_args
from tests.support.queues import make_queue
from tests.support.waiting import eventually
from ytstream import Column
from ytstream.cluster.client import Client, client_of
from ytstream_tools.demo import demo_tables

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.journey]

PATIENCE_SECONDS = 900
NAMES = "newark", "york"


@dataclass(frozen=True)
class Case:
    """A user's rows, what they edit after `make adopt`, and what pandas makes of the rows."""

    processing: str
    queues: Callable[[], Mapping[str, Rows]]
    """The rows of each queue, by the last part of its path."""
    edits: Mapping[str, Mapping[str, str]]
    """By file of the package: patterns, and what replaces them."""
    wanted: Callable[[], Rows]
    rejected: int
    columns: Sequence[Column] = ()
    """Of the queues; without them the rows are a file."""
    options: Sequence[str] = ()
    """Of `make adopt`."""
    reference: Sequence[Column] = ()
    references: Callable[[], Rows] = field(default=list)


def _films() -> Rows:
    found = pd.DataFrame(first_rows.films())
    found = found[found["IMDB Rating"].notna()]
    first, second = (
        pd.to_datetime(found["Release Date"], format=form, errors="coerce")
        for form in ("%b %d %Y", "%Y-%m-%d")
    )
    days = (first.fillna(second) - pd.Timestamp(0)).dt.days.astype("Int64")
    made = pd.DataFrame(
        {
            "title": found["Title"].map(str),
            "released": days,
            "points": found["IMDB Rating"] * found["IMDB Votes"],
            "director": found["Director"].fillna("unknown"),
        }
    )
    return records(made)


def _commits() -> Rows:
    found = pd.json_normalize([row["payload"] for row in first_rows.commits()])
    at = pd.to_datetime(found["author.date"], utc=True, errors="coerce", format="ISO8601")
    made = pd.DataFrame(
        {
            "sha": found["sha"],
            "author": found["author.name"],
            "at": (at - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(microseconds=1),
            "lines": found["stats.added"] + found["stats.removed"].fillna(0).astype(int),
            "is_merge": found["parents"].map(len) > 1,
        }
    )
    return records(made[at.notna()].astype({"at": int}))


def _departures() -> Mapping[str, Rows]:
    made = dict[str, Rows]({name: [] for name in NAMES})
    for row in first_rows.departures():
        made[NAMES[row["origin"] != "EWR"]].append(row)
    return made


def _named() -> Rows:
    found = pd.DataFrame(first_rows.departures())
    found = found.merge(pd.DataFrame(first_rows.airlines()), on="carrier", how="left")
    found = found[found["dep_delay"].notna()]
    queues = found["origin"].map(lambda name: f"//home/flights/{NAMES[name != 'EWR']}")
    delay = found["dep_delay"].astype(float) / 60
    made = found[["carrier", "flight", "name"]].assign(queue_id=queues, delay_hours=delay)
    return records(made)


CASES = {
    "films": Case(
        processing="map",
        queues=lambda: {"queue": first_rows.films()},
        edits={
            "transform.py": {
                r"(from pyspark.sql import DataFrame\n)(?!from)": r"\1"
                "from pyspark.sql import functions as F\n\nfrom ytstream import json_of\n",
                r"= \{\n.*?\n\}": '= {"without a rating": "`IMDB Rating` IS NULL"}',
                r"return events\.select\(.*": """day = "try_to_timestamp(`Release Date`, '{}')"
    released = F.coalesce(F.expr(day.format("MMM d yyyy")), F.expr(day.format("yyyy-MM-dd")))
    return events.select(
        F.get_json_object(json_of("Title"), "$").alias("title"),
        F.to_date(released).alias("released"),
        (F.col("IMDB Rating") * F.col("IMDB Votes")).alias("points"),
        F.coalesce("Director", F.lit("unknown")).alias("director"),
    )
""",
            },
            "tables.py": {
                r'"output": \[.*?\n    \]': """"output": [
        Column("title", "utf8"),
        Column("released", "date"),
        Column("points", "double"),
        Column("director", "utf8"),
    ]""",
            },
        },
        wanted=_films,
        rejected=sum(row["IMDB Rating"] is None for row in first_rows.films()),
    ),
    "commits": Case(
        processing="map",
        queues=lambda: {"queue": first_rows.commits()},
        columns=[Column("payload", ti.Yson)],
        options=("MASK=payload.author.email", "TAKE=spread"),
        edits={
            "transform.py": {
                r"parents STRING": "parents ARRAY<STRING>",
                r"= \{\n.*?\n\}": """= {
    "without a date": (
        "try_to_timestamp(get_json_object(json_of(payload), '$.author.date')) IS NULL"
    )
}""",
                r"\.select\(.*": """.select(
        F.col("payload.sha").alias("sha"),
        F.col("payload.author.name").alias("author"),
        F.expr("try_to_timestamp(payload.author.date)").alias("at"),
        F.expr("payload.stats.added + coalesce(payload.stats.removed, 0)").alias("lines"),
        (F.size("payload.parents") > 1).alias("is_merge"),
    )
""",
            },
            "tables.py": {
                r'"output": \[.*?\n    \]': """"output": [
        Column("sha", "utf8"),
        Column("author", "utf8"),
        Column("at", "timestamp"),
        Column("lines", "int64"),
        Column("is_merge", "bool"),
    ]""",
            },
        },
        wanted=_commits,
        rejected=1,
    ),
    "flights": Case(
        processing="join",
        queues=_departures,
        columns=[
            Column("carrier", ti.Utf8, required=True),
            Column("flight", ti.Int64, required=True),
            Column("origin", ti.Utf8, required=True),
            Column("dest", ti.Utf8),
            Column("time_hour", ti.Timestamp, required=True),
            Column("dep_delay", ti.Int64),
        ],
        reference=[Column("carrier", "utf8", key=True), Column("name", "utf8")],
        references=first_rows.airlines,
        edits={
            "transform.py": {
                r"= \{\n.*?\n\}": '= {"cancelled": "dep_delay IS NULL"}',
                r"\.select\(.*": """.select(
        "queue_id",
        "carrier",
        "flight",
        "name",
        (F.col("dep_delay") / 60).alias("delay_hours"),
    )
""",
            },
            "tables.py": {
                r'"output": \[.*?\n    \]': """"output": [
        Column("queue_id", "utf8"),
        Column("carrier", "utf8"),
        Column("flight", "int64"),
        Column("name", "utf8"),
        Column("delay_hours", "double"),
    ]""",
            },
        },
        wanted=_named,
        rejected=int(first_rows.flights()["dep_delay"].isna().sum()),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_first_job_writes_what_pandas_computes(
    generate: Generate,
    installed: dict[str, Path],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, root = CASES[name], f"//home/{name}"
    queues = case.queues()
    paths = [f"{root}/{queue}" for queue in queues]
    project = generate(
        project_name="First",
        processing=case.processing,
        queue_paths=" ".join(paths),
        cypress_root=f"{root}/job",
    )
    with minicluster.start() as cluster:
        monkeypatch.setenv("YT_PROXY", cluster.http)
        client = client_of(cluster.http, "")

        def make(*words: str) -> str:
            began = time.monotonic()
            said = make_commands.make(project, installed[SPARK], *words)
            print(f"{time.monotonic() - began:5.0f} s  make {' '.join(words)}")
            return said

        if case.reference:
            _make_reference(client, f"{root}/job/reference", case.reference, case.references())
        source = ["CONFIG=config/local.toml"]
        if case.columns:
            for path, rows in zip(paths, queues.values(), strict=True):
                make_queue(client, path, case.columns, rows, tablets=2)
        else:
            source = [f"FROM={_file(tmp_path, *queues.values())}"]
        make("adopt", *source, *case.options)
        sample = _contents(project / "sample")
        for file, edits in case.edits.items():
            _edit(project / "src/first" / file, edits)
        make("format")
        make("approve")
        make("lint")
        make("provision")
        if not case.columns:
            for path, rows in zip(paths, queues.values(), strict=True):
                demo_tables.produce(client, path, rows, int(client.get(f"{path}/@tablet_count")))
        outputs = f"{root}/job/output", f"{root}/job/rejected"
        count = sum(map(len, queues.values()))
        with _running(project, installed[SPARK], tmp_path / "run.log") as job:
            eventually(
                lambda: sum(len(_read(client, path)) for path in outputs) >= count,
                PATIENCE_SECONDS,
                meanwhile=lambda: job.poll() is None,
                said=lambda: (tmp_path / "run.log").read_text(errors="replace"),
                pause=0.5,
            )
            make("stop")
            assert job.wait(PATIENCE_SECONDS) == 0
        found, rejected = (_read(client, path) for path in outputs)
    wanted = case.wanted()
    assert wanted
    assert _sorted(found) == _sorted(wanted)
    assert len(rejected) == case.rejected > 0
    kept = _contents(project / "sample")
    assert {file: kept[file] for file in sample} == sample


@contextmanager
def _running(project: Path, environment: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Give `make run`, as in a terminal of its own; all its processes are dead at the end."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    with log.open("wb") as sink:
        job = subprocess.Popen(
            ["make", "run", "UV=", f"VENV={environment}"],
            cwd=project,
            env={**inherited, "YTSTREAM_SUBMIT_ARGS": submit_args()},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield job
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)


def _file(folder: Path, rows: Rows) -> Path:
    file = folder / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    return file


def _make_reference(client: Client, path: str, columns: Sequence[Column], rows: Rows) -> None:
    schema = [
        {"name": column.name, "type": "utf8", **({"sort_order": "ascending"} if column.key else {})}
        for column in columns
    ]
    attributes = {"dynamic": True, "schema": schema}
    client.create("table", path, recursive=True, attributes=attributes)
    client.mount_table(path, sync=True)
    client.insert_rows(path, rows)


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def _edit(file: Path, edits: Mapping[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for pattern, new in edits.items():
        text, count = re.subn(pattern, new, text, count=1, flags=re.DOTALL)
        assert count, pattern
    file.write_text(text, encoding="utf-8")


def _read(client: Client, path: str) -> Rows:
    return [
        {name: value for name, value in row.items() if name[0] != "$"}
        for row in client.select_rows(f"* from [{path}]")
    ]


def _sorted(rows: Rows) -> list[str]:
    """Return the rows as texts in an order of their own; numbers of YSON are those of Python."""
    return sorted(json.dumps(row, sort_keys=True, ensure_ascii=False, default=str) for row in rows)
