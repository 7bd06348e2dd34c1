"""One answer to whether this process has to end, whoever reads the ledger."""

from __future__ import annotations

import pytest

from ytstream.ledger.ledger_rows import Head
from ytstream.query.stop_signal import StopSignal
from ytstream.recovery.epoch import Epoch


@pytest.mark.parametrize(
    ("stopped", "epoch", "is_meant"), [(3, 3, True), (2, 3, False), (4, 3, False), (0, 0, False)]
)
def test_a_stop_is_of_one_epoch(stopped: int, epoch: int, is_meant: bool) -> None:
    stop = StopSignal()
    stop.hear(Head(3, stopped=stopped), Epoch(epoch, "process 1 on host"))
    assert stop.is_set() == is_meant


def test_a_stop_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    stop = StopSignal()
    with caplog.at_level("INFO", "job"):
        for _ in range(3):
            stop.hear(Head(3, stopped=3), Epoch(3, "process 1 on host"))
    assert len(caplog.messages) == 1
