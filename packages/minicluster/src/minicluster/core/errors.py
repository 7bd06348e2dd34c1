"""YT errors and their codes.

Codes: `yt/common.py` of ytsaurus-client 0.13 tells most of them apart by number; the wording is
what the real server answers, since clients and people match on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

GENERIC = 1
TIMEOUT = 3
TRANSPORT = 100
PROTOCOL = 101
NO_SUCH_SERVICE = 102
NO_SUCH_METHOD = 103
INVALID_CSRF_TOKEN = 110
INVALID_CREDENTIALS = 111
SAME_TRANSACTION_LOCK_CONFLICT = 400
DESCENDANT_TRANSACTION_LOCK_CONFLICT = 401
CONCURRENT_TRANSACTION_LOCK_CONFLICT = 402
RESOLVE = 500
ALREADY_EXISTS = 501
AUTHENTICATION = 900
AUTHORIZATION = 901
ALREADY_PRESENT_IN_GROUP = 908
PREREQUISITE_CHECK_FAILED = 1000
TABLET_LOCK_CONFLICT = 1700
NO_SUCH_TABLET = 1701
TABLET_NOT_MOUNTED = 1702
TABLE_MUST_BE_SORTED = 1716
INVALID_MOUNT_REVISION = 1704
COLUMN_NOT_FOUND = 1726
NO_SUCH_OPERATION = 1915
NO_SUCH_ATTRIBUTE = 1920
NO_SUCH_JOB = 203
OPERATION_FAILED_ON_JOB_RESTART = 210
FAILED_JOBS_LIMIT_EXCEEDED = 215
OPERATION_FAILED_TO_PREPARE = 216
JOB_TIME_LIMIT_EXCEEDED = 1202
USER_JOB_FAILED = 1205
PROCESS_EXITED = 10000
PROCESS_SIGNALLED = 10001
NO_SUCH_TRANSACTION = 11000
INVALID_TRANSACTION_STATE = 11003
UNAUTHENTICATED = frozenset({INVALID_CSRF_TOKEN, INVALID_CREDENTIALS, AUTHENTICATION})
"""The HTTP proxy answers these with 401 (SetStatusFromAuthError, server/http_proxy)."""


class ProtosUnavailableError(Exception):
    """The .proto files of RPC are missing; the message says what to install."""


class YtError(Exception):
    """A failure as a YTsaurus client sees it: code, message, attributes and inner errors."""

    def __init__(
        self,
        code: int,
        message: str,
        attributes: dict[str, Any] | None = None,
        inner: Iterable[YtError] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.attributes = attributes or {}
        self.inner = list(inner)

    def __str__(self) -> str:
        return ": ".join([self.message, *map(str, self.inner)])

    @property
    def cause(self) -> YtError:
        """The innermost error."""
        return self.inner[0].cause if self.inner else self

    def contains(self, code: int) -> bool:
        """Return whether the error, or one inside it, has that code: clients ask so."""
        return self.code == code or any(error.contains(code) for error in self.inner)

    def to_dict(self) -> dict[str, Any]:
        """Return the error as YT serialises it, in YSON and JSON alike."""
        return {
            "code": self.code,
            "message": self.message,
            "attributes": self.attributes,
            "inner_errors": [error.to_dict() for error in self.inner],
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> YtError:
        """Return the error of such a dict, of which all but the message may be missing."""
        return cls(
            int(value.get("code", GENERIC)),
            str(value.get("message", "")),
            dict(value.get("attributes") or {}),
            [cls.from_dict(inner) for inner in value.get("inner_errors") or ()],
        )


class RefusedError(YtError):
    """A request that is refused at once, though a cluster would say so at the commit or never."""


def generic(message: str, **attributes: Any) -> YtError:
    return YtError(GENERIC, message, attributes)


def not_supported(what: str) -> YtError:
    """Return the error for a request that only a real cluster answers."""
    return RefusedError(GENERIC, f"not supported by minicluster: {what}")


def no_such_method(method: str, service: str | None = None) -> YtError:
    return YtError(
        NO_SUCH_METHOD, f'Unknown method "{method}"', {"service": service} if service else {}
    )


def around(message: str, *inner: YtError, **attributes: Any) -> YtError:
    """Return an error of one stage of a request around those that it met."""
    return YtError(GENERIC, message, attributes, inner)


def resolve(path: str, inner: str) -> YtError:
    """Return a RESOLVE; SPYT takes one that starts like this for "file not found"."""
    return YtError(
        RESOLVE, f"Error resolving path {path}", {"path": path}, [YtError(RESOLVE, inner)]
    )


def already_exists(path: str) -> YtError:
    return YtError(ALREADY_EXISTS, f"Node {path} already exists", {"path": path})


def no_such_transaction(transaction_id: str) -> YtError:
    return YtError(NO_SUCH_TRANSACTION, f"No such transaction {transaction_id}")


def lock_conflict(message: str, code: int = CONCURRENT_TRANSACTION_LOCK_CONFLICT) -> YtError:
    return YtError(code, message)


def tablet_lock_conflict(message: str, **attributes: Any) -> YtError:
    return YtError(TABLET_LOCK_CONFLICT, message, attributes)


def tablet_not_mounted(message: str, **attributes: Any) -> YtError:
    return YtError(TABLET_NOT_MOUNTED, message, attributes)


def no_such_tablet(message: str, **attributes: Any) -> YtError:
    return YtError(NO_SUCH_TABLET, message, attributes)


def column_not_found(name: str) -> YtError:
    """Source: ytlib/api/native/client_dynamic_tables_impl.cpp, RemapColumnFilter."""
    return YtError(COLUMN_NOT_FOUND, f'Invalid column "{name}" in column filter')


def access_denied(message: str, **attributes: Any) -> YtError:
    return YtError(AUTHORIZATION, message, attributes)
