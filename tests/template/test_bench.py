"""The benchmarks: their figures, tables, files and page, from made-up runs; one real run."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console
from yt.wrapper import YtClient

from bench import __main__ as command
from bench import (
    arrivals,
    figures,
    filled,
    jobs,
    large_reference,
    lookups,
    measure,
    page,
    started,
    starts,
    state,
    stored,
)
from bench.cases import (
    CASES,
    CURVES,
    EIGHT,
    FULL,
    JOB,
    LISTING,
    LOOKUPS,
    NOOP,
    PLAIN,
    STARTS,
    TINY,
    Case,
    Size,
)
from bench.driver import batches
from bench.processor import Readings, Stat, below, machine
from bench.request_kinds import kinds
from minicluster import testing
from minicluster.client import Entry
from minicluster.core import ids
from minicluster.rows import wire
from tests.support.project import ROOT
from tests.support.sparks import OTHERS
from ytstream import Column
from ytstream.cluster.built_reference import MARK
from ytstream.declaration.validation import verify_configuration
from ytstream.schema.columns import resolved

_CURVES = [case for _, cases in CURVES.values() for case in cases]


def made_up(case: Case, speed: float = 1.0) -> dict[str, Any]:
    """Return what measured() might give: each way, two rounds; the job is ``speed`` as fast."""
    rounds = []
    for number in (1, 2):
        ways = {}
        for way in case.ways:
            seconds = number / (speed if way == JOB else 1.0)
            ways[way] = {
                "rows": 4_000,
                "written": 6_000,
                "keys": 10,
                "seconds": [seconds, 3 * seconds],
                "milliseconds": [],
                "processor": {"jvm": 2 * seconds, "python": 0.1, "workers": 0.0, "minicluster": 1},
                "requests": {"master": {"GetNode": 4}, "tablets": {"ModifyRows": 8}},
                "machine": {"all": 10.0, "idle": 2.0, "stolen": 1.0, "others": 4.0},
                **({"state": dict.fromkeys(state.COLUMNS, 2.0)} if case.keys else {}),
                **({"heap": 100.0 + 30 * number * (way == JOB)} if case.reference else {}),
            }
        rounds.append({"order": [*case.ways], "ways": ways})
    idle = {"seconds": 2.0, "behind": 0, "requests": {"master": {"GetNode": 4}, "tablets": {}}}
    about = {"case": case.written(), "ways": case.ways, "title": case.title, "batch_rows": 2_000}
    return {**about, "idle": {way: idle for way in case.ways if way != NOOP}, "rounds": rounds}


def made_up_starts() -> dict[str, Any]:
    parts = {part: float(number) for number, part in enumerate(started.PARTS)}
    case = {"guarantee": "transactional", "processing": "map"}
    return {"case": case, "starts": {kind: [parts, parts] for kind in starts.KINDS}}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Store a made-up result under each name."""
    for case in (*CASES.values(), *_CURVES):
        stored.write(tmp_path, case.name, TINY, made_up(case))
    for name in STARTS:
        stored.write(tmp_path, name, TINY, made_up_starts())
    return tmp_path


def test_figures_are_relative_to_the_base_of_the_same_round() -> None:
    found = figures.ways(made_up(CASES["transactional-map"], speed=2.0))
    listing, job = found[LISTING], found[JOB]
    assert [*found] == [LISTING, JOB, NOOP]
    assert listing.rates == [1_000, 500]
    assert job.rates == [2_000, 1_000]
    assert figures.relative_to(listing, job, figures.rates) == figures.Spread(2.0, 2.0, 2.0)
    assert listing.own == pytest.approx([525.0, 1_025.0])
    assert job.own == pytest.approx([275.0, 525.0])
    assert (listing.p50, listing.p95) == pytest.approx((2.5, 5.55))
    assert (job.asked("master"), job.asked()) == (2.0, 6.0)
    assert job.idle == {"master": 2.0, "tablets": 0.0}
    assert found[NOOP].idle is None


