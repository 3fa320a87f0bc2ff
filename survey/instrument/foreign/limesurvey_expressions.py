"""Translate expressions of LimeSurvey's Expression Manager."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from survey.instrument.foreign.conditions import (
    NUMBER,
    Grammar,
    Node,
    Parser,
    Translator,
    Untranslatable,
    Variable,
    not_here,
)


class ExpressionManager(Translator):
    """Translate LimeSurvey's expressions."""

    checked = frozenset(["Y"])
    unchecked = frozenset([""])
    grammar = Grammar(
        re.compile(
            r"""(?P<space>\s+)|(?P<text>'[^'\\]*'|"[^"\\]*")
            |(?P<variable>\d+X\d+X\d+\w*(?:\#\d)?(?:\.\w+)*)
            |(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z]\w*(?:\.\w+)*)
            |(?P<operator>==|!=|<=|>=|&&|\|\||[=<>!()+\-*/,])""",
            re.VERBOSE,
        ),
        {
            **{"&&": "and", "||": "or", "!": "not", "==": "=", "=": "assignment"},
            **{"and": "and", "or": "or", "eq": "=", "ne": "!=", "lt": "<"},
            **{"le": "<=", "gt": ">", "ge": ">="},
        },
    )

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        # Names of rows that are not always asked.
        self.conditional: set[str] = set()
        self.this = ""

    def condition(self, source: str) -> str:
        node = Parser(self.grammar, source).parse()
        # Without NAOK the whole condition is false where an answer is not asked.
        for name in sorted(set(self.plain_names(node))):
            variable = self.variable(name)
            if variable.name in self.conditional and not self.needs(node, name):
                raise Untranslatable(
                    _("it is always false while %(name)s is not asked")
                    % {"name": variable.name}
                )
        return self.truth(node)

    def plain_names(self, node: Node) -> list[str]:
        if node[0] == "variable":
            return [] if ".NAOK" in node[1] or node[1] == "this" else [node[1]]
        parts = node[2] if node[0] == "call" else node[1:]
        return [
            name
            for part in parts
            if isinstance(part, tuple)
            for name in self.plain_names(part)
        ]

    def needs(self, node: Node, name: str) -> bool:
        """Return whether a condition is false where this answer is blank."""
        if node[0] == "and":
            return any(self.needs(part, name) for part in node[1:])
        if node[0] == "or":
            return all(self.needs(part, name) for part in node[1:])
        if node[0] == "not":
            inner = node[1]
            return (
                inner[0] == "call"
                and inner[1] == "is_empty"
                and inner[2] == [("variable", name)]
            )
        if node[0] in ("=", ">", ">=", "<", "<=", "!="):
            literal = next((part for part in node[1:] if part[0] != "variable"), None)
            if ("variable", name) not in node[1:] or literal is None:
                return False
            if node[0] in ("<", "<=") and literal[1] == "0":
                return False
            return (node[0] == "!=") == (literal[1] == "")
        return False

    def variable(self, text: str) -> Variable:
        name, _dot, suffix = text.partition(".")
        if suffix not in ("", "NAOK", "code", "code.NAOK", "NAOK.code"):
            raise not_here(text)
        if name == "this" and self.this:
            name = self.this
        if name not in self.variables:
            raise Untranslatable(
                _("there is no question %(name)s") % {"name": name[:60]}
            )
        return self.variables[name]

    def call(self, name: str, arguments: list[Node]) -> str:
        if name == "is_empty" and len(arguments) == 1:
            return self.is_blank(arguments[0])
        if name == "is_numeric" and len(arguments) == 1 and self.this:
            return f"regex({self.number(arguments[0])}, '-?[0-9]+(\\.[0-9]+)?')"
        raise not_here(f"{name}()")

    def number(self, node: Node) -> str:
        variable = self.variable(node[1])
        if variable.kind == "flag":
            raise not_here(variable.name)
        return f"${{{variable.name}}}"

    def comparison(self, operator: str, left: Node, right: Node) -> str:
        if left[0] == "call" and right[0] == "number" and NUMBER.fullmatch(right[1]):
            return f"{self.counted(left[1], left[2])} {operator} {right[1]}"
        written = super().comparison(operator, left, right)
        zero = ("number", "0")
        # LimeSurvey takes blank as less than 0.
        if operator in ("<", "<=") and right == zero and left[0] == "variable":
            return f"{self.is_blank(left)} or {written}"
        return written

    def with_literal(
        self, operator: str, variable: Variable, value: str, kind: str
    ) -> str:
        # LimeSurvey 2 compares quoted numbers as numbers, later ones as texts.
        is_order = operator not in ("=", "!=")
        if is_order and "text" in (kind, variable.kind):
            raise not_here(f'{variable.name} {operator} "{value}"')
        # Texts are equal there if they are the same number: 5 and 5.0.
        if variable.kind == "text" and NUMBER.fullmatch(value):
            kind = "number"
        return super().with_literal(operator, variable, value, kind)

    def with_variable(self, operator: str, left: Variable, right: Variable) -> str:
        # Of two blank answers LimeSurvey says that one is at least the other.
        if operator not in ("=", "!="):
            raise not_here(f"{left.name} {operator} {right.name}")
        return super().with_variable(operator, left, right)

    def counted(self, name: str, arguments: list[Node]) -> str:
        if name == "strlen" and len(arguments) == 1:
            return f"string-length({self.number(arguments[0])})"
        if name != "count" or not arguments:
            raise not_here(f"{name}()")
        parts = []
        for node in arguments:
            if node[0] != "variable":
                raise not_here(f"{name}()")
            parts.append(f"if({self.is_blank(node, blank=False)}, 1, 0)")
        return f"({' + '.join(parts)})"
