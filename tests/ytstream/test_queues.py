"""Several queues: their order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ytstream.helpers import StreamOf
from ytstream.recovery import folder

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("guarantee", "cured"),
    [("transactional", True), ("idempotent", True), ("at_least_once", True), ("idempotent", False)],
)
def test_queues_in_another_order(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, guarantee: str, cured: bool
) -> None:
    """Spark matches queues and offsets by position, and SPYT ignores the path in an offset.

    The head knows them by path, and a job without state starts with an empty checkpoint. In a copy
    of the last one each queue would begin where the other one has ended.
    """
    stream = stream_of(guarantee, "map", 2)
    stream.send(400, queues=(0,))
    stream.send(200, queues=(1,))
    stream.drain()
    stream.send(200)
    stream.configure(queues=stream.settings.queues[::-1])
    if not cured:
        new_folder = folder.new_folder

        def copied(*given: Any, stateful: bool) -> int:
            return new_folder(*given, stateful=True)

        monkeypatch.setattr(folder, "new_folder", copied)
    stream.drain()
    assert stream.outcome().duplicated == 0
    assert (stream.outcome().lost > 0) == (not cured)
