"""The way of a user whose queue has rows: from `make adopt` to a submitted job, as pandas says.

The rows are data of packages from PyPI. What a person types and edits is here; the rest is made.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
import yt.type_info as ti

from local_extensions.versions import SPARK
from minicluster import testing as minicluster
from tests.conftest import Generate
from tests.faults.operations.job_site import submit_part
from tests.journeys import make_commands
from tests.journeys.flights import reference
from tests.support.queues import make_queue
from tests.support.waiting import eventually
from ytstream import Column
from ytstream.cluster.client import Client, connect
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.journey]

PATIENCE_SECONDS = 300
PRODUCTION = "CONFIG=config/production.toml"

Rows = list[dict[str, Any]]


class Adopted(NamedTuple):
    """A queue, what a person makes of it, and what pandas does."""

    processing: str
    columns: Sequence[Column]
    rows: Callable[[], Rows]
    edits: Mapping[str, Mapping[str, str]]
    """By file of the package: what is edited after `make adopt`."""
    wanted: Callable[[], Rows]
    rejected: int


def _flights() -> pd.DataFrame:
    return reference.read_flights().head(3_000)


def _departures() -> Rows:
    """Return the delay of each flight that has departed, in hours."""
    flown = _flights().dropna(subset=["dep_time"])
    hour = pd.to_datetime(flown["time_hour"]).astype("datetime64[us, UTC]").astype("int64")
    made = flown[["carrier", "flight", "origin"]].assign(
        time_hour=hour, delay_hours=flown["dep_delay"] / 60
    )
    return _records(made)


def _quakes() -> pd.DataFrame:
    spec = find_spec("hvsampledata")
    assert spec is not None
    assert spec.origin is not None
    return pd.read_csv(Path(spec.origin).parent / "_data" / "earthquakes.csv")


def _weeks() -> Rows:
    """Return the number and the strongest of the quakes of each depth and week that has closed."""
    found, week = _quakes(), 7 * 86_400_000_000
    at = pd.to_datetime(found["time"], format="ISO8601").astype("datetime64[us]").astype("int64")
    found = found.assign(window_start=at // week * week)
    made = found.groupby(["depth_class", "window_start"], as_index=False).agg(
        rows=("mag", "size"), strongest=("mag", "max")
    )
    made["window_end"] = made["window_start"] + week
    lateness = 6 * 3_600_000_000  # the quakes are almost five hours apart on average
    return _records(made[made["window_end"] <= at.max() - lateness])


def _records(frame: pd.DataFrame) -> Rows:
    """Return rows of Python's own values."""
    return [dict(zip(frame, row, strict=True)) for row in frame.astype(object).to_numpy().tolist()]


