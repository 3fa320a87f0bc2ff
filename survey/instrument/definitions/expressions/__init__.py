"""Expressions of XLSForm: compiled once, evaluated here and in the browser.

The text becomes a form that JSON can carry: a literal is a string, number or
boolean, everything else a list `[operation, argument...]`, such as
`["selected", ["$", "pets"], "dog"]`.
"""

from survey.instrument.definitions.expressions.evaluation import Context, evaluate
from survey.instrument.definitions.expressions.inspection import (
    columns_of,
    labels_of,
    reads_clock,
    references,
)
from survey.instrument.definitions.expressions.parser import (
    ExpressionError,
    compile_expression,
)
from survey.instrument.definitions.expressions.values import Value, to_boolean, to_text

__all__ = [
    "Context",
    "ExpressionError",
    "Value",
    "columns_of",
    "compile_expression",
    "evaluate",
    "labels_of",
    "reads_clock",
    "references",
    "to_boolean",
    "to_text",
]
