"""What breaks SPYT's own mode, with the job's cure and without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "bare"])
def test_rows_trimmed_before_they_were_read(stream: Any, cured: bool) -> None:
    """SPYT counts rows from the offset it asked for and gets the first ones there are, again."""
    stream.send(2_000)
    stream.client.trim_rows(stream.settings.queues[0], 0, 100)
    if cured:
        stream.settings = replace(stream.settings, start_from="earliest")
        stream.recover()
        stream.drain()
        outcome = stream.outcome()
        assert (outcome.lost, outcome.duplicated) == (100, 0)
    else:
        stream.drain()
        assert stream.outcome().duplicated == 100
