"""Pieces of a job's Python: expressions where they stand, links of chains, calls."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .files import Module

GAP = "\ufffc"
UNKNOWN: Any = object()
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_DEEPEST = 25
"""Deeper than hand-written code goes; recursion ends here."""


@dataclass(frozen=True)
class Context:
    """Where an expression stands, and what the parameters around it stand for."""

    module: Module
    function: Function | None = None
    bound: "Mapping[str, BoundExpression]" = field(default_factory=dict)
    depth: int = 0

    def deeper(self, **changes: Any) -> "Context":
        """Return the context of a call."""
        return replace(self, depth=self.depth + 1, **changes)

    @property
    def is_too_deep(self) -> bool:
        """Whether calls are nested so deeply that this can only be a recursion."""
        return self.depth > _DEEPEST


@dataclass(frozen=True)
class BoundExpression:
    """An expression and the context in which it means something."""

    node: ast.expr
    context: Context


@dataclass(frozen=True)
class Step:
    """One link of a chain such as ``spark.readStream.load(path)``: an attribute or a call of it."""

    name: str
    call: ast.Call | None
    context: Context
    node: ast.expr

    @property
    def line(self) -> int:
        """The line on which the name of the link stands."""
        attribute = self.call.func if self.call else self.node
        return attribute.end_lineno or attribute.lineno

    def argument(self, place: int, *names: str) -> BoundExpression | None:
        """Return an argument by its place or its name."""
        if self.call is None:
            return None
        if place < len(self.call.args):
            return BoundExpression(self.call.args[place], self.context)
        named = (word.value for word in self.call.keywords if word.arg in names)
        found = next(named, None)
        return BoundExpression(found, self.context) if found is not None else None


@dataclass(frozen=True)
class Chain:
    """A chain with the expression that it begins with."""

    root: BoundExpression
    steps: Sequence[Step]


def called(call: ast.Call) -> str:
    """Return the last part of the name that is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def inside(
    function: Function,
    module: Module,
    call: ast.Call | None,
    outer: Context,
    first: BoundExpression | None = None,
) -> Context:
    """Return the context in a function that is called; ``first`` is an argument before the others.

    A method's ``self`` takes none.
    """
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    defaults = function.args.defaults
    here = Context(module, depth=outer.depth + 1)
    bound = {
        name: BoundExpression(value, here)
        for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True)
    }
    for item, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if value is not None:
            bound[item.arg] = BoundExpression(value, here)
    names = [name for name in names if name not in ("self", "cls")]
    given = [first] if first else []
    given += [BoundExpression(value, outer) for value in call.args] if call else []
    bound |= dict(zip(names, given, strict=False))
    for word in call.keywords if call else ():
        if word.arg:
            bound[word.arg] = BoundExpression(word.value, outer)
    return Context(module, function, bound, outer.depth + 1)
