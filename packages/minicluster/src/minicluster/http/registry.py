"""The table of HTTP commands, and the material that a command is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..cluster import Cluster
from ..control.gate import Gate
from ..control.parameters import Known, Rule
from ..core import ids
from ..core.errors import generic
from ..cypress.ypath import parse_rich
from ..rows.named import stored
from ..rows.schema import TableSchema
from ..tables.transactions import Transaction
from .formats import YSON, Format
from .parameters import EVERY

HTTP_PROXY = "http"
"""The proxy that tablet transactions started over HTTP belong to."""

CONDITIONS = frozenset({"prerequisite_transaction_ids", "prerequisite_revisions"})
"""The parameters that make a request depend on something."""

NULL, STRUCTURED, TABULAR, BINARY = "null", "structured", "tabular", "binary"


@dataclass(slots=True)
class Invocation:
    """The material of a command: the cluster, the request's parameters, and its decoded input."""

    cluster: Cluster
    gate: Gate
    run: Callable[[str, dict[str, Any], Any], Awaitable[Any]]
    """Runs another command, as a batch does."""
    parameters: dict[str, Any]
    input: Any = None

    def get(self, name: str, default: Any = None) -> Any:
        value = self.parameters.get(name)
        return default if value is None else value

    def require(self, name: str) -> Any:
        """Return a parameter. Raises YtError when it is missing."""
        value = self.parameters.get(name)
        if value is None:
            raise generic(f"Missing required parameter /{name}")
        return value

    def path(self, name: str = "path") -> str:
        """Return a path without the attributes, columns and ranges around it."""
        return parse_rich(self._string(name, self.require(name))).path

    def rich(self, name: str = "path") -> Any:
        return self._string(name, self.require(name))

    def string(self, name: str) -> str:
        return str(self._string(name, self.require(name)))

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.get(name, default)
        if isinstance(value, str) and value in ("true", "false"):
            return value == "true"
        if not isinstance(value, int) or value not in (0, 1):
            raise _wrong(name, "boolean", value)
        return bool(value)

    def required_flag(self, name: str) -> bool:
        self.require(name)
        return self.flag(name)

    def integer(self, name: str, default: int | None = None) -> int | None:
        value = self.get(name, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(name, "integer", value)
        return int(value)

    def number(self, name: str) -> int:
        """Return a required integer."""
        self.require(name)
        value = self.integer(name)
        assert value is not None
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.get(name, {})
        if not isinstance(value, dict):
            raise _wrong(name, "map", value)
        return dict(value)

    def strings(self, name: str) -> list[str] | None:
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise _wrong(name, "list", value)
        return [str(item) for item in value]

    def required_strings(self, name: str) -> list[Any]:
        """Return a required list of strings, with the attributes that they may have."""
        value = self.require(name)
        if not isinstance(value, list):
            raise _wrong(name, "list", value)
        return [self._string(name, item) for item in value]

    def integers(self, name: str) -> list[int]:
        """Return a required list of integers."""
        value = self.require(name)
        if not isinstance(value, list):
            raise _wrong(name, "list", value)
        for item in value:
            if isinstance(item, bool) or not isinstance(item, int):
                raise _wrong(name, "integer", item)
        return [int(item) for item in value]

    def format(self, way: str) -> Format:
        """Return the format of the "input" or the "output"."""
        given = self.get(f"{way}_format")
        return YSON if given is None else Format.parse(given)

    def rows(self, schema: TableSchema) -> list[dict[str, Any]]:
        """Return the rows of the input as a table of this schema keeps them. Raises YtError."""
        given = self.format("input")
        converted = given.conversions.apply(schema, self.input)
        return stored(schema, converted, positional=given.positional)

    def choose(self, *names: str, **renamed: str) -> dict[str, bool]:
        """Return keyword arguments for those flags that the request has."""
        found = {name: self.flag(name) for name in names if name in self.parameters}
        for argument, name in renamed.items():
            if name in self.parameters:
                found[argument] = self.flag(name)
        return found

    def conditions(self) -> tuple[list[str], list[tuple[str, int]]]:
        """Return the transactions and the (path, revision) that the request depends on."""
        revisions = self.get("prerequisite_revisions", [])
        if not isinstance(revisions, list):
            raise _wrong("prerequisite_revisions", "list", revisions)
        pairs = []
        for item in revisions:
            if not isinstance(item, dict):
                raise _wrong("prerequisite_revisions", "map", item)
            given = replace(self, parameters=item)
            pairs.append((given.path(), given.number("revision")))
        return self.strings("prerequisite_transaction_ids") or [], pairs

    @property
    def tx(self) -> str | None:
        """The master transaction that the request is made in."""
        transaction_id = self.get("transaction_id", ids.NULL)
        if transaction_id == ids.NULL:
            return None
        if not is_master(str(transaction_id)):
            raise generic(f"{transaction_id} is not a valid master transaction id")
        return str(transaction_id)

    @property
    def tablet_tx(self) -> Transaction | None:
        """The tablet transaction that the request is made in."""
        transaction_id = str(self.get("transaction_id", ids.NULL))
        if transaction_id == ids.NULL:
            return None
        if is_master(transaction_id):
            raise generic("Dynamic table commands can not be performed under master transaction")
        return self.cluster.tablet_transactions.get(transaction_id, HTTP_PROXY)

    @staticmethod
    def _string(name: str, value: Any) -> Any:
        if not isinstance(value, str):
            raise _wrong(name, "string", value)
        return value


@dataclass(frozen=True, slots=True)
class WithParameters:
    """A result that comes with response parameters, which travel in a header."""

    result: Any
    parameters: dict[str, Any]


def etag(parameters: dict[str, Any]) -> str:
    """Return the mark of a file's state (server/http_proxy/context.cpp, OnOutputParameters)."""
    return f"{parameters['id']}:{parameters['revision']}"


def is_master(transaction_id: str) -> bool:
    """Return whether the id is a master transaction's. Raises YtError if it is not an id."""
    if not ids.is_id(transaction_id):
        raise generic(f'Error parsing GUID "{transaction_id}"')
    return ids.is_master_transaction(transaction_id)


def _wrong(name: str, expected: str, value: Any) -> Exception:
    actual = {dict: "map", list: "list", str: "string", bool: "boolean", int: "int64"}.get(
        next((t for t in (dict, list, str, bool, int) if isinstance(value, t)), object),
        type(value).__name__,
    )
    return generic(f'Error reading parameter /{name}: expected "{expected}", actual "{actual}"')


Body = Callable[[Invocation], Any]
"""Returns the result of its output type, or a coroutine that does."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the API; the types say what its request's and its answer's bodies hold."""

    name: str
    body: Body
    known: Known
    """The parameters that it knows."""
    input: str = NULL
    output: str = NULL
    volatile: bool = False
    heavy: bool = False
    schemaless: bool = False
    """Whether the rows of its answer may differ in their columns: only such are written as DSV and
    in Arrow."""

    def describe(self) -> dict[str, Any]:
        """Return the command as `GET /api/v4` lists it."""
        return {
            "name": self.name,
            "input_type": self.input,
            "output_type": self.output,
            "is_volatile": self.volatile,
            "is_heavy": self.heavy,
        }

    @property
    def replayable(self) -> bool:
        """Return whether a retry with the same mutation id gets the first answer again."""
        return self.volatile and not self.heavy


COMMANDS: dict[str, Command] = {}


def command(
    *names: str, parameters: Mapping[str, Rule] | None = None, **properties: Any
) -> Callable[[Body], Body]:
    """Register a command under one or more names; properties are those of `Command`.

    `parameters` are the rules of its own, in addition to those of every command.
    """
    known = Known(names[0], EVERY, parameters or {})

    def register(body: Body) -> Body:
        for name in names:
            COMMANDS[name] = Command(name, body, known, **properties)
        return body

    return register
