"""docs/performance.md and its plots, made from what is stored: `python -m bench page`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from statistics import median

from bench import arrivals, page_prose, page_tables, plots, stored
from bench.cases import CASES, CURVES, EIGHT, JOB, LISTING, NOOP, STARTS, TITLES, WAYS
from bench.figures import OWN, PARTS, rates, ways
from bench.page_tables import Stored
from bench.plots import Line, Series
from bench.started import PARTS as OF_A_START
from bench.starts import KINDS
from tests.support.project import ROOT

DOCS = ROOT / "docs"
NAME, PLOTS = "performance.md", "performance"
_COLOURS = {way: number for number, way in enumerate(WAYS)}


def write(folder: Path, beside: Path | None = None) -> str:
    """Write page and plots, into docs/ or into the folder ``beside``; return where the page is."""
    target = beside or DOCS
    text, pictures = made(folder)
    (target / PLOTS).mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        (target / PLOTS / name).write_text(picture, encoding="utf-8")
    (target / NAME).write_text(text, encoding="utf-8")
    return str(target / NAME)


def made(folder: Path) -> tuple[str, Mapping[str, str]]:
    """Return the page, and its plots by file name, from the results in ``folder``."""
    names = [*CASES, *(case.name for _, cases in CURVES.values() for case in cases)]
    names += [*STARTS, *arrivals.TITLES]
    found = {name: one for name in names if (one := stored.read(folder, name)) is not None}
    pictures = dict(_pictures(found))
    return "\n".join(_page(found, pictures)).rstrip() + "\n", pictures


def _page(found: Stored, pictures: Mapping[str, str]) -> Iterator[str]:
    cases = {name: found[name] for name in CASES if name in found}
    eight = {name: cases[name] for name in EIGHT if name in cases}
    others = {name: one for name, one in cases.items() if name not in EIGHT}
    starts = found.get("starts")
    yield from _head(found)
    yield from _section("What `make bench` measures")
    yield from page_tables.eight()
    yield from _missing(found)
    if cases:
        yield from page_tables.overview(eight)
        yield page_prose.OVERVIEW
    yield from _picture("rates.svg", "Rows per second, a dot for each round", pictures)
    if cases:
        yield from _section("Goals")
        yield from page_tables.reached(cases, starts)
        yield page_prose.SHORT
    if others:
        yield from _section("Other cases")
        yield from page_tables.overview(others)
    yield from _section("CPU time")
    yield "CPU seconds per million rows, from `/proc`. A busy machine changes them little."
    yield ""
    if cases:
        yield from page_tables.processor(cases)
    yield from _picture("processor.svg", "CPU seconds per million rows, by part", pictures)
    yield from _section("Requests")
    yield "Requests per batch, and per second without rows."
    yield ""
    if cases:
        yield from page_tables.asked(cases)
    if "transactional-map" in cases:
        yield "One batch of `transactional-map`, four tablets:"
        yield ""
        yield from page_tables.requests(cases["transactional-map"])
    if looked_up := {name: one for name, one in cases.items() if one["case"].get("reference")}:
        yield from _section("Lookups by key")
        yield page_prose.LOOKUPS
        yield from page_tables.looked_up(looked_up)
    if any(name in found for name in arrivals.TITLES):
        yield from _section("Backlog and latency")
        yield page_prose.ARRIVALS
        for name, what in arrivals.TITLES.items():
            if name in found:
                yield f"{what.capitalize()}:"
                yield ""
                yield from page_tables.table(*arrivals.lines(name, found[name]))
    if starts is not None:
        yield from _section("Starts")
        yield page_prose.STARTS
        for name in STARTS:
            if name in found:
                about = found[name]["case"]
                yield f"`{about['guarantee']}` `{about['processing']}`, seconds, medians:"
                yield ""
                yield from page_tables.starts(found[name])
        yield from _picture("starts.svg", "Start to first commit, by part", pictures)
    if any(case.name in found for _, listed in CURVES.values() for case in listed):
        yield from _section("How cost grows")
        for name, (what, listed) in CURVES.items():
            if any(case.name in found for case in listed):
                yield f"By {what}: {page_prose.CHOSEN[name]}"
                yield ""
                yield from page_tables.curve(name, found)
                yield from _picture(f"{name}.svg", f"Rows per second by {what}", pictures)
    yield from _section("SPYT's published loads")
    yield page_prose.PUBLISHED
    yield from page_tables.published(cases)
    yield from _section("The cost of exactly once elsewhere")
    yield "Each was measured on other machines, so you cannot compare the lines with each other."
    yield ""
    yield from page_tables.prices(cases)
    yield from _section("Load of the machine")
    yield from page_tables.load(cases)
    yield "`bench/results/` has every round."


def _head(found: Stored) -> Iterator[str]:
    yield "# Performance"
    yield ""
    yield "`python -m bench page` writes this page from `bench/results/`. Do not edit it."
    yield ""
    if found:
        machine = max((one["machine"] for one in found.values()), key=lambda one: one["date"])
        yield (
            f"Measured until {machine['date']} on {machine['processors']} processors "
            f"({machine['processor']}), Spark {machine['spark']}, SPYT {machine['spyt']}, Python "
            f"{machine['python']}."
        )
        yield from _with_other_versions(found, machine)
        yield ""
    yield page_prose.LIMITS
    yield ""


def _with_other_versions(found: Stored, newest: Mapping[str, str]) -> Iterator[str]:
    """Say which results are older than the versions that the page names."""
    older: dict[str, list[str]] = {}
    for name, one in found.items():
        versions = f"Spark {one['machine']['spark']}, SPYT {one['machine']['spyt']}"
        if versions != f"Spark {newest['spark']}, SPYT {newest['spyt']}":
            older.setdefault(versions, []).append(f"`{name}`")
    for versions, names in older.items():
        yield f"Measured before, with {versions}: {', '.join(names)}."


def _section(title: str) -> Iterator[str]:
    yield f"## {title}"
    yield ""


def _missing(found: Stored) -> Iterator[str]:
    if missing := [name for name in EIGHT if name not in found]:
        yield f"Not measured yet: {', '.join(f'`{name}`' for name in missing)}."
        yield ""


def _picture(name: str, text: str, pictures: Mapping[str, str]) -> Iterator[str]:
    if name in pictures:
        yield f"![{text}]({PLOTS}/{name})"
        yield ""


def _pictures(found: Stored) -> Iterator[tuple[str, str]]:
    cases = {name: ways(found[name]) for name in CASES if name in found}
    each = [(name, way) for name, measured in cases.items() for way in measured.values()]
    if each:
        lines = [
            Line(f"{name}, {way.title}", [(rate, _COLOURS[way.name]) for rate in rates(way)])
            for name, way in each
            if way.name != NOOP
        ]
        titles = [TITLES.get(way, way) for way in WAYS]
        yield "rates.svg", plots.dots("Rows per second, every round", "rows/s", lines, titles)
        parts = [
            Line(
                f"{name}, {way.title}",
                [(median(way.processor[part]), number) for number, part in enumerate(OWN)],
            )
            for name, way in each
        ]
        legend = [PARTS[part] for part in OWN]
        title = "CPU seconds per million rows, medians"
        yield "processor.svg", plots.bars(title, "s", parts, legend)
    if (starts := found.get("starts")) is not None:
        lines = [
            Line(
                text,
                [
                    (max(0.0, median(one[part] for one in starts["starts"][kind])), number)
                    for number, part in enumerate(OF_A_START)
                ],
            )
            for kind, text in KINDS.items()
        ]
        title = "Start to first commit, seconds, medians"
        yield "starts.svg", plots.bars(title, "s", lines, [*OF_A_START])
    for name, (what, listed) in CURVES.items():
        series = []
        kinds = [*dict.fromkeys(case.processing for case in listed)]
        for kind, way in product(kinds, (LISTING, JOB)):
            points = [
                (float(case.name.split("-")[-1]), median(ways(found[case.name])[way].rates))
                for case in listed
                if case.processing == kind
                and case.name in found
                and way in found[case.name]["ways"]
            ]
            title = TITLES.get(way, way)
            said = f"{kind}, {title}" if len(kinds) > 1 else title
            series += [Series(said, _COLOURS[way] + kinds.index(kind), points)] if points else []
        if series:
            yield f"{name}.svg", plots.growth(f"Rows per second by {what}", what, "rows/s", series)
