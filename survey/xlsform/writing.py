"""Compiled rules as an author writes them, for people to read."""

from __future__ import annotations

from survey.definitions.expressions import to_text
from survey.definitions.expressions.parser import PRECEDENCE
from survey.definitions.schema import Expr

UNARY = 7


def as_text(expr: Expr) -> str:
    """`${age} >= 4 and ${age} <= 19`. Compiling it gives the same again."""
    return _written(expr, 0)


def _written(expr: Expr, weakest: int) -> str:
    if isinstance(expr, bool):
        return "true()" if expr else "false()"
    if isinstance(expr, str):
        return f'"{expr}"' if "'" in expr else f"'{expr}'"
    if not isinstance(expr, list):
        return to_text(float(expr))
    operation, *arguments = expr
    if operation == "$":
        return f"${{{arguments[0]}}}"
    if operation == "col":
        return str(arguments[0])
    if operation == "neg":
        return f"-{_written(arguments[0], UNARY)}"
    if operation == "jr:choice-name":
        return f"jr:choice-name({_written(arguments[0], 0)}, '${{{arguments[1]}}}')"
    if operation in PRECEDENCE:
        return _joined(operation, arguments, weakest)
    return f"{operation}({', '.join(_written(one, 0) for one in arguments)})"


def _joined(operator: str, arguments: list[Expr], weakest: int) -> str:
    strength = PRECEDENCE[operator]
    first, *rest = arguments
    parts = [_written(first, strength)]
    # The right side of an operator binds tighter, as the parser reads it.
    parts += [_written(one, strength + 1) for one in rest]
    joined = f" {operator} ".join(parts)
    return f"({joined})" if strength < weakest else joined
