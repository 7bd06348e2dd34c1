"""Results as tables on a terminal: medians with quartiles, and every round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from rich.table import Table

from bench import arrivals, state
from bench.cases import CASES, CURVES, EIGHT, JOB, STARTS, WAYS, Case
from bench.figures import PARTS, Spread, Way, busy, goals, own, rates, relative_to, ways
from bench.request_kinds import MASTER, TABLETS
from bench.started import PARTS as OF_A_START
from bench.starts import FIRST, KINDS, totals


def offered() -> Iterator[Table]:
    """Yield the names that can be measured; those of `make bench` with their reason."""
    table = Table("name", "what", "in `make bench`", title="python -m bench NAME")
    for name, case in CASES.items():
        table.add_row(name, case.title.replace("`", ""), EIGHT.get(name, ""))
    for name, (guarantee, kind) in STARTS.items():
        what = f"{guarantee} {kind}: {', '.join(KINDS.values())}"
        table.add_row(name, what, EIGHT.get(name, ""))
    for name, what in arrivals.TITLES.items():
        table.add_row(name, what, EIGHT.get(name, ""))
    for name, (what, cases) in CURVES.items():
        table.add_row(name, f"{what}: {', '.join(case.name.split('-')[-1] for case in cases)}", "")
    yield table


def of_case(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables of a case."""
    measured = ways(found)
    base = next(iter(measured.values()))
    yield _rates(found, measured, base)
    yield _processor(measured, base)
    yield _requests(measured)
    yield _rounds(found, measured)


def _title(found: Mapping[str, Any]) -> str:
    rows, rounds = found["batch_rows"], len(found["rounds"])
    return f"{found['name']}: batches of {rows:,} rows, {rounds} rounds"


def _rates(found: Mapping[str, Any], measured: Mapping[str, Way], base: Way) -> Table:
    lines = [busy(found).text, *(goal.text for goal in goals(found))]
    table = Table(
        "way", "rows per second (quartiles)", f"compared with {base.name}", "batch p50, s",
        "p95, s", "requests per idle second", "behind", title=_title(found),
        caption="\n".join(lines),
    )  # fmt: skip
    for name, way in measured.items():
        idle = "" if way.idle is None else f"{sum(way.idle.values()):.1f}"
        behind = "" if way.behind is None else str(way.behind)
        cells = Spread.of(way.rates).text("{:.0f}"), relative_to(base, way, rates).text()
        table.add_row(name, *cells, f"{way.p50:.2f}", f"{way.p95:.2f}", idle, behind)
    return table


def _processor(measured: Mapping[str, Way], base: Way) -> Table:
    names = [*PARTS.values(), "all but the minicluster", f"compared with {base.name}"]
    table = Table("way", *names, title="Processor seconds per million rows")
    for name, way in measured.items():
        parts = [f"{median(way.processor[part]):.2f}" for part in PARTS]
        table.add_row(name, *parts, Spread.of(way.own).text(), relative_to(base, way, own).text())
    return table


def _requests(measured: Mapping[str, Way]) -> Table:
    names = [name for name, way in measured.items() if way.asked()]
    table = Table("request", *names, title="Requests per batch")
    for kind in (MASTER, TABLETS):
        for method in sorted({m for name in names for m in measured[name].requests[kind]}):
            counts = (measured[name].requests[kind].get(method, 0.0) for name in names)
            table.add_row(f"{kind} {method}", *(f"{count:.1f}" for count in counts))
        table.add_row(f"{kind}, all", *(f"{measured[name].asked(kind):.1f}" for name in names))
    return table


def _rounds(found: Mapping[str, Any], measured: Mapping[str, Way]) -> Table:
    count = len(found["rounds"])
    table = Table("way", "", *map(str, range(1, count + 1)), title="Every round")
    for name, way in measured.items():
        table.add_row(name, "rows/s", *(f"{rate:.0f}" for rate in way.rates))
        table.add_row(name, "processor s per million", *(f"{seconds:.2f}" for seconds in way.own))
    return table


def of_starts(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the parts of each kind of start, medians over the rounds."""
    first = median(totals(found, FIRST))
    table = Table("part", *KINDS.values(), title="Start to first commit, seconds, medians")
    for part, text in OF_A_START.items():
        table.add_row(text, *(f"{_median(found, kind, part):.2f}" for kind in KINDS))
    alls = [Spread.of(totals(found, kind)) for kind in KINDS]
    table.add_row("in all (quartiles)", *(spread.text() for spread in alls))
    table.add_row(
        "compared with the first start", *(f"{spread.middle / first:.2f}" for spread in alls)
    )
    yield table
    rounds = Table("start", *map(str, range(1, len(totals(found, FIRST)) + 1)), title="Every round")
    for kind, text in KINDS.items():
        rounds.add_row(text, *(f"{seconds:.1f}" for seconds in totals(found, kind)))
    yield rounds


def _median(found: Mapping[str, Any], kind: str, part: str) -> float:
    return float(median(parts[part] for parts in found["starts"][kind]))


def of_arrivals(name: str, found: Mapping[str, Any]) -> Table:
    """Return what a job has done while rows arrived."""
    head, *rows = arrivals.lines(name, found)
    table = Table(*head, title=arrivals.TITLES[name])
    for row in rows:
        table.add_row(*row)
    return table


def of_curve(name: str, found: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Yield how figures grow, for each way a line at each place that was measured."""
    what, every = CURVES[name]
    measured = {one["name"] for one in found}
    cases = [case for case in every if case.name in measured]
    table = Table(
        what, "way", "rows per second", "batch p50, s", "p95, s", "processor s per million",
        "requests per batch", title=name,
    )  # fmt: skip
    for case, one in zip(cases, found, strict=True):
        for way in ways(one).values():
            table.add_row(
                case.point, WAYS[way.name], Spread.of(way.rates).text("{:.0f}"),
                f"{way.p50:.2f}", f"{way.p95:.2f}", Spread.of(way.own).text(),
                f"{way.asked():.0f}",
            )  # fmt: skip
    yield table
    if any(case.keys for case in cases):
        yield _states(cases, found)


def _states(cases: Sequence[Case], found: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("state", *state.COLUMNS.values(), title="What the state takes")
    for case, one in zip(cases, found, strict=True):
        table.add_row(case.point, *state.cells(one, JOB))
    return table
