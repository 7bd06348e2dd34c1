"""The one path that every request takes: enter the gate, apply, leave the gate."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..errors import YtError, generic
from .gate import Gate
from .journal import Call

Result = TypeVar("Result")
Invoked = TypeVar("Invoked")


async def travel(gate: Gate, call: Call, apply: Callable[[], Awaitable[Result]]) -> Result:
    """The result of `apply`, which is called once the gate has let the request in.

    The request leaves the gate whether it was applied or refused. Raises: YtError, HangUp.
    """
    await gate.enter(call)
    try:
        result = await apply()
    except YtError as error:
        call.error = error
    await gate.leave(call)
    if call.error is not None:
        raise call.error
    return result


async def invoke(name: str, body: Callable[[Invoked], Any], invocation: Invoked) -> Any:
    """The result of a command's body, plain or awaited. Raises: YtError."""
    try:
        result = body(invocation)
        return await result if inspect.isawaitable(result) else result
    except YtError:
        raise
    except Exception as error:
        # A defect of this program must not end the connection, or those of other clients.
        traceback.print_exc(file=sys.stderr)
        raise generic(f"Internal error in {name}: {error!r}") from error
