"""Draw what operators see of a job that lags, rejects rows and was restarted, into docs/.

    python -m tools.operator_pictures [BROWSER]    with chromium also the page: docs/page.png

A generated job runs on a minicluster for some minutes, under a producer: it is killed, started
again, and killed again. `status`, `status --watch` and `page` read its ledger as any other.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.journeys.live_job import Live, live
from tests.support.jvm import submit_args
from tools.example import ROOT
from tools.picture import FONTS
from ytstream.instance.lock import LOCK_SECONDS
from ytstream_tools.report import html_page
from ytstream_tools.status import job_status, status_text
from ytstream_tools.status import status_watch as watched

DOCS = ROOT / "docs"
ROWS, EVERY = 80, 1.0
"""The producer: rows of one call, and the seconds between two calls."""
LIFE, WORSE = 10, 4
"""Batches before a kill, and batches in which rows of a worse kind come."""
DOWN = 25
"""Seconds for which the job is down at its end."""
_WORSE = {"url": "https://auction.example/0?c=Google"}


def play(job: Live) -> None:
    """Let the job work, kill it, start it again, and kill it: rows wait then."""
    job.start()
    job.wait_for_batches(LIFE)
    job.kill()
    time.sleep(LOCK_SECONDS + 1)
    job.start()
    job.wait_for_batches(LIFE)
    job.change = _WORSE
    job.wait_for_batches(WORSE)
    job.change = {}
    job.wait_for_batches(LIFE)
    job.kill()
    time.sleep(DOWN)


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
    os.environ.setdefault("YTSTREAM_SUBMIT_ARGS", submit_args())
    with tempfile.TemporaryDirectory() as name, live(Path(name)) as job:
        folder, begin = Path(name), time.monotonic()
        with job.producer(ROWS, EVERY):
            play(job)
            before = job_status.read(job.context)
            time.sleep(2)
            found = job_status.read(job.context)
        # The port is another one each time.
        settings = replace(job.context.settings, proxy="127.0.0.1:18080")
        shown = replace(job.context, settings=settings)
        write("status.svg", drawn("make status", status_text.text(shown, found).splitlines()))
        write("status-watch.svg", drawn("status --watch", watched.view(shown, found, before)))
        for browser in browsers:
            target, hours = folder / "page.html", (time.monotonic() - begin) / 3600
            print(html_page.write(shown, hours, target, datetime.now(UTC)))
            subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 f"--user-data-dir={folder}/profile", "--window-size=1000,1060",
                 f"--screenshot={DOCS / 'page.png'}", target.as_uri()],
                check=True, capture_output=True,
            )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
