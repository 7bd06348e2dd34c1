"""What a batch writes after its beginning is never older, even if the host's clock goes back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ytstream.ledger import steady_time


def test_it_stands_still_while_the_clock_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = datetime.now(UTC) + timedelta(days=1)
    seconds = iter((0, -3, -1, 2))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return begun + timedelta(seconds=next(seconds))

    monkeypatch.setattr(steady_time, "_last", datetime.min.replace(tzinfo=UTC))
    monkeypatch.setattr(steady_time, "datetime", Clock)
    found = [(steady_time.now() - begun).total_seconds() for _ in range(4)]
    assert found == [0, 0, 0, 2]
