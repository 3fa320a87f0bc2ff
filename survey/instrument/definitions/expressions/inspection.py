"""Find out what a compiled expression reads."""

from __future__ import annotations

from survey.instrument.definitions.schema import Call, Expr


def references(expr: Expr) -> set[str]:
    """Return the names of the items whose values the expression reads."""
    return {call[1] for call in calls_in(expr) if call[0] == "$"}


def labels_of(expr: Expr) -> set[str]:
    """Return the names of the items whose option labels the expression reads."""
    return {call[2] for call in calls_in(expr) if call[0] == "jr:choice-name"}


def columns_of(expr: Expr) -> set[str]:
    """Return the names of the option's columns that a choice filter reads."""
    return {call[1] for call in calls_in(expr) if call[0] == "col"}


def reads_clock(expr: Expr) -> bool:
    return any(call[0] in {"today", "now"} for call in calls_in(expr))


# Without recursion: a draft's expression may have been changed by hand.
def calls_in(expr: Expr) -> list[Call]:
    """Return every call in the expression, itself included."""
    calls: list[Call] = []
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            calls.append(node)
            waiting.extend(node[1:])
    return calls


def depth_of(expr: Expr) -> int:
    deepest, waiting = 0, [(expr, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, list):
            waiting.extend((argument, depth + 1) for argument in node[1:])
    return deepest
