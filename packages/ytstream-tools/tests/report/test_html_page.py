"""`page`: what the file has, that it needs nothing else, and how little of a ledger is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from minicluster import testing as minicluster
from tests.support import browser
from tests.support.helpers import ContextOf
from tests.support.status_steps import head_of_batch, invoke, send, write_rows
from ytstream import cli
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.ledger_rows import BatchRow, Head, Move, batch_row, head_row
from ytstream_tools.report import html_page, period, series
from ytstream_tools.report.drawing import WIDTH, Scale, element, panel, rounded, short, times
from ytstream_tools.status.job_status import FinishedBatch

LAST = datetime(2026, 11, 23, 12, tzinfo=UTC)
"""When the last batch of the ledgers below ended."""
_VOID = {"meta", "link", "img", "br", "input"}
BAD = "<script>alert(1)</script> & \"co\" 'co' \x00"
"""Markup in every text that a user gives."""


class Parsed(HTMLParser):
    """A page's elements and texts; raises for an element that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def cells(self) -> list[str]:
        return [text for tag, text in self.texts if tag in ("td", "th")]

    def of(self, tag: str, kind: str) -> list[dict[str, str | None]]:
        return [
            attributes for name, attributes in self.elements
            if name == tag and kind in (attributes.get("class") or "").split()
        ]  # fmt: skip


def _fill(
    context: JobContext, count: int, *, seconds: float = 10.0,
    epoch: Callable[[int], int] = lambda _: 1, rows: Callable[[int], int] = lambda _: 100,
    rejected: dict[str, int] | None = None, **more: Any,
) -> Head:  # fmt: skip
    """Write so many batches of 2.5 s, ``seconds`` apart; the last one ended at LAST."""
    queue, written, row = context.settings.queues[0], [], 0
    for number in range(1, count + 1):
        ended = LAST - timedelta(seconds=seconds * (count - number))
        ranges = {queue: {0: (row, row := row + rows(number))}}
        done = BatchRow(
            ranges, {"output": rows(number)}, ended - timedelta(seconds=2.5), ended,
            rejected=rejected or {},
        )  # fmt: skip
        mine = Head(epoch=epoch(number), batch=number - 1, number=number)
        written.append(batch_row(mine, done))
        if len(written) == 10_000 or number == count:
            write_rows(context, *written)
            written = []
    head = replace(head_of_batch(context, count, epoch(count)), ends={queue: {0: row}}, **more)
    write_rows(context, head_row(head))
    return head


def _page(context: JobContext, hours: float = 24, now: datetime = LAST) -> Parsed:
    found = period.read(context, hours, now)
    return Parsed(html_page.html(context, found, "minicluster", now))


@pytest.fixture
def job(provisioned_of: ContextOf) -> JobContext:
    """Connect a job without rows in its ledger."""
    return provisioned_of("transactional", rejects=True)


# -- what it shows


def test_it_shows_figures_batches_epochs_and_moves(job: JobContext) -> None:
    queue = job.settings.queues[0]
    totals = ledger_rows.Totals(6000, {"output": 5940}, {"no price": 60}, 0, 150.0)
    _fill(job, 60, epoch=lambda n: 1 if n < 30 else 4, rejected={"no price": 1}, totals=totals)
    ended = {"ended": int((LAST - timedelta(seconds=100)).timestamp() * 1_000_000)}
    write_rows(
        job,
        {**ledger_rows.move_row(4, Move("rewind", {queue: {0: (500, 90), 1: (1, 4)}})), **ended},
        {**ledger_rows.end_row(4, "process 1 on host, abc", "failed: out of <memory>"), **ended},
    )
    found = _page(job, now=LAST + timedelta(seconds=90))
    said = " | ".join(text for _, text in found.texts)
    assert "4-59, ended 90 s before" in said
    assert "60 since the ledger was made; 150 s of work" in said
    assert "no price: 60" in said
    assert len(found.of("line", "epoch")) == 4  # in each of four pictures
    titles = [text for tag, text in found.texts if tag == "title"]
    assert sum("epoch 4, 2 of 3 starts had no batch" in title for title in titles) == 4
    assert sum("rewind: 3 rows forward, 410 back" in title for title in titles) == 4
    assert sum("the job ended: out of <memory>" in title for title in titles) == 4
    cells = found.cells()
    assert cells.count("100") == 2 * period.LAST  # rows read, and those of output
    assert cells.count("1 no price") == period.LAST
    assert [cell for cell in cells if re.fullmatch(r"\d-\d+", cell)][:2] == ["4-59", "4-58"]
    assert len(found.of("rect", "bar")) == 2 * len(found.of("rect", "soft")) > 0
    assert len(found.of("rect", "c0")) == len(found.of("rect", "soft"))


