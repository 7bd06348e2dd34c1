"""`rehearse`: which rows, which commit, what differs; production is only read. Without Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from minicluster import testing as minicluster
from tests.support.helpers import (
    ContextOf,
    refusal,
    refusal_code,
)
from tests.support.ledger_steps import LAST, minutes, write_ledger
from tests.support.read_requests import READS
from tests.support.server_errors import denied
from tests.support.status_steps import invoke, send
from ytstream.cluster.operation import Operation
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import stop_request
from ytstream.job import JobContext
from ytstream.version import version_of
from ytstream_tools.commands import capture as capture_command
from ytstream_tools.demo.job_process import JobProcess, run_command
from ytstream_tools.replay import rehearsal as rehearsal
from ytstream_tools.replay import revisions
from ytstream_tools.replay.differences import OutputRows, difference, lines
from ytstream_tools.replay.rehearsal import DIFFERS, RehearsalRequest, rehearse
from ytstream_tools.replay.version_run import ClusterInput, RehearsedVersion
from ytstream_tools.submitting.version_history import DeployedVersion as Record
from ytstream_tools.submitting.version_history import StartState, VersionHistory

SPARK = f"Spark {version_of('pyspark')}"


def _git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    line = ["git", "-C", str(root), *who, *words]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a repository with one commit of the job, and change a file of it."""
    root = tmp_path / "repository"
    package = root / "src" / "example_map"
    package.mkdir(parents=True)
    (package / "transform.py").write_text("BEFORE = 1\n")
    _git(root, "init", "--quiet")
    _git(root, "add", "--all")
    _git(root, "commit", "--quiet", "--message", "first")
    (package / "transform.py").write_text("AFTER = 1\n")
    for module in (rehearsal, capture_command):
        monkeypatch.setattr(module, "root_of", lambda _: root)
    return root


Replayed = list[tuple[RehearsedVersion, str, ClusterInput]]


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> Replayed:
    """Note what would run, and let `price` differ where the text of the files does."""
    found: Replayed = []

    def note(
        version: RehearsedVersion, given: ClusterInput, _context: object, _folder: Path
    ) -> dict[str, OutputRows]:
        text = (version.root / "src/example_map/transform.py").read_text()
        found.append((version, text, given))
        is_one = "BEFORE" in text or len(given.parts) == 1
        rows = [{"event_id": "e", "price": 1 if is_one else 2}]
        return {"output": OutputRows(rows, ["event_id"]), "rejected": OutputRows([])}

    monkeypatch.setattr(rehearsal, "replay", note)
    return found


def _connected(provisioned_of: ContextOf) -> JobContext:
    context = provisioned_of("transactional")
    send(context, 4 * 200)
    write_ledger(context, 20)
    return context


def _rehearsed(context: JobContext, root: Path, **more: Any) -> tuple[int, str]:
    said: list[str] = []
    wanted = RehearsalRequest(root / "local.toml", **{"commit": "HEAD", **more})
    code = rehearse(context, wanted, said.append)
    return code, "\n".join(said)


def test_both_versions_get_the_rows_of_the_last_batches(
    provisioned_of: ContextOf, repository: Path, replayed: Replayed
) -> None:
    context = _connected(provisioned_of)
    code, said = _rehearsed(context, repository, batches=3)
    assert code == DIFFERS
    assert [text for _, text, _ in replayed] == ["BEFORE = 1\n", "AFTER = 1\n"]
    (_, _, before), (_, _, after) = replayed
    assert before is after
    places = [
        [(row["$tablet_index"], row["$row_index"]) for row in part.rows] for part in after.parts
    ]
    assert [part.name for part in after.parts] == ["3-17", "3-18", "3-19"]
    assert places == [
        [(p, first + n) for n in range(10)] for p, first in ((0, 80), (1, 90), (0, 90))
    ]
    assert said.splitlines() == [
        "read 30 rows of 3 batches, 3-17 to 3-19",
        f"commit {_git(repository, 'rev-parse', 'HEAD')[:12]}: 3 batches on a minicluster, {SPARK}",
        f"the working tree: 3 batches on a minicluster, {SPARK}",
        "output: 1 row before, 1 after: 1 changed, 0 only before, 0 only after",
        "  event_id='e'",
        "    column  before  after",
        "    ------  ------  -----",
        "    price   1       2",
        "rejected: 0 rows before, 0 after: equal",
        "not equal",
    ]
    assert _rehearsed(context, repository, batches=1)[0] == 0
    assert _rehearsed(context, repository, batches=3, without=["price"])[0] == 0


def test_production_is_only_read(
    provisioned_of: ContextOf, repository: Path, replayed: Replayed, cluster: minicluster.Running
) -> None:
    context = _connected(provisioned_of)
    cluster.client.journal.clear()
    _rehearsed(context, repository)
    assert replayed
    asked = {entry.method for entry in cluster.client.journal()}
    assert "select_rows" in asked
    assert asked <= READS