def test_a_goal_is_met_or_missed_as_it_is_shown() -> None:
    found = made_up(CASES["transactional-map"], speed=1.5)
    goals = {goal.what: goal for goal in figures.goals(found)}
    assert goals["rows per second"].text == "rows per second 1.50 (at least 1.6): MISSED"
    assert not goals["CPU seconds"].is_met
    assert goals["requests per batch"].found == 6.0  # the job's own, 12 in two batches
    assert goals["requests per batch"].is_met
    assert [*figures.goals(made_up(CASES["at-least-once-join"]))] == []
    slow = next(case for case in _CURVES if case.name == "curve-tablets-5ms-64")
    (batch,) = figures.goals(made_up(slow, speed=2.0))
    assert (batch.what, batch.found, batch.is_met) == ("seconds per batch", 0.5, False)


def test_a_lookup_is_judged_by_its_heap_and_the_requests_of_a_task() -> None:
    found = made_up(CASES[LOOKUPS])
    for one in found["rounds"]:
        one["ways"][JOB]["requests"]["tablets"] = {"LookupRows": 8}
    goals = {goal.what: goal for goal in figures.goals(found)}
    assert (goals[figures.HEAP].found, goals[figures.HEAP].is_met) == (45.0, False)
    # In each of four batches 4 requests of two tasks, which have 1,000 rows each.
    assert goals[figures.ASKED].found == pytest.approx(2 / 1.5)
    kept = {goal.what: goal for goal in figures.goals(made_up(CASES[f"{LOOKUPS}-cache"]))}
    assert (kept[figures.HEAP].bound, kept[figures.HEAP].is_met) == (96.0, True)


@pytest.mark.thorough
def test_a_large_reference_is_as_make_reference_leaves_it() -> None:
    with testing.start() as cluster:
        large_reference.make(cluster, jobs.AUCTIONS, 60_001)
        client = YtClient(cluster.http, token="any")
        about = ["tablet_count", "tablet_state", "row_count", MARK]
        found = client.get(f"{jobs.AUCTIONS}/@", attributes=about)
        assert [found[name] for name in about[:3]] == [4, "frozen", 60_001]
        assert MARK in found
        keys = [{"auction": key} for key in (0, 15_000, 60_000, 60_001)]
        assert [*client.lookup_rows(jobs.AUCTIONS, keys)] == [
            lookups.auction(key["auction"]) for key in keys[:3]
        ]
        for way in (PLAIN, JOB):
            context = jobs.context_of(CASES[LOOKUPS], way, TINY, cluster.http, f"//home/{way}-1")
            verify_configuration(context.job, context.settings, context.guarantee)
            assert (context.settings.reference is None) == bool(context.settings.references)


def test_one_name_stands_for_all_lookups(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def made(case: Case, *_: Any) -> dict[str, Any]:
        measured.append(case.name)
        return made_up(case)

    monkeypatch.setattr(measure, "measured", made)
    assert command.main(["--tiny", "--again", "--into", str(results), LOOKUPS]) == 0
    assert measured == [LOOKUPS, f"{LOOKUPS}-million", f"{LOOKUPS}-cache"]


def test_processor_seconds_are_read_between_two_moments() -> None:
    readings = Readings()
    for moment, seconds in ((10.0, 1.0), (12.0, 2.0), (14.0, 6.0)):
        readings.add(moment, {"jvm": seconds})
    assert readings.between(11.0, 13.0) == {"jvm": 2.5}
    assert readings.between(0.0, 99.0) == {"jvm": 5.0}


def test_the_processes_of_a_driver_are_those_below_it() -> None:
    stats = [Stat(pid, parent, "", 0.0, 0.0) for pid, parent in ((2, 1), (3, 2), (4, 3), (5, 1))]
    assert [stat.pid for stat in below(2, stats)] == [3, 4]
    assert machine()["all"] > 0


def test_requests_are_counted_by_who_answers_them() -> None:
    tablets, master = ids.new(ids.TABLET_TRANSACTION), ids.new(ids.MASTER_TRANSACTION)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("GetNode", {}),
        ("StartTransaction", {"type": 1}),
        ("StartTransaction", {"type": 0}),
        ("CommitTransaction", {"transaction": tablets}),
        ("CommitTransaction", {"transaction": master}),
        ("select_rows", {}),
        ("Discover", {}),
    ]
    entries: list[Any] = [SimpleNamespace(method=m, args=a, time=1.0) for m, a in asked]
    late: list[Any] = [SimpleNamespace(method="GetNode", args={}, time=2.0)]
    assert kinds([*entries, *late], 0.0, 2.0) == {
        "master": {"CommitTransaction": 1, "GetNode": 1, "StartTransaction": 1},
        "tablets": {"CommitTransaction": 1, "StartTransaction": 1, "select_rows": 1},
    }


