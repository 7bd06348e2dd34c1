"""The names of columns that a query gives none (model but for plain columns)."""

from __future__ import annotations

from ..rows import wire
from .ast import Binary, Call, Case, Cast, Expression, In, Like, Literal, Name, Row, Unary


def infer_name(expression: Expression) -> str:
    """Return the column name of an expression without an alias."""
    match expression:
        case Name(name):
            return name
        case Literal(value, kind):
            if isinstance(value, bytes):
                return f'"{value.decode(errors="backslashreplace")}"'
            text = "null" if value is None else str(value).lower()
            return text + "u" * (kind == wire.UINT64)
        case Call(name, arguments):
            return f"{name}({', '.join(map(infer_name, arguments))})"
        case Unary(sign, operand):
            return f"{sign} {infer_name(operand)}" if sign == "not" else sign + infer_name(operand)
        case Binary(sign, left, right):
            return f"({infer_name(left)}) {sign} ({infer_name(right)})"
        case Row(items):
            return f"({', '.join(map(infer_name, items))})"
        case In(operand, options):
            return f"{infer_name(operand)} in ({', '.join(map(infer_name, options))})"
        case Like(text, pattern):
            word = "ilike" if expression.insensitive else "like"
            return f"({infer_name(text)}) {word} ({infer_name(pattern)})"
        case Case(operand, branches, default):
            words = ["case", *([infer_name(operand)] if operand else [])]
            for condition, result in branches:
                words += ["when", infer_name(condition), "then", infer_name(result)]
            words += ["else", infer_name(default)] if default else []
            return " ".join([*words, "end"])
        case Cast(operand, type_):
            return f"cast({infer_name(operand)} as {type_})"
