"""Attributes of formats: read with their types; those that ask for what is not here are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import generic, not_supported

Options = Mapping[str, Any]


def flag(options: Options, name: str, default: bool) -> bool:
    """Return a boolean; over HTTP it may come as text. Raises YtError for anything else."""
    given = options.get(name, default)
    if given in ("true", "false"):
        return bool(given == "true")
    if not isinstance(given, int) or given not in (0, 1):
        raise generic(f'Error reading parameter /{name}: expected "boolean", actual {given!r}')
    return bool(given)


def one_of(options: Options, name: str, *allowed: str) -> str:
    """Return one of the allowed values; the first is the default. Raises YtError for another."""
    given = options.get(name, allowed[0])
    if not isinstance(given, str) or str(given) not in allowed:
        raise generic(f"Error parsing format: {name} {given!r}")
    return str(given)


def symbol(options: Options, name: str, default: str) -> bytes:
    """Return a character as a byte. Raises YtError for anything else."""
    given = options.get(name, default)
    data = given.encode() if isinstance(given, str) else b""
    if len(data) != 1:
        raise generic(f"Error reading parameter /{name}: expected a character, actual {given!r}")
    return data


def refuse(options: Options, defaults: Mapping[str, Any]) -> None:
    """Raise YtError for an option with another value than the only one that is known here."""
    for name, default in defaults.items():
        boolean = isinstance(default, bool)
        if (flag(options, name, default) if boolean else options.get(name, default)) != default:
            raise not_supported(f'format with "{name}" other than "{default}"')
