"""A Spark or SPYT setting and why it is there."""

from typing import NamedTuple


class Conf(NamedTuple):
    """``key`` = ``value``, set for ``reason``."""

    key: str
    value: str
    reason: str
    #: The first Spark that knows the key.
    since: tuple[int, int] = (3, 5)
