"""What an error of the cluster means for a job, by its codes: the same for every client."""

import re
from collections.abc import Callable

from ..errors import FullAccountError, JobError, OutageError, RestartableError, UnmountedError
from ..errors.error_codes import ErrorCode

AUTHENTICATION = 900
"""The token is wrong or has expired: NSecurityClient's AuthenticationError
(yt/yt/client/security_client/public.h), NRpc's AuthenticationError and InvalidCredentials
(yt/yt/core/rpc/public.h)."""
_AUTHENTICATION = (AUTHENTICATION, 109, 111)
_AUTHORIZATION, _FULL = 901, 902
"""AuthorizationError and AccountLimitExceeded (yt/yt/client/security_client/public.h)."""
UNMOUNTED = (1701, 1702, 1704, 1706, 1707, 1721)
"""Codes of a tablet that is not mounted, or on its way from one state or node to another: no such
tablet, not mounted, wrong mount revision, wrong state, mount info not ready, no such cell
(yt/yt/client/tablet_client/public.h)."""
_UNREACHABLE = (3, 100, 105, 108, 115, 116, 118, 120, 122, 904, 2100)
"""A server or proxy that does not serve requests now: timeout (yt/yt/core/misc/error_code.h);
transport, unavailable, full queue, peer banned, transient failure, overloaded, no memory for
request or answer (yt/yt/core/rpc/public.h); the user's queue is full
(yt/yt/client/security_client/public.h); proxy banned (yt/yt/client/api/rpc_proxy/public.h)."""

_BUSY = (1712, 1713, 1725, 1735, 1739, 1740)
"""A tablet that does not serve requests now: row blocked by a transaction that commits, for too
long, too many requests, chunks not in memory yet, bundle banned, tablet being moved
(yt/yt/client/tablet_client/public.h). "Read request is throttled" is of
yt/yt/server/node/tablet_node/tablet_reader.cpp (ThrowUponDistributedThrottlerOverdraft)."""

_ACCOUNT = re.compile(r'[Aa]ccount "([^"]+)"')
"""As the master says it (yt/yt/server/master/security_server/security_manager.cpp,
ValidateResourceUsageIncrease)."""


def judged(
    has_code: Callable[[int], bool], line: str, cluster: str = "the cluster"
) -> JobError | RestartableError | None:
    """Return the error of the cluster whose codes and message these are.

    None for a code that says nothing about what to do.
    """
    if any(map(has_code, _AUTHENTICATION)):
        return JobError(
            f"{cluster} refuses the token: {line}", "renew YT_TOKEN", code=ErrorCode.TOKEN
        )
    if has_code(_FULL):
        account = _ACCOUNT.search(line)
        return FullAccountError(line, account[1] if account else "")
    if has_code(_AUTHORIZATION):
        remedy = "ask the owner of that path for the permission named"
        return JobError(f"not permitted on {cluster}: {line}", remedy, code=ErrorCode.PERMISSION)
    if any(map(has_code, UNMOUNTED)):
        return UnmountedError(line)
    if any(map(has_code, _UNREACHABLE)):
        return OutageError(f"{cluster} does not answer: {line}", "wait for the cluster")
    if any(map(has_code, _BUSY)):
        return OutageError(
            f"{cluster} does not serve a tablet now: {line}",
            "wait for it; if it lasts, ask the administrators about the tablet cells of its bundle",
        )
    return None
