"""A configuration file with what it extends, and one that is written for a job.

`extends = "production.toml"` in staging.toml takes every key of that file, from the same folder,
that staging.toml does not give itself; tables such as [outputs] are taken key by key. So two
environments have their common part once.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import JobError
from ..errors.error_codes import ErrorCode

EXTENDS = "extends"


@dataclass(frozen=True)
class MergedToml:
    """The keys of a file and of those that it extends."""

    values: dict[str, Any]
    origins: Mapping[str, Path] = field(default_factory=dict)
    """A key, below its tables and joined to them by dots -> the file that gives it."""


def read(path: Path, before: tuple[Path, ...] = ()) -> MergedToml:
    """Read a file and those that it extends. Raises JobError for one that cannot be read."""
    if path in before:
        circle = " -> ".join(file.name for file in (*before, path))
        raise JobError(
            f"{EXTENDS} goes in a circle: {circle}",
            "remove one of these lines",
            code=ErrorCode.CONFIG,
        )
    try:
        own = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors begin with a mark
    except OSError as error:
        remedy = "name an existing file with --config, e.g. --config config/production.toml"
        raise JobError(
            f"cannot read the configuration {path}: {error.strerror}",
            f"correct {EXTENDS} in {before[-1]}" if before else remedy,
            code=ErrorCode.CONFIG,
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise JobError(
            f"{path} is not valid TOML: {error}", "correct that line", code=ErrorCode.CONFIG
        ) from None
    other = own.pop(EXTENDS, None)
    if other is None:
        return MergedToml(own, dict.fromkeys(_names(own), path))
    if not isinstance(other, str) or not other.endswith(".toml"):
        raise JobError(
            f"{path}: {EXTENDS} = {other!r}: wanted a file next to it",
            f'write it as {EXTENDS} = "production.toml"; nothing was started',
            code=ErrorCode.CONFIG,
        )
    base = read(path.parent / other, (*before, path))
    merged = _merged(base.values, own)
    given = {**base.origins, **dict.fromkeys(_names(own), path)}
    return MergedToml(merged, {name: given[name] for name in _names(merged)})


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(base[key], value)
        for key, value in own.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **own, **both}


def _names(values: Mapping[str, Any], tables: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _names(value, f"{tables}{key}.")
        else:
            yield f"{tables}{key}"


def dump(values: Mapping[str, Any]) -> str:
    """Return the values as TOML that ``tomllib`` reads back."""
    plain = [f"{_key(k)} = {_value(v)}" for k, v in values.items() if not isinstance(v, dict)]
    tables = [
        "\n".join([f"\n[{_key(name)}]", *(f"{_key(k)} = {_value(v)}" for k, v in table.items())])
        for name, table in values.items()
        if isinstance(table, dict)
    ]
    return "\n".join([*plain, *tables]) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):  # DEL is the one character that JSON takes and TOML does not
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else _value(key)
