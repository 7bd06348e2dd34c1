"""The page of `yt` commands still holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import testing
from packages.minicluster.tests.support.transcript import PAGE, replay, replayed
from packages.minicluster.tests.support.yt_process import running_shell


@pytest.mark.thorough
@pytest.mark.slow
def test_the_transcript_holds(fresh: testing.Running, tmp_path: Path) -> None:
    page = PAGE.read_text()
    with running_shell(fresh.http, tmp_path) as shell:
        said = list(replay(page, shell))
    assert replayed(page, said) == page
    assert len(said) >= 40
    assert sum(one.refused for one in said) >= 5