def test_its_folder_goes_if_something_kills_it(
    provisioned_of: ContextOf, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """guarded() has a test of its own."""
    watched: list[str] = []

    @contextmanager
    def guarded(*, folder: str) -> Iterator[None]:
        watched.append(folder)
        yield
        watched.remove(folder)

    def replay(*given: Any) -> dict[str, OutputRows]:
        assert watched == [str(given[-1])]
        return {}

    monkeypatch.setattr(rehearsal, "guarded", guarded)
    monkeypatch.setattr(rehearsal, "replay", replay)
    _rehearsed(_connected(provisioned_of), repository)
    assert not watched


def test_batches_can_be_those_since_a_time(
    provisioned_of: ContextOf, repository: Path, replayed: Replayed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    context = _connected(provisioned_of)
    with monkeypatch.context() as patch:
        patch.setattr(rehearsal, "MOST_BATCHES", 19)
        many = refusal(lambda: _rehearsed(context, repository, since=minutes(1000)))
    assert "those are 20 batches" in many
    _, said = _rehearsed(context, repository, since=minutes(4.5))
    assert "read 50 rows of 5 batches, 3-15 to 3-19" in said
    _, said = _rehearsed(context, repository, since=minutes(1000))
    assert "of 20 batches" in said
    no = refusal(lambda: _rehearsed(context, repository, since=LAST))
    assert "the ledger has no batch of that time" in no


def test_trimmed_rows_are_named(
    provisioned_of: ContextOf, repository: Path, replayed: Replayed
) -> None:
    context = _connected(provisioned_of)
    queue, client = context.settings.queues[0], context.client
    client.trim_rows(queue, 0, 95)
    _, said = _rehearsed(context, repository, batches=2)
    assert f"not rehearsed: {queue}, partition 0: rows 90 to 94 are trimmed" in said
    assert "read 15 rows of 2 batches" in said
    for partition in range(4):
        client.trim_rows(queue, partition, 200)
    no = refusal(lambda: _rehearsed(context, repository, batches=2))
    assert "no row of 2 batches is left in the queues" in no


def test_a_commit_that_is_none_is_refused(
    provisioned_of: ContextOf, repository: Path, replayed: Replayed
) -> None:
    context = _connected(provisioned_of)
    for revision in ("1234abcd", "--output=x", "HEAD:nothing"):
        said = refusal(partial(_rehearsed, context, repository, commit=revision))
        assert "has no commit" in said
    _git(repository, "mv", "src", "source")
    _git(repository, "commit", "--quiet", "--message", "moved")
    assert refusal_code(lambda: _rehearsed(context, repository)) == ErrorCode.COMMIT_UNKNOWN
    assert not replayed


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ({"commit": "abc"}, "abc"),
        ({"commit": "abc+"}, "was submitted from abc with changes that git does not have"),
        ({}, "no operation or record of the job says which commit is deployed"),
    ],
)
def test_the_deployed_commit_is_the_one_that_submit_has_noted(
    provisioned_of: ContextOf,
    monkeypatch: pytest.MonkeyPatch,
    note: Mapping[str, str],
    said: str,
) -> None:
    context = provisioned_of("transactional")
    assert refusal_code(lambda: revisions.deployed(context)) == ErrorCode.COMMIT_UNKNOWN
    found = Operation("1-2-3-4", "running", annotations={"ytstream": note})
    monkeypatch.setattr(stop_request, "of_job", lambda _: found)
    if note == {"commit": "abc"}:
        assert revisions.deployed(context) == said
    else:
        assert said in refusal(lambda: revisions.deployed(context))


def test_without_an_operation_the_deployed_commit_is_that_of_the_last_record(
    provisioned_of: ContextOf, repository: Path, replayed: Replayed, cluster: minicluster.Running
) -> None:
    """A version that was refused is not deployed; nor is one that failed."""
    context = _connected(provisioned_of)
    records, commit = (
        VersionHistory(context.client, context.settings),
        _git(repository, "rev-parse", "--short=12", "HEAD"),
    )
    for hour, (state, noted) in enumerate(
        [
            (StartState.WORKS, "0123456789ab"),
            (StartState.WORKS, commit),
            (StartState.REFUSED, "abc"),
            (StartState.FAILED, "abc"),
        ]
    ):
        started = f"2026-11-23T1{hour}:00:00Z"
        records.write(Record(f"{hour}", state, {"commit": noted}, started=started))
    _, said = _rehearsed(context, repository, commit=None)
    assert f"commit {commit}: 20 batches" in said
    error = denied("read", "//home/records")
    cluster.client.faults.add(method="exists", times=None, action="fail", error=error)
    no = refusal(lambda: revisions.deployed(context))
    cluster.client.faults.clear()
    assert "no operation or record of the job" in no


def test_a_job_that_has_never_run_is_refused_by_the_command(
    provisioned_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    repository: Path,
) -> None:  # fmt: skip
    context = provisioned_of("transactional")
    assert invoke(context, tmp_path, "--batches", "3", command="rehearse") == 1
    assert "the job has never run: its ledger is empty" in capsys.readouterr().err
    assert invoke(context, tmp_path, "--since", "now", command="rehearse") == 1
    assert "cannot read the time 'now'" in capsys.readouterr().err


