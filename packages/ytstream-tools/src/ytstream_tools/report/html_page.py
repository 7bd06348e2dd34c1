"""`page`: one HTML file about some hours of a job, from the ledger.

While batches leave rows behind, it asks the queues when the oldest ones were written.

It needs no other file, no script and no server: a person may attach it to a ticket.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

from ytstream.cluster.client import cluster_name
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import LookupTotals
from ytstream.text_table import counted, duration

from . import oldest_rows, period, series
from .drawing import Scale, bar, element, line, panel, rounded, short
from .period import Period
from .style import STYLE

_BINS, _REASONS = 96, 6
"""Parts of the period, and reasons with a colour of their own."""
_OTHERS = "other reasons"


def write(context: JobContext, hours: float, target: Path, now: datetime) -> str:
    """Write the page and return where it is.

    Raises JobError for a ledger without a batch and for a name that may be of another file.
    """
    if target.suffix != ".html":
        raise JobError(
            f"{target} would be overwritten",
            "name a file that ends with .html",
            code=ErrorCode.FILE,
        )
    if target.is_dir():
        raise JobError(f"{target} is a folder", "name a file in it", code=ErrorCode.FILE)
    found = period.read(context, hours, now)
    unknown = series.unbounded(found.batches, context.settings.max_rows_per_partition)
    written = oldest_rows.written(context.client, unknown)
    made = html(context, found, cluster_name(context.client), now, written)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_text(made, encoding="utf-8")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    return f"{target}: {counted(found.count, 'batch')} until {_time(found.last[-1].ended)}"


def html(
    context: JobContext,
    found: Period,
    cluster: str,
    now: datetime,
    written: Mapping[int, datetime] | None = None,
) -> str:
    """Return the page as text; ``written`` has the times of the oldest rows of some batches."""
    root = element(None, "html", lang="en")
    head, body = element(root, "head"), element(root, "body")
    element(head, "meta", charset="utf-8")
    # The browser blocks a page that would ask another server.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    element(head, "meta", http_equiv="Content-Security-Policy", content=policy)
    element(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    element(head, "title", f"{context.job.name} on {cluster}")
    element(head, "style", STYLE)
    _facts(body, context, found, cluster, now)
    _curves(body, context, found, written or {})
    _table(body, context, found)
    return "<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def _facts(
    body: ET.Element, context: JobContext, found: Period, cluster: str, now: datetime
) -> None:
    head, job, last = found.head, context.job, found.last[-1]
    element(body, "h1", f"{job.name} on {cluster}")
    element(body, "p", f"{job.processing}, {job.guarantee}; {context.settings.ledger} at "
            f"{context.settings.proxy}; written {_time(now)}", class_="dim")  # fmt: skip
    age = duration(max(0.0, (now - last.ended).total_seconds()))
    starts = "" if head.epoch == last.epoch else f"; epoch {head.epoch} has none yet"
    totals = head.totals
    rejected = [f"{rows:,} {reason}" for reason, rows in sorted(totals.rejected.items())]
    others = {series.LATE: totals.late, series.WITHOUT_TIME: totals.without_time}
    left_out = [f"{rows:,} {reason}" for reason, rows in others.items() if rows]
    facts = {
        "last batch": f"{last.name}, ended {age} before{starts}",
        "process": f"epoch {head.epoch}, {head.owner}",
        "batches": f"{head.number:,} since the ledger was made; {totals.seconds:,.0f} s of work",
        "rows read": f"{totals.read:,}",
        "rows written": ", ".join(f"{rows:,} {name}" for name, rows in totals.written.items()),
        "rejected": ", ".join([*rejected, *left_out]),
        **{f"lookups in {name}": _lookups(used) for name, used in sorted(totals.lookups.items())},
    }
    listed = element(body, "dl")
    for name, text in facts.items():
        element(listed, "dt", name)
        element(listed, "dd", text or "none")


def _lookups(used: LookupTotals) -> str:
    cached = f"{used.hits:,} from caches, " if used.hits else ""
    return (
        f"{used.rows:,} rows with {used.keys:,} keys, {used.missing:,} not found, {cached}"
        f"{used.seconds:,.0f} s of waiting"
    )


def _curves(
    body: ET.Element, context: JobContext, found: Period, written: Mapping[int, datetime]
) -> None:
    settings = context.settings
    part = ""
    if found.weight > 1:
        part = (
            f" Of {found.count:,} batches {len(found.batches):,} were read, in pairs: rows are "
            "estimated, and a longest batch is the longest of those."
        )
    note = f"{_time(found.begin)} to {_time(found.end)}, all times in UTC.{part}"
    element(body, "p", note, class_="dim")
    limit, pause = settings.max_rows_per_partition, settings.trigger_seconds
    waited = series.waits(found.batches, limit, pause, written)
    figures, width = series.bins(found.batches, found.begin, found.end, _BINS, found.weight)

    def picture(title: str, top: float, *, words: bool = False) -> tuple[ET.Element, Scale]:
        element(body, "h2", title)
        scale = Scale(found.begin, found.end, rounded(top))
        return panel(body, title, scale, found.marks, words=words), scale

    title = "Lag: seconds that a row can have waited at most"
    svg, scale = picture(title, max((seconds for _, seconds in waited), default=0), words=True)
    line(svg, scale, waited)
    if not waited:
        element(
            body, "p", "Not known: no batch of this period has read all rows that waited, and the "
            "rows of the queues have no `$timestamp`, or are trimmed.", class_="dim",
        )  # fmt: skip
    rates = [one.read / width for one in figures]
    svg, scale = picture("Rate: rows read per second", max(rates))
    for one, rate in zip(figures, rates, strict=True):
        if one.read:
            text = f"{_time(one.begin)}: {short(rate)} rows/s, {short(one.read)} rows"
            bar(svg, scale, (one.begin, width), (0, rate), "bar", text)
    longest = max((max(one.seconds) for one in figures if one.seconds), default=0.0)
    svg, scale = picture(
        "Batch seconds: the longest of each bar, and in full colour the mean", longest
    )
    for one in figures:
        if one.seconds:
            mean, most = sum(one.seconds) / len(one.seconds), max(one.seconds)
            text = f"{_time(one.begin)}: at most {most:.1f} s, in the mean {mean:.1f} s"
            bar(svg, scale, (one.begin, width), (0, most), "soft", text)
            bar(svg, scale, (one.begin, width), (0, mean), "bar", text)
    _rejected(body, picture, figures, width)


def _rejected(
    body: ET.Element, picture: Callable[[str, float], tuple[ET.Element, Scale]],
    figures: Sequence[series.TimeBin], width: float,
) -> None:  # fmt: skip
    """Draw the rows of each reason on those of the reasons before it, and name the colours."""
    known = series.reasons(figures, _REASONS)
    if not known:
        element(body, "h2", "Rejected rows: none in this period")
        return
    parts = [series.grouped(one, known, _OTHERS) for one in figures]
    svg, scale = picture("Rejected rows by reason", max(sum(part.values()) for part in parts))
    legend = element(body, "p")
    low = [0.0 for _ in figures]
    for number, reason in enumerate([*known, _OTHERS]):
        rows = [part.get(reason, 0.0) for part in parts]
        if any(rows):
            element(legend, "span", "\u25a0 ", class_=f"c{number}")
            element(legend, "span", f"{reason}: {sum(rows):,.0f}   ")
        for place, count in enumerate(rows):
            if count:
                one, ends = figures[place], (low[place], low[place] + count)
                text = f"{_time(one.begin)}: {count:,.0f} {reason}"
                bar(svg, scale, (one.begin, width), ends, f"c{number}", text)
                low[place] += count


def _table(body: ET.Element, context: JobContext, found: Period) -> None:
    outputs = list(context.job.outputs)
    late = ["late"] if context.job.kind.is_stateful else []
    element(body, "h2", f"The last {counted(len(found.last), 'batch')}")
    listed = element(element(body, "div", class_="scroll"), "table")
    header = element(element(listed, "thead"), "tr")
    for name in ("batch", "ended (UTC)", "seconds", "rows read", *outputs, *late):
        element(header, "th", name)
    element(header, "th", "reasons", class_="text")
    rows = element(listed, "tbody")
    for batch in reversed(found.last):
        row = element(rows, "tr")
        cells = (
            batch.name, f"{batch.ended:%Y-%m-%d %H:%M:%S}", batch.seconds, f"{batch.read:,}",
            *(f"{batch.written.get(name, 0):,}" for name in outputs),
            *(f"{batch.late:,}" for _ in late),
        )  # fmt: skip
        for cell in cells:
            element(row, "td", cell)
        said = ", ".join(f"{count:,} {reason}" for reason, count in batch.rejected.items() if count)
        element(row, "td", said, class_="text")


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