def test_what_was_looked_up_is_shown_by_reference(job: JobContext) -> None:
    used = ledger_rows.LookupTotals(rows=20_000, keys=1_800, missing=41, seconds=12.5, hits=700)
    _fill(job, 3, totals=ledger_rows.Totals(lookups={"auctions": used}))
    said = " | ".join(text for _, text in _page(job).texts)
    wanted = "20,000 rows with 1,800 keys, 41 not found, 700 from caches, 12 s of waiting"
    assert f"lookups in auctions | {wanted}" in said


def test_a_job_with_state_shows_late_rows(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", "window")
    now, queue = LAST, context.settings.queues[0]
    done = BatchRow({queue: {0: (0, 9)}}, {"output": 3}, now - timedelta(0, 2), now, late=4)
    mine = replace(head_of_batch(context, 1, 1), ends={queue: {0: 9}})
    write_rows(context, batch_row(replace(mine, batch=0), done), head_row(mine))
    found = _page(context)
    assert "behind the watermark: 4" in " ".join(text for _, text in found.texts)
    assert found.cells()[-3:] == ["9", "3", "4"]


def test_every_text_is_escaped_and_nothing_else_is_asked_for(job: JobContext) -> None:
    named = replace(job, job=replace(job.job, name=BAD), settings=replace(job.settings, proxy=BAD))
    _fill(named, 3, rejected={BAD: 1})
    write_rows(named, ledger_rows.end_row(1, "process", BAD))
    text = html_page.html(named, period.read(named, 24, LAST), BAD, LAST)
    found = Parsed(text)
    seen = BAD.replace("\x00", "\ufffd")
    assert {tag for tag, words in found.texts if seen in words} == {
        "title", "h1", "p", "span", "td"
    }  # fmt: skip
    assert "\x00" not in text
    assert {tag for tag, _ in found.elements} <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "dl", "dt", "dd", "div",
        "svg", "text", "line", "path", "rect", "span", "table", "thead", "tbody", "tr", "th", "td",
    }  # fmt: skip
    names = {name for _, attributes in found.elements for name in attributes}
    assert not names & {"src", "href", "xlink:href", "srcset", "style", "data", "action"}
    assert not [name for name in names if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", text)
    policy = [attributes.get("content") for tag, attributes in found.elements if tag == "meta"]
    assert "default-src 'none'; style-src 'unsafe-inline'" in policy
    assert "prefers-color-scheme: dark" in text


# -- curves


def _done(number: int, began: float, took: float, rows: int, epoch: int = 1) -> FinishedBatch:
    started = LAST + timedelta(seconds=began)
    return FinishedBatch(
        epoch, number - 1, number, started, started + timedelta(seconds=took), rows, {}, {}, 0,
        {"//q": {0: (0, rows)}},
    )  # fmt: skip


def _waits(*batches: FinishedBatch) -> list[tuple[float, float]]:
    found = series.waits(batches, 100, 10)
    return [((time - LAST).total_seconds(), seconds) for time, seconds in found]


def test_a_row_waits_while_batches_are_full_and_while_the_job_is_down() -> None:
    assert _waits(_done(1, 0, 2, 99), _done(2, 10, 2, 100), _done(3, 20, 2, 100)) == [
        (2, 2), (10, 10), (12, 12), (20, 20), (22, 22),
    ]  # fmt: skip
    # Idle for an hour: the job has looked ten seconds before; killed for an hour: it has not.
    idle = [_done(1, 0, 2, 99), _done(2, 3600, 2, 50)]
    assert _waits(*idle) == [(2, 2), (3600, 10), (3602, 12), (3602, 2)]
    killed = [_done(1, 0, 2, 99), _done(2, 3600, 2, 50, epoch=2)]
    assert _waits(*killed) == [(2, 2), (3600, 3600), (3602, 3602), (3602, 2)]
    assert _waits(_done(1, 0, 2, 100), _done(2, 10, 2, 100)) == []


def test_while_batches_leave_rows_the_times_of_their_rows_tell() -> None:
    """Of a backlog that the period began with, until a batch has read all of it."""
    batches = [_done(1, 0, 2, 100), _done(2, 10, 2, 100), _done(3, 20, 2, 99), _done(4, 30, 2, 9)]
    assert [one.number for one in series.unbounded(batches, 100)] == [1, 2, 3]
    written = {number: LAST - timedelta(seconds=600) for number in (1, 3)}
    found = series.waits(batches, 100, 10, written)
    assert [((time - LAST).total_seconds(), seconds) for time, seconds in found] == [
        (0, 600), (2, 602), (20, 620), (22, 622), (22, 2), (30, 10), (32, 12), (32, 2),
    ]  # fmt: skip


def test_a_backlog_that_was_there_before_the_period_is_drawn(
    job: JobContext, tmp_path: Path
) -> None:
    """The queue says when the rows were written; one whose rows are trimmed does not."""
    queue, most = job.settings.queues[0], job.settings.max_rows_per_partition
    send(job, 4)  # one to each tablet
    now = datetime.now(UTC) + timedelta(minutes=10)
    for number in range(1, 6):
        started = now + timedelta(seconds=10 * number)
        ranges = {queue: {0: (most * (number - 1), most * number)}}
        done = BatchRow(ranges, {"output": most}, started, started + timedelta(seconds=9))
        write_rows(job, batch_row(Head(epoch=1, batch=number - 1, number=number), done))
    write_rows(job, head_row(replace(head_of_batch(job, 5, 1), ends={queue: {0: 5 * most}})))
    html_page.write(job, 24, tmp_path / "job.html", now + timedelta(minutes=2))
    page = Parsed((tmp_path / "job.html").read_text(encoding="utf-8"))
    assert len(page.of("path", "line")) == 1
    assert not [text for _, text in page.texts if text.startswith("Not known: ")]
    job.client.trim_rows(queue, 0, 1)
    html_page.write(job, 24, tmp_path / "job.html", now + timedelta(minutes=2))
    page = Parsed((tmp_path / "job.html").read_text(encoding="utf-8"))
    assert [text for _, text in page.texts if text.startswith("Not known: ")]


def test_batches_that_were_not_read_say_nothing() -> None:
    pairs = [_done(1, 0, 2, 99), _done(50, 500, 2, 50), _done(51, 510, 2, 50)]
    assert _waits(*pairs) == [(2, 2), (502, 2), (510, 10), (512, 12), (512, 2)]


def test_rows_of_batches_are_summed_by_parts_of_the_period() -> None:
    batches = [_done(1, 0, 1, 10), _done(2, 1, 1, 20), _done(3, 9, 1, 30)]
    found, width = series.bins(batches, LAST, LAST + timedelta(seconds=10), 5, 2.0)
    assert width == 2
    assert [one.read for one in found] == [20, 40, 0, 0, 60]
    assert [one.seconds for one in found] == [[1.0], [1.0], [], [], [1.0]]


def test_the_reasons_with_the_most_rows_have_colours() -> None:
    one, other = (
        series.TimeBin(LAST, rejected={"a": 1, "b": 5}),
        series.TimeBin(LAST, rejected={"c": 2}),
    )
    assert series.reasons([one, other], 2) == ["b", "c"]
    assert series.grouped(one, ["b", "c"], "others") == {"b": 5, "others": 1}


@pytest.mark.parametrize(
    ("figure", "top"), [(0, 1), (0.3, 0.3), (1, 1), (99, 100), (101, 200), (4_200, 5_000)]
)
def test_an_axis_ends_at_a_round_figure(figure: float, top: float) -> None:
    assert rounded(figure) == pytest.approx(top)


def test_figures_are_short() -> None:
    assert [short(n) for n in (0, 0.25, 950, 1500, 2e6)] == ["0", "0.25", "950", "1.5k", "2M"]


@pytest.mark.parametrize("seconds", [0, 3, 60, 3600, 86_400, 10 * 86_400, 366 * 86_400])
def test_a_period_has_a_few_round_times(seconds: float) -> None:
    found = times(LAST, LAST + timedelta(seconds=seconds))
    assert 1 <= len(found) <= 9
    assert len({text for _, text in found}) == len(found)


@pytest.mark.parametrize("seconds", [60, 172, 3600, 86_400])
def test_the_words_of_an_axis_are_inside_of_the_picture(seconds: float) -> None:
    scale = Scale(LAST - timedelta(seconds=seconds), LAST + timedelta(seconds=1), 1.0)
    for text in panel(element(None, "figure"), "Lag", scale, [], words=False).iter("text"):
        x, room = float(text.attrib["x"]), 6 * len(str(text.text))
        parts = {"right": (room, 0), "centre": (room / 2, room / 2)}
        left, right = parts[text.attrib["class"]]
        assert left <= x <= WIDTH - right


# -- a ledger that is long


@pytest.mark.thorough
@pytest.mark.parametrize("count", [4_000, pytest.param(100_000, marks=pytest.mark.journey)])
def test_of_a_long_ledger_little_is_read(
    job: JobContext, cluster: minicluster.Running, count: int
) -> None:
    """None of the requests sorts or groups, and the mark of an epoch is exact."""
    every, change = 86_400 / count, count * 7 // 9 + 1
    _fill(job, count, seconds=every, epoch=lambda n: 1 if n < change else 2)
    since = len(cluster.client.journal())
    found = period.read(job, 24, LAST)
    asked = [entry for entry in cluster.client.journal()[since:] if "/ledger" in str(entry.args)]
    assert len(asked) < 20
    assert not [entry for entry in asked if re.search("order by|group by", str(entry.args))]
    assert len(found.batches) <= 2_000
    assert found.count == count
    assert found.weight * len(found.batches) == pytest.approx(count, rel=0.02)
    (mark,) = found.marks
    begun = LAST - timedelta(seconds=every * (count - change) + 2.5)
    assert abs((mark.time - begun).total_seconds()) < 0.001
    text = html_page.html(job, found, "minicluster", LAST)
    assert len(text) < 300_000
    Parsed(text)


def test_hours_are_those_before_the_last_batch(job: JobContext) -> None:
    _fill(job, 1_000, seconds=60)
    assert len(period.read(job, 1, LAST).batches) == 60
    # A job that was stopped long ago is shown as it was.
    late = period.read(job, 2, LAST + timedelta(days=30))
    assert late.count == 120
    assert (late.batches[0].started, LAST + timedelta(hours=2)) == (late.begin, late.end)


def test_batches_that_a_person_has_removed_are_not_missed(job: JobContext) -> None:
    _fill(job, 100)
    gone = [{"kind": "batch", "number": number} for number in range(1, 60)]
    job.client.delete_rows(job.settings.ledger, gone)
    assert [batch.number for batch in period.read(job, 24, LAST).batches] == [*range(60, 101)]


# -- the command


def test_the_command_writes_one_file_and_nothing_else(
    job: JobContext, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _fill(job, 3)
    target = tmp_path / "new" / "page.html"
    for _ in range(2):
        assert invoke(job, tmp_path, "--output", str(target), command="page") == 0
        assert [path.name for path in target.parent.iterdir()] == ["page.html"]
    said = capsys.readouterr().out
    assert said.splitlines()[0] == f"{target}: 3 batches until 2026-11-23 12:00:00 UTC"
    Parsed(target.read_text(encoding="utf-8"))


def test_it_needs_no_queue(job: JobContext, tmp_path: Path) -> None:
    _fill(job, 3)
    job.client.remove(job.settings.queues[0])
    target = tmp_path / "page.html"
    assert invoke(job, tmp_path, "--output", str(target), command="page") == 0


def _refused(job: JobContext, tmp_path: Path, target: Path, capsys: Any) -> str:
    assert invoke(job, tmp_path, "--output", str(target), command="page") == 1
    said = str(capsys.readouterr().err)
    assert "Traceback" not in said
    return said


def test_what_cannot_be_drawn_or_written_is_refused(
    job: JobContext, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.html"
    assert "has no batch, so there is nothing to draw" in _refused(job, tmp_path, target, capsys)
    write_rows(job, head_row(head_of_batch(job, 0)))
    assert "has no batch" in _refused(job, tmp_path, target, capsys)
    _fill(job, 3)
    (settings := tmp_path / "production.toml").write_text("kept")
    assert "ends with .html" in _refused(job, tmp_path, settings, capsys)
    assert settings.read_text() == "kept"
    (folder := tmp_path / "folder.html").mkdir()
    assert "is a folder" in _refused(job, tmp_path, folder, capsys)
    blocked = settings / "page.html"
    assert "production.toml" in _refused(job, tmp_path, blocked, capsys)
    job.client.remove(job.settings.ledger)
    assert "is missing" in _refused(job, tmp_path, target, capsys)
    assert not target.exists()


@pytest.mark.parametrize("hours", ["0", "-1", "nan", "inf", "many", "100000"])
def test_other_hours_are_wrong_usage(hours: str) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run("bids", lambda: pytest.fail("the job was imported"), ["page", f"--hours={hours}"])
    assert caught.value.code == 2


# -- in a browser

GROUND = {"light": ((255, 255, 255), (11, 99, 206)), "dark": ((20, 23, 28), (108, 176, 255))}
"""Of the style: the ground, the line of the first picture, the mark of an epoch or the letters."""


@pytest.mark.journey
@pytest.mark.parametrize("scheme", GROUND)
def test_a_browser_shows_it_light_and_dark(job: JobContext, tmp_path: Path, scheme: str) -> None:
    _fill(job, 60, epoch=lambda n: 1 if n < 30 else 2, rejected={"no price": 1})
    html_page.write(job, 24, target := tmp_path / "page.html", LAST)
    shown = tmp_path / "page.png"
    said = browser.pictured(target, scheme, shown, 800, 700)
    assert "Refused" not in said
    assert "CONSOLE" not in said
    found = browser.colours(shown)
    ground, ink = GROUND[scheme]
    assert max(found, key=lambda colour: found[colour]) == ground
    assert found[ink] > 500  # bars
    dumped = browser.opened(target, scheme, tmp_path, "--dump-dom").stdout
    # It has changed nothing that we wrote, as it does with elements in wrong places.
    wanted, got = Parsed(target.read_text(encoding="utf-8")), Parsed(dumped)
    assert got.elements == wanted.elements
    assert got.texts == wanted.texts
    assert got.cells().count("1 no price") == period.LAST


@pytest.mark.journey
def test_a_browser_refuses_what_would_leave_the_file(job: JobContext, tmp_path: Path) -> None:
    """The policy in the page is in force, should a text ever become markup."""
    _fill(job, 3)
    html_page.write(job, 24, target := tmp_path / "page.html", LAST)
    text = target.read_text(encoding="utf-8")
    markup = "<script>document.title = 'ran'</script><img src='http://127.0.0.1:9/x.png'></body>"
    target.write_text(text.replace("</body>", markup), encoding="utf-8")
    done = browser.opened(target, "light", tmp_path, "--dump-dom")
    assert "<title>ran" not in done.stdout
    assert done.stderr.count("violates the following Content Security Policy directive") == 2
