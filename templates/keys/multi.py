"""The part of the key that tells queues apart: without it equal positions overwrite each other."""

from collections.abc import Mapping, Sequence

QUEUE_KEY: Sequence[str] = ("queue_id",)


def pivot_keys(tablets: Mapping[str, int]) -> list[list[object]]:
    """First keys of the output's tablets, one for each tablet of each queue."""
    keys: list[list[object]] = [
        [queue, tablet] for queue, count in sorted(tablets.items()) for tablet in range(count)
    ]
    return [[], *keys[1:]]
