"""Which paths and which addresses of a cluster a job may have."""

import re

from .job_rules import RULES

_PATH, _PROXY, _LOOPBACK = (
    re.compile(RULES["address"][name]) for name in ("path", "proxy", "loopback")
)


def is_path(value: object) -> bool:
    """Return whether the value is a plain Cypress path."""
    return isinstance(value, str) and _PATH.fullmatch(value) is not None


def is_proxy(value: object) -> bool:
    """Return whether the value is the address of a cluster."""
    match = _PROXY.fullmatch(value) if isinstance(value, str) else None
    return match is not None and int(match["port"] or 80) in range(1, 65536)


def is_loopback(proxy: str) -> bool:
    """Return whether the proxy is on this machine, as the minicluster is."""
    return _LOOPBACK.fullmatch(proxy) is not None and is_proxy(proxy)
