"""What a cause has found: the fact, and what to do about it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A cause that the facts speak for."""

    said: str
    do: tuple[str, ...]
    """What to do: commands, or whom to ask."""
