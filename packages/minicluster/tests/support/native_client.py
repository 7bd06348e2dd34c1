"""Lets a write that the native client refuses say why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yt.wrapper as yt

_HIDDEN = ('is in "aborting" state', 'is in "aborted" state')
_TRIES = 20


def telling(client: Any) -> Any:
    """Return the client; its writes are repeated where it hides the reason of a refusal.

    It sends a write and commits at once. Where the refusal comes before the commit begins, the
    transaction aborts itself, and the commit knows of its state alone (client/api/rpc_proxy/
    transaction_impl.cpp, ModifyRows and Commit). Nothing was written then.
    """
    for name in ("insert_rows", "delete_rows", "lock_rows"):
        if hasattr(client, name):
            setattr(client, name, _repeated(getattr(client, name)))
    return client


def _repeated(call: Callable[..., Any]) -> Callable[..., Any]:
    def repeated(table: str, rows: Any, *words: Any, **options: Any) -> Any:
        given = rows if isinstance(rows, bytes | str) else list(rows)
        for _ in range(_TRIES - 1):
            try:
                return call(table, given, *words, **options)
            except yt.YtError as error:
                if not any(state in str(error) for state in _HIDDEN):
                    raise
        return call(table, given, *words, **options)

    return repeated
