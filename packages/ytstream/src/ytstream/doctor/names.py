"""What a name in Python stands for: enough to find options, paths and frames without running them.

Of several assignments the last one before the use counts. A parameter stands for the argument of a
call in the job's own files. What remains unknown is ``UNKNOWN``; a text of which a part is unknown
has ``GAP`` there.
"""

import ast
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .files import Module

GAP = "\ufffc"
UNKNOWN: Any = object()
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
#: Deeper than hand-written code goes; recursion ends here.
_DEEPEST = 25
#: Of a function that is called more often, no more calls are looked at.
_MOST_CALLS = 20


@dataclass(frozen=True)
class Context:
    """Where an expression stands, and what the parameters around it stand for."""

    module: Module
    function: Function | None = None
    bound: "Mapping[str, Bound]" = field(default_factory=dict)
    depth: int = 0

    def deeper(self, **changes: Any) -> "Context":
        """Return the context of a call."""
        return replace(self, depth=self.depth + 1, **changes)

    @property
    def is_too_deep(self) -> bool:
        """Whether calls are nested so deeply that this can only be a recursion."""
        return self.depth > _DEEPEST


@dataclass(frozen=True)
class Bound:
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

    def argument(self, place: int, *names: str) -> Bound | None:
        """Return an argument by its place or its name."""
        if self.call is None:
            return None
        if place < len(self.call.args):
            return Bound(self.call.args[place], self.context)
        named = (word.value for word in self.call.keywords if word.arg in names)
        found = next(named, None)
        return Bound(found, self.context) if found is not None else None


@dataclass(frozen=True)
class Chain:
    """A chain with the expression that it begins with."""

    root: Bound
    steps: Sequence[Step]


