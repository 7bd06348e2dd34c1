"""The tables of docs/performance.md, as Markdown, out of what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from bench import state
from bench.cases import CURVES, EIGHT, JOB, NOOP
from bench.figures import (
    PARTS,
    Spread,
    Way,
    busy,
    goals,
    lookups,
    more_heap,
    own,
    rates,
    relative_to,
    ways,
)
from bench.request_kinds import MASTER, TABLETS
from bench.sources import LOADS, PRICES
from bench.started import PARTS as OF_A_START
from bench.starts import FIRST, KINDS, totals
from bench.stored import Found

Stored = Mapping[str, Found]
"""Name -> what is stored under it."""


def table(*rows: Sequence[str]) -> Iterator[str]:
    """Yield a table; the first row is its head."""
    head, *others = rows
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in others:
        yield f"| {' | '.join(row)} |"
    yield ""


def overview(cases: Stored) -> Iterator[str]:
    """Yield what each case costs compared with its base, a line each."""
    rows: list[Sequence[str]] = [
        ("case", "compared with", "rows per second", "ratio", "CPU seconds, ratio",
         "requests per batch", "batch p50, p95 (s)"),
    ]  # fmt: skip
    for name, found in cases.items():
        measured = ways(found)
        base, job = next(iter(measured.values())), measured[JOB]
        is_base = base is job
        rows.append((
            f"[{found['title']}](#load-of-the-machine) `{name}`",
            "" if is_base else base.title,
            Spread.of(job.rates).text("{:,.0f}"),
            "" if is_base else relative_to(base, job, rates).text(),
            "" if is_base else relative_to(base, job, own).text(),
            f"{job.asked():.0f}" + ("" if is_base else f" of {base.asked():.0f}"),
            f"{job.p50:.2f}, {job.p95:.2f}",
        ))  # fmt: skip
    yield from table(*rows)


def reached(cases: Stored, starts: Found | None) -> Iterator[str]:
    """Yield which goals were reached, and which were missed."""
    rows: list[Sequence[str]] = [("case", "goal", "found", "")]
    for name, found in cases.items():
        for goal in goals(found):
            bound = f"{goal.what}, at {'least' if goal.is_least else 'most'} {goal.bound}"
            rows.append((f"`{name}`", bound, f"{goal.found:.2f}", _met(goal.is_met)))
    if starts is not None:
        ratio = median(totals(starts, "killed")) / median(totals(starts, FIRST))
        bound = "kill -9 to next commit, at most 1.3 of a first start"
        rows.append(("`starts`", bound, f"{ratio:.2f}", _met(round(ratio, 2) <= 1.3)))
    yield from table(*rows)


def _met(is_met: bool) -> str:
    return "reached" if is_met else "**missed**"


def processor(cases: Stored) -> Iterator[str]:
    """Yield the processor seconds of each part."""
    rows: list[Sequence[str]] = [("case", "variant", *PARTS.values(), "all except the minicluster")]
    for name, found in cases.items():
        for way in ways(found).values():
            parts = (f"{median(way.processor[part]):.2f}" for part in PARTS)
            rows.append((f"`{name}`", way.title, *parts, Spread.of(way.own).text()))
    yield from table(*rows)


def requests(found: Found) -> Iterator[str]:
    """Yield the requests of a batch by kind and method."""
    measured = [way for way in ways(found).values() if way.asked()]
    rows: list[Sequence[str]] = [("request", "answered by", *(way.title for way in measured))]
    for kind, who in ((MASTER, "Cypress master"), (TABLETS, "tablets")):
        for method in sorted({m for way in measured for m in way.requests[kind]}):
            counts = (f"{way.requests[kind].get(method, 0.0):.1f}" for way in measured)
            rows.append((f"`{method}`", who, *counts))
    rows.append(("all", "", *(f"{way.asked():.1f}" for way in measured)))
    yield from table(*rows)


def asked(cases: Stored) -> Iterator[str]:
    """Yield the requests of each case: of a batch, and of a second without rows."""
    rows: list[Sequence[str]] = [
        ("case", "variant", "master, per batch", "tablets, per batch", "master, per idle second",
         "tablets, per idle second", "rows that the consumer is behind"),
    ]  # fmt: skip
    for name, found in cases.items():
        for way in ways(found).values():
            if way.name == NOOP:
                continue
            batch = (f"{way.asked(kind):.1f}" for kind in (MASTER, TABLETS))
            rows.append((f"`{name}`", way.title, *batch, *_idle(way)))
    yield from table(*rows)


def looked_up(cases: Stored) -> Iterator[str]:
    """Yield what looking up keys takes: the heap, and the requests of a task."""
    rows: list[Sequence[str]] = [
        ("case", "variant", "heap after a collection (MiB)", "more than the base (MiB)",
         "`LookupRows` per task", "1 + rows / 2,000"),
    ]  # fmt: skip
    for name, found in cases.items():
        measured = ways(found)
        base = next(iter(measured.values()))
        for way in measured.values():
            heap, asked = Spread.of(way.heap).text("{:.1f}"), lookups(found, way)
            more = "" if way is base else more_heap(base, way).text("{:.1f}")
            requests = "" if way is base else f"{asked.found:.1f}"
            rows.append((f"`{name}`", way.title, heap, more, requests, f"{asked.most:.1f}"))
    yield from table(*rows)


def _idle(way: Way) -> Iterable[str]:
    if way.idle is None:
        return "", "", ""
    return f"{way.idle[MASTER]:.1f}", f"{way.idle[TABLETS]:.1f}", f"{way.behind}"


def starts(found: Found) -> Iterator[str]:
    """Yield the parts of each kind of start."""
    rows: list[Sequence[str]] = [("part", *KINDS.values())]
    for part, text in OF_A_START.items():
        seconds = (median(one[part] for one in found["starts"][kind]) for kind in KINDS)
        rows.append((text, *(f"{value:.2f}" for value in seconds)))
    alls = [Spread.of(totals(found, kind)) for kind in KINDS]
    rows.append(("in all (quartiles)", *(spread.text("{:.1f}") for spread in alls)))
    ratios = (spread.middle / alls[0].middle for spread in alls)
    rows.append(("compared with the first start", *(f"{ratio:.2f}" for ratio in ratios)))
    yield from table(*rows)


def curve(name: str, stored: Stored) -> Iterator[str]:
    """Yield the figures of a curve, a line for each place and way."""
    what, cases = CURVES[name]
    rows: list[Sequence[str]] = [
        (what, "variant", "rows per second", "CPU seconds per million", "requests per batch",
         "batch p50, p95 (s)"),
    ]  # fmt: skip
    for case in cases:
        for way in ways(stored[case.name]).values() if case.name in stored else ():
            rows.append((
                case.point, way.title,
                Spread.of(way.rates).text("{:,.0f}"), Spread.of(way.own).text(),
                f"{way.asked():.0f}", f"{way.p50:.2f}, {way.p95:.2f}",
            ))  # fmt: skip
    yield from table(*rows)
    if stateful := [case for case in cases if case.keys and case.name in stored]:
        yield "What the state takes:"
        yield ""
        lines = ((case.point, *state.cells(stored[case.name], JOB)) for case in stateful)
        yield from table(("state", *state.COLUMNS.values()), *lines)


def published(cases: Stored) -> Iterator[str]:
    """Yield SPYT's published loads, and the closest case here."""
    rows: list[Sequence[str]] = [
        ("load", "mode", "published, rows per second", "here: SPYT's example", "here: the job")
    ]
    for load in LOADS:
        here = ["", ""]
        if load.case in cases:
            measured = ways(cases[load.case])
            here = [f"{median(measured[way].rates):,.0f}" for way in (load.way, JOB)]
        rows.append((load.load, load.mode, f"{load.rows_per_second:,}", *here))
    yield from table(*rows)