def test_a_row_is_visible_when_its_batch_has_committed_into_the_output() -> None:
    asked: list[tuple[float, float, str, dict[str, Any]]] = [
        (10.1, 0.0, "ModifyRows", {"path": "//o", "transaction": "a"}),
        (10.1, 0.0, "ModifyRows", {"path": "//o", "transaction": "b"}),
        (10.2, 0.05, "CommitTransaction", {"transaction": "b"}),
        (10.2, 0.1, "CommitTransaction", {"transaction": "a"}),
        (10.4, 0.0, "ModifyRows", {"path": "//ledger", "transaction": "c"}),
        (10.5, 0.3, "CommitTransaction", {"transaction": "c"}),
        (21.0, 0.0, "ModifyRows", {"path": "//o", "transaction": "d"}),
        (22.0, 0.5, "CommitTransaction", {"transaction": "d"}),
    ]
    journal = [
        Entry(number, begin, "rpc", "p", method, given, None, None, None, seconds=seconds)
        for number, (begin, seconds, method, given) in enumerate(asked)
    ]
    batches = [
        {"started": begin * 1_000_000, "queues": [{"path": "//q", "rows": {"0": rows}}]}
        for begin, rows in ((10, [0, 2]), (20, [2, 3]), (30, [3, 4]))
    ]
    assert arrivals.visible(batches, journal, "//o") == {
        (0, 0): pytest.approx(10.3), (0, 1): pytest.approx(10.3), (0, 2): pytest.approx(22.5),
    }  # fmt: skip


def test_batches_are_those_with_rows() -> None:
    facts = {
        "batchId": 0,
        "numInputRows": 5,
        "timestamp": "2026-11-24T10:00:00.500Z",
        "durationMs": {"triggerExecution": 1_500},
        "stateOperators": [{"numRowsTotal": 7, "memoryUsedBytes": 9}],
    }
    found = batches([facts, {**facts, "numInputRows": 0}, {**facts, "batchId": 9}], 3)
    assert [(batch["rows"], batch["seconds"], batch["keys"]) for batch in found] == [(5, 1.5, 7)]
    assert found[0]["begin"] % 60 == 0.5


def test_what_a_state_takes_is_that_of_the_measured_batches() -> None:
    store = {"memory": 3 << 20, "files": 5 << 20, "commit": 400, "removal": 100}
    many = [
        {"id": number, "begin": 10.0 * number, "seconds": 2.0, "keys": 7, "state": store}
        for number in range(3)
    ]
    after = {"heap": 1 << 20, "rss": 2 << 20, "bytes": {"1": 999, "2": 16, "3": 32}}
    asked: list[Any] = [
        SimpleNamespace(time=time_, args={"path": path})
        for time_, path in ((9.0, "//x/state/0/1"), (10.0, "//x/state/0/1"), (11.0, "//x/offsets"))
    ]
    found = state.figures({"first": 1, "batches": many, "state": after}, asked)
    assert found == {
        "heap": 1.0, "rss": 2.0, "keys": 7, "memory": 3.0, "files": 5.0,
        "bytes": 48 / 16, "requests": 1 / 16, "commit": 0.4, "removal": 0.1,
    }  # fmt: skip


