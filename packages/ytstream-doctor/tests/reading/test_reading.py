"""Doctor follows a job's queries, or says what it could not read: it gives no clean bill then."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doctor_jobs import IDEMPOTENT, SETTINGS, WAYS
from ytstream_doctor import command_line

# -- writers that functions return -----------------------------------------------------------------

_READ = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = (
    spark.readStream.format("yt").option("consumer_path", "//home/a/consumer")
    .option("max_rows_per_partition", 5000).load("//home/a/queue")
)
"""
_SINK = """\
def sink(frame, path, checkpoint):
    return (
        frame.writeStream.format("yt")
        .option("path", path).option("checkpointLocation", checkpoint)
    )
"""
_MADE = _SINK.partition("return")[2]
_START = 'sink(rows, "//home/a/output", "//home/a/checkpoint").trigger({}).start()'.format(
    'processingTime="5 seconds"'
)
_STARTED = f"{_READ}{_START}.awaitTermination()\n"


def found(folder: Path, **files: str) -> set[str]:
    """Write files, "__" for a slash, and return the rules that doctor names."""
    for name, text in files.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    settings = "".join(f"{key} {value}\n" for key, value in SETTINGS.items())
    (folder / "spark-defaults.conf").write_text(settings)
    findings, read = command_line.diagnosed(folder)
    assert read.is_known
    assert {query.path for query in read.queries} == {"//home/a/output"}
    assert len(read.queries) == 1
    return {finding.rule for finding in findings}


@pytest.mark.parametrize(
    "files",
    [
        {"job": f"{_SINK}\n{_STARTED}"},
        {"shop__sinks": _SINK, "job": f"from shop.sinks import sink\n{_STARTED}"},
        {
            "shop__sinks": _SINK, "shop__other": "def sink(frame):\n    return frame.select()\n",
            "job": f"from shop.sinks import sink as to\n{_STARTED.replace('sink(', 'to(')}",
        },
        {
            "shop__sinks": _SINK,
            "job": f"from shop import sinks\n{_STARTED.replace('sink(', 'sinks.sink(')}",
        },
        {"job": f"{_SINK}\ndef made(*given):\n    return None\n{_STARTED}"},
        {"job": f"sink = lambda frame, path, checkpoint: {_MADE}\n{_STARTED}"},
        {
            "job": f"{_SINK}\nclass Job:\n"
            "    def run(self, rows):\n        return self.sink(rows)\n"
            "    def sink(self, rows):\n"
            "        writer = sink(rows, '//home/a/output', '//home/a/c')"
            "\n        return writer.trigger(processingTime='1 second')\n"
            f"{_READ}Job().run(rows).start().awaitTermination()\n"
        },
        {
            "job": "def configured(writer):\n    return writer.format('yt').option('path', "
            "'//home/a/output').option('checkpointLocation', '//home/a/c')\n"
            f"{_READ}configured(rows.writeStream).trigger(processingTime='1 second')"
            ".start().awaitTermination()\n",
        },
    ],
    ids=["helper", "imported", "alias", "module", "others", "lambda", "method", "writer"],
)  # fmt: skip
def test_a_writer_that_a_function_returns_is_followed(
    files: dict[str, str], tmp_path: Path
) -> None:
    assert found(tmp_path, **files) == {"at-least-once", "checkpoint-path"}


def test_one_writer_for_two_frames_is_two_queries(tmp_path: Path) -> None:
    second = _START.replace("//home/a/output", "//home/a/second")
    (tmp_path / "job.py").write_text(f"{_SINK}\n{_READ}{second}\n{_START}.awaitTermination()\n")
    findings, read = command_line.diagnosed(tmp_path)
    assert len(read.queries) == 2
    assert {"shared-checkpoint", "shared-consumer"} <= {finding.rule for finding in findings}


_NOT_FOLLOWED = {
    "getattr": 'getattr(rows, "writeStream").format("yt").start()\n',
    "loop": "for writer in [make(rows.writeStream)]:\n    getattr(writer, 'start')()\n",
    "unknown": "from theirs import run\nrun(rows.writeStream.format('yt'))\n",
}


