"""Runtime parameters of an operation: annotations, and what the scheduler would act on."""

from __future__ import annotations

from typing import Any

from ..core.errors import generic, not_supported

KNOWN = frozenset(
    {
        "acl",
        "owners",
        "pool",
        "weight",
        "annotations",
        "scheduling_options_per_pool_tree",
    }
)
"""All but the annotations are kept and shown; nothing is scheduled by them."""


def separated(given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the annotations and the other parameters of an update. Raises YtError."""
    if not isinstance(given, dict):
        raise generic('Error reading parameter /parameters: expected "map"')
    for name in sorted(map(str, given.keys() - KNOWN)):
        raise not_supported(f"{name} among the parameters of an operation")
    annotations = given.get("annotations", {})
    if not isinstance(annotations, dict):
        raise generic('Error reading parameter /parameters/annotations: expected "map"')
    return annotations, {name: given[name] for name in given.keys() - {"annotations"}}


def merged(old: Any, new: Any) -> Any:
    """Return a map with another one laid over it; what is not a map is replaced."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: merged(old.get(key), value) for key, value in new.items()}}
