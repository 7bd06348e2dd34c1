"""The checkpoint folder of a start: copied and repaired in one master transaction; no JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from minicluster.testing import Running
from tests.support import without_fix
from tests.support.helpers import ContextOf, cut_off
from tests.support.simulated_driver import offsets_text, put, write
from ytstream.cluster.client import Client
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import Head
from ytstream.recovery import spark_logs
from ytstream.recovery.checkpoint_repair import new_folder, path_of, remove_old
from ytstream.settings.job_settings import Settings

Ends = Mapping[int, int]


@pytest.fixture
def context(context_of: ContextOf) -> JobContext:
    """Connect a job with state whose checkpoint is an empty folder."""
    context = context_of("transactional", "window")
    context.client.create("map_node", context.settings.checkpoint, recursive=True)
    return context


def _lay(
    context: JobContext,
    offsets: Mapping[int, Ends],
    commits: tuple[int, ...],
    *,
    states: tuple[str, ...] = (),
    epoch: int = 1,
) -> None:
    """Write the folder that a driver of ``epoch`` left."""
    client, path = context.client, path_of(context.settings, epoch)
    put(client, f"{path}/metadata", '{"id":"x"}')
    for number, ends in offsets.items():
        write(client, f"{path}/offsets/{number}", offsets_text([ends]))
    for number in commits:
        write(client, f"{path}/commits/{number}", 'v1\n{"nextBatchWatermarkMs":0}')
    for name in states:
        put(client, f"{path}/state/{name}")


def _make_of(context: JobContext, was: Sequence[str], now: Mapping[str, Ends]) -> None:
    """Make the folder of epoch 2, for the queues ``now``, after batch 4 of those before."""
    ends = {queue: {0: 10 + place} for place, queue in enumerate(was)}
    head = Head(2, "x", 1, 4, ends=ends, ids=dict.fromkeys(was, "1-2-3-4"))
    settings = replace(context.settings, queues=tuple(now))
    new_folder(context.client, settings, head, 2, [*now.values()], stateful=True)


def _make(context: JobContext, batch: int, ends: Ends, rows: Ends, folder: int = 1) -> int:
    """Make the folder of epoch 2 out of that of ``folder``, whose head is at ``batch``."""
    queue = context.settings.queues[0]
    head = Head(2, "x", folder, batch, ends={queue: ends}, ids={queue: "1-2-3-4"})
    return new_folder(context.client, context.settings, head, 2, [rows], stateful=True)


def _tree(client: Client, settings: Settings, epoch: int = 2) -> dict[str, Any]:
    found: dict[str, Any] = client.get(path_of(settings, epoch))
    return found


def _names(context: JobContext, log: str) -> list[int]:
    folder = path_of(context.settings, 2)
    return spark_logs.numbers(context.client, f"{folder}/{log}")


def test_a_checkpoint_without_the_querys_id_gets_one(context: JobContext) -> None:
    """Spark 4.2 refuses a log of offsets without it."""
    _lay(context, {4: {0: 10}}, (4,))
    context.client.remove(f"{path_of(context.settings, 1)}/metadata")
    _make(context, 4, {0: 10}, {0: 10})
    text = context.client.read_file(f"{path_of(context.settings, 2)}/metadata").read()
    assert UUID(json.loads(text)["id"])


@pytest.mark.parametrize(
    ("stateful", "head"),
    [(False, Head(2, "x", 1, 4)), (True, Head(2, "x", 1, -1)), (True, Head(2, "x", None, 4))],
    ids=["no state", "no batch", "no start"],
)
def test_a_folder_is_empty_without_a_state_to_copy(
    context: JobContext, stateful: bool, head: Head
) -> None:
    _lay(context, {4: {0: 10}}, (4,))
    client, settings = context.client, context.settings
    assert new_folder(client, settings, head, 2, [{0: 10}], stateful=stateful) == -1
    assert _tree(client, settings) == {}


@pytest.mark.parametrize("folder", [0, 1])
def test_a_whole_checkpoint_is_copied_as_it_is(context: JobContext, folder: int) -> None:
    _lay(
        context,
        {3: {0: 5}, 4: {0: 10}},
        (3, 4),
        states=("0/0/4.delta", "0/0/5.delta", "0/_metadata/v2"),
        epoch=folder,
    )
    client, settings = context.client, context.settings
    before = _tree(client, settings, folder)
    assert _make(context, 4, {0: 10}, {0: 10}, folder) == 4
    wanted = {name: before[name] for name in ("metadata", "offsets", "commits", "state")}
    assert _tree(client, settings) == wanted
    before.pop("2", None)
    after = _tree(client, settings, folder)
    after.pop("2", None)
    assert after == before  # an older driver may still use it


@pytest.mark.parametrize(
    ("commits", "wanted"),
    [((3, 4), [3, 4]), ((3,), [3, 4]), ((), [4]), ((3, 4, 5), [3, 4])],
    ids=["whole", "one missing", "all missing", "one too many"],
)
def test_the_commit_log_ends_with_the_ledgers_batch(
    context: JobContext, commits: tuple[int, ...], wanted: list[int]
) -> None:
    _lay(context, {3: {0: 5}, 4: {0: 10}, 5: {0: 20}}, commits)
    _make(context, 4, {0: 10}, {0: 10})
    assert (_names(context, "commits"), _names(context, "offsets")) == (wanted, [3, 4, 5])


def test_a_commit_that_is_added_has_the_batchs_watermark(context: JobContext) -> None:
    _lay(context, {}, (3,))
    client, path = context.client, path_of(context.settings, 1)
    text = offsets_text([{0: 10}]).replace('"batchWatermarkMs": 0', '"batchWatermarkMs": 1234')
    write(client, f"{path}/offsets/4", text)
    _make(context, 4, {0: 10}, {0: 10})
    added = client.read_file(f"{path_of(context.settings, 2)}/commits/4").read()
    assert added == b'v1\n{"nextBatchWatermarkMs":1234}'


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ('v1\n{"nextBatchWatermarkMs":7}', 7),
        ('v1\n{"nextBatchWatermarkMs":7', 1234),
        ('v1\n{xnextBatchWatermarkMs":7}', 1234),
        ('v1\n{"nextBatchwatermarkMs":7}', 1234),
        ('v+\n{"nextBatchWatermarkMs":7}', 1234),
        ("v1", 1234),
        ("", 1234),
    ],
    ids=["whole", "cut short", "no JSON", "another key", "another version", "no line", "empty"],
)
def test_a_commit_that_spark_cannot_read_is_written_again(
    context: JobContext, written: str, wanted: int
) -> None:
    client, path = context.client, path_of(context.settings, 1)
    _lay(context, {}, (3,))
    text = offsets_text([{0: 10}]).replace('"batchWatermarkMs": 0', '"batchWatermarkMs": 1234')
    write(client, f"{path}/offsets/4", text)
    write(client, f"{path}/commits/4", written)
    _make(context, 4, {0: 10}, {0: 10})
    found = client.read_file(f"{path_of(context.settings, 2)}/commits/4").read()
    assert found == f'v1\n{{"nextBatchWatermarkMs":{wanted}}}'.encode()


@pytest.mark.parametrize(
    ("planned", "is_kept"),
    [({0: 20}, True), ({0: 10}, True), ({}, True), ({0: 9}, False), ({0: 20, 1: 6}, False)],
    ids=["later", "empty", "unknown", "before the ledger", "one partition before it"],
)
def test_a_planned_batch_stays_if_it_ends_behind_the_ledgers(
    context: JobContext, planned: Ends, is_kept: bool
) -> None:
    rows = {0: 10, 1: 7}
    _lay(context, {4: rows, 5: planned, 6: {0: 99, 1: 99}}, (4,))
    _make(context, 4, rows, rows)
    assert _names(context, "offsets") == ([4, 5, 6] if is_kept else [4])


def test_without_that_a_planned_batch_is_planned_again(
    context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_fix.plan_again(monkeypatch)
    rows = {0: 10, 1: 7}
    _lay(context, {4: rows, 5: {0: 20}}, (4,))
    _make(context, 4, rows, rows)
    assert _names(context, "offsets") == [4]


def test_a_gap_moves_the_last_batchs_end_and_drops_what_came_after(context: JobContext) -> None:
    """Spark prefers a snapshot that it finds to a new delta of the same version."""
    kept = {"4.delta", "5.delta", "5.snapshot", "_store.lock"}
    _lay(
        context,
        {4: {0: 10, 1: 7}, 5: {0: 20, 1: 9}},
        (4, 5),
        states=(
            *(f"0/{p}/{name}" for p in (0, 1) for name in (*kept, "6.delta", "12.snapshot")),
            "1/0/6.zip",
            "0/_metadata/9",
        ),
    )
    assert _make(context, 4, {0: 10, 1: 7}, {0: 15, 1: 7}) == 4
    folder, client = path_of(context.settings, 2), context.client
    entry = spark_logs.planned(client, folder, 4)
    assert entry.ends == ({0: 15, 1: 7},)
    assert entry.metadata == spark_logs.planned(client, path_of(context.settings, 1), 4).metadata
    assert (_names(context, "offsets"), _names(context, "commits")) == ([4], [4])
    state = _tree(client, context.settings)["state"]
    assert {p: set(names) for p, names in state["0"].items()} == {
        "0": kept,
        "1": kept,
        "_metadata": {"9"},
    }
    assert state["1"] == {"0": {}}


_LINE = '{{"cluster":"minicluster","path":"{0}","partitions":{{"0":{1}}}}}'


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 2], ids=["plain", "united with themselves"])
@pytest.mark.parametrize(
    ("now", "ends", "before"),
    [
        ({"//b": 10, "//d": 11, "//e": 7}, (9, 10, 6), (4, 5, 6)),
        ({"//a": 7, "//b": 10, "//d": 11}, (6, 9, 10), (6, 4, 5)),
        ({"//d": 11}, (10,), (5,)),
        ({"//c": 7, "//d": 11}, (6, 10), (6, 5)),
        ({"//c": 0, "//d": 15}, (-1, 14), (-1, 5)),
    ],
    ids=["behind", "in front", "removed", "replaced", "replaced, and a gap"],
)
def test_the_log_is_of_the_queues_that_the_job_reads_now(
    context: JobContext,
    now: Mapping[str, int],
    ends: tuple[int, ...],
    before: tuple[int, ...],
    rounds: int,
) -> None:
    """SPYT moves the consumer of the path in a line (YtQueueOffset.advance), so paths are right."""
    _lay(context, {}, (3, 4), states=("0/0/5.delta", "0/0/6.delta"))
    client = context.client
    first, second = (path_of(context.settings, epoch) for epoch in (1, 2))
    for number, rows in ((3, (4, 5)), (4, (9, 10)), (5, (19, 20))):
        lines = [_LINE.format(*pair) for pair in zip(("//b", "//d"), rows, strict=True)] * rounds
        metadata = '{"batchWatermarkMs":0,"conf":{}}'
        write(client, f"{first}/offsets/{number}", "\n".join(["v1", metadata, *lines]))
    _make_of(context, ("//b", "//d"), {queue: {0: row} for queue, row in now.items()})
    assert _names(context, "offsets") == [3, 4]  # 5 was planned with other sources
    for number, wanted in ((4, ends), (3, before)):
        lines = [_LINE.format(*pair) for pair in zip(now, wanted, strict=True)]
        text = client.read_file(f"{second}/offsets/{number}").read().decode()
        assert text.splitlines()[2:] == lines * rounds
    assert set(_tree(client, context.settings)["state"]["0"]["0"]) == {"5.delta"}


def test_a_source_that_has_not_had_a_row_has_none_still(context: JobContext) -> None:
    _lay(context, {}, (4,))
    folder = path_of(context.settings, 1)
    write(context.client, f"{folder}/offsets/4", 'v1\n{"conf":{}}\n-')
    _make_of(context, ("//b",), {"//a": {0: 7}, "//b": {0: 10}})
    entry = spark_logs.planned(context.client, path_of(context.settings, 2), 4)
    assert entry.sources == (_LINE.format("//a", 6), "-")


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "bare"])
def test_a_batch_that_runs_again_finds_no_state_of_its_own(
    context: JobContext, monkeypatch: pytest.MonkeyPatch, fixed: bool
) -> None:
    """With other code it makes another one, and Spark prefers a snapshot that it finds."""
    if not fixed:
        without_fix.keep_later_states(monkeypatch)
    _lay(
        *(context, {4: {0: 10}, 5: {0: 20}}, (4,)),
        states=(
            *("0/0/5.delta", "0/0/6.delta", "0/0/6.snapshot"),
            *("0/1/5.changelog", "0/1/5.zip", "0/1/6.changelog", "0/1/6.zip", "0/1/SSTs/6-0a.sst"),
        ),
    )
    _make(context, 4, {0: 10}, {0: 10})
    assert _names(context, "offsets") == [4, 5]
    left = _tree(context.client, context.settings)["state"]["0"]
    assert (set(left["0"]) == {"5.delta"}) == fixed
    assert (set(left["1"]) == {"5.changelog", "5.zip", "SSTs"}) == fixed


def test_files_that_spark_was_writing_when_it_died_are_gone(context: JobContext) -> None:
    states = ("0/0/5.changelog", "0/0/.5.zip.0a1b.tmp", "0/0/.6.changelog.0a1b.tmp")
    _lay(context, {4: {0: 10}}, (4,), states=states)
    path = path_of(context.settings, 1)
    for log in ("offsets", "commits"):
        put(context.client, f"{path}/{log}/.5.0a1b.tmp")
    _make(context, 4, {0: 10}, {0: 10})
    tree = _tree(context.client, context.settings)
    assert (set(tree["offsets"]), set(tree["commits"])) == ({"4"}, {"4"})
    assert set(tree["state"]["0"]["0"]) == {"5.changelog"}


def test_what_a_start_that_was_cut_off_left_is_replaced(context: JobContext) -> None:
    _lay(context, {4: {0: 10}}, (4,))
    _lay(context, {7: {0: 99}}, (7,), states=("0/0/8.delta",), epoch=2)
    _make(context, 4, {0: 10}, {0: 10})
    assert (_names(context, "offsets"), _names(context, "commits")) == ([4], [4])
    assert "state" not in _tree(context.client, context.settings)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_folder_is_made_whole_or_not_at_all(context: JobContext, cluster: Running) -> None:
    _lay(context, {4: {0: 10}, 5: {0: 20}}, (4, 5), states=("0/0/6.delta",))
    client, path = context.client, path_of(context.settings, 2)
    writes = 0
    while cut_off(cluster, writes, lambda: _make(context, 4, {0: 10}, {0: 15})):
        assert not client.exists(path)
        cluster.client.clock.advance(120)  # the transaction of a process that is dead
        writes += 1
    assert writes > 8
    assert client.exists(path)


@pytest.mark.parametrize(
    ("commit", "watermark"),
    [
        ('{"nextBatchWatermarkMs":7}', 7),
        ('{"nextBatchWatermarkMs": 7, "x": 1}', 7),
        ("{}", 0),
        ("", 5),
    ],
    ids=["Spark's", "another one's", "none", "no commit"],
)
def test_the_watermark_is_that_of_the_next_batch(
    context: JobContext, commit: str, watermark: int
) -> None:
    client, path = context.client, path_of(context.settings, 1)
    text = offsets_text([{0: 10}]).replace('"batchWatermarkMs": 0', '"batchWatermarkMs": 5')
    write(client, f"{path}/offsets/4", text)
    if commit:
        write(client, f"{path}/commits/4", f"v1\n{commit}")
    assert spark_logs.watermark(client, path, 4) == watermark


def test_a_watermark_beyond_the_calendar_has_a_name() -> None:
    """One wrong date moves it there."""
    assert spark_logs.named(1_704_067_200_000) == "2024-01-01 00:00:00 UTC"
    assert spark_logs.named(2**62).startswith("9999-")


def test_older_folders_are_removed_but_those_in_use(context: JobContext) -> None:
    client, path = context.client, context.settings.checkpoint
    for name in ("1", "2", "10", "11", "offsets", ".12.tmp"):
        client.create("map_node", f"{path}/{name}")
    remove_old(client, context.settings, 11, 10)
    assert set(client.list(path)) == {"10", "11", "offsets", ".12.tmp"}


def test_the_folder_of_a_successor_stays(context: JobContext) -> None:
    """The driver of epoch 2 was frozen between its start's commit and this."""
    client, path = context.client, context.settings.checkpoint
    for name in ("1", "2", "3"):
        client.create("map_node", f"{path}/{name}")
    remove_old(client, context.settings, 2, None)
    assert set(client.list(path)) == {"2", "3"}


def test_an_older_folder_that_is_locked_stays_for_now(context: JobContext) -> None:
    client: Any = context.client
    path = context.settings.checkpoint
    for name in ("1", "2", "3"):
        client.create("map_node", f"{path}/{name}")
    with client.Transaction():
        client.lock(f"{path}/1", mode="exclusive")
        with client.Transaction(transaction_id="0-0-0-0"):
            remove_old(client, context.settings, 3, None)
    assert set(client.list(path)) == {"1", "3"}
    remove_old(client, context.settings, 3, None)
    assert client.list(path) == ["3"]
