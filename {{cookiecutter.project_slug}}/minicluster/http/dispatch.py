"""The one path that every HTTP command takes: the gate, the command, replays of lost answers."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from ..errors import YtError, generic
from ..gate import Call, Gate
from .commands import COMMANDS
from .registry import HTTP_PROXY, Command, Invocation

if TYPE_CHECKING:
    from ..state.cluster import Cluster

REMEMBERED_MUTATIONS = 10_000

ARGUMENTS = {
    "path": "path",
    "source_path": "source_path",
    "destination_path": "destination_path",
    "target_path": "target_path",
    "link_path": "path",
    "queue_path": "queue",
    "consumer_path": "consumer",
    "producer_path": "producer",
    "transaction_id": "transaction",
    "partition_index": "partition",
    "offset": "offset",
    "old_offset": "old_offset",
    "new_offset": "new_offset",
    "query": "query",
    "type": "type",
    "recursive": "recursive",
    "force": "force",
    "mode": "mode",
    "tablet_index": "tablet_index",
    "trimmed_row_count": "trimmed_row_count",
    "session_id": "session_id",
    "vital": "vital",
}
"""Parameter -> what it is called in the journal and in fault rules, as for RPC requests."""


class Dispatcher:
    """Runs commands by name; one for all connections."""

    def __init__(self, cluster: Cluster, gate: Gate) -> None:
        self.cluster = cluster
        self.gate = gate
        self._answers: OrderedDict[str, Any] = OrderedDict()

    async def run(
        self,
        name: str,
        parameters: dict[str, Any],
        given: Any = None,
        defect: YtError | None = None,
    ) -> Any:
        """The command's result; `defect` is what was wrong with its input.

        Raises: YtError, HangUp.
        """
        call = Call("http", HTTP_PROXY, name, arguments(parameters, given))
        await self.gate.enter(call)
        result = None
        try:
            if defect is not None:
                raise defect
            result = await self._answer(command_of(name), parameters, given)
        except YtError as error:
            call.error = error
        await self.gate.leave(call)
        if call.error is not None:
            raise call.error
        return result

    async def _answer(self, command: Command, parameters: dict[str, Any], given: Any) -> Any:
        """Applies a command, or repeats the answer of one that the client retries.

        The client marks its retries and gives them the mutation id of the first attempt, so that
        a lost answer does not apply the change twice (ytsaurus-client, `http_helpers.py`).
        """
        mutation = parameters.get("mutation_id")
        if mutation is None or not command.replayable:
            return await self._apply(command, parameters, given)
        key = str(mutation)
        if key in self._answers:
            if parameters.get("retry") not in (True, "true"):
                raise generic(f'Duplicate request is not marked as "retry": mutation {key}')
            answer = self._answers[key]
            if isinstance(answer, YtError):
                raise answer
            return answer
        try:
            answer = await self._apply(command, parameters, given)
        except YtError as error:
            self._remember(key, error)
            raise
        self._remember(key, answer)
        return answer

    def _remember(self, key: str, answer: Any) -> None:
        self._answers[key] = answer
        if len(self._answers) > REMEMBERED_MUTATIONS:
            self._answers.popitem(last=False)

    async def _apply(self, command: Command, parameters: dict[str, Any], given: Any) -> Any:
        invocation = Invocation(self.cluster, self.gate, self.run, parameters, given)
        try:
            result = command.body(invocation)
            return await result if inspect.isawaitable(result) else result
        except YtError:
            raise
        except Exception as error:
            # A defect of this program must not end the connection without an answer.
            traceback.print_exc(file=sys.stderr)
            raise generic(f"Internal error in {command.name}: {error!r}") from error


def command_of(name: str) -> Command:
    """Raises: YtError for a command that does not exist here."""
    try:
        return COMMANDS[name]
    except KeyError:
        raise generic(f'Unknown command "{name}"') from None


def arguments(parameters: dict[str, Any], given: Any) -> dict[str, Any]:
    """What the journal keeps of a request."""
    shown = {
        ARGUMENTS[name]: str(value) if isinstance(value, str) else value
        for name, value in parameters.items()
        if name in ARGUMENTS
    }
    if isinstance(given, list):
        shown["rows"] = len(given)
    elif isinstance(given, bytes):
        shown["bytes"] = len(given)
    return shown
