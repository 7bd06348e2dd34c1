"""Three weeks of receipts by pandas: an archive in static tables beside what dashboards read."""

from __future__ import annotations

import numpy as np
import pandas as pd

QUEUES = ("//home/stores/receipts",)
COUNT = 24_000
GOODS = np.array(["bread", "milk", "чай", "сыр", ""])


def frame() -> pd.DataFrame:
    """Return receipts in the order of time, some of them twice, some of nothing."""
    source = np.random.default_rng(24)
    first = pd.Timestamp("2024-03-20 18:00").value // 1_000
    made = pd.DataFrame(
        {
            "receipt": [f"r{number}" for number in range(COUNT)],
            "store": source.integers(1, 9, COUNT),
            "sold_at": first + np.cumsum(source.integers(0, 150_000_000, COUNT)),
            "cents": source.integers(-2_000, 50_000, COUNT),
            "items": [
                [
                    {"sku": str(sku), "pieces": int(pieces)}
                    for sku, pieces in zip(
                        source.choice(GOODS, size),
                        source.integers(1, 20, size),
                        strict=True,
                    )
                ]
                for size in source.integers(0, 6, COUNT)
            ],
            "customer": source.choice(np.array(["c1", "c2", "", None]), COUNT),
            "queue": 0,
        }
    )
    # Sent again behind the next nineteen; the same number is another receipt in another store.
    again = made[made.index % 10 == 0]
    again = again.set_index(again.index + 19.5)
    return pd.concat([made, again]).sort_index(kind="stable").reset_index(drop=True)


def outputs(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return each receipt once, for each output, and the reasons of those that are kept out."""
    is_empty = rows["items"].map(len) == 0
    once = rows[~is_empty].drop_duplicates(["store", "receipt"])
    local = pd.to_datetime(once["sold_at"], unit="us", utc=True).dt.tz_convert("Asia/Yekaterinburg")
    day = (local.dt.tz_localize(None).dt.floor("D") - pd.Timestamp(0)).dt.days
    pieces = once["items"].map(lambda items: sum(item["pieces"] for item in items))
    kept = ["receipt", "store", "cents", "items", "customer"]
    return {
        "output": once[["receipt", "store", "sold_at", "cents"]].assign(pieces=pieces),
        "archive": once[kept].assign(day=day),
        "returns": once[once["cents"] < 0][["receipt", "cents"]],
        "rejected": rows[is_empty].assign(reason="nothing was sold"),
    }