FLIGHTS = Adopted(
    processing="map",
    columns=(
        Column("time_hour", ti.Timestamp, required=True),
        Column("minute", ti.Int64, required=True),
        Column("carrier", ti.Utf8, required=True),
        Column("flight", ti.Int64, required=True),
        Column("tailnum", ti.Utf8),
        Column("origin", ti.Utf8, required=True),
        Column("dest", ti.Utf8, required=True),
        Column("dep_time", ti.Int64),
        Column("arr_time", ti.Int64),
        Column("dep_delay", ti.Int64),
        Column("arr_delay", ti.Int64),
        Column("air_time", ti.Double),
    ),
    rows=lambda: reference.queue_rows(_flights()),
    edits={
        "transform.py": {
            r"import DataFrame\n": "import DataFrame\nfrom pyspark.sql import functions as F\n",
            r"= \{\n.*?\n\}": '= {"cancelled": "dep_time IS NULL"}',
            r"return events\.select\(.*": """return events.select(
        "time_hour",
        F.upper(F.trim("carrier")).alias("carrier"),
        "flight",
        "origin",
        (F.col("dep_delay") / 60).alias("delay_hours"),
    )
""",
        },
        "tables.py": {
            r'"output": \[.*?\n    \]': """"output": [
        Column("time_hour", "timestamp", required=True),
        Column("carrier", "utf8", required=True),
        Column("flight", "int64", required=True),
        Column("origin", "utf8", required=True),
        Column("delay_hours", "double"),
    ]""",
        },
    },
    wanted=_departures,
    rejected=22,
)
QUAKES = Adopted(
    processing="window",
    columns=(
        Column("time", ti.Utf8, required=True),
        Column("lat", ti.Double, required=True),
        Column("lon", ti.Double, required=True),
        Column("depth", ti.Double, required=True),
        Column("depth_class", ti.Utf8, required=True),
        Column("mag", ti.Double, required=True),
        Column("mag_class", ti.Utf8, required=True),
        Column("place", ti.Utf8, required=True),
    ),
    rows=lambda: _records(_quakes()),
    edits={
        "transform.py": {
            r'"mag_class"': '"depth_class"',
            r"\.agg\(.*?\)\)\n": """.agg(
            F.count(F.lit(1)).alias("rows"),
            F.max("mag").alias("strongest"),
        )
""",
            r'"rows",\n': '"rows",\n            "strongest",\n',
        },
        "tables.py": {
            r'"output": \[\n        Column\("mag_class"': """"output": [
        Column("depth_class\"""",
            r'(Column\("rows", "int64", required=True\),)': r"""\1
        Column("strongest", "double"),""",
        },
    },
    wanted=_weeks,
    rejected=0,
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[minicluster.Running]:
    """Start a minicluster that runs operations."""
    with minicluster.start(operations=True) as running:
        yield running


@pytest.mark.parametrize("job", [FLIGHTS, QUAKES], ids=["map", "window"])
def test_an_adopted_queue_becomes_a_submitted_job_with_the_rows_that_pandas_computes(
    generate: Generate,
    installed: dict[str, Path],
    cluster: minicluster.Running,
    job: Adopted,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("YT_TOKEN", "any")
    root, began = f"//home/{job.processing}", time.monotonic()
    project = generate(
        project_name="Adopted",
        processing=job.processing,
        queue_paths=f"{root}/queue",
        cypress_root=f"{root}/job",
        yt_proxy=cluster.http,
    )
    _git(project, "init", "--quiet")
    config = project / "config/production.toml"
    client = connect(load(config, {}))
    make_queue(client, f"{root}/queue", job.columns, job.rows(), tablets=2)

    def make(*words: str) -> str:
        said = make_commands.make(project, installed[SPARK], *words)
        print(f"{time.monotonic() - began:5.0f} s  make {' '.join(words)}")
        return said

    assert "proposal: group" in make("adopt", PRODUCTION)
    for name, edits in job.edits.items():
        _edit(project / "src/adopted" / name, edits)
    make("approve")
    assert "lost=0 duplicated=0" in make("lint", "test", "demo").splitlines()[-1]
    config.write_text(config.read_text() + submit_part())
    _git(project, "add", ".")
    _git(project, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "adopted")
    make("provision", PRODUCTION)
    assert "the first batch is in the ledger" in make("submit")
    wanted = job.wanted()
    assert wanted
    # A window comes out in the batch after the one that has moved the watermark.
    eventually(
        lambda: demo_tables.rows_in(client, f"{root}/job/output") >= len(wanted),
        PATIENCE_SECONDS,
        said=lambda: make("logs"),
        pause=1.0,
    )
    make("stop", PRODUCTION)
    assert _sorted(_read(client, f"{root}/job/output")) == _sorted(wanted)
    assert len(_read(client, f"{root}/job/rejected")) == job.rejected


def _edit(file: Path, edits: Mapping[str, str]) -> None:
    """Replace each pattern wherever it is."""
    text = file.read_text(encoding="utf-8")
    for pattern, new in edits.items():
        text, count = re.subn(pattern, new, text, flags=re.DOTALL)
        assert count, pattern
    file.write_text(text, encoding="utf-8")


def _git(project: Path, *words: str) -> None:
    subprocess.run(["git", "-C", project, *words], check=True)


def _read(client: Client, path: str) -> Rows:
    return [
        {name: int(value) if isinstance(value, int) else value for name, value in row.items()}
        for row in client.select_rows(f"* from [{path}]")
    ]


def _sorted(rows: Sequence[Mapping[str, Any]]) -> list[list[tuple[str, Any]]]:
    """Return rows without the columns of YTsaurus, in an order of their own."""
    return sorted(sorted((n, v) for n, v in row.items() if n[0] != "$") for row in rows)