def test_the_command_says_by_its_exit_code_whether_outputs_are_equal(
    provisioned_of: ContextOf, tmp_path: Path, repository: Path, replayed: Replayed
) -> None:
    context = _connected(provisioned_of)
    words = ("--commit", "HEAD", "--batches")
    assert invoke(context, tmp_path, *words, "3", command="rehearse") == DIFFERS
    assert invoke(context, tmp_path, *words, "1", command="rehearse") == 0


def test_the_commit_runs_with_the_interpreter_that_is_given(
    provisioned_of: ContextOf, tmp_path: Path, repository: Path, replayed: Replayed,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    context = _connected(provisioned_of)
    words = ("--commit", "HEAD", "--batches", "1", "--python")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 4.1.2\n")
    python.chmod(0o755)
    assert invoke(context, tmp_path, *words, str(python), command="rehearse") == 0
    assert [version.python for version, _, _ in replayed] == [str(python), sys.executable]
    said = capsys.readouterr().out
    assert "on a minicluster, Spark 4.1.2\nthe working tree: " in said
    assert said.count(f"on a minicluster, {SPARK}\n") == 1
    assert invoke(context, tmp_path, *words, "/bin/false", command="rehearse") == 1
    assert "/bin/false has no Spark" in capsys.readouterr().err
    assert invoke(context, tmp_path, *words, "/no/python", command="rehearse") == 1
    assert "--python /no/python: there is no such program" in capsys.readouterr().err
    # As both processes of a version are started.
    said = run_command("job", "127.0.0.1:1", tmp_path, "provision", python="/bin/echo")
    assert said == "-m job provision\n"
    log = tmp_path / "job.log"
    assert JobProcess("job", "127.0.0.1:1", log, tmp_path, python="/bin/echo").wait() == 0
    assert log.read_text() == "-m job run\n"


def test_a_token_without_rights_is_told(
    provisioned_of: ContextOf, tmp_path: Path, repository: Path, replayed: Replayed,
    cluster: minicluster.Running, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    context = _connected(provisioned_of)
    error = denied("read", "//home/queue")
    cluster.client.faults.add(method="select_rows", times=None, action="fail", error=error)
    for words in (("rehearse", "--commit", "HEAD"), ("capture", "3-1"), ("complete-until",)):
        assert invoke(context, tmp_path, *words[1:], command=words[0]) == 1
        said = capsys.readouterr().err
        assert "Access denied" in said
        assert "Traceback" not in said
    assert not replayed
    cluster.client.faults.clear()


def _rows(*prices: float, key: Sequence[str] = ("id",)) -> OutputRows:
    rows = [{"id": number, "price": price} for number, price in enumerate(prices)]
    return OutputRows(rows, key)


def test_a_changed_row_is_shown_with_its_other_columns() -> None:
    found = difference(_rows(1, 2, 3), _rows(1, 5, 3))
    assert found.changed == [({"id": 1, "price": 2}, {"id": 1, "price": 5})]
    assert not found.is_equal
    assert (found.only_before, found.only_after) == ([], [])


def test_rows_of_one_side_are_counted() -> None:
    found = difference(_rows(1, 2), _rows(1))
    assert found.only_before == [{"id": 1, "price": 2}]
    assert difference(_rows(1), _rows(1, 2)).only_after == [{"id": 1, "price": 2}]


def test_rows_without_a_key_that_are_alike_are_one_row() -> None:
    before = OutputRows([{"a": 1, "b": 2, "c": 3}, {"a": 7, "b": 8, "c": 9}])
    after = OutputRows([{"a": 4, "b": 5, "c": 6}, {"a": 1, "b": 2, "c": 4}])
    found = difference(before, after)
    assert found.changed == [({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 4})]
    assert found.only_before == [{"a": 7, "b": 8, "c": 9}]
    assert found.only_after == [{"a": 4, "b": 5, "c": 6}]


def test_a_row_that_is_there_twice_counts_twice() -> None:
    one, two = OutputRows([{"a": 1}]), OutputRows([{"a": 1}, {"a": 1}])
    assert difference(one, two).only_after == [{"a": 1}]
    assert difference(two, two).is_equal


def test_the_last_digit_of_a_float_is_no_difference() -> None:
    assert difference(_rows(0.1 + 0.2), _rows(0.3)).is_equal
    assert not difference(_rows(0.3), _rows(0.31)).is_equal
    assert difference(_rows(float("nan")), _rows(float("nan"))).is_equal


def test_a_column_of_one_side_is_a_difference_unless_it_is_left_out() -> None:
    after = OutputRows([{"id": 0, "price": 1, "new": "x"}], ("id",))
    assert [*lines("output", difference(_rows(1), after), ("id",))] == [
        "output: 1 row before, 1 after: 1 changed, 0 only before, 0 only after",
        "  id=0",
        "    column  before              after",
        "    ------  ------------------  -----",
        "    new     '(no such column)'  'x'",
    ]
    assert difference(_rows(1), after, ["new"]).is_equal
