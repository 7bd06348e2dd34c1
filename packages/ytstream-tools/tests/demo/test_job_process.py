"""The demo's job is a process: when it ends early, the demo quotes the one line that says why."""

from __future__ import annotations

from pathlib import Path

from tests.support.helpers import refusal
from ytstream.log import Event
from ytstream_tools.demo.job_process import JobProcess, run_command

MISSING = "no_such_package"


def test_the_error_of_a_job_is_quoted_and_not_what_surrounds_it(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("error [config]: of a run before\n")
    job = JobProcess(MISSING, "127.0.0.1:1", log, tmp_path)
    assert job.wait() == 1
    assert f"No module named {MISSING}" in job.tail()
    assert "of a run before" not in job.tail()
    with log.open("a") as out:
        out.write("WARN noise\nerror [config]: wrong\n  -> correct it\n")
    assert job.tail() == "error [config]: wrong\n  -> correct it"
    with log.open("a") as out:
        out.write("2026-11-22 04:27:36 ERROR [gave_up] gave up\n  -> start again\n")
    assert job.tail() == "2026-11-22 04:27:36 ERROR [gave_up] gave up\n  -> start again"


def test_a_job_has_started_once_its_query_runs(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    running = f"2026-11-22 04:27:36 INFO {Event.RUNNING}, epoch 1: //queue -> //output\n"
    log.write_text(running)  # of a run before
    job = JobProcess(MISSING, "127.0.0.1:1", log, tmp_path)
    job.wait()
    assert not job.has_started()
    with log.open("a") as out:
        out.write(running)
    assert job.has_started()


def test_a_command_that_fails_ends_the_demo_in_one_line() -> None:
    said = refusal(lambda: run_command(MISSING, "127.0.0.1:1", Path(), "provision"))
    assert said == "`provision` failed\n  -> its own message is above"