def test_the_rows_that_fill_a_state_have_each_key_once() -> None:
    case = next(case for case in _CURVES if case.name == "curve-state-aggregate-1000000")
    first = case.batch_rows(TINY) * case.known_batches(TINY)
    rows = [row for piece in jobs.rows_of(case, TINY, first + 100) for row in piece]
    keys = [row["auction"] + more for row in rows[:first] for more in range(row["bidder"])]
    assert {*keys} == {*range(case.state_keys(TINY))}
    assert all(row["bidder"] == 1 for row in rows[first:])
    assert {row["auction"] for row in rows[first:]} < {*keys}


def test_a_table_is_filled_with_a_row_of_each_type() -> None:
    columns = [
        Column("key", "int64", key=True), Column("text", "utf8"), Column("number", "int64"),
        Column("time", "timestamp"),
    ]  # fmt: skip
    row = filled.encoder([*resolved("OUTPUTS", columns)])(17)
    assert [value for _, _, value in wire.values(row)] == [17, b"17", 1, filled.OLD]


def test_the_parts_of_a_start_add_up() -> None:
    named = [
        ("imports", 1, 3), ("lock", 3, 5), ("jvm", 6, 9), ("session", 6, 12), ("recovery", 12, 13),
        ("recovery", 13, 14), ("plan", 14, 15), ("plan", 15, 17), ("batch", 18, 20),
        ("batch", 30, 31),
    ]  # fmt: skip
    parts = [starts.Part(name, float(begin), float(end)) for name, begin, end in named]
    found = starts.split(parts, 0.0, 21.0)
    assert found == {
        "python": 3.0, "lock": 2.0, "look": 1.0, "jvm": 3.0, "session": 3.0, "recovery": 2.0,
        "plan": 3.0, "batch": 3.0, "commit": 1.0, "rest": 0.0,
    }  # fmt: skip
    assert {*found} == {*started.PARTS}


def test_the_eight_are_offered_and_every_way_has_a_base() -> None:
    assert len(EIGHT) == 8
    assert {*EIGHT} <= {*CASES, *STARTS}
    for case in (*CASES.values(), *_CURVES):
        assert JOB in case.ways
        assert case.batch_rows(FULL) % case.tablets == 0


