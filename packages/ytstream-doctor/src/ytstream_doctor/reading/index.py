"""What stands where in a job's modules: functions, calls, assignments, imports, by their names."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from .files import Module
from .syntax import BoundExpression, Context, Function, called, inside

_MOST_CALLS = 20
"""Of a function that is called more often, no more calls are looked at."""


@dataclass(frozen=True)
class Index:
    """All modules of the job, indexed by what names lead to."""

    modules: Sequence[Module]

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node."""
        return {
            child: node
            for module in self.modules
            for node in ast.walk(module.tree)
            for child in ast.iter_child_nodes(node)
        }

    @cached_property
    def functions(self) -> dict[str, tuple[Function, Module]]:
        """The functions of the job, methods included, by name: of several the first."""
        return {name: several[0] for name, several in self.definitions.items()}

    @cached_property
    def definitions(self) -> dict[str, list[tuple[Function, Module]]]:
        """All functions of a name, with their modules."""
        found: dict[str, list[tuple[Function, Module]]] = defaultdict(list)
        for module, node in self.walk():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name].append((node, module))
        return found

    @cached_property
    def calls(self) -> dict[str, list[tuple[ast.Call, Module]]]:
        """The calls of each name, as a function or as a method."""
        found = defaultdict(list)
        for module, node in self.walk():
            if isinstance(node, ast.Call) and (name := called(node)):
                found[name].append((node, module))
        return found

    @cached_property
    def assigned(self) -> dict[tuple[ast.AST, str], list[ast.expr]]:
        """What is assigned to a name in a function, or in a module outside of functions."""
        found: dict[tuple[ast.AST, str], list[ast.expr]] = defaultdict(list)
        for module, node in self.walk():
            if isinstance(node, ast.Assign):
                pairs = [(target, node.value) for target in node.targets]
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value:
                pairs = [(node.target, node.value)]
            else:
                continue
            scope = self.scope(node) or module.tree
            for target, value in [each for pair in pairs for each in _unpacked(*pair)]:
                if isinstance(target, ast.Name):
                    found[scope, target.id].append(value)
        return found

    @cached_property
    def attributes(self) -> dict[str, list[BoundExpression]]:
        """What attributes are assigned: ``self.x``, class attributes, defaults of options."""
        found = defaultdict(list)
        for module, node in self.walk():
            if not isinstance(node, ast.Assign | ast.ClassDef | ast.Call):
                continue
            context = self.context(node, module)
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        found[target.attr].append(BoundExpression(node.value, context))
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name):
                        found[inner.targets[0].id].append(BoundExpression(inner.value, context))
                    elif isinstance(inner, ast.AnnAssign) and inner.value:
                        found[ast.unparse(inner.target)].append(
                            BoundExpression(inner.value, context)
                        )
            if isinstance(node, ast.Call) and called(node) == "add_argument":
                words = [word for word in map(_constant, node.args) if word]
                for word in node.keywords:
                    if word.arg == "default" and words:
                        name = words[-1].lstrip("-").replace("-", "_")
                        found[name].append(BoundExpression(word.value, context))
        return found

    @cached_property
    def imports(self) -> dict[str, dict[str, tuple[str, str]]]:
        """By file: each name that is imported, the module that it is from, its name there."""
        found: dict[str, dict[str, tuple[str, str]]] = {each.file: {} for each in self.modules}
        for module, node in self.walk():
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    own = alias.asname or alias.name
                    found[module.file][own] = (node.module or "", alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    own = alias.asname or alias.name.partition(".")[0]
                    found[module.file][own] = (alias.name, "")
        return found

    @cached_property
    def named(self) -> dict[str, list[Module]]:
        """The modules of a name, without the folders that they are in."""
        found = defaultdict(list)
        for module in self.modules:
            found[module.name].append(module)
        return found

    @cached_property
    def _nodes(self) -> list[tuple[Module, ast.AST]]:
        return [(module, node) for module in self.modules for node in ast.walk(module.tree)]

    def walk(self) -> Iterator[tuple[Module, ast.AST]]:
        """Yield every node with its module."""
        yield from self._nodes

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, from the inside."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer

    def scope(self, node: ast.AST) -> Function | None:
        """Return the function around a node."""
        return next((outer for outer in self.around(node) if isinstance(outer, Function)), None)

    def context(self, node: ast.AST, module: Module) -> Context:
        """Return where a node stands, without a call that leads there."""
        return Context(module, self.scope(node))

    def called_from(self, node: ast.AST, module: Module, depth: int = 0) -> list[Context]:
        """Return a context for each call of the function around a node."""
        function = self.scope(node)
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            return [Context(module, function)]
        found = []
        for call, there in self._calls_of(function.name) if depth < 4 else []:
            if function in self.around(call):
                continue
            for outer in self.called_from(call, there, depth + 1):
                found.append(inside(function, module, call, outer))
                if len(found) == _MOST_CALLS:
                    return found
        return found or [Context(module, function)]

    def _calls_of(self, name: str) -> list[tuple[ast.Call, Module]]:
        """Return the calls of a function, by the names under which modules import it as well."""
        found = [*self.calls.get(name, [])]
        for module in self.modules:
            for own, (_, there) in self.imports[module.file].items():
                if there == name != own:
                    found += [each for each in self.calls.get(own, []) if each[1] is module]
        return found


def _unpacked(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return the single assignments of ``a, b = 1, 2``."""
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        is_plain = not any(isinstance(each, ast.Starred) for each in target.elts)
        if is_plain and len(target.elts) == len(value.elts):
            return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is str else ""
