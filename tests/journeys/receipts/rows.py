"""YOURS. Sample rows: receipts of nine stores, every twelfth of which is sent again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

EVENT_TIME = "sold_at"
_GOODS = ("bread", "milk", "чай", "сыр", 'a "large" box')


def rows(count: int, seed: int, start_us: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` receipts, about twenty seconds apart, and some of them again."""
    source = random.Random(seed)
    now = start_us
    sent: list[dict[str, Any]] = []
    for number in range(count):
        now += source.randrange(40_000_000)
        items = [
            {"sku": source.choice(_GOODS), "pieces": source.randrange(1, 9)}
            for _ in range(0 if number % 60 == 59 else source.randrange(1, 5))
        ]
        cents = source.randrange(100, 9_000) * len(items)
        row = {
            "receipt": f"{seed}/{number:06}",
            "store": 1 + source.randrange(9),
            "sold_at": now,
            "cents": -cents if number % 25 == 0 else cents,
            "items": items,
            "customer": source.choice((None, "", f"c{source.randrange(500)}")),
        }
        sent.append(row)
        yield row
        if number % 12 == 11:
            yield sent[number - source.randrange(12)]
