"""Errors as a YTsaurus server answers them: code, text, nesting, and the request that gets them.

The sources are files of ytsaurus/ytsaurus.
"""

from __future__ import annotations

from typing import Any

Error = dict[str, Any]


def error(code: int, message: str, *inner: Error) -> Error:
    """Return an error for a rule of the minicluster."""
    return {"code": code, "message": message, "inner_errors": [*inner]}


UNAVAILABLE = error(105, "Proxy is unable to synchronize with the cluster")
"""NRpc::EErrorCode::Unavailable (yt/yt/core/rpc/public.h). An RPC proxy without its cluster refuses
every request so: TProxyCoordinator::ValidateOperable
(yt/yt/server/lib/rpc_proxy/proxy_coordinator.cpp)."""
UNAVAILABLE_BY_HTTP = error(105, "Proxy is unavailable", error(105, "Peer is not active"))
"""The HTTP proxy wraps what can be tried again: TContext::SetEnrichedError
(yt/yt/server/http_proxy/context.cpp)."""

FULL_TABLET = error(
    1,
    "Error committing transaction 1-2-10001-3",
    error(
        1,
        "Error sending transaction rows",
        error(902, 'Account "tmp" violates disk space limit for medium "default"'),
    ),
)
"""NSecurityClient::EErrorCode::AccountLimitExceeded (yt/yt/client/security_client/public.h). A
tablet node checks the account when rows are written: DoValidateAccountLimits
(yt/yt/server/node/tablet_node/security_manager.cpp). The proxy sends it the rows at the commit:
TTabletCommitSession::OnResponse (yt/yt/ytlib/api/native/tablet_commit_session.cpp), and "Error
committing transaction" (yt/yt/ytlib/api/native/transaction.cpp)."""


def full_chunks(said: str = 'Account "tmp" is over disk space limit in medium "default"') -> Error:
    """Return what a full account answers to a file or a static table, which needs a chunk.

    The master refuses it: ValidateResourceUsageIncrease
    (yt/yt/server/master/security_server/security_manager.cpp). Around that CreateChunk
    (yt/yt/ytlib/chunk_client/helpers.cpp) puts NChunkClient::EErrorCode::MasterCommunicationFailed
    (yt/yt/client/chunk_client/public.h). A node of Cypress needs no disk space.
    """
    refused = error(1, "Error communicating with master", error(902, said))
    return error(712, "Error creating chunk", refused)


FULL_CHUNKS = full_chunks()

TOKEN_BY_HTTP = error(900, "Authentication failed", error(111, "Token is missing in Cypress"))
"""A token that was revoked or has expired is not in Cypress any more:
NRpc::EErrorCode::InvalidCredentials of TCypressTokenAuthenticator
(yt/yt/library/auth_server/cypress_token_authenticator.cpp), inside
NSecurityClient::EErrorCode::AuthenticationError of TCompositeTokenAuthenticator
(token_authenticator.cpp). HTTP answers 401 with it (SetStatusFromAuthError,
yt/yt/server/http_proxy/http_authenticator.cpp)."""
TOKEN = error(109, "Request authentication failed", TOKEN_BY_HTTP)
"""TServiceBase::OnRequestAuthenticated (yt/yt/core/rpc/service_detail.cpp) with
NRpc::EErrorCode::AuthenticationError."""

WRITES_DISABLED = error(
    1,
    "Error committing transaction 1-2-10001-3",
    error(
        1,
        "Error sending transaction rows",
        error(1703, "Node is out of tablet memory, all writes disabled"),
    ),
)
"""Another refusal of a commit with rows: NTabletClient::EErrorCode::AllWritesDisabled
(yt/yt/client/tablet_client/public.h), ValidateMemoryLimit
(yt/yt/server/node/tablet_node/tablet_manager.cpp)."""


THROTTLED = error(1725, 'Read request is throttled due to "lookup" throttler overdraft')
"""An overloaded tablet: NTabletClient::EErrorCode::RequestThrottled
(yt/yt/client/tablet_client/public.h) of ThrowUponDistributedThrottlerOverdraft
(yt/yt/server/node/tablet_node/tablet_reader.cpp)."""
BLOCKED = error(1713, "Timed out waiting on blocked row")
"""NTabletClient::EErrorCode::BlockedRowWaitTimeout of TSortedDynamicStore::WaitOnBlockedRow
(yt/yt/server/node/tablet_node/sorted_dynamic_store.cpp)."""


def denied(permission: str, path: str, user: str = "robot") -> Error:
    """Return NSecurityClient::EErrorCode::AuthorizationError: TSecurityManager::ValidatePermission
    (yt/yt/server/master/security_server/security_manager.cpp).
    """
    said = f'"{permission}" permission for node {path} is not allowed by any matching ACE'
    return error(901, f'Access denied for user "{user}": {said}')


FULL: dict[str, Error] = {
    "CommitTransaction": FULL_TABLET,
    "insert_rows": FULL_TABLET,
    **dict.fromkeys(("WriteFile", "WriteTable", "write_file", "write_table"), FULL_CHUNKS),
}
"""Requests whose data takes disk space, and what a full account answers to each. What the proxy
only collects (ModifyRows), and a node without data, take none."""


def is_http(method: str) -> bool:
    """Return whether a method is of the HTTP interface, which writes names like a_b."""
    return method[0].islower()


def unavailable(method: str) -> Error:
    """Return what a proxy without its cluster answers to a request."""
    return UNAVAILABLE_BY_HTTP if is_http(method) else UNAVAILABLE


def token_expired(method: str) -> Error:
    """Return what a proxy answers to a request whose token has expired."""
    return TOKEN_BY_HTTP if is_http(method) else TOKEN


NO_TRANSACTION = error(11000, "No such transaction 1-2-10001-3")
"""NTransactionClient::EErrorCode::NoSuchTransaction (yt/yt/client/transaction_client/public.h): a
transaction that has expired. No client tries that again."""
LOCKED = error(402, 'Cannot take "exclusive" lock for node //home/job/ledger')
"""NCypressClient::EErrorCode::ConcurrentTransactionLockConflict
(yt/yt/client/cypress_client/public.h): a node that another transaction has locked."""
