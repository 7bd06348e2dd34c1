"""What this kind of processing adds to the configuration: the reference table."""

from dataclasses import dataclass, field

from .rules import PATH, seconds

NAME = "{{ cookiecutter.processing }}"


@dataclass(frozen=True, kw_only=True)
class ProcessingSettings:
    """``reference`` is a Cypress path, ``reference_refresh`` the seconds until it is read again."""

    reference: str = field(metadata=PATH)
    reference_refresh: float = field(default=3600.0, metadata=seconds(1, 7 * 24 * 3600))
