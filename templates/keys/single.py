"""The part of the key that tells queues apart: none, there is one queue."""

from collections.abc import Mapping, Sequence

QUEUE_KEY: Sequence[str] = ()


def pivot_keys(tablets: Mapping[str, int]) -> list[list[object]]:
    """First keys of the output's tablets, one for each tablet of the queue."""
    (count,) = tablets.values()
    keys: list[list[object]] = [[tablet] for tablet in range(1, count)]
    return [[], *keys]