def test_what_is_stored_is_shown_and_not_measured_again(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[str] = []

    def made(case: Case, *_: Any) -> dict[str, Any]:
        measured.append(case.name)
        return made_up(case)

    monkeypatch.setattr(measure, "measured", made)
    words = ["--tiny", "--into", str(results), "transactional-map"]
    assert command.main(words) == 0
    assert measured == []
    assert "1000" in capsys.readouterr().out
    stored.path_of(results, "transactional-map").unlink()
    assert command.main(words) == 0
    assert command.main([*words, "--again"]) == 0
    assert measured == ["transactional-map"] * 2
    assert command.main(["no-such"]) == 2


def test_every_table_has_its_cells(results: Path) -> None:
    console = Console(width=200, record=True)
    bench = command.Bench(results, TINY, again=False)
    for name in (*CASES, *STARTS, *CURVES, "list"):
        for table in bench.tables(name):
            console.print(table)
    text = console.export_text()
    assert "MISSED" in text
    assert "meanwhile other work took 40% of the processors, the hypervisor 10%" in text


def test_the_page_has_every_result(results: Path) -> None:
    text, pictures = page.made(results)
    for widths in _tables(text):
        assert len(widths) == 1
    for name in (*CASES, *STARTS):
        assert f"`{name}`" in text or name in STARTS
    for case in _CURVES:
        assert f"| {case.point} | job |" in text
    assert {*re.findall(r"\(performance/([\w.-]+)\)", text)} == {*pictures}
    for picture in pictures.values():
        style = ET.fromstring(picture)[0]
        assert "prefers-color-scheme: dark" in (style.text or "")
    assert "These are not the figures of a real cluster" in text
    assert "Not measured yet" not in text


def _tables(text: str) -> Iterator[set[int]]:
    """Yield how many cells the lines of each table have."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        yield {line.count("|") for line in block.splitlines()}


def test_the_page_is_written_beside_what_it_is_made_from(results: Path) -> None:
    assert command.main(["page", "--into", str(results)]) == 0
    assert (results / page.NAME).is_file()
    assert (results / page.PLOTS / "rates.svg").is_file()


def test_the_page_in_the_repository_is_made_from_what_is_stored_there() -> None:
    text, pictures = page.made(stored.RESULTS)
    assert (page.DOCS / page.NAME).read_text(encoding="utf-8") == text
    folder = page.DOCS / page.PLOTS
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*")}
    assert found == pictures


@pytest.mark.thorough
def test_the_ways_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round without Spark: drivers that have done nothing."""
    ran: list[str] = []

    class Idle:
        tree = SimpleNamespace(seconds=lambda: {"python": 1.0, "jvm": 2.0, "workers": 0.0})

        def run(self, root: str, idle: float) -> dict[str, Any]:
            ran.append(root)
            now = time.time()
            one = {"rows": 40, "begin": now, "seconds": 0.01, "milliseconds": {}, "keys": 0}
            found: dict[str, Any] = {"first": 1, "batches": [one, one], "written": 80}
            period = {"behind": 0, "begin": now, "end": now + 1}
            return {**found, "idle": period} if idle else found

    monkeypatch.setattr(measure, "started", lambda *_: nullcontext(Idle()))
    size = Size(rows=40, batches=2, rounds=2, idle_seconds=0.1)
    found = measure.measured(CASES["transactional-map-2"], size, lambda _: None)
    ways = (LISTING, JOB, NOOP)
    orders = [ways, (JOB, NOOP, LISTING), (NOOP, LISTING, JOB)]
    assert ran == [f"//home/{way}-{number}" for number, order in enumerate(orders) for way in order]
    assert [tuple(one["order"]) for one in found["rounds"]] == orders[1:]
    assert found["rows"] == 80
    assert {*found["idle"]} == {LISTING, JOB}
    run = found["rounds"][0]["ways"][JOB]
    assert (run["rows"], run["seconds"], run["written"]) == (40, [0.01], 80)
    assert {*run["processor"]} == {*figures.PARTS}


@pytest.mark.parametrize("spark", OTHERS)
def test_a_driver_needs_no_packages_but_those_of_its_spark(spark: str) -> None:
    subprocess.run([measure.interpreter(spark), "-c", "import bench.driver"], cwd=ROOT, check=True)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_a_tiny_run_measures_every_way(tmp_path: Path) -> None:
    assert command.main(["--tiny", "--into", str(tmp_path), "transactional-map"]) == 0
    found = stored.read(tmp_path, "transactional-map")
    assert found is not None
    measured = figures.ways(found)
    assert [*measured] == [LISTING, JOB, NOOP]
    for way in measured.values():
        assert min(way.rates) > 0
        assert min(way.processor["jvm"]) > 0
    listing, job = measured[LISTING], measured[JOB]
    assert 0 < job.asked() < listing.asked()
    assert job.asked("master") < listing.asked("master")
    assert (job.behind, listing.behind) == (0, 0)
    written = {run["written"] for one in found["rounds"] for run in one["ways"].values()}
    assert written == {None, found["rows"]}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
@pytest.mark.parametrize("name", [LOOKUPS, f"{LOOKUPS}-cache"])
def test_a_tiny_run_looks_up_keys(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    found = measure.measured(case, TINY, lambda _: None)
    runs = [one["ways"] for one in found["rounds"]]
    for ways in runs:
        assert [*ways] == [PLAIN, JOB] or [*ways] == [JOB, PLAIN]
        assert ways[PLAIN]["written"] == ways[JOB]["written"] == found["rows"]
        assert min(ways[PLAIN]["heap"], ways[JOB]["heap"]) > 1
        assert "LookupRows" not in ways[PLAIN]["requests"]["tablets"]
        assert 0 < ways[JOB]["requests"]["tablets"]["LookupRows"] <= case.tablets
