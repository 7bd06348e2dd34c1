"""Sessions: the state function alone, its mistakes, and the packages that it needs."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import StreamOf, die_between_the_logs, refusal, sampled
from ytstream.connector import local_environment
from ytstream.declaration.user_errors import BRING
from ytstream.spark.node_packages import found, verify_packages
from ytstream.spark.spark_errors import explained_spark
from ytstream_tools.demo.job_sample import counted
from ytstream_tools.testing.job_stream import Stream

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
PACKAGES = ("pandas", "pyarrow")
MADE = example("transactional", "sessions")
USERS: Any = sys.modules[MADE.job.transform.__module__]
LATENESS_MS = 600_000
COLUMNS = ["bidder", *USERS.Session._fields]


class Stored:
    """The state of one bidder, as Spark keeps it between the calls."""

    def __init__(self) -> None:
        self.value: Any = None
        self.timeout_ms = -1

    def call(self, bidder: int, bids: list[dict[str, Any]], watermark_ms: int) -> Iterator[Any]:
        """Call the user's function as a worker of Spark does; yield its rows."""
        state = GroupState(
            optionalValue=self.value,
            batchProcessingTimeMs=0,
            eventTimeWatermarkMs=watermark_ms,
            timeoutConf=GroupStateTimeout.EventTimeTimeout,
            hasTimedOut=not bids,
            watermarkPresent=True,
            defined=self.value is not None,
            updated=False,
            removed=False,
            timeoutTimestamp=-1,
            keyAsUnsafe=b"",
            valueSchema=None,  # type: ignore[arg-type]
        )
        frame = pd.DataFrame(
            [(bidder, int(bid["date_time"]), bid["price"]) for bid in bids],
            columns=["bidder", "time", "price"],
        )
        for rows in USERS.sessions((bidder,), [frame], state):
            yield from rows.to_dict("records")
        self.value = state._value if state.exists else None
        self.timeout_ms = state._timeout_timestamp if state.exists else -1


