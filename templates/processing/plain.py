"""What this kind of processing adds to the configuration: nothing."""

from dataclasses import dataclass

NAME = "{{ cookiecutter.processing }}"


@dataclass(frozen=True)
class ProcessingSettings:
    """No settings of its own."""
