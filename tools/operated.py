"""Draw what operators see of a job that lags, rejects rows and was restarted, into docs/.

    python -m tools.operated [BROWSER]    with a browser (chromium) also the page, as docs/page.png

The job's ledger is written here, on a minicluster: a day whose figures are the same each time, but
for the clock. `status`, `status --watch` and `page` read it as they read any other.
"""

from __future__ import annotations

import io
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.text import Text

from minicluster import testing as minicluster
from packages.ytstream.tests.examples import example, settings_of
from tools.example import ROOT
from tools.picture import FONTS
from ytstream import ledger, provision
from ytstream.cluster import connect
from ytstream.demo.tables import produce
from ytstream.guarantees import guarantee_of
from ytstream.job import Connection
from ytstream.ledger import BatchRow, Head, Totals, batch_row, head_row
from ytstream.operating import live, page, screen, standing

DOCS = ROOT / "docs"
#: Seconds for which rows have waited.
WAIT = 30
OWNER = "process 1293 on node-7, 512e23b0"
_PRICE, _URL = "the price is not positive", "the URL is of another auction"


@contextmanager
def job(now: datetime) -> Iterator[Connection]:
    """Connect a job of six hours: killed for 25 minutes, restarted, killed; 2,000 rows wait."""
    with minicluster.start() as cluster:
        declared = example("transactional", "map", rejects=True).job
        settings = replace(
            settings_of(declared, "//home/ytstream/job", proxy=cluster.http),
            queues=("//home/ytstream/bids",),
        )
        connection = Connection(connect(settings), settings, declared, guarantee_of(declared))
        provision.provision(connection)
        queue, client = settings.queues[0], connection.client
        rows = [*batches(now, queue, settings.max_rows_per_partition)]
        client.insert_rows(settings.ledger, [batch_row(head, done) for head, done in rows])
        sample = example("transactional", "map").sample.make(4 * 20_020)
        produce(client, queue, sample, 4)
        totals = Totals()
        for _, done in rows:
            totals = ledger.added(totals, done)
        last = rows[-1][0]
        ends = {queue: {0: 19_400, 1: 19_750, 2: 20_020, 3: 18_910}}
        ids = {queue: str(client.get(f"{queue}/@id"))}
        client.insert_rows(
            settings.ledger,
            [head_row(replace(last, owner=OWNER, folder=3, ends=ends, ids=ids, totals=totals))],
        )
        yield connection


def batches(now: datetime, queue: str, most: int) -> Iterator[tuple[Head, BatchRow]]:
    """Yield the batches, one each 20 seconds, and without a pause while the job is behind."""
    chance = random.Random(1)
    begin = now - timedelta(hours=6)
    at, epoch, behind, row, number = begin, 1, 0, 0, 0
    while at < now - timedelta(seconds=90):
        hour = (at - begin).total_seconds() / 3600
        if epoch == 1 and hour > 2.4:
            at, epoch, behind = at + timedelta(minutes=25), 2, 40 * most
        if epoch == 2 and hour > 4.6:
            at, epoch = at + timedelta(minutes=2), 3
        number += 1
        rows = most if behind > 0 else int(most * chance.uniform(0.2, 0.4))
        behind -= most * 2 // 3
        seconds = 1.5 + 4 * rows / most + chance.random()
        rejected = {_PRICE: rows // 50} | ({_URL: rows // 5} if 3.6 < hour < 4.2 else {})
        left = rows - sum(rejected.values())
        written = {"output": left, "rejected": rows - left}
        ended = at + timedelta(seconds=seconds)
        done = BatchRow(
            {queue: {number % 4: (row, row + rows)}}, written, at, ended, rejected=rejected
        )
        yield Head(epoch=epoch, batch=number - 1, number=number), done
        row += rows
        at = ended if behind > 0 else at + timedelta(seconds=20)


def drawn(title: str, lines: Sequence[str]) -> str:
    """Return the picture of a terminal with these lines, as SVG."""
    width = max(map(len, lines))
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text("\n".join(lines)), soft_wrap=True)
    return FONTS.sub("", console.export_svg(title=title, unique_id=title.replace(" ", "")))


def write(name: str, svg: str) -> None:
    """Write a picture without blanks at the ends of its lines."""
    text = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    (DOCS / name).write_text(text, encoding="utf-8")
    print(f"docs/{name}: {len(text)} bytes")


def main(browsers: list[str]) -> int:
    """Write the pictures."""
    now = datetime.now(UTC)
    with job(now) as connection, tempfile.TemporaryDirectory() as folder:
        time.sleep(WAIT)
        found = standing.read(connection)
        later = replace(found, time=found.time + timedelta(seconds=2))
        # The port is another one each time.
        shown = replace(connection, settings=replace(connection.settings, proxy="127.0.0.1:18080"))
        write("status.svg", drawn("make status", screen.text(shown, found).splitlines()))
        write("status-watch.svg", drawn("status --watch", live.view(shown, later, found)))
        for browser in browsers:
            target = Path(folder) / "page.html"
            print(page.write(shown, 24.0, target, now))
            subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 f"--user-data-dir={folder}/profile", "--window-size=1000,1060",
                 f"--screenshot={DOCS / 'page.png'}", target.as_uri()],
                check=True, capture_output=True,
            )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
