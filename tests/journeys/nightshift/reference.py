"""A month of nights by pandas: the sightings of two halls, and the stays that they make."""

from __future__ import annotations

import numpy as np
import pandas as pd

QUEUES = ("//home/plant/hall-1", "//home/plant/hall-2")
MINUTE = 60_000_000
DAY = 1_440 * MINUTE
PAUSE, LATENESS = 45 * MINUTE, 20 * MINUTE
WORKERS, NIGHTS = 12, 28


def frame() -> pd.DataFrame:
    """Return the sightings in the order of time, and the two rows that bring out the last ones.

    Each worker comes at 22:00 or so, is seen every few minutes, rests for an hour around 2:00, and
    leaves at about 6:00. One is seen from an evening to the next evening, past noon.
    """
    source = np.random.default_rng(24)
    first = pd.Timestamp("2024-02-01 22:00").value // 1_000
    parts = []
    for worker in range(WORKERS):
        for night in range(NIGHTS):
            length = (24 * 60 if worker == 0 else 8 * 60) * MINUTE
            steps = np.cumsum(source.integers(MINUTE, 12 * MINUTE, 400))
            times = first + night * DAY + source.integers(0, 30 * MINUTE) + steps
            times = times[steps < length]
            rest = first + night * DAY + 4 * 60 * MINUTE
            if worker:
                times = times[(times < rest) | (times > rest + 60 * MINUTE)]
            parts.append(pd.DataFrame({"worker": f"n-{worker:02}", "seen": times}))
    made = pd.concat(parts).sort_values("seen", kind="stable", ignore_index=True)
    made["sensor"] = source.integers(1, 40, len(made))
    noise = source.integers(300, 900, len(made)) / 8
    heard = [None if n % 3 == 0 else loud for n, loud in enumerate(noise.tolist())]
    made["noise_db"] = pd.Series(heard, dtype="object")
    made["seen"] = pd.array(made["seen"], dtype="Int64")
    made.loc[made.index % 97 == 5, "seen"] = pd.NA
    # In turn: a queue that is further behind the other than LATENESS has late rows.
    made["queue"] = made.index % len(QUEUES)
    last = made.iloc[[0, 0]].assign(worker="a visitor", queue=0)
    last["seen"] = int(made["seen"].max()) + 3 * DAY
    last["phase"] = [1, 2]
    return pd.concat([made.assign(phase=0), last], ignore_index=True)


def outputs(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the stays that are over, and the reasons of the rows that are kept out."""
    good = rows[rows["seen"].notna()].copy()
    good["seen"] = good["seen"].astype("int64")
    good["noise_db"] = good["noise_db"].astype("float64")
    good = good.sort_values(["worker", "seen"], kind="stable")
    # A stay begins after a pause, with another worker, or at noon.
    is_first = good["worker"] != good["worker"].shift()
    is_first |= good["seen"].diff() > PAUSE
    shift = (good["seen"] - DAY // 2) // DAY
    is_first |= shift != shift.shift()
    stays = (
        good.assign(stay=is_first.cumsum(), shift=shift)
        .groupby("stay")
        .agg(
            worker=("worker", "first"),
            came=("seen", "min"),
            went=("seen", "max"),
            sightings=("seen", "size"),
            loudest_db=("noise_db", "max"),
            shift=("shift", "first"),
        )
    )
    noon = (stays["shift"] + 1) * DAY + DAY // 2
    end = np.minimum(stays["went"] + PAUSE, noon - 1)
    over = stays[end < good["seen"].max() - LATENESS].copy()
    over["past_midnight"] = over["came"] // DAY != over["went"] // DAY
    over["loudest_db"] = over["loudest_db"].astype(object).where(over["loudest_db"].notna(), None)
    odd = rows[rows["seen"].isna()].assign(reason="without a time")
    return {"output": over, "rejected": odd}
