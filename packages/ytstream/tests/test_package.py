"""The runtime as a package: light to import, described, checked, shipped."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import zipfile
from dataclasses import fields
from pathlib import Path

import pytest
from yt.wrapper.common import forbidden_inside_job

import ytstream
from local_extensions.versions import pin
from tests.support.examples import example, settings_of
from tests.support.helpers import fails_with
from ytstream import JobError
from ytstream.cluster.client import client_of, explained
from ytstream.declaration import archive
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import PROCESSINGS
from ytstream.settings import toml_file
from ytstream.settings.job_settings import Settings, load
from ytstream.settings.submit_section import SubmitSection
from ytstream_tools.status import description

RUNTIME = Path(ytstream.__file__).parent


def _run(code: str) -> str:
    """Return the output of Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(RUNTIME.parent)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("module", ["ytstream", "ytstream.entry", "ytstream.cli"])
def test_importing_takes_no_setting_of_ytsaurus_client_from_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    settings = {
        "YT_USE_TOKEN": "true",
        "YT_LOG_LEVEL": "ZZZ",
        "YT_CONFIG_PATCHES": "{{",
        "RECEIVE_TOKEN_FROM_SSH_SESSION": "yes",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    (tmp_path / ".yt").mkdir()
    (tmp_path / ".yt/config").write_text("{{")
    monkeypatch.setenv("HOME", str(tmp_path))
    code = f"import os, {module}, yt.wrapper; print(os.environ['YT_USE_TOKEN'], os.environ['HOME'])"
    assert _run(code) == f"true {tmp_path}\n"


def test_requests_are_not_refused_by_a_setting_of_the_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("YT_FORBID_REQUESTS_FROM_JOB", "true")
    monkeypatch.setenv("YT_ALLOW_HTTP_REQUESTS_TO_YT_FROM_JOB", "no")
    client_of("127.0.0.1:1", "")
    forbidden_inside_job(lambda: None)()


@pytest.mark.parametrize(
    ("module", "loaded"),
    [
        ("ytstream", []),
        ("ytstream.entry", []),
        ("ytstream.provisioning.job_objects", []),
        ("ytstream.cli", []),
    ],
)
def test_importing_loads_no_spark_and_installs_no_handler(module: str, loaded: list[str]) -> None:
    code = f"""
import signal, sys
numbers = signal.SIGTERM, signal.SIGINT
before = [signal.getsignal(number) for number in numbers]
import {module}
assert [signal.getsignal(number) for number in numbers] == before
print(sorted({{"pyspark", "spyt", "py4j"}} & sys.modules.keys()))
"""
    assert _run(code) == f"{loaded}\n"


def test_the_handlers_of_the_entry_end_the_process_in_one_line() -> None:
    code = """
import os, signal, subprocess
from ytstream import entry
entry.leave_on_signals()
entry.AT_A_SIGNAL.append(subprocess.Popen(["sleep", "600"]).kill)
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(RUNTIME.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,  # a child that lives on keeps the pipes open
    )
    assert (done.returncode, done.stderr) == (143, "stopped before the start\n")


def test_the_tables_are_described_as_the_cluster_keeps_them() -> None:
    job = example("idempotent", "map", 2).job
    text = description.tables(job, settings_of(job, "//home/job", queues=2))
    queues, output = text.split("output //home/job/output: ")
    assert queues.count("ordered dynamic table, strict=True, unique_keys=False") == 2
    assert output.startswith("sorted dynamic table, strict=True, unique_keys=True\n")
    lines = {tuple(line.split()[:1]): line.split() for line in output.splitlines()}
    assert lines["queue_id",][-1] == "ascending"
    assert lines["price_eur",] == ["price_eur", "int64"]
    assert "optional" in " ".join(lines["channel",])
    assert (
        "\n\nledger //home/job/ledger: sorted dynamic table, strict=True, unique_keys=True\n"
        in text
    )


def test_the_reference_of_a_join_is_described() -> None:
    job = example("transactional", "join").job
    text = description.tables(job, settings_of(job, "//home/job"))
    assert "reference //home/job/reference: sorted dynamic table" in text


def test_every_setting_is_described_with_value_and_reason() -> None:
    job = example("transactional", "window").job
    text = description.conf_table(job, settings_of(job, "//home/job"))
    row = next(line for line in text.splitlines() if "spark.sql.shuffle.partitions" in line)
    assert "  2  " in row
    assert "The checkpoint fixes the number of state partitions" in row
    for part in ("a driver on this machine", "spark-submit", "the reader of each queue"):
        assert part in text
    # A setting that the configuration leaves out is not given to Spark.
    assert "proxyRole" not in text
    assert "{" not in text
    other = example("at_least_once", "map").job
    described = description.conf_table(other, settings_of(other, "//home/job"))
    assert "spark.sql.shuffle.partitions" not in described


def test_every_setting_of_submit_is_shown_with_the_file_that_gives_it(tmp_path: Path) -> None:
    base, own = tmp_path / "production.toml", tmp_path / "staging.toml"
    base.write_text(
        'proxy = "cluster"\nqueues = ["//home/a"]\nconsumer = "//home/j/consumer"\n'
        'checkpoint = "//home/j/checkpoint"\nledger = "//home/j/ledger"\n'
        '[outputs]\noutput = "//home/j/output"\n[spark]\nspark.driver.memory = "3g"\n'
        'spark.sql.x = "1"\n[submit]\nexecutors = 3\npython = "python3.12"\n'
        'annotations = {team = "bids", cost = 1}\n'
    )
    own.write_text(
        'extends = "production.toml"\n[spark]\nspark.sql.x = "2"\n[submit]\nexecutors = 4\n'
        'wait_seconds = 60\nacl = [{subjects = ["team"], permissions = ["read"]}]\n'
        "[submit.annotations]\ncost = 2\n"
    )
    text = description.submit_table(load(own, {}), toml_file.read(own).origins)
    rows = [re.split(r"  +", line) for line in text.splitlines()[2:]]
    assert [row[0] for row in rows] == [field.name for field in fields(SubmitSection)]
    found = {name: (value, where) for name, value, where in rows}
    assert found["executors"] == ("4", str(own))
    assert found["wait_seconds"] == ("60", str(own))
    assert found["python"] == ("python3.12", str(base))
    assert found["driver_memory"] == ("3g", f"[spark] of {base}")
    assert found["executor_memory"] == ("4g", "the default")
    assert found["annotations"] == ('{"team": "bids", "cost": 2}', f"{base}, {own}")
    assert found["acl"] == ('[{"subjects": ["team"], "permissions": ["read"]}]', str(own))
    assert found["alias"] == ("*home/j/ledger", "the default")
    assert found["image"] == ("none", "the default")
    assert found["java"] == ("/opt/jdk and the number of the Java that submits", "the default")
    assert found["replace_seconds"] == ("600", "the default")


@pytest.mark.thorough
@pytest.mark.slow
def test_the_archive_holds_the_package_and_the_runtime_that_a_cluster_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shipped_job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "transform.py").write_text("")
    (package / "rates.json").write_text("{}")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "transform.pyc").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    target = archive.archive("shipped_job", tmp_path / "dist")
    with zipfile.ZipFile(target) as archived:
        names = set(archived.namelist())
    assert target.name == "shipped_job.zip"
    own = {name for name in names if name.startswith("shipped_job/")}
    assert own == {f"shipped_job/{name}" for name in ("__init__.py", "transform.py", "rates.json")}
    assert {"ytstream/cli.py", "ytstream/guarantees/transactional.py"} <= names
    left_out = ("ytstream_tools", "ytstream_doctor", "minicluster")
    assert not [name for name in names if name.startswith(left_out)]
    # The archive alone is enough to import the job's command line.
    code = f"import sys; sys.path.insert(0, {str(target)!r}); import ytstream.cli as c; print(c)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=True
    )
    assert str(target) in done.stdout


def test_an_import_that_the_cluster_lacks_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "importing_job"
    package.mkdir()
    (package / "__init__.py").write_text("")
    source = "import json\nimport spyt\nfrom yt import yson\nfrom . import x\nimport rich.table\n"
    (package / "transform.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(JobError) as caught:
        archive.verify_imports("importing_job")
    assert str(caught.value).count("imports") == 1
    assert "transform.py:5 imports rich" in str(caught.value)


BY_PATH = 'json.loads(Path(__file__).with_name("rates.json").read_text())'
BY_RESOURCE = 'json.loads(files(__package__).joinpath("rates.json").read_text())'


@pytest.mark.parametrize(("reading", "is_found"), [(BY_PATH, False), (BY_RESOURCE, True)])
def test_a_data_file_is_read_from_the_archive_that_is_shipped_or_named_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reading: str, is_found: bool
) -> None:
    name = f"rating_job_{is_found}".lower()
    (package := tmp_path / name).mkdir()
    (package / "__init__.py").touch()
    (package / "rates.json").write_text('{"EUR": 908}')
    (package / "transform.py").write_text(
        "import json\nfrom importlib.resources import files\nfrom pathlib import Path\n"
        f"NAME = Path(__file__).stem\nRATES = {reading}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    shipped = archive.archive(name, tmp_path / "dist")
    code = f"from {name}.transform import RATES; print(RATES)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd="/", env={"PYTHONPATH": str(shipped)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout == "{'EUR': 908}\n") == is_found, done.stderr
    if is_found:
        archive.verify_data_files(name)
        return
    with fails_with(ErrorCode.PACKAGES) as caught:
        archive.verify_data_files(name)
    assert "transform.py:5: " in caught.value.message
    assert "importlib.resources" in caught.value.remedy


def test_packages_of_a_kind_of_job_may_be_imported_by_that_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "counting_job"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "transform.py").write_text("import pandas as pd\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    archive.verify_imports("counting_job", PROCESSINGS["sessions"].packages)
    with pytest.raises(JobError, match=r"transform\.py:1 imports pandas"):
        archive.verify_imports("counting_job", PROCESSINGS["map"].packages)


def test_versions_are_written_once() -> None:
    """Or twice, and the same: the runtime goes to a cluster without the template."""
    assert Settings.spyt_version == pin("ytsaurus-spyt")


_PRINTS = """
import sys
from ytstream import cli

def work():
    for _ in range(9999):
        print("a line that goes to a pipe")
    return 0

sys.exit(cli.reported("status", work))
"""


def test_a_reader_who_has_read_enough_ends_a_command_quietly() -> None:
    """As in `status | head -1`."""
    with subprocess.Popen(
        [sys.executable, "-c", _PRINTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        command.stdout.readline()
        command.stdout.close()
        assert command.stderr.read() == ""
    assert command.returncode == 128 + signal.SIGPIPE


def test_a_closed_pipe_is_no_outage_of_the_cluster() -> None:
    with (
        pytest.raises(BrokenPipeError),
        explained(settings_of(example("transactional", "map").job, "//home/job")),
    ):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_cannot_be_written_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Path("/dev/full").open("w") as full:
        command = subprocess.run(
            [sys.executable, "-c", _PRINTS.replace("9999", "9")],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert command.returncode == 1
    assert command.stderr.startswith("error [file]: the output cannot be written: No space left")
