"""The job's log as a person sees it: levels, colours on a terminal, and the last line."""

from __future__ import annotations

import logging
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ytstream
from ytstream import log
from ytstream.errors import OutageError
from ytstream.query.outage_log import OutageLog

RUNTIME = Path(ytstream.__file__).parent
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
LINES = (
    "log.set_up(); log.say('runs'); log.warn('waits'); "
    "log.fail('ended\\n  -> start it again', 'gave_up')"
)


def _run(code: str, **more: str) -> str:
    """Return what a process writes to a pipe."""
    environment = {**os.environ, "PYTHONPATH": str(RUNTIME.parent), **more}
    words = [sys.executable, "-c", f"from ytstream import log; {code}"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return done.stderr


def _on_a_terminal(code: str, **more: str) -> str:
    """Return what a process writes to a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(RUNTIME.parent), **more}
    words = [sys.executable, "-c", f"from ytstream import log; {code}"]
    try:
        subprocess.run(words, env=environment, stderr=theirs, check=True)
    finally:
        os.close(theirs)
    with os.fdopen(ours, "rb") as read:
        return os.read(read.fileno(), 100_000).decode().replace("\r\n", "\n")


def test_each_line_has_its_time_and_level() -> None:
    assert re.fullmatch(
        rf"{TIME} INFO runs\n{TIME} WARNING waits\n"
        rf"{TIME} ERROR \[gave_up\] ended\n  -> start it again\n",
        _run(LINES),
    )


@pytest.mark.thorough
def test_lines_are_coloured_by_level_on_a_terminal_alone() -> None:
    shown = _on_a_terminal(LINES, NO_COLOR="")
    assert re.fullmatch(
        rf"{TIME} INFO runs\n"
        rf"\x1b\[33m{TIME} WARNING waits\x1b\[0m\n"
        rf"\x1b\[31m{TIME} ERROR \[gave_up\] ended\n  -> start it again\x1b\[0m\n",
        shown,
    )
    assert "\x1b" not in _on_a_terminal(LINES, NO_COLOR="1")
    assert "\x1b" not in _run(LINES, NO_COLOR="")


def test_a_command_that_has_logged_nothing_ends_without_a_time() -> None:
    assert _run("log.set_up(); log.fail('wrong\\n  -> correct it', 'config')") == (
        "error [config]: wrong\n  -> correct it\n"
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("code", "found"),
    [
        (LINES, (2, "gave_up")),
        ("log.fail('wrong', 'config')", (0, "config")),
        ("log.say('error [config]: in a line of the job')", None),
    ],
)
def test_a_program_reads_the_code_of_a_failure(code: str, found: tuple[int, str] | None) -> None:
    assert log.failure_in(_run(f"log.set_up(); {code}").splitlines()) == found


def test_no_text_has_a_level_of_its_own() -> None:
    """A level in the text is hidden from whoever filters by level."""
    pattern = re.compile(r"""["'](WARNING|ERROR|INFO)\b""")
    found = [str(file) for file in _sources() if pattern.search(file.read_text(encoding="utf-8"))]
    assert found == []


def test_no_message_has_sparks_number_of_a_batch_alone() -> None:
    pattern = re.compile(r"batch \{(number|[\w.]*\.batch|[\w.\[\]']*batchId[\w.\[\]']*)\}")
    found = [str(file) for file in _sources() if pattern.search(file.read_text(encoding="utf-8"))]
    assert found == []


def _sources() -> list[Path]:
    return [file for file in RUNTIME.rglob("*.py") if file.name != "log.py"]


def test_an_outage_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="job")
    OutageLog(0.0).tell(OutageError("no proxy answers"), 0.0)
    assert caplog.record_tuples == [
        ("job", logging.WARNING, "waiting for the cluster for 0 s now: no proxy answers")
    ]
