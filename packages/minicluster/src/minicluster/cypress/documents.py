"""Walking inside a YSON value: documents, attributes and their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yt import yson

from ..core.errors import generic, resolve
from .ypath import Attr


def get(value: Any, steps: Sequence[str], path: str) -> Any:
    """Return the part of `value` that `steps` lead to. Raises YtError RESOLVE."""
    for step in steps:
        value = _step(value, step, path)
    return value


def exists(value: Any, steps: Sequence[str]) -> bool:
    try:
        get(value, steps, "")
    except Exception:
        return False
    return True


def replaced(value: Any, steps: Sequence[str], new: Any, path: str, *, recursive: bool) -> Any:
    """Return a copy of `value` with `new` at `steps`; it shares all other parts."""
    if not steps:
        return new
    step, rest = steps[0], steps[1:]
    if isinstance(step, Attr):
        attributes = dict(getattr(value, "attributes", {}))
        if step:
            attributes[str(step)] = replaced(
                attributes.get(step), rest, new, path, recursive=recursive
            )
        else:
            require_map(new)
            attributes = dict(new)
        return yson.to_yson_type(_bare(value), attributes=attributes)
    if isinstance(value, list):
        items = list(value)
        place = None if rest else _insertion(items, step, path)
        if place is not None:
            items.insert(place, new)
        else:
            index = _index(items, step, path)
            items[index] = replaced(items[index], rest, new, path, recursive=recursive)
        return _like(value, items)
    if value is None and recursive:
        value = {}
    if not isinstance(value, dict):
        raise resolve(path, f'Value has no child with key "{step}"')
    if rest and step not in value and not recursive:
        raise resolve(path, f'Value has no child with key "{step}"')
    changed = dict(value)
    changed[step] = replaced(value.get(step), rest, new, path, recursive=recursive)
    return _like(value, changed)


def removed(value: Any, steps: Sequence[str], path: str) -> Any:
    """Return a copy of `value` without the part at `steps`. Raises YtError RESOLVE."""
    step, rest = steps[0], steps[1:]
    inner = _step(value, step, path)
    if rest:
        return replaced(value, [step], removed(inner, rest, path), path, recursive=False)
    if isinstance(step, Attr):
        # The empty step means all of them.
        kept = value.attributes if step else {}
        attributes = {k: v for k, v in kept.items() if k != step}
        return yson.to_yson_type(_bare(value), attributes=attributes)
    if isinstance(value, list):
        index = _index(value, step, path)
        return _like(value, [item for i, item in enumerate(value) if i != index])
    return _like(value, {key: item for key, item in value.items() if key != step})


def require_map(attributes: Any) -> None:
    """Raise YtError when all attributes are to be set from a value that is not a map."""
    if not isinstance(attributes, dict):
        raise generic("Attributes can only be set from a map")
    for name in attributes:
        require_text(name)


def require_text(name: Any) -> None:
    """Raise YtError for an attribute's name that is not UTF-8; the parser does not check it."""
    if not isinstance(name, str):
        raise generic("Attribute key must be a valid UTF-8 string")


def _step(value: Any, step: str, path: str) -> Any:
    if isinstance(step, Attr):
        attributes = getattr(value, "attributes", {})
        if not step:
            return attributes
        if step not in attributes:
            raise resolve(path, f'Attribute "{step}" is not found')
        return attributes[step]
    if isinstance(value, list):
        return value[_index(value, step, path)]
    if isinstance(value, dict):
        if step not in value:
            raise resolve(path, f'Value has no child with key "{step}"')
        return value[step]
    raise resolve(path, "Value cannot have children")


def _index(items: Sequence[Any], step: str, path: str) -> int:
    try:
        index = int(step)
    except ValueError:
        raise resolve(path, f'"{step}" is not a list index') from None
    if not -len(items) <= index < len(items):
        raise resolve(path, f"Value has no child with index {index}")
    return index % len(items)


def _insertion(items: Sequence[Any], step: str, path: str) -> int | None:
    """Return the index for a new item; None for a step to a present one ("YPath")."""
    if step in ("begin", "end"):
        return 0 if step == "begin" else len(items)
    side, colon, index = step.partition(":")
    if not colon or side not in ("before", "after"):
        return None
    return _index(items, index, path) + (side == "after")


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    return list(value) if isinstance(value, list) else value


def _like(original: Any, value: Any) -> Any:
    attributes = getattr(original, "attributes", None)
    return yson.to_yson_type(value, attributes=dict(attributes)) if attributes else value
