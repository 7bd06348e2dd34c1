"""The parameters that a command knows; any other one is refused before the command runs.

A parameter that no code reads would be dropped without a word, and a test that relies on it would
prove nothing. So each command (`http/commands/`) and each method (`rpc/methods/`) is
registered with its parameters and a `Rule` for each of them. The rules for all commands and for all
methods are in `http/parameters.py` and `rpc/parameters.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yt.yson import YsonBoolean

from ..core.errors import not_supported

LONGEST = 100
"""Characters of a value that a refusal shows."""


@dataclass(frozen=True, slots=True)
class Read:
    """The command acts on the value."""


@dataclass(frozen=True, slots=True)
class Harmless:
    """Whatever the value is, the answer is the same here; `why` gives the reason."""

    why: str


@dataclass(frozen=True, slots=True)
class Only:
    """The command behaves as these values ask for; any other one is refused."""

    values: tuple[Any, ...]


Rule = Read | Harmless | Only
READ = Read()

# Reasons that both protocols give.
ONE_MASTER = Harmless("one master answers; there is no cache and no other master to wait for")
NO_ACCESS = Harmless("nothing here depends on the times of accesses and changes")
TUNING = Harmless("tunes speed or the use of resources, not the answer")
NO_REPLICAS = Harmless("tables have no replicas")
AT_ONCE = Harmless("takes no time here")
NO_QUOTA = Harmless("there are no quotas and no other cells")
OPEN = Harmless("everybody may read everything")
WHOLE = Harmless("an answer is never partial")
LASTING = Harmless("a committed row is never lost")
NO_UDF = Harmless("a function of a user is refused by its name")
IN_ORDER = Harmless("rows come in their order all the same")
VIRTUAL = Harmless("only maps of the system's own objects look at it")
NO_INTERRUPT = Harmless("a vanilla job without a signal for it is aborted at once")
ONE_KIND = Harmless("every proxy has one address")


def only(*values: Any) -> Only:
    return Only(values)


def each(names: str, rule: Rule) -> dict[str, Rule]:
    """Return the rule for each of the names, which spaces separate."""
    return dict.fromkeys(names.split(), rule)


def read(names: str) -> dict[str, Rule]:
    return each(names, READ)


class Known:
    """The parameters that one command knows."""

    def __init__(self, command: str, every: Mapping[str, Rule], own: Mapping[str, Rule]) -> None:
        """Take rules by parameter: of every command, and its own, which override them."""
        self.command, self.own = command, own
        self.rules: dict[str, Rule] = {**every, **own}
        limited = {name: rule for name, rule in self.rules.items() if isinstance(rule, Only)}
        self.free = frozenset(self.rules.keys() - limited.keys())
        """Those that are let through with any value."""
        self._values = {name: rule.values for name, rule in limited.items()}

    @property
    def read(self) -> frozenset[str]:
        """Those that the command acts on."""
        return frozenset(name for name, rule in self.rules.items() if isinstance(rule, Read))

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise YtError if one of the parameters, or its value, is not supported.

        An entity stands for a parameter that is not given.
        """
        if given.keys() <= self.free:  # nearly always: the check costs one set operation
            return
        for name in sorted(given.keys() - self.free, key=repr):
            self.check_limited(name, given[name])

    def check_limited(self, name: str, value: Any) -> None:
        """Check one parameter that is not free."""
        values = self._values.get(name)
        if values is None or not (value is None or _plain(value) in values):
            raise not_supported(f"{_shown(name)}={_shown(value)} ({self.command})")


def _plain(value: Any) -> Any:
    """Return the flag that a query string says in words, or else the value."""
    return value == "true" if isinstance(value, str) and value in ("true", "false") else value


def _shown(value: Any) -> str:
    if isinstance(value, bool | YsonBoolean):
        return "true" if value else "false"
    text = str(value) if isinstance(value, str | int | float) else repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
