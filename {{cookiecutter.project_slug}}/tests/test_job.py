"""The whole job on the minicluster, with the real SPYT: end to end, killed, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import testing
from sample import SAMPLE
from ytstream import Job, JobError
from ytstream.demo.scenario import play
from ytstream.demo.screen import may_repeat
from ytstream.testing.stream import Stream, assert_exact


def test_every_row_arrives_once_and_right(stream: Stream) -> None:
    stream.send(3_000)
    stream.recover()
    stream.close()
    assert stream.found()
    assert_exact(stream.context.job, stream.outcomes())


def test_rows_trimmed_before_they_were_read_are_refused(stream: Stream) -> None:
    stream.send(1_000)
    stream.recover()
    stream.client.trim_rows(stream.settings.queues[0], 0, 100)
    with pytest.raises(JobError, match="were trimmed before this job read them"):
        stream.recover()


def test_the_guarantee_survives_a_kill(tmp_path: Path, job: Job) -> None:
    with testing.start() as cluster:
        result = play(job, SAMPLE, cluster, tmp_path / "job.log", print)
    assert result.rows_in > 0
    assert result.kills == 1
    assert result.history.rows_read == result.rows_in  # by the ledger, whatever was repeated
    if may_repeat(job):
        assert result.outcome.lost == 0
        # A kill that left no trace would prove nothing about a guarantee that may repeat rows.
        cut_off = result.history.batches[1]["rows_written"]["output"]
        assert result.outcomes["output"].duplicated > 0 or not cut_off
    else:
        assert_exact(job, result.outcomes)
