"""All commands: those of this package, and those of ytstream-tools where it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..version import __version__
from . import check, migrate, provision, rewind, run, stop
from .command import Command

OF_THE_RUNTIME = tuple(module.COMMAND for module in (provision, check, run, stop, migrate, rewind))
"""The commands that run on a cluster as well as on a laptop."""
OF_THE_TOOLS = (
    "rows", "submit", "logs", "status", "metrics", "page", "drain", "complete-until", "capture",
    "rehearse", "replay-rejected", "demo", "real", "tables", "confs", "alerts", "why",
    "adopt", "approve", "preview", "reference", "seal",
)  # fmt: skip
"""The commands of ytstream-tools. They are known here so that a missing package can be named."""
GROUP = "ytstream.commands"
"""The entry point of a package that brings further commands: an iterable of Command."""
LAPTOP_PACKAGES = {
    "ytstream_tools": "ytstream-tools[testing]",
    "ytstream_doctor": "ytstream-doctor",
    "minicluster": "ytstream-tools[testing]",
    "prometheus_client": "ytstream-tools[metrics]",
    "pytest": "ytstream-tools[testing]",
    "rich": "ytstream-tools",
}
"""Module that only a laptop has -> the package to install for it."""


@dataclass(frozen=True)
class Registry:
    """The commands that can run here, and why others cannot."""

    commands: Mapping[str, Command]
    missing: Mapping[str, JobError]
    """Name of a command that cannot run here -> the error that says what to install."""

    def verify(self, name: str) -> None:
        """Raise JobError for a command whose package is missing or broken."""
        if name in self.missing:
            raise self.missing[name]


def registry() -> Registry:
    """Find the commands. A package that cannot be imported is an error of its commands."""
    found = {command.name: command for command in OF_THE_RUNTIME}
    problem = ""
    for point in entry_points(group=GROUP):
        try:
            found |= {command.name: command for command in point.load()}
        except Exception as error:
            problem = f"its package ytstream-tools cannot be imported: {error}"
    if not problem:
        problem = "its package ytstream-tools is not installed here"
    missing = {
        name: JobError(f"`{name}` cannot run: {problem}", remedy(), code=ErrorCode.NOT_INSTALLED)
        for name in OF_THE_TOOLS
        if name not in found
    }
    return Registry(found, missing)


def remedy(module: str = "ytstream_tools") -> str:
    """Return how to install what has ``module``, one of LAPTOP_PACKAGES."""
    return f"install it: pip install '{LAPTOP_PACKAGES[module]}=={__version__}'"
