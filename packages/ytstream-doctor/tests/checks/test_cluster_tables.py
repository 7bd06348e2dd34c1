"""Doctor looks at the tables of a hand-written job on a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minicluster import testing as minicluster
from tests.support.doctor_jobs import IDEMPOTENT, TRANSACTION, TWO_QUEUES, WAYS, Job
from ytstream.cluster.client import Client
from ytstream_doctor import command_line
from ytstream_doctor.checks import references

_PLAIN: list[dict[str, Any]] = [{"name": "amount", "type": "int64"}]
_KEYS = [
    {"name": name, "type": "int64", "sort_order": "ascending"} for name in ("q", "tablet", "row")
]
_LIST = [*_PLAIN, {"name": "items", "type_v3": {"type_name": "list", "item": "int64"}}]
_AGED = {"min_data_versions": 0, "max_data_ttl": 3_600_000}


@pytest.mark.parametrize(
    ("rule", "job", "planted", "corrected"),
    [
        ("consumer-not-vital", IDEMPOTENT, {"vital": False}, {}),
        ("trimmed-by-age", IDEMPOTENT, {"queue": _AGED}, {}),
        ("output-not-keyed", IDEMPOTENT, {"output": _PLAIN}, {}),
        ("queue-key", TWO_QUEUES, {"output": [*_KEYS[1:], *_PLAIN]}, {"output": [*_KEYS, *_PLAIN]}),
        ("composite-types", IDEMPOTENT, {"columns": _LIST}, {}),
        ("composite-types", IDEMPOTENT, {"output": [*_KEYS[1:], *_LIST]}, {}),
        # 40 tablets of 5,000 rows in a batch, in writes of 2,000.
        (
            "tablet-limit", TRANSACTION, {"output": _PLAIN, "tablets": 2},
            {"output": _PLAIN, "tablets": 8},
        ),
    ],
)  # fmt: skip
def test_a_fault_of_the_tables_is_named_and_its_correction_is_not(
    rule: str, job: Job, planted: dict[str, Any], corrected: dict[str, Any],
    client: Client, cluster: minicluster.Running, root: str, tmp_path: Path,
) -> None:  # fmt: skip
    for name, given in (("planted", planted), ("corrected", corrected)):
        found = named(job, client, cluster, f"{root}/{name}", tmp_path / name, **given)
        assert found == ({rule} if name == "planted" else set())


def named(
    job: Job, client: Any, cluster: minicluster.Running, home: str, folder: Path, *,
    vital: bool = True, queue: dict[str, Any] | None = None, output: list[Any] | None = None,
    columns: list[Any] | None = None, tablets: int = 1,
) -> set[str]:  # fmt: skip
    """Make the job's tables and return the rules that the code alone does not break."""
    job = replace(job, setup="", key=())
    queues = tuple(path.replace("//home", home) for path in job.queues)
    for path in queues:
        attributes = {"dynamic": True, "schema": columns or _PLAIN, "tablet_count": 40}
        client.create("table", path, recursive=True, attributes={**attributes, **(queue or {})})
        client.mount_table(path, sync=True)
        client.create("queue_consumer", f"{home}/shop/job/consumer", recursive=True,
                      ignore_existing=True)  # fmt: skip
        client.mount_table(f"{home}/shop/job/consumer", sync=True)
        client.register_queue_consumer(path, f"{home}/shop/job/consumer", vital=vital)
    schema = output or [*_KEYS[1:], *_PLAIN]
    attributes = {"dynamic": True, "schema": schema, "tablet_count": tablets}
    if "sort_order" in schema[0]:
        del attributes["tablet_count"]
    client.create("table", f"{home}/shop/job/output", recursive=True, attributes=attributes)
    folder.mkdir()
    WAYS["functions"](replace(job, queues=queues), folder)
    for file in folder.rglob("*.py"):
        file.write_text(file.read_text().replace('"//home/shop', f'"{home}/shop'))
    before = {finding.rule for finding in command_line.diagnosed(folder)[0]}
    return {finding.rule for finding in command_line.diagnosed(folder, cluster.http)[0]} - before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"dynamic": True}, {"unflushed-rows"}),
        ({"dynamic": True, "enable_dynamic_store_read": True}, set()),
        ({}, set()),
    ],
)
def test_a_dynamic_table_is_read_whole(
    way: str, attributes: dict[str, Any], found: set[str],
    client: Client, cluster: minicluster.Running, root: str, tmp_path: Path,
) -> None:  # fmt: skip
    path = f"{root}/prices"
    client.create("table", path, recursive=True, attributes={"schema": _PLAIN, **attributes})
    read = f'prices = SparkSession.builder.getOrCreate().read.yt("{path}")\n'
    WAYS[way](replace(IDEMPOTENT, setup=read), tmp_path)
    assert {finding.rule for finding in command_line.diagnosed(tmp_path)[0]} == set()
    assert {finding.rule for finding in command_line.diagnosed(tmp_path, cluster.http)[0]} == found


@pytest.mark.parametrize(("rows", "found"), [(3, set()), (4, {"large-broadcast"})])
def test_a_small_table_may_be_broadcast(
    rows: int, found: set[str], client: Any, cluster: minicluster.Running, root: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Without a cluster nothing says how large it is."""
    path = f"{root}/names"
    client.create("table", path, recursive=True, attributes={"schema": _PLAIN})
    client.write_table(path, [{"amount": number} for number in range(rows)])
    session = "SESSION = SparkSession.builder.getOrCreate()\n"
    read = f'{session}NAMES = F.broadcast(SESSION.read.yt("{path}"))\n'
    WAYS["script"](replace(IDEMPOTENT, setup=read), tmp_path)
    monkeypatch.setattr(references, "MOST_ROWS", 3)
    assert {one.rule for one in command_line.diagnosed(tmp_path)[0]} == {"large-broadcast"}
    assert {one.rule for one in command_line.diagnosed(tmp_path, cluster.http)[0]} == found


def test_a_cluster_that_does_not_answer_is_an_error_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    WAYS["script"](IDEMPOTENT, tmp_path)
    assert command_line.main(["doctor", str(tmp_path), "--proxy", "127.0.0.1:9"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error [outage]: cannot reach the cluster at 127.0.0.1:9")
