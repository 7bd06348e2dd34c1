"""The calls that an expression leads to: those in it, and in what its names stand for."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .name_resolution import Code
from .syntax import Context


@dataclass(frozen=True)
class Use:
    """A call, and the context in which it means something."""

    node: ast.Call
    context: Context


def reached(code: Code, nodes: Sequence[ast.AST], context: Context) -> Iterator[Use]:
    """Yield the calls in expressions, and in what the names in them stand for."""
    pending = [(node, context) for node in nodes]
    seen: set[ast.AST] = set()
    while pending:
        node, where = pending.pop(0)
        if node in seen or where.is_too_deep:
            continue
        seen.add(node)
        pending += [(child, where) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Call):
            yield Use(node, where)
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if found := code.resolved(node, where):
                pending.append((found.node, found.context))
            elif name in code.functions and not _is_method(node):
                function, module = code.functions[name]
                pending.append((function, Context(module, function, depth=where.depth + 1)))


def _is_method(node: ast.expr) -> bool:
    """Return whether the name is a method of an expression, not of a module or of the job."""
    return isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name)