def run(batches: Iterable[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a stream of these batches, by Spark's rules of watermark and time-out.

    Late is what is not after the watermark of the batch before (Spark, WatermarkSupport); a
    time-out comes when the watermark is after it (GroupStateImpl), for keys without a row.
    """
    stored: dict[int, Stored] = {}
    before, watermark, newest = 0, 0, 0
    for batch in batches:
        for rows in (batch, []):  # Spark runs a batch without rows when the watermark has moved
            by_bidder: dict[int, list[dict[str, Any]]] = {}
            for row in rows:
                if row["date_time"] > before * 1_000:
                    by_bidder.setdefault(row["bidder"], []).append(row)
            due = [b for b, s in stored.items() if -1 < s.timeout_ms < watermark]
            for bidder in {**by_bidder, **dict.fromkeys(due)}:
                state = stored.setdefault(bidder, Stored())
                yield from state.call(bidder, by_bidder.get(bidder, []), watermark)
            newest = max([newest, *(int(row["date_time"]) // 1_000 for row in rows)])
            before, watermark = watermark, max(watermark, newest - LATENESS_MS)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_batches_of_any_size_and_order_give_the_same_sessions(seed: int) -> None:
    chance = random.Random(seed)
    rows = MADE.sample.make(16_000, seed)  # more than LONGEST_US: the robot's session is cut
    last = MADE.sample.closing(MADE.job, rows)
    wanted = MADE.sample.wanted(MADE.job, [*rows, *last])
    assert sum(key[0] == 1 for key in wanted) == 2
    # Rows of half of LATENESS and less change places.
    rows.sort(key=lambda row: int(row["date_time"]) + chance.randrange(300_000_000))
    batches = []
    while rows:
        size = chance.randrange(1, 3_000)
        batches.append(rows[:size])
        rows = rows[size:]
    columns = MADE.job.output_columns["output"]
    assert counted(run([*batches, *([row] for row in last)]), columns) == wanted


def test_the_state_of_a_bidder_who_has_gone_is_removed() -> None:
    stored, (bid,) = Stored(), MADE.sample.make(1)
    assert [*stored.call(7, [bid], 0)] == []
    (session,) = stored.call(7, [], stored.timeout_ms + 1)
    assert (session["bidder"], session["bids"], session["total"]) == (7, 1, bid["price"])
    assert (stored.value, stored.timeout_ms) == (None, -1)


MISTAKES = {
    "raise": (
        "raise ValueError(f'no bidder {key[0]}')",
        r"ValueError: no bidder \d+ \(transform\.py:2\)",
    ),
    "no iterator": (
        "return pd.DataFrame()",
        r".*Return type of the user-defined function should be iterable of pandas.DataFrame, but "
        "is DataFrame.",
    ),
    "fewer columns": (
        "yield pd.DataFrame({'bidder': [key[0]]})",
        r".*Number of columns of the returned data doesn't match specified schema. Expected: 5 "
        "Actual: 1",
    ),
    "other columns": (
        "yield pd.DataFrame([(1, 2, 3, 4, 5)], columns=['bidder', 'a', 'last_bid', 'bids', 'e'])",
        r".*batch 1-\d has a null in column first_bid of 'output', which is required: .*",
    ),
    "a text": (
        f"yield pd.DataFrame([(1, 2, 3, 4, 'much')], columns={COLUMNS})",
        r".*Could not convert 'much' with type str: tried to convert to int64",
    ),
    "a fraction": (
        f"yield pd.DataFrame([(1, 2, 3, 4, 0.5)], columns={COLUMNS})",
        r".*Float value 0.5\d* was truncated converting to int64",
    ),
    "another state": (
        "state.update((5,)); yield pd.DataFrame()",
        r"TypeError: sessions\(\) has set a state that does not fit: .*[Ff]ield .*open.*int.*",
    ),
    "a fraction in the state": (  # Spark would store null
        "state.update(([(1, 2, 3, 4.0)],)); yield pd.DataFrame()",
        r"TypeError: sessions\(\) has set a state that does not fit: .*total.*4\.0.*",
    ),
    "a number of numpy in the state": (
        "state.update(([(key[0], 2, 3, 4)],)); yield pd.DataFrame()",
        r"TypeError: sessions\(\) has set a state that does not fit: .*first_bid.*int64.*",
    ),
    "a longer state": (
        "state.update(([], 1)); return [pd.DataFrame()]",
        r"TypeError: sessions\(\) has set a state that does not fit: .*2.*1.*",
    ),
}
"""A state function as a user may write it, and the message; Spark gives the output's columns by
name, and null where a name is not among them."""

SHOWN = [("raise",), ("fewer columns",), ("another state",), ("a fraction in the state",)]
"""In `make test`: an exception, Arrow's refusal, the state's."""


def replace_function(stream: Stream, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Give the job another state function, as an edit of transform.py would."""
    made: dict[str, Any] = {"pd": pd, "random": random, "sys": sys}
    code = f"def sessions(key, frames, state):\n    {body}\n"
    exec(compile(code, "/job/src/bids/transform.py", "exec"), made)
    users = stream.context.job.transform.__globals__
    monkeypatch.setitem(users, "sessions", made["sessions"])


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("mistake", sampled([(name,) for name in MISTAKES], SHOWN))
def test_a_mistake_in_the_state_function_is_one_message(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    body, said = MISTAKES[mistake]
    stream = stream_of("transactional", "sessions")
    replace_function(stream, monkeypatch, body)
    stream.send(20)

    def drain() -> None:
        with explained_spark():
            stream.drain()

    message, remedy = refusal(drain).splitlines()
    assert re.fullmatch(f"the job cannot continue: {said}", message), message
    assert remedy.startswith(("  -> correct transform.py", "  -> give the column a value in"))


@pytest.mark.spark
def test_a_state_function_that_nothing_checks_is_refused(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of("transactional", "sessions")
    users = stream.context.job.transform.__globals__
    monkeypatch.setitem(users, "checked_state", lambda function: function)
    said = refusal(stream.flow)
    assert "applyInPandasWithState() gets sessions as it is" in said
    assert "-> write checked_state(sessions) in its place" in said


DRAWN = f"""number = state.get[0][0][0] if state.exists else random.randrange(2**50)
    state.update(([(number, number, 0, 0)],))
    bids = sum(map(len, frames))
    yield pd.DataFrame([(*key, number, number, bids, 0)], columns={COLUMNS})
"""
"""A number for each bidder, drawn when his state is made; a row of each call."""


@pytest.mark.thorough
@pytest.mark.spark
def test_a_function_that_is_not_deterministic_agrees_with_its_state_in_a_transaction(
    stream_of: StreamOf, cluster: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the batch that was cut off has drawn is in no row and in no state."""
    stream = stream_of("transactional", "sessions")
    replace_function(stream, monkeypatch, DRAWN)
    stream.send(100)
    stream.drain()
    stream.send(700)  # more than a visit: other bidders come
    die_between_the_logs(stream, cluster)
    stream.send(500)
    stream.drain()
    rows = [*stream.client.select_rows(f"bidder, first_bid, bids from [{stream.settings.output}]")]
    assert sum(row["bids"] for row in rows) == len(stream.sent)
    bidders = {row["bidder"] for row in rows}
    assert len({(row["bidder"], row["first_bid"]) for row in rows}) == len(bidders) < len(rows)


LISTED = f"""list(frames)
    import pyspark
    importers = sum("/pyspark.zip" in path for path in sys.path_importer_cache)
    is_archived = int("/pyspark.zip" in pyspark.__file__)
    yield pd.DataFrame([(*key, importers, is_archived, 1, 0)], columns={COLUMNS})
"""
"""For each call: how many importers of Spark's archive there are, and whether Spark is from it."""


@pytest.mark.thorough
@pytest.mark.spark
def test_a_worker_does_not_list_sparks_archive_for_each_task(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each importer that is there when a task begins lists the archive (see checked_state.py)."""
    stream = stream_of("transactional", "sessions")
    replace_function(stream, monkeypatch, LISTED)
    stream.send(40)
    stream.drain()
    rows = [*stream.client.select_rows(f"first_bid, last_bid from [{stream.settings.output}]")]
    assert {(row["first_bid"], row["last_bid"]) for row in rows} == {(0, 1)}


@pytest.mark.thorough
@pytest.mark.spark
def test_an_executor_without_a_package_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_packages(spark, PACKAGES)
    (tmp_path / "pandas.py").write_text("raise ImportError(\"No module named 'pandas'\")\n")
    (tmp_path / "pyarrow.py").write_text("__version__ = '1.0.0'\n")
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(tmp_path))
    said = refusal(lambda: verify_packages(spark, PACKAGES))
    assert "No module named 'pandas'; " in said
    # Each Spark names its own version.
    assert re.search(r"PyArrow >= [\d.]+ must be installed; however, your version is 1.0.0.", said)
    assert said.endswith(BRING)


def test_a_driver_without_a_package_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not found(PACKAGES).problems
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pyarrow" in found(PACKAGES).problems
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))  # of another build
    assert "pyarrow" in found(PACKAGES).problems


def test_python_workers_find_the_modules_that_are_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = [f"{sys.prefix}/lib/site-packages", f"{sys.base_prefix}/lib/python"]
    monkeypatch.setattr(sys, "path", ["", "/job/src", *installed, "/job"])
    assert local_environment.folders_of_sources() == ["/job/src", "/job"]
