"""`[submit]` of the configuration: how the job is started on the cluster, and as what."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .addresses import is_path
from .validators import PATH, TEXT, Rule, is_text, rule, seconds, whole

_PERMISSIONS = {"read", "manage", "administer"}
"""Permissions on an operation (YTsaurus documentation, "Operations: access control")."""


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() == {"subjects", "permissions"}
        and all(isinstance(names, list) and names for names in entry.values())
        and all(is_text(name) for names in entry.values() for name in names)
        and {*entry["permissions"]} <= _PERMISSIONS
    )


def _is_plain(value: object) -> bool:
    """Return whether an annotation is one that YTsaurus keeps: texts, numbers, lists, maps."""
    if isinstance(value, dict):
        return all(is_text(key) and _is_plain(one) for key, one in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float)


MEMORY = re.compile(r"([1-9]\d*)([kmgt])b?", re.IGNORECASE)
"""As Spark writes it; SPYT reads no fractions."""
_MEMORY = rule(
    'an amount of memory such as "4g" or "1500m"',
    lambda value: isinstance(value, str) and MEMORY.fullmatch(value) is not None,
)
_ALIAS = rule(
    'a text that begins with "*", such as "*bids"',
    lambda value: isinstance(value, str) and re.fullmatch(r"\*\S+", value) is not None,
)
_ACL = rule(
    'a list of entries such as {subjects = ["my-team"], permissions = ["read", "manage"]}, with '
    f"permissions of: {', '.join(sorted(_PERMISSIONS))}",
    lambda value: isinstance(value, list) and all(map(_is_entry, value)),
)
_ANNOTATIONS = rule(
    'a table of texts, numbers, lists and tables, such as team = "bids"',
    lambda value: isinstance(value, dict) and _is_plain(value),
)
_ARCHIVE = rule(
    'a file that ends with .zip, .tgz or .tar.gz, here or as "yt:///path" on the cluster',
    lambda value: (
        isinstance(value, str)
        and value.endswith((".zip", ".tgz", ".tar.gz"))
        and (not value.startswith("yt:/") or is_path(value.removeprefix("yt:/")))
    ),
)
_CORES: Rule = whole(1, 256)


@dataclass(frozen=True)
class SubmitSection:
    """How `submit` starts the job. None: the cluster's defaults, else SPYT's."""

    driver_cores: int | None = field(default=None, metadata=_CORES)
    """Cores of the driver."""
    driver_memory: str | None = field(default=None, metadata=_MEMORY)
    """Memory of the driver."""
    executors: int | None = field(default=None, metadata=whole(1, 1_000))
    """How many executors the job has."""
    executor_cores: int | None = field(default=None, metadata=_CORES)
    """Cores of each executor."""
    executor_memory: str | None = field(default=None, metadata=_MEMORY)
    """Memory of each executor."""
    python: str = field(default="python3", metadata=TEXT)
    """The Python of driver and executors, on the nodes, in the image, or in the archive as
    "./environment/bin/python"."""
    java: str | None = field(default=None, metadata=TEXT)
    """Java's folder on the nodes. By default `/opt/jdk` and the version of the Java that submits.
    """
    image: str | None = field(default=None, metadata=TEXT)
    """A Docker image for driver and executors, on clusters that run images."""
    archive: str | None = field(default=None, metadata=_ARCHIVE)
    """An archive with a Python environment, unpacked as `./environment`."""
    alias: str | None = field(default=None, metadata=_ALIAS)
    """The alias of the driver's operation. By default `*` and the path of the ledger."""
    title: str | None = field(default=None, metadata=TEXT)
    """The title of the driver's operation."""
    annotations: Mapping[str, Any] = field(default_factory=dict, metadata=_ANNOTATIONS)
    """Annotations of the driver's operation, for your own tools."""
    acl: tuple[Mapping[str, Any], ...] = field(default=(), metadata=_ACL)
    """Who may read and manage the operations."""
    stderr_table: str | None = field(default=None, metadata=PATH)
    """A table that YTsaurus fills with the driver's stderr when the operation ends."""
    wait_seconds: float = field(default=900.0, metadata=seconds(10, 24 * 3600))
    """How long `submit` waits for the first batch before it ends what it has started."""
    replace_seconds: float = field(default=600.0, metadata=seconds(10, 24 * 3600))
    """With `REPLACE=1`: how long the old version may take to end, and the new one to complete a
    batch, before `submit` rolls back."""

    @property
    def brings_packages(self) -> bool:
        """Whether the job may have packages that the nodes lack; which ones, the nodes will see."""
        return self.archive is not None or self.image is not None


def submit_of(raw: Mapping[str, Any]) -> SubmitSection:
    """Return the value of a table that was found good."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    return SubmitSection(**values)
