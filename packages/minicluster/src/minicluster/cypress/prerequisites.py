"""Conditions of a request: transactions that have to run, nodes that must not have changed."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.errors import PREREQUISITE_CHECK_FAILED, YtError
from .commands import Cypress
from .transactions import Transactions


def check(
    cypress: Cypress,
    running: Transactions,
    transactions: Iterable[str],
    revisions: Iterable[tuple[str, int]],
) -> None:
    """Raise YtError unless each transaction runs and each path has its revision.

    A node counts as it is outside transactions (server/master/object_server/object_manager.cpp,
    ValidatePrerequisites).
    """
    for transaction in transactions:
        running.require(transaction)
    for path, expected in revisions:
        try:
            found = cypress.resolve(path).revision
        except YtError as error:
            raise YtError(
                PREREQUISITE_CHECK_FAILED,
                f"Prerequisite check failed: failed to resolve path {path}",
                inner=[error],
            ) from None
        if found != expected:
            raise YtError(
                PREREQUISITE_CHECK_FAILED,
                f"Prerequisite check failed: node {path} revision mismatch: "
                f"expected {expected:x}, found {found:x}",
            )