@dataclass(frozen=True)
class Code:
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
        return {name: several[0] for name, several in self._functions.items()}

    def function(self, node: ast.expr, context: Context) -> tuple[Function, Module] | None:
        """Return the job's function that a name or an attribute stands for."""
        while found := self.resolved(node, context):
            node, context = found.node, found.context
        if isinstance(node, ast.Lambda):
            return node, context.module
        imports = self.imports[context.module.file]
        if isinstance(node, ast.Attribute):
            base = node.value.id if isinstance(node.value, ast.Name) else ""
            module, name = ".".join(imports.get(base, ())).rstrip("."), node.attr
        elif isinstance(node, ast.Name):
            module, name = imports.get(node.id, ("", node.id))
        else:
            return None
        files = {each.file for each in self._named.get(module.rpartition(".")[2], [])}
        is_method = isinstance(node, ast.Attribute) and not module
        several = [
            each
            for each in self._functions.get(name, [])
            if isinstance(self.parents.get(each[0]), ast.ClassDef) is is_method
        ] or self._functions.get(name, [])
        for wanted in (files, {context.module.file}):
            for each in several:
                if each[1].file in wanted:
                    return each
        return several[0] if several else None

    @cached_property
    def _functions(self) -> dict[str, list[tuple[Function, Module]]]:
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
    def _assigned(self) -> dict[tuple[ast.AST, str], list[ast.expr]]:
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
    def _attributes(self) -> dict[str, list[Bound]]:
        """What attributes are assigned: ``self.x``, class attributes, defaults of options."""
        found = defaultdict(list)
        for module, node in self.walk():
            if not isinstance(node, ast.Assign | ast.ClassDef | ast.Call):
                continue
            context = self.context(node, module)
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        found[target.attr].append(Bound(node.value, context))
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name):
                        found[inner.targets[0].id].append(Bound(inner.value, context))
                    elif isinstance(inner, ast.AnnAssign) and inner.value:
                        found[ast.unparse(inner.target)].append(Bound(inner.value, context))
            if isinstance(node, ast.Call) and called(node) == "add_argument":
                words = [word for word in map(self._constant, node.args) if word]
                for word in node.keywords:
                    if word.arg == "default" and words:
                        name = words[-1].lstrip("-").replace("-", "_")
                        found[name].append(Bound(word.value, context))
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

    # -- names -------------------------------------------------------------------------------------

    def resolved(self, node: ast.expr, context: Context) -> Bound | None:
        """Return what a name or an attribute stands for; None if that is unknown."""
        if context.is_too_deep:
            return None
        if isinstance(node, ast.Attribute):
            return self._attribute(node, context)
        if isinstance(node, ast.Subscript):
            return self._item(node, context)
        if not isinstance(node, ast.Name):
            return None
        scope: ast.AST | None = context.function
        while scope is not None:
            is_bound = scope is context.function and node.id in context.bound
            if found := self._last(scope, node, strictly=is_bound):
                return Bound(found, context.deeper(function=scope))
            if is_bound:
                return context.bound[node.id]
            scope = self.scope(scope)
        if found := self._last(context.module.tree, node):
            return Bound(found, Context(context.module, depth=context.depth + 1))
        return self._imported(node.id, context)

    def _last(self, scope: ast.AST, use: ast.Name, *, strictly: bool = False) -> ast.expr | None:
        """Return the last value before the use; of a use in another function the last of all."""
        values = self._assigned.get((scope, use.id), [])
        if (self.scope(use) or scope) is not scope:
            return values[-1] if values else None
        before = [value for value in values if (value.end_lineno or 0) < use.lineno]
        if not before and values and not strictly and use not in ast.walk(values[0]):
            return values[0]  # a loop's next turn
        return before[-1] if before else None

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
    def _named(self) -> dict[str, list[Module]]:
        found = defaultdict(list)
        for module in self.modules:
            found[module.name].append(module)
        return found

    def _imported(self, name: str, context: Context) -> Bound | None:
        module, own = self.imports[context.module.file].get(name, ("", ""))
        return self._constant_of(module, own, context) if own else None

    def _constant_of(self, module: str, name: str, context: Context) -> Bound | None:
        for other in self._named.get(module.rpartition(".")[2], []):
            if values := self._assigned.get((other.tree, name)):
                return Bound(values[-1], Context(other, depth=context.depth + 1))
        return None

    def _item(self, node: ast.Subscript, context: Context) -> Bound | None:
        """Return an item of a list or a dictionary that is written out."""
        key, over = self.value(Bound(node.slice, context)), Bound(node.value, context)
        while found := self.resolved(over.node, over.context):
            over = found
        if isinstance(over.node, ast.Dict):
            for name, value in zip(over.node.keys, over.node.values, strict=True):
                if name and self.value(Bound(name, over.context)) == key:
                    return Bound(value, over.context)
        if isinstance(over.node, ast.List | ast.Tuple) and type(key) is int:
            items = over.node.elts
            if -len(items) <= key < len(items):
                return Bound(items[key], over.context)
        return None

    def _attribute(self, node: ast.Attribute, context: Context) -> Bound | None:
        if isinstance(node.value, ast.Name) and (
            found := self._constant_of(node.value.id, node.attr, context)
        ):
            return found
        is_simple = isinstance(node.value, ast.Name | ast.Attribute)
        named = self._attributes.get(node.attr, []) if is_simple else []
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            # Begun with None, then set: the last one counts.
            named = [each for each in named if each.context.module is context.module][-1:]
        if len(named) != 1:  # several classes have an attribute of that name
            return None
        return replace(named[0], context=replace(named[0].context, depth=context.depth + 1))

    # -- values ------------------------------------------------------------------------------------

    def value(self, bound: Bound | None) -> Any:
        """Return the constant that an expression gives, or UNKNOWN."""
        if bound is None or bound.context.is_too_deep:
            return UNKNOWN
        node, context = bound.node, bound.context
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.JoinedStr):
            return "".join(self._part(part, context) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return self.value(Bound(node.value, context))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = [self._part(each, context) for each in _summands(node)]
            return "".join(parts) if any(part != GAP for part in parts) else UNKNOWN
        if isinstance(node, ast.Call) and called(node) == "str" and node.args:
            return self.value(Bound(node.args[0], context))
        return self.value(self.resolved(node, context))

    def identity(self, bound: Bound | None) -> Hashable | None:
        """Return what two expressions have in common that stand for one value, known or not."""
        if bound is None:
            return None
        if (value := self.value(bound)) is not UNKNOWN and GAP not in str(value):
            return str(value)
        while found := self.resolved(bound.node, bound.context):
            bound = found
        node, context = bound.node, bound.context
        if isinstance(node, ast.Name):
            scope = next((each for each in self._outwards(context) if _has(each, node.id)), None)
            return (node.id, scope)
        # Several spellings in one place: `settings.output`, `paths["output"]`, f"{root}/output".
        is_spelt = isinstance(node, ast.Attribute | ast.Subscript | ast.JoinedStr | ast.BinOp)
        return ast.dump(node) if is_spelt else node

    def _outwards(self, context: Context) -> Iterator[Function]:
        scope = context.function
        while scope is not None:
            yield scope
            scope = self.scope(scope)

    def values(self, bound: Bound | None) -> list[Any]:
        """Return the constants that an expression gives: several for the variable of a loop."""
        if (value := self.value(bound)) is not UNKNOWN or bound is None:
            return [value]
        while found := self.resolved(bound.node, bound.context):
            bound = found
        turns = self._turns(bound)
        return [self.value(turn) for turn in turns] or [UNKNOWN]

    def _turns(self, bound: Bound) -> list[Bound]:
        """Return what the variable of a loop stands for, if the loop is over a list."""
        name = bound.node.id if isinstance(bound.node, ast.Name) else ""
        for outer in self.around(bound.node):
            loops: list[Any] = [outer] if isinstance(outer, ast.For) else []
            loops += getattr(outer, "generators", [])
            for loop in loops:
                if isinstance(loop.target, ast.Name) and loop.target.id == name:
                    over = Bound(loop.iter, bound.context)
                    while found := self.resolved(over.node, over.context):
                        over = found
                    if isinstance(over.node, ast.List | ast.Tuple):
                        return [Bound(item, over.context) for item in over.node.elts]
        return []

    def _part(self, node: ast.expr, context: Context) -> str:
        found = self.value(Bound(node, context))
        return GAP if found is UNKNOWN else str(found)

    def _constant(self, node: ast.expr) -> str:
        return node.value if isinstance(node, ast.Constant) and type(node.value) is str else ""

    # -- chains ------------------------------------------------------------------------------------

    def chain(
        self, bound: Bound, through: str = "", inner: frozenset[Function] = frozenset()
    ) -> Chain:
        """Return the links of an expression; a name in front is replaced by what it stands for.

        A function of the job is followed if what it returns has a link of the name ``through``;
        ``inner`` are those that are being followed.
        """
        node, context = bound.node, bound.context
        steps: list[Step] = []
        while True:
            if isinstance(node, ast.Call) and through:
                before = self._returned_chain(node, context, through, inner)
                if before:
                    return Chain(before.root, [*before.steps, *reversed(steps)])
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                steps.append(Step(node.func.attr, node, context, node))
                node = node.func.value
            elif found := self.resolved(node, context):
                before = self.chain(found, through, inner)
                return Chain(before.root, [*before.steps, *reversed(steps)])
            elif isinstance(node, ast.Attribute):
                steps.append(Step(node.attr, None, context, node))
                node = node.value
            else:
                return Chain(Bound(node, context), list(reversed(steps)))

    def _returned_chain(
        self, call: ast.Call, context: Context, through: str, inner: frozenset[Function]
    ) -> Chain | None:
        known = self.function(call.func, context)
        if known is None or context.is_too_deep or known[0] in inner:
            return None
        here = inside(*known, call, context)
        for value in self.returned(known[0]):
            chain = self.chain(Bound(value, here), through, inner | {known[0]})
            if any(step.name == through for step in chain.steps):
                return chain
        return None

    def returned(self, function: Function) -> list[ast.expr]:
        """Return the expressions that a function returns."""
        if isinstance(function, ast.Lambda):
            return [function.body]
        return [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Return) and node.value and self.scope(node) is function
        ]


def _unpacked(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Return the single assignments of ``a, b = 1, 2``."""
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        is_plain = not any(isinstance(each, ast.Starred) for each in target.elts)
        if is_plain and len(target.elts) == len(value.elts):
            return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _has(function: Function, name: str) -> bool:
    """Return whether a function has a parameter of that name."""
    given = function.args
    return name in {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _summands(node: ast.expr) -> list[ast.expr]:
    found = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


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
    first: Bound | None = None,
) -> Context:
    """Return the context in a function that is called; ``first`` is an argument before the others.

    A method's ``self`` takes none.
    """
    names = [item.arg for item in (*function.args.posonlyargs, *function.args.args)]
    defaults = function.args.defaults
    here = Context(module, depth=outer.depth + 1)
    bound = {
        name: Bound(value, here)
        for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True)
    }
    for item, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if value is not None:
            bound[item.arg] = Bound(value, here)
    names = [name for name in names if name not in ("self", "cls")]
    given = [first] if first else []
    given += [Bound(value, outer) for value in call.args] if call else []
    bound |= dict(zip(names, given, strict=False))
    for word in call.keywords if call else ():
        if word.arg:
            bound[word.arg] = Bound(word.value, outer)
    return Context(module, function, bound, outer.depth + 1)
