"""From the name of a command to its result; a lost answer is repeated when the client retries."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..cluster import Cluster
from ..control.arguments import OF_HTTP
from ..control.gate import Gate
from ..control.journal import Call
from ..control.path import invoke, travel
from ..core.errors import YtError, generic
from ..cypress import prerequisites
from ..tables.mount_cache import through
from .commands import COMMANDS
from .registry import CONDITIONS, HTTP_PROXY, Command, Invocation

REMEMBERED_MUTATIONS = 10_000


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
        """Run a command and return its result; `defect` is what was wrong with its input.

        Raises YtError, HangUp.
        """
        call = Call("http", HTTP_PROXY, name, arguments(parameters, given))

        async def apply() -> Any:
            if defect is not None:
                raise defect
            command = command_of(name)
            command.known.check(parameters)
            return await self._answer(command, parameters, given)

        return await travel(self.gate, call, apply)

    async def _answer(self, command: Command, parameters: dict[str, Any], given: Any) -> Any:
        """Apply a command, or repeat the answer of one that the client retries.

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
        if not CONDITIONS.isdisjoint(parameters):
            transactions, revisions = invocation.conditions()
            prerequisites.check(
                self.cluster.cypress, self.cluster.transactions, transactions, revisions
            )
        with through(HTTP_PROXY):
            return await invoke(command.name, command.body, invocation)


def command_of(name: str) -> Command:
    """Return a command by its name. Raises YtError if it does not exist here."""
    try:
        return COMMANDS[name]
    except KeyError:
        raise generic(f'Unknown command "{name}"') from None


def arguments(parameters: dict[str, Any], given: Any) -> dict[str, Any]:
    """Return the arguments of a request that the journal keeps."""
    shown = {
        OF_HTTP[name]: str(value) if isinstance(value, str) else value
        for name, value in parameters.items()
        if name in OF_HTTP
    }
    if isinstance(given, list):
        shown["rows"] = len(given)
    elif isinstance(given, bytes):
        shown["bytes"] = len(given)
    return shown