def prices(cases: Stored) -> Iterator[str]:
    """Yield what exactly once costs elsewhere, and here."""
    rows: list[Sequence[str]] = [("who", "what", "source")]
    pairs = (("transactional-map", "at-least-once-map"), ("idempotent-map", "at-least-once-map"))
    for exact, loose in pairs:
        if exact in cases and loose in cases:
            rate, other = (median(ways(cases[name])[JOB].rates) for name in (exact, loose))
            used, less = (median(ways(cases[name])[JOB].own) for name in (exact, loose))
            rows.append((
                f"here, `{exact}` compared with `{loose}`",
                f"{rate:,.0f} rows per second instead of {other:,.0f}, {used:.2f} CPU "
                f"seconds per million rows instead of {less:.2f}",
                "this page",
            ))  # fmt: skip
    yield from table(*rows, *PRICES)


def load(cases: Stored) -> Iterator[str]:
    """Yield how busy the machine was during every case. bench/results has every round."""
    rows: list[Sequence[str]] = [("case", "rows per batch", "the machine")]
    for name, found in cases.items():
        rows.append((f"`{name}`", f"{found['batch_rows']:,}", busy(found).text))
    yield from table(*rows)


def eight() -> Iterator[str]:
    """Yield what `make bench` runs."""
    rows: list[Sequence[str]] = [
        ("name", "why"),
        *((f"`{name}`", why) for name, why in EIGHT.items()),
    ]
    yield from table(*rows)
