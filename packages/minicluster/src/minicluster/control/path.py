"""The one path that every request takes: enter the gate, apply, leave the gate.

A request that a rule holds is applied, and leaves, when the rule is released.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..core.errors import YtError, generic
from .faults import HangUp
from .gate import Gate
from .held import Held
from .journal import Call

Result = TypeVar("Result")
Invoked = TypeVar("Invoked")


async def travel(gate: Gate, call: Call, apply: Callable[[], Awaitable[Result]]) -> Result:
    """Return the result of `apply`, which is called once the gate has let the request in.

    Raises: YtError, HangUp.
    """
    try:
        await gate.enter(call)
    except Held as order:
        late = await gate.hold(order.rule, call, lambda: _through(gate, call, apply))
        if order.rule.action == "apply_late":
            raise HangUp from None
        # Cancelling the connection's task must not cancel the request.
        return await asyncio.shield(late)
    return await _through(gate, call, apply)


async def _through(gate: Gate, call: Call, apply: Callable[[], Awaitable[Result]]) -> Result:
    """Leave the gate, whether the request was applied or refused."""
    try:
        result = await apply()
    except YtError as error:
        call.error = error
    await gate.leave(call)
    if call.error is not None:
        raise call.error
    return result


async def invoke(name: str, body: Callable[[Invoked], Any], invocation: Invoked) -> Any:
    """Return the result of a command's body, plain or awaited. Raises YtError."""
    try:
        result = body(invocation)
        return await result if inspect.isawaitable(result) else result
    except YtError:
        raise
    except Exception as error:
        # A defect of this program must not end the connection, or those of other clients.
        traceback.print_exc(file=sys.stderr)
        raise generic(f"Internal error in {name}: {error!r}") from error
