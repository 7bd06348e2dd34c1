"""Several light commands in one request; each passes the gate like one of its own."""

from __future__ import annotations

from typing import Any

from ...control.parameters import read
from ...core.errors import YtError, generic
from ..registry import COMMANDS, NULL, STRUCTURED, TABULAR, Invocation, command


@command(
    "execute_batch",
    parameters=read("requests concurrency"),
    output=STRUCTURED,
    volatile=True,
)
async def execute_batch(call: Invocation) -> Any:
    requests = call.require("requests")
    if not isinstance(requests, list) or not all(isinstance(item, dict) for item in requests):
        raise generic("Error loading parameter /requests: expected a list of maps")
    if not all(isinstance(item.get("command"), str) for item in requests):
        raise generic('Error loading parameter /requests: a request without "command"')
    if (concurrency := call.integer("concurrency")) is not None and concurrency <= 0:
        raise generic("Validation failed at /concurrency: it must be positive")
    results: list[dict[str, Any]] = []
    for request in requests:
        name, parameters = request.get("command"), request.get("parameters") or {}
        _check(name, parameters, request.get("input"))
        try:
            output = await call.run(name, parameters, request.get("input"))
        except YtError as error:
            results.append({"error": error.to_dict()})
        else:
            results.append({} if output is None else {"output": output})
    return {"results": results}


def _check(name: Any, parameters: Any, given: Any) -> None:
    """Raise YtError for a command that may not be in a batch (client/driver/etc_commands.cpp)."""
    if name not in COMMANDS:
        raise generic(f'Unknown command "{name}"')
    command = COMMANDS[name]
    for way, kind, taken in (("input", command.input, _TAKEN), ("output", command.output, _GIVEN)):
        if kind not in taken:
            raise generic(
                f'Command "{name}" cannot be part of a batch since it has inappropriate '
                f'{way} type "{kind}"'
            )
    if command.input == TABULAR and not isinstance(given, list):
        raise generic(f'Command "{name}" expects a list of rows as its input')
    if not isinstance(parameters, dict):
        raise generic("Parameters of a request must be a map")


_GIVEN = (NULL, STRUCTURED)
_TAKEN = (NULL, STRUCTURED, TABULAR)
