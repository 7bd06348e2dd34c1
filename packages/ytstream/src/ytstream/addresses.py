"""Which paths and which addresses of a cluster a job may have.

Standard library only, so that the template can read it when it checks the answers.
"""

import re

#: One or more components; no attributes, no rich prefix, no trailing slash. Narrower than Cypress:
#: the same path is a YPath, where / @ & * [ { < \ mean something; a string in a query that SPYT
#: writes; and, for the checkpoint, a Hadoop URI. These characters have no special meaning in any of
#: the three. SPYT finds the consumer's rows by string equality on the queue's path
#: (YtQueueOffset.getCurrentOffset), so the path must be canonical.
_PATH = re.compile(r"//[A-Za-z0-9_.+=~-]+(/[A-Za-z0-9_.+=~-]+)*")
#: A cluster's name, host, host:port or URL without a path or a user.
PROXY = re.compile(
    r"(https?://)?([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?|\[::1\])(:(?P<port>[0-9]{1,5}))?"
)
_LOOPBACK = re.compile(r"(https?://)?(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")


def is_path(value: object) -> bool:
    """Return whether the value is a plain Cypress path."""
    is_plain = isinstance(value, str) and _PATH.fullmatch(value) is not None
    return is_plain and not {".", ".."} & {*str(value).split("/")}


def is_proxy(value: object) -> bool:
    """Return whether the value is the address of a cluster."""
    match = PROXY.fullmatch(value) if isinstance(value, str) else None
    return match is not None and int(match["port"] or 80) in range(1, 65536)


def is_loopback(proxy: str) -> bool:
    """Return whether the proxy is on this machine, as the minicluster is."""
    return _LOOPBACK.fullmatch(proxy) is not None and is_proxy(proxy)
