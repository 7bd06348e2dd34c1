"""Several light commands in one request; each passes the gate like one of its own."""

from __future__ import annotations

from typing import Any

from ...errors import YtError, generic
from ..registry import COMMANDS, STRUCTURED, Invocation, command


@command("execute_batch", output=STRUCTURED, volatile=True)
async def execute_batch(call: Invocation) -> Any:
    requests = call.require("requests")
    if not isinstance(requests, list) or not all(isinstance(item, dict) for item in requests):
        raise generic("Error reading parameter /requests: expected a list of maps")
    results: list[dict[str, Any]] = []
    for request in requests:
        name, parameters = request.get("command"), request.get("parameters") or {}
        try:
            _check(name, parameters)
            output = await call.run(name, parameters, request.get("input"))
        except YtError as error:
            results.append({"error": error.to_dict()})
        else:
            results.append({} if output is None else {"output": output})
    return {"results": results}


def _check(name: Any, parameters: Any) -> None:
    if not isinstance(name, str) or name not in COMMANDS:
        raise generic(f"Unknown command {name!r}")
    if COMMANDS[name].heavy or name == "execute_batch":
        # client/driver/etc_commands.cpp: streams of rows or bytes have no place in a batch.
        raise generic(f'Command "{name}" cannot be part of a batch')
    if not isinstance(parameters, dict):
        raise generic("Parameters of a request must be a map")
