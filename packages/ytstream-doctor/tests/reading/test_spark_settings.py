"""Doctor takes the setting that Spark takes, and the tables that are the job's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.doctor_jobs import IDEMPOTENT, SETTINGS, TRANSACTION, WAYS, Job
from ytstream_doctor import command_line

_PROXY = "spark.ytsaurus.rpc.job.proxy.enabled"
_AT_LEAST_ONCE = Job(settings=SETTINGS, reader={"max_rows_per_partition": "5000"})


def rules(job: Job, folder: Path, way: str = "script", **files: str) -> set[str]:
    """Write a job and more files, whose names have "__" for a dot, and return what is named."""
    WAYS[way](job, folder)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return {finding.rule for finding in command_line.diagnosed(folder)[0]}


# -- precedence ------------------------------------------------------------------------------------

_DEFAULTS = "spark-defaults__conf"


@pytest.mark.parametrize("is_given", ["session", "submit", "defaults"])
def test_the_setting_counts_that_spark_takes(is_given: str, tmp_path: Path) -> None:
    values = {"session": "false", "submit": "false", "defaults": "false", is_given: "true"}
    ranks = ["session", "submit", "defaults"]
    for first in range(len(ranks)):
        folder = tmp_path / str(first)
        folder.mkdir()
        there = ranks[first:]
        job = _AT_LEAST_ONCE
        if "session" in there:
            both = {**SETTINGS, "spark.speculation": values["session"]}
            job = replace(job, settings=both)
        files = {_DEFAULTS: f"spark.speculation {values['defaults']}\n"}
        if "submit" in there:
            files["run__sh"] = f"spark-submit --conf spark.speculation={values['submit']} a.py\n"
        found = rules(job, folder, **files)
        assert ("speculation" in found) is (there[0] == is_given)


def test_a_mode_that_the_session_switches_off_is_off(tmp_path: Path) -> None:
    job = replace(
        IDEMPOTENT, settings={**SETTINGS, "spark.yt.streaming.transactional": "false"}
    )  # fmt: skip
    defaults = {_DEFAULTS: "spark.yt.streaming.transactional true\n"}
    assert rules(job, tmp_path, **defaults) == set()


def test_the_session_comes_too_late_for_the_job_proxy(tmp_path: Path) -> None:
    job = replace(TRANSACTION, settings={**TRANSACTION.settings, _PROXY: "true"})
    assert rules(job, tmp_path) == {"commit-log"}  # it is false at submit
    (tmp_path / "run.sh").write_text(f"spark-submit --conf {_PROXY}=true stream.py\n")
    assert "job-proxy" in {finding.rule for finding in command_line.diagnosed(tmp_path)[0]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes__txt", "`spark.speculation=true` was tried and dropped\n"),
        ("notes__txt", "spark.speculation=true was tried\n"),
        ("a__yaml", "description: with spark.speculation=true it was slower\n"),
        ("a__sh", "echo spark.speculation=true was tried\n"),
        ("a__sh", "spark-submit a.py  `# not --conf` spark.speculation=true\n"),
        ("README__md", "Run it with `--conf spark.speculation=true`.\n"),
    ],
)
def test_prose_is_no_setting(name: str, text: str, tmp_path: Path) -> None:
    assert "speculation" not in rules(_AT_LEAST_ONCE, tmp_path, **{name: text})


# -- variables of scripts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "is_off"),
    [
        ("a__sh", f'JP={_PROXY}\nspark-submit --conf "$JP=false" a.py\n', True),
        ("a__sh", f'JP={_PROXY}\nspark-submit --conf "${{JP}}=true" a.py\n', False),
        ("a__sh", f"ON=false\nspark-submit --conf {_PROXY}=$ON a.py\n", True),
        ("a__sh", f"spark-submit --conf {_PROXY}=${{DYN:-true}} a.py\n", False),
        ("a__sh", f"spark-submit --conf {_PROXY}=${{DYN:-false}} a.py\n", True),
        ("a__sh", f"DYN=${{DYN:-true}}\nspark-submit --conf {_PROXY}=$DYN a.py\n", False),
        ("a__sh", f"spark-submit --conf {_PROXY}=$GIVEN a.py\n", True),
        ("a__sh", f"A=true\nA=false\nspark-submit --conf {_PROXY}=$A a.py\n", True),
        ("Makefile", f"ON := true\nrun:\n\tspark-submit --conf {_PROXY}=$(ON) a.py\n", False),
        ("Makefile", f"ON ?= false\nrun:\n\tspark-submit --conf {_PROXY}=$(ON) a.py\n", True),
    ],
)
def test_a_variable_stands_for_the_value_that_its_file_gives(
    name: str, text: str, is_off: bool, tmp_path: Path
) -> None:
    found = rules(replace(TRANSACTION, submit=""), tmp_path, "functions", **{name: text})
    assert found == ({"commit-log"} if is_off else {"commit-log", "job-proxy"})


# -- tables that are the job's ---------------------------------------------------------------------

_QUEUE, _CONSUMER = "//home/shop/orders", "//home/shop/job/consumer"


@pytest.mark.parametrize("way", ["python", "shell"])
@pytest.mark.parametrize(
    ("queue", "consumer", "is_named"),
    [
        (_QUEUE, _CONSUMER, True),
        (_QUEUE, "//home/other/consumer", False),
        ("//home/other/queue", _CONSUMER, False),
        ("//home/other/queue", "//home/other/consumer", False),
    ],
)
def test_another_job_may_have_a_consumer_that_is_not_vital(
    way: str, queue: str, consumer: str, is_named: bool, tmp_path: Path
) -> None:
    call = f'yt.register_queue_consumer("{queue}", "{consumer}", vital=False)\n'
    line = f"yt register-queue-consumer {queue} {consumer} --non-vital\n"
    given = {"setup": call} if way == "python" else {"shell": line}
    found = rules(replace(IDEMPOTENT, **given), tmp_path)  # type: ignore[arg-type]
    assert ("consumer-not-vital" in found) is is_named


@pytest.mark.parametrize("consumer", ["$CONSUMER", "$ROOT/consumer"])
def test_a_consumer_that_is_not_known_may_be_the_jobs(consumer: str, tmp_path: Path) -> None:
    line = f"yt register-queue-consumer {_QUEUE} {consumer} --non-vital\n"
    assert "consumer-not-vital" in rules(replace(IDEMPOTENT, shell=line), tmp_path)


_KEYED = '[{"name": "id", "type": "int64", "sort_order": "ascending"}]'
_ARGUMENTS = "import argparse\nARGS = argparse.ArgumentParser().parse_args()\n"


@pytest.mark.parametrize(
    ("setup", "is_named"),
    [
        ('yt.set("//home/shop/orders/@min_data_versions", 0)', True),
        ('yt.set("//home/shop/known/@min_data_versions", 0)', False),
        ('ROOT = ARGS.root\nyt.set(f"{ROOT}/orders/@min_data_versions", 0)', True),
        ('ROOT = ARGS.root\nyt.set(f"{ROOT}/known/@min_data_versions", 0)', False),
        (
            f'yt.create("table", ARGS.known, attributes={{"schema": {_KEYED}, '
            '"min_data_versions": 0})', False,
        ),
        ('yt.create("table", ARGS.some, attributes={"min_data_versions": 0})', True),
        ('yt.create("table", "//home/a/b", attributes={"min_data_versions": 0})', False),
    ],
)  # fmt: skip
def test_tables_that_are_no_queues_may_drop_rows(
    setup: str, is_named: bool, tmp_path: Path
) -> None:
    found = rules(replace(IDEMPOTENT, setup=f"{_ARGUMENTS}{setup}\n"), tmp_path)
    assert ("trimmed-by-age" in found) is is_named


@pytest.mark.parametrize(
    ("output", "is_named"), [("result_table_path", True), ("another_table_path", False)]
)
def test_an_output_is_known_by_the_name_of_its_path(
    output: str, is_named: bool, tmp_path: Path
) -> None:
    setup = (
        'schema = [{"name": "tablet", "type": "int64"}]\n'
        f'yt.create("table", {output}, attributes={{"dynamic": True, "schema": schema}})\n'
    )
    WAYS["script"](replace(IDEMPOTENT, setup=setup, key=()), tmp_path)
    file = tmp_path / "stream.py"
    file.write_text(file.read_text().replace('"//home/shop/job/output"', "result_table_path"))
    found = {finding.rule for finding in command_line.diagnosed(tmp_path)[0]}
    assert found == ({"output-not-keyed"} if is_named else set())
