"""What is used of an account's quota."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..settings.job_settings import Settings
from .client import Client, facts

_NEARLY = 0.99
"""Of bytes, the last percent is rarely usable: a chunk needs more than what is left."""
_DISK = "disk space of "
_LIMIT = re.compile(
    r'(?:over|violates) (?:Cypress )?([\w ]+?) limit(?: (?:in|for) medium "([^"]+)")?'
)
"""What the master calls a resource (yt/yt/server/master/security_server/security_manager.cpp,
ValidateResourceUsageIncrease), and a tablet node, which refuses rows at their commit
(yt/yt/server/node/tablet_node/security_manager.cpp, DoValidateAccountLimits)."""


@dataclass(frozen=True)
class ResourceUsage:
    """A resource of an account."""

    account: str
    resource: str
    used: int
    limit: int

    @property
    def ratio(self) -> float:
        """The part of the limit that is used."""
        return self.used / self.limit if self.limit else 1.0

    @property
    def is_full(self) -> bool:
        """Whether the cluster refuses more; of bytes, whether it soon does."""
        is_counted = self.resource.endswith("_count")
        return self.used > 0 and self.ratio >= (1.0 if is_counted else _NEARLY)

    def __str__(self) -> str:
        return f"{self.used} of {self.limit} {self.resource}"


def usage(client: Client, account: str) -> Iterator[ResourceUsage]:
    """Yield the resources of an account that have a limit; nothing for one that is unknown."""
    found = facts(client, f"//sys/accounts/{account}", ["resource_usage", "resource_limits"]) or {}
    used, limits = _flat(found.get("resource_usage", {})), _flat(found.get("resource_limits", {}))
    for name, limit in limits.items():
        if name in used:
            yield ResourceUsage(account, name, used[name], limit)


def of_job(client: Client, settings: Settings) -> Iterator[ResourceUsage]:
    """Yield the resources of the accounts that a job writes with."""
    paths = [settings.ledger, settings.checkpoint, *settings.outputs.values()]
    accounts = {(facts(client, path, ["account"]) or {}).get("account") for path in paths}
    for account in sorted(str(one) for one in accounts if one):
        yield from usage(client, account)


def refused_in(line: str, found: list[ResourceUsage]) -> list[ResourceUsage]:
    """Return the resources that the cluster's message names; if it names none, the full ones."""
    if named := _LIMIT.search(line):
        resource = f"{_DISK}{named[2]}" if named[2] else named[1].replace(" ", "_")
        if matching := [one for one in found if one.resource == resource]:
            return matching
    return [one for one in found if one.is_full]


def _flat(resources: Mapping[str, Any]) -> dict[str, int]:
    media = resources.get("disk_space_per_medium", {})
    pairs = {**resources, **{f"{_DISK}{medium}": bytes_ for medium, bytes_ in media.items()}}
    return {name: int(value) for name, value in pairs.items() if isinstance(value, int)}
