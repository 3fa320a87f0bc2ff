"""Write compiled rules as their authors do, for people to read."""

from __future__ import annotations

from survey.instrument.definitions.expressions import to_text
from survey.instrument.definitions.expressions.parser import PRECEDENCE
from survey.instrument.definitions.schema import Expr

UNARY = 7


def as_text(expr: Expr, weakest: int = 0) -> str:
    """Write an expression, such as `${age} >= 4 and ${age} <= 19`.

    Compiling the text gives the same expression again. Operators that bind
    less than `weakest` get parentheses.
    """
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
        return f"-{as_text(arguments[0], UNARY)}"
    if operation == "jr:choice-name":
        return f"jr:choice-name({as_text(arguments[0])}, '${{{arguments[1]}}}')"
    if operation not in PRECEDENCE:
        return f"{operation}({', '.join(map(as_text, arguments))})"
    strength = PRECEDENCE[operation]
    first, *rest = arguments
    parts = [as_text(first, strength)]
    # The right side of an operator binds tighter, as the parser reads it.
    parts += [as_text(argument, strength + 1) for argument in rest]
    joined = f" {operation} ".join(parts)
    return f"({joined})" if strength < weakest else joined
