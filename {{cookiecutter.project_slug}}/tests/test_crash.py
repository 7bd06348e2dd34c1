"""kill -9 at the worst request, a restart, and a count of every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.__main__ import MAY_REPEAT
from demo.scenario import play
from minicluster import testing


@contextmanager
def _unwatched(_title: str, _goal: int) -> Iterator[Callable[[int], None]]:
    yield lambda _rows: None


def test_the_guarantee_survives_a_kill(tmp_path: Path) -> None:
    with testing.start() as cluster:
        result = play(cluster, tmp_path / "job.log", print, _unwatched)

    assert result.rows_in > 0
    assert result.kills == 1
    assert result.outcome.lost == 0
    # A kill that left no trace would prove nothing about a guarantee that may repeat rows.
    assert (result.outcome.duplicated > 0) == MAY_REPEAT
