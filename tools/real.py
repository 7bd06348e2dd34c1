"""Run everything on a real YTsaurus server, and write what it answered.

    make real [IMAGE=NAME:TAG] [PROXY=HOST] [FOLDER=//home/me] [SETTINGS=keys.toml]

Without PROXY a container of the image is started, and removed in the end. The conformance suite is
asked, a generated job of each guarantee is killed and counted, and submitted where the server has
SPYT, and then `make test-cluster` runs. docs/real/REPORT.md has the result.

Exit code 1: a step failed. 3: no step failed, and answers differ from those of the run before.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tools import conformance, real_report
from tools.cluster_trial import PACKAGE
from tools.example import ROOT, generated
from tools.real_report import Outcome, Report, StepResult
from ytstream.cluster.client import client_of
from ytstream.errors import JobError, RestartableError
from ytstream.settings import environment as variables
from ytstream_tools.real import readiness, session, submitted
from ytstream_tools.real.image import IMAGE

CHANGED = 3
GUARANTEES = ("transactional", "idempotent", "at_least_once")
SHOWN_LINES = 40
"""Lines of a step that failed."""
ISSUE = ROOT / "build" / "real" / "issue.md"
"""Where a workflow finds what to tell people, if there is something to tell."""

say = partial(print, flush=True)


@dataclass(frozen=True)
class Site:
    """The server, and what a person has said of it."""

    proxy: str
    token: str
    folder: str
    settings: Path | None
    only: str
    """A part of the suite, FILE.py or FILE.py::CASE; "" for all."""

    def command(self, words: Sequence[str], folder: Path, *path: Path) -> tuple[int, list[str]]:
        """Run a Python module, showing what it says; return its exit code and its lines."""
        mine = variables.kept(os.environ, variables.CLUSTER)
        python = os.pathsep.join(map(str, (*path, *sys.path[1:])))
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=folder,
            env={**mine, "YT_TOKEN": self.token, "PYTHONPATH": python},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines: list[str] = []
        try:
            assert process.stdout is not None
            for line in process.stdout:
                say(line, end="")
                lines.append(line.rstrip("\n"))
            return process.wait(), lines
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


def _conformance(site: Site) -> StepResult:
    found = conformance.asked(site.proxy, site.token, *filter(None, [site.only]))
    if found.problem:
        return StepResult(Outcome.FAILED, tuple(found.problem.splitlines()[-SHOWN_LINES:]))
    other = conformance.of_minicluster([*found.differing])
    differing = {case: (answer, other.get(case, "")) for case, answer in found.differing.items()}
    skipped = f", {found.skipped} skipped" if found.skipped else ""
    summary = f"{found.agree} cases agree, {len(differing)} differ{skipped}"
    return StepResult(Outcome.DONE, (), summary, differing)


def _job(guarantee: str, site: Site) -> StepResult:
    """Generate a job and call its own `make real`, on the server that runs."""
    with tempfile.TemporaryDirectory() as folder:
        root = generated(Path(folder) / "project", {"guarantee": guarantee})
        config = root / "config" / "given.toml"
        keys = site.settings.read_text(encoding="utf-8") if site.settings else ""
        config.write_text(f'extends = "local.toml"\n{keys}', encoding="utf-8")
        words = ["--config", str(config), "--proxy", site.proxy, "--folder", site.folder]
        code, lines = site.command([PACKAGE, "real", *words], root, root / "src", root)
    if code:
        return StepResult(Outcome.FAILED, tuple(lines[-SHOWN_LINES:]))
    return StepResult(
        Outcome.DONE, tuple(line for line in lines if line.startswith(("RESULT ", "SUBMIT ")))
    )


def _test_cluster(site: Site) -> StepResult:
    if not submitted.has_spyt(client_of(site.proxy, site.token, patient=True)):
        return StepResult(Outcome.SKIPPED, summary="the server has no SPYT")
    settings = ["--settings", str(site.settings)] if site.settings else []
    code, lines = site.command(
        [
            "tools.cluster_trial",
            site.proxy,
            "--folder",
            site.folder,
            "--without-conformance",
            *settings,
        ],
        ROOT,
    )
    return StepResult(Outcome.FAILED if code else Outcome.DONE, tuple(lines[-SHOWN_LINES:]))


STEPS: dict[str, Callable[[Site], StepResult]] = {
    "conformance": _conformance,
    **{guarantee: partial(_job, guarantee) for guarantee in GUARANTEES},
    "test-cluster": _test_cluster,
}


def main(given: argparse.Namespace) -> int:
    """Run the steps, write the report; return the exit code. Raises JobError without a server."""
    folder = given.folder.rstrip("/")
    with session.server(given.proxy, given.image, folder, say) as server:
        token = session.token_for(server.proxy)
        site = Site(server.proxy, token, folder, given.settings, given.only)
        version = readiness.version(server.proxy)
        say(f"YTsaurus {version} at {server.proxy}")
        steps = {name: _timed(name, site) for name in given.steps}
    report = Report(version, server.image, f"{datetime.now(UTC):%Y-%m-%d}", steps)
    return _written(report, given.report, given.issue)


def _timed(name: str, site: Site) -> tuple[float, StepResult]:
    say(f"\n== {name}")
    began = time.monotonic()
    result = STEPS[name](site)
    seconds = time.monotonic() - began
    say(f"{seconds:6.0f} s  {name}: {result.outcome}. {result.summary}")
    return seconds, result


def _written(report: Report, folder: Path, issue: Path) -> int:
    changes = report.changes(real_report.former(folder))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / real_report.PAGE).write_text(report.page(changes), encoding="utf-8")
    if report.differing is not None:
        (folder / real_report.ANSWERS).write_text(report.answers(), encoding="utf-8")
    say(f"\n{folder / real_report.PAGE}", *(one.line for one in changes), sep="\n")
    _tell(issue, real_report.issue(report.failed, changes))
    return 1 if report.failed else CHANGED if changes else 0


def _tell(file: Path, text: str) -> None:
    """Write what an issue would say, or remove what a run before has written."""
    file.unlink(missing_ok=True)
    if text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m tools.real", description=__doc__)
    which = made.add_mutually_exclusive_group()
    which.add_argument("--image", default=IMAGE, help="of the container; default: %(default)s")
    which.add_argument("--proxy", default="", help="a server that runs; YT_TOKEN has its token")
    made.add_argument("--folder", default="//tmp", help="where trials make folders of their own")
    made.add_argument("--settings", type=Path, help="a TOML file with keys that jobs need there")
    made.add_argument("--only", default="", help="a part of the suite: FILE.py::CASE")
    made.add_argument("--steps", nargs="+", choices=[*STEPS], default=[*STEPS])
    made.add_argument("--report", type=Path, default=ROOT / "docs" / "real", metavar="FOLDER")
    made.add_argument("--issue", type=Path, default=ISSUE, metavar="FILE")
    return made


def run(words: Sequence[str]) -> int:
    """Do what the words of the command line say; return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background ignores the first
        signal.signal(number, signal.default_int_handler)
    given = parser().parse_args(words)
    try:
        return main(given)
    except (JobError, RestartableError) as error:
        say(f"error [{error.code}]: {error}", file=sys.stderr)
        _tell(given.issue, str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted: the container is removed", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
