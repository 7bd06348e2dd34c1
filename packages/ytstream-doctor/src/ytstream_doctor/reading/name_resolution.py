"""What a name in Python stands for: enough to find options, paths and frames without running them.

Of several assignments the last one before the use counts. A parameter stands for the argument of a
call in the job's own files. What remains unknown is ``UNKNOWN``; a text of which a part is unknown
has ``GAP`` there.
"""

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .files import Module
from .index import Index
from .syntax import GAP, UNKNOWN, BoundExpression, Chain, Context, Function, Step, called, inside


@dataclass(frozen=True)
class Code(Index):
    """The job's modules, and what their names, values and chains stand for."""

    # -- names -------------------------------------------------------------------------------------

    def resolved(self, node: ast.expr, context: Context) -> BoundExpression | None:
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
                return BoundExpression(found, context.deeper(function=scope))
            if is_bound:
                return context.bound[node.id]
            scope = self.scope(scope)
        if found := self._last(context.module.tree, node):
            return BoundExpression(found, Context(context.module, depth=context.depth + 1))
        return self._imported(node.id, context)

    def _last(self, scope: ast.AST, use: ast.Name, *, strictly: bool = False) -> ast.expr | None:
        """Return the last value before the use; of a use in another function the last of all."""
        values = self.assigned.get((scope, use.id), [])
        if (self.scope(use) or scope) is not scope:
            return values[-1] if values else None
        before = [value for value in values if (value.end_lineno or 0) < use.lineno]
        if not before and values and not strictly and use not in ast.walk(values[0]):
            return values[0]  # a loop's next turn
        return before[-1] if before else None

    def _imported(self, name: str, context: Context) -> BoundExpression | None:
        module, own = self.imports[context.module.file].get(name, ("", ""))
        return self._constant_of(module, own, context) if own else None

    def _constant_of(self, module: str, name: str, context: Context) -> BoundExpression | None:
        for other in self.named.get(module.rpartition(".")[2], []):
            if values := self.assigned.get((other.tree, name)):
                return BoundExpression(values[-1], Context(other, depth=context.depth + 1))
        return None

    def _item(self, node: ast.Subscript, context: Context) -> BoundExpression | None:
        """Return an item of a list or a dictionary that is written out."""
        key, over = (
            self.value(BoundExpression(node.slice, context)),
            BoundExpression(node.value, context),
        )
        while found := self.resolved(over.node, over.context):
            over = found
        if isinstance(over.node, ast.Dict):
            for name, value in zip(over.node.keys, over.node.values, strict=True):
                if name and self.value(BoundExpression(name, over.context)) == key:
                    return BoundExpression(value, over.context)
        if isinstance(over.node, ast.List | ast.Tuple) and type(key) is int:
            items = over.node.elts
            if -len(items) <= key < len(items):
                return BoundExpression(items[key], over.context)
        return None

    def _attribute(self, node: ast.Attribute, context: Context) -> BoundExpression | None:
        if isinstance(node.value, ast.Name) and (
            found := self._constant_of(node.value.id, node.attr, context)
        ):
            return found
        is_simple = isinstance(node.value, ast.Name | ast.Attribute)
        named = self.attributes.get(node.attr, []) if is_simple else []
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            # Begun with None, then set: the last one counts.
            named = [each for each in named if each.context.module is context.module][-1:]
        if len(named) != 1:  # several classes have an attribute of that name
            return None
        return replace(named[0], context=replace(named[0].context, depth=context.depth + 1))

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
        files = {each.file for each in self.named.get(module.rpartition(".")[2], [])}
        is_method = isinstance(node, ast.Attribute) and not module
        several = [
            each
            for each in self.definitions.get(name, [])
            if isinstance(self.parents.get(each[0]), ast.ClassDef) is is_method
        ] or self.definitions.get(name, [])
        for wanted in (files, {context.module.file}):
            for each in several:
                if each[1].file in wanted:
                    return each
        return several[0] if several else None

    # -- values ------------------------------------------------------------------------------------

    def value(self, bound: BoundExpression | None) -> Any:
        """Return the constant that an expression gives, or UNKNOWN."""
        if bound is None or bound.context.is_too_deep:
            return UNKNOWN
        node, context = bound.node, bound.context
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.JoinedStr):
            return "".join(self._part(part, context) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return self.value(BoundExpression(node.value, context))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = [self._part(each, context) for each in _summands(node)]
            return "".join(parts) if any(part != GAP for part in parts) else UNKNOWN
        if isinstance(node, ast.Call) and called(node) == "str" and node.args:
            return self.value(BoundExpression(node.args[0], context))
        return self.value(self.resolved(node, context))

    def identity(self, bound: BoundExpression | None) -> Hashable | None:
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

    def values(self, bound: BoundExpression | None) -> list[Any]:
        """Return the constants that an expression gives: several for the variable of a loop."""
        if (value := self.value(bound)) is not UNKNOWN or bound is None:
            return [value]
        while found := self.resolved(bound.node, bound.context):
            bound = found
        turns = self._turns(bound)
        return [self.value(turn) for turn in turns] or [UNKNOWN]

    def _turns(self, bound: BoundExpression) -> list[BoundExpression]:
        """Return what the variable of a loop stands for, if the loop is over a list."""
        name = bound.node.id if isinstance(bound.node, ast.Name) else ""
        for outer in self.around(bound.node):
            loops: list[Any] = [outer] if isinstance(outer, ast.For) else []
            loops += getattr(outer, "generators", [])
            for loop in loops:
                if isinstance(loop.target, ast.Name) and loop.target.id == name:
                    over = BoundExpression(loop.iter, bound.context)
                    while found := self.resolved(over.node, over.context):
                        over = found
                    if isinstance(over.node, ast.List | ast.Tuple):
                        return [BoundExpression(item, over.context) for item in over.node.elts]
        return []

    def _part(self, node: ast.expr, context: Context) -> str:
        found = self.value(BoundExpression(node, context))
        return GAP if found is UNKNOWN else str(found)

    # -- chains ------------------------------------------------------------------------------------

    def chain(
        self, bound: BoundExpression, through: str = "", inner: frozenset[Function] = frozenset()
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
                return Chain(BoundExpression(node, context), list(reversed(steps)))

    def _returned_chain(
        self, call: ast.Call, context: Context, through: str, inner: frozenset[Function]
    ) -> Chain | None:
        known = self.function(call.func, context)
        if known is None or context.is_too_deep or known[0] in inner:
            return None
        here = inside(*known, call, context)
        for value in self.returned(known[0]):
            chain = self.chain(BoundExpression(value, here), through, inner | {known[0]})
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