@pytest.mark.parametrize("name", _NOT_FOLLOWED)
@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_writer_that_cannot_be_followed_is_no_clean_bill(
    name: str, is_transactional: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.py").write_text(_READ + _NOT_FOLLOWED[name])
    if is_transactional:
        (tmp_path / "spark-defaults.conf").write_text("spark.yt.streaming.transactional true\n")
    words = ["doctor", str(tmp_path), "--accept", "commit-log"]
    assert command_line.main(words) == 2
    shown = capsys.readouterr().out
    line = 9 if name == "unknown" else 8
    assert f"job.py:{line}  this writeStream could not be followed" in shown
    assert "0 queries" in shown
    assert "nothing was found" not in shown
    assert command_line.main([*words, "--json"]) == 2
    whole = json.loads(capsys.readouterr().out)
    assert whole["queries"] == 0
    assert whole["not_followed"] == [{"file": "job.py", "line": line}]


def test_a_second_writer_that_cannot_be_followed_is_no_clean_bill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    WAYS["script"](IDEMPOTENT, tmp_path)
    assert command_line.main(["doctor", str(tmp_path)]) == 0
    with (tmp_path / "stream.py").open("a") as file:
        file.write("import theirs\n\ntheirs.run(rows.writeStream)\n")
    capsys.readouterr()
    assert command_line.main(["doctor", str(tmp_path)]) == 2
    assert "1 query" in capsys.readouterr().out


def test_a_job_of_the_runtime_with_a_writer_of_its_own_is_no_clean_bill(tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text("from ytstream import Job\n")
    assert command_line.main(["doctor", str(file)]) == 0
    file.write_text("from ytstream import Job\nimport theirs\ntheirs.run(rows.writeStream)\n")
    assert command_line.main(["doctor", str(file)]) == 2


def test_transactional_settings_without_a_query_are_no_clean_bill(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("spark-submit --conf spark.yt.streaming.transactional=true\n")
    assert command_line.main(["doctor", str(tmp_path)]) == 2
    assert command_line.main(["doctor", str(tmp_path), "--accept", "commit-log"]) == 2


def test_a_query_that_writes_with_a_function_counts(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "spark.readStream.format('rate').load().writeStream.foreachBatch(write)"
        ".option('checkpointLocation', 'yt:///home/a/c').start().awaitTermination()\n"
    )
    findings, read = command_line.diagnosed(tmp_path)
    assert len(read.queries) == 1
    named = {finding.rule for finding in findings}
    assert named == {"foreach-batch", "no-trigger", "async-log-purge", "timeout"}


# -- files -----------------------------------------------------------------------------------------


def _with_a_job(folder: Path) -> None:
    WAYS["script"](IDEMPOTENT, folder)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    ["x = a" + ".b()" * 3_000, "x = " + "+".join(["1"] * 20_000), "x = " + "-" * 100_000 + "1"],
    ids=["calls", "sums", "minus"],
)
def test_deep_expressions_are_one_line_and_no_traceback(text: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(text + "\n")
    done = _run(tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert re.fullmatch(r"error \[no_stream\]: .*\n(job\.py was not read: .*\n)?", done.stderr)


def test_a_long_sum_is_read(tmp_path: Path) -> None:
    _with_a_job(tmp_path)
    (tmp_path / "more.py").write_text(f"x = {' + '.join(['str(1)'] * 250)}\nspark.conf.set(x, x)\n")
    assert command_line.diagnosed(tmp_path)[1].files.unread == ()


def test_what_is_skipped_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_a_job(tmp_path)
    (tmp_path / "large.py").write_text("x = 1\n" * 200_000)
    (tmp_path / "closed").mkdir()
    (tmp_path / "zero.py").write_text("x = 1\ny = '\0'\n")
    (tmp_path / "broken.py").write_text("x = (\n")
    scandir = os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    _, read = command_line.diagnosed(tmp_path)
    unread = dict(read.files.unread)
    unread["zero.py"] = unread["zero.py"].removeprefix("line 2: ")  # 3.11.2 says no line
    assert unread == {
        "broken.py": "line 1: '(' was never closed",
        "closed": "Permission denied",
        "large.py": "it is larger than 1 MB",
        "zero.py": "source code string cannot contain null bytes",
    }
    assert not read.is_known


def test_a_file_is_read_in_the_encoding_that_it_declares(tmp_path: Path) -> None:
    _with_a_job(tmp_path)
    file = tmp_path / "stream.py"
    file.write_bytes(b"# coding: latin-1\nNAME = '\xe9'\n" + file.read_bytes())
    assert command_line.diagnosed(tmp_path)[1].files.unread == ()


def test_the_reason_of_a_syntax_error_stands_by_itself(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("def f(:\n")
    assert _run(tmp_path / "job.py").stderr.splitlines() == [
        f"error [no_stream]: {tmp_path}/job.py has no streaming query that could be read",
        f"{tmp_path}/job.py was not read: line 1: invalid syntax",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("submit", "#!/usr/bin/env bash\nspark-submit --conf spark.speculation=true\n"),
        ("submit.sh.j2", "spark-submit --conf spark.speculation=true --conf a={{ b }}\n"),
        ("shop.service", "[Service]\nExecStart=spark-submit --conf spark.speculation=true a.py\n"),
        ("submit2", "#!/usr/bin/python3\nimport os\nrun(['--conf', 'spark.speculation=true'])\n"),
    ],
)
def test_other_files_that_submit_are_read(name: str, text: str, tmp_path: Path) -> None:
    WAYS["script"](_NO_KEYS, tmp_path)
    (tmp_path / name).write_text(text)
    assert ("speculation", name) in {
        (each.rule, each.file) for each in command_line.diagnosed(tmp_path)[0]
    }


_NO_KEYS = IDEMPOTENT.__class__(settings=SETTINGS, reader={"max_rows_per_partition": "5000"})


# -- where it writes -------------------------------------------------------------------------------


def _run(path: Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ytstream", "doctor", str(path)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, text=True, check=False, **streams)  # type: ignore[call-overload, no-any-return]


def test_a_reader_that_has_read_enough_is_no_error(tmp_path: Path) -> None:
    _with_a_job(tmp_path)
    (tmp_path / "run.sh").write_text("spark-submit\n")
    reads, writes = os.pipe()
    os.close(reads)
    done = _run(tmp_path, stdout=writes)
    os.close(writes)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_device_is_one_line(tmp_path: Path) -> None:
    _with_a_job(tmp_path)
    with Path("/dev/full").open("w") as full:
        done = _run(tmp_path, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "error [file]: cannot write the findings: No space left on device\n"
