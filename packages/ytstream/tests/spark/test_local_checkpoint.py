"""The checkpoint of a job without state: a folder on the driver's disk, for one query."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from minicluster.testing import Running
from tests.support.helpers import StreamOf, refusal
from tests.support.job_thread import supervised
from ytstream.spark import local_checkpoint
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import wait

spark_test = pytest.mark.spark


def test_the_folder_is_removed_with_its_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("YT_OPERATION_ID", raising=False)
    made = local_checkpoint.made_folder()
    assert Path(made.name).parent == tmp_path
    assert Path(made.name).stat().st_mode & 0o077 == 0
    del made
    assert not [*tmp_path.iterdir()]


def test_in_an_operation_it_is_in_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YT_OPERATION_ID", "1-2-3-4")
    monkeypatch.chdir(tmp_path)
    with local_checkpoint.made_folder() as made:
        assert Path(made).parent == tmp_path


def test_a_disk_that_takes_no_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("YT_OPERATION_ID", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    said = refusal(local_checkpoint.made_folder)
    assert "cannot make the folder of its checkpoint" in said
    assert str(tmp_path / "gone") in said
    assert "TMPDIR" in said


@pytest.mark.parametrize(
    ("text", "is_full"),
    [
        ("java.io.IOException: No space left on device", True),
        ("[STREAM_FAILED] ... terminated with exception: Disk quota exceeded", True),
        ("java.io.IOException: Connection reset by peer", False),
    ],
)
def test_a_full_disk_is_told_from_other_failures(text: str, is_full: bool) -> None:
    def fail() -> None:
        with local_checkpoint.explained_space(local_checkpoint.made_folder()):
            raise StreamingQueryException(text)

    if not is_full:
        with pytest.raises(StreamingQueryException, match="reset by peer"):
            fail()
        return
    said = refusal(fail)
    assert "the driver's disk is full" in said
    assert "ytstream-checkpoint-" in said


@pytest.mark.thorough
@spark_test
def test_a_batch_asks_nothing_of_its_folder_on_cypress(
    stream_of: StreamOf, cluster: Running
) -> None:
    """The job continues when the folder on the disk is removed under it: the ledger has it all."""
    stream = stream_of("transactional")
    stream.send(200)
    stream.recover()
    cluster.client.journal.clear()
    with stream.running() as query:
        wait(drained(stream.context), query)
        assert stream.batch is not None
        assert stream.batch.disk is not None
        folder = Path(stream.batch.disk.name)
        assert {path.name for path in folder.iterdir()} >= {"commits", "metadata", "offsets"}
        # Hadoop's own file system starts a process for each file, and for that of its checksum.
        assert not [*folder.rglob("*.crc")]
    paths = [str(entry.args) for entry in cluster.client.journal()]
    assert not [path for path in paths if f"{stream.folder}/" in path]
    assert stream.client.list(stream.folder) == []
    assert stream.is_exact()


@spark_test
@pytest.mark.journey
def test_a_folder_that_is_removed_under_its_query_costs_a_start(
    stream_of: StreamOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a cleaner of temporary files does: the next start begins where the ledger is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stream = stream_of("transactional")
    stream.send(200)
    with supervised(stream) as wait:
        wait(drained(stream.context))
        # In the first test of a process, the compiled connector has a folder as well.
        (folder,) = tmp_path.glob("ytstream-checkpoint-*")
        shutil.rmtree(folder)
        stream.send(200)
        wait(drained(stream.context))
    assert not [*tmp_path.glob("ytstream-checkpoint-*")]
    assert stream.is_exact()
