"""Translate conditions of other programs to expressions of XLSForm.

LimeSurvey, REDCap and SurveyJS write conditions alike: comparisons of answers,
joined by *and* and *or*. They are parsed into tuples such as
`("=", ("variable", "q1"), ("text", "a"))`. What would mean something else here, or
may, is refused: `Untranslatable` says why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

# As deep as a condition that a person wrote; Python's own stack is deeper.
DEEPEST = 60
LONGEST = 4_000
Node = tuple[Any, ...]
STRENGTH = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(("=", "!="), 3),
    **dict.fromkeys(("<", "<=", ">", ">=", "in", "contains", "notcontains"), 4),
    **dict.fromkeys(("anyof", "allof", "noneof"), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "/", "%"), 6),
    "^": 7,
}
SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Untranslatable(ValueError):
    """Tell a person why a condition is not taken over."""


def not_here(what: str) -> Untranslatable:
    return Untranslatable(_("no equal rule here for: %(what)s") % {"what": what[:120]})


@dataclass(frozen=True, slots=True)
class Variable:
    """An answer that a condition reads.

    `kind` is `one`, `many`, `flag` (one `option` of several), `number`, `date` or
    `text`; `values` are the values of options by their codes in the original.
    """

    name: str
    kind: str
    option: str = ""
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Grammar:
    """The spelling of one program: a token's group is its kind."""

    token: re.Pattern[str]
    words: dict[str, str]
    postfix: dict[str, str] = field(default_factory=dict)


class Parser:
    def __init__(self, grammar: Grammar, source: str) -> None:
        if len(source) > LONGEST:
            raise Untranslatable(_("the rule is too long"))
        self.grammar = grammar
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(source):
            match = grammar.token.match(source, at)
            if match is None:
                raise not_here(source[at : at + 20])
            kind, text, at = match.lastgroup or "", match[0], match.end()
            if kind == "space":
                continue
            word = grammar.words.get(text.lower(), "")
            self.tokens.append(
                ("operator", word)
                if word and kind in ("operator", "name")
                else (kind, text)
            )
        self.tokens.append(("end", ""))
        self.at = 0
        self.depth = 0

    def peek(self, *texts: str) -> bool:
        kind, text = self.tokens[self.at]
        return kind == "operator" and text in texts

    def accept(self, *texts: str) -> bool:
        matches = self.peek(*texts)
        self.at += matches
        return matches

    def parse(self) -> Node:
        node = self.expression(1)
        if self.tokens[self.at][0] != "end":
            raise not_here(self.tokens[self.at][1])
        return node

    def expression(self, weakest: int) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Untranslatable(_("the rule is nested too deeply"))
        left = self.unary()
        while True:
            kind, text = self.tokens[self.at]
            if kind != "operator":
                break
            if text in self.grammar.postfix:
                self.at += 1
                left = ("call", self.grammar.postfix[text], [left])
                continue
            strength = STRENGTH.get(text, 0)
            if strength < weakest or not strength:
                break
            self.at += 1
            left = (text, left, self.expression(strength + 1))
        self.depth -= 1
        return left

    def unary(self) -> Node:
        if self.accept("not"):
            self.depth += 1
            if self.depth > DEEPEST:
                raise Untranslatable(_("the rule is nested too deeply"))
            node: Node = ("not", self.unary())
            self.depth -= 1
            return node
        if self.accept("-"):
            node = self.unary()
            if node[0] != "number":
                raise not_here("-")
            return ("number", f"-{node[1]}")
        return self.primary()

    def primary(self) -> Node:
        kind, text = self.tokens[self.at]
        if self.accept("("):
            node = self.expression(1)
            if not self.accept(")"):
                raise not_here(text)
            return node
        if self.accept("["):
            return ("list", self.arguments("]"))
        self.at += kind != "end"
        if kind == "text":
            return ("text", text[1:-1])
        if kind in ("number", "variable"):
            return (kind, text)
        if kind == "name":
            if self.accept("("):
                return ("call", text, self.arguments(")"))
            return ("variable", text)
        raise not_here(text or _("the rule ends too early"))

    def arguments(self, closing: str) -> list[Node]:
        nodes: list[Node] = []
        while not self.accept(closing):
            nodes.append(self.expression(1))
            if not self.accept(",") and not self.peek(closing):
                raise not_here(self.tokens[self.at][1])
        return nodes


def quote(text: str) -> str:
    """Write a text as a literal; XPath has no way to write both quotes in one."""
    if "'" not in text:
        return f"'{text}'"
    if '"' in text:
        raise not_here(text)
    return f'"{text}"'


class Translator:
    """Write parsed conditions as expressions; programs derive from it."""

    grammar: Grammar
    # What the program stores for an option that is chosen, and is not.
    checked: frozenset[str] = frozenset(["1", "Y", "true"])
    unchecked: frozenset[str] = frozenset(["0", "", "N", "false"])

    def variable(self, text: str) -> Variable:
        """Return the answer that a name stands for, or raise Untranslatable."""
        raise NotImplementedError

    def call(self, name: str, arguments: list[Node]) -> str:
        raise not_here(f"{name}()")

    def condition(self, source: str) -> str:
        """Translate a condition, which is true or false."""
        return self.truth(Parser(self.grammar, source).parse())

    def truth(self, node: Node, around: int = 0) -> str:
        kind = node[0]
        if kind in ("and", "or"):
            strength = STRENGTH[kind]
            parts = [self.truth(part, strength) for part in node[1:]]
            joined = f" {kind} ".join(parts)
            return f"({joined})" if strength < around else joined
        if kind == "not":
            return f"not({self.truth(node[1])})"
        if kind in STRENGTH and STRENGTH[kind] in (3, 4):
            written = self.comparison(*node)
            return f"({written})" if around and " or " in written else written
        if kind == "call":
            return self.call(node[1], node[2])
        if kind == "variable":
            variable = self.variable(node[1])
            if variable.kind == "flag":
                return self.selected(variable)
        if kind == "number" and node[1] in ("1", "0"):
            return "true()" if node[1] == "1" else "false()"
        raise not_here(str(node[1]))

    def selected(self, variable: Variable, *, chosen: bool = True) -> str:
        written = f"selected(${{{variable.name}}}, {quote(variable.option)})"
        return written if chosen else f"not({written})"

    def is_blank(self, node: Node, *, blank: bool = True) -> str:
        if node[0] != "variable":
            raise not_here(str(node[1]))
        variable = self.variable(node[1])
        if variable.kind == "flag":
            return self.selected(variable, chosen=not blank)
        return f"${{{variable.name}}} {'=' if blank else '!='} ''"

    def comparison(self, operator: str, left: Node, right: Node) -> str:
        if operator not in SWAPPED:
            return self.membership(operator, left, right)
        if left[0] != "variable":
            left, right, operator = right, left, SWAPPED[operator]
        if left[0] != "variable":
            raise not_here(str(left[1]))
        variable = self.variable(left[1])
        if right[0] in ("text", "number"):
            return self.with_literal(operator, variable, right[1], right[0])
        if right[0] == "variable":
            return self.with_variable(operator, variable, self.variable(right[1]))
        raise not_here(str(right[1]))

    def with_variable(self, operator: str, left: Variable, right: Variable) -> str:
        kinds = {left.kind, right.kind}
        names = f"${{{left.name}}}", f"${{{right.name}}}"
        if kinds == {"number"} and operator not in ("=", "!="):
            return f"{names[0]} {operator} {names[1]}"
        if len(kinds) == 1 and kinds <= {"one", "text"} and operator in ("=", "!="):
            return f"{names[0]} {operator} {names[1]}"
        raise not_here(f"{left.name} {operator} {right.name}")

    def with_literal(
        self, operator: str, variable: Variable, value: str, kind: str
    ) -> str:
        name, is_equality = f"${{{variable.name}}}", operator in ("=", "!=")
        if variable.kind == "flag":
            if is_equality and value in self.checked | self.unchecked:
                is_chosen = (value in self.checked) == (operator == "=")
                return self.selected(variable, chosen=is_chosen)
            raise not_here(f"{variable.name} {operator} {value}")
        if is_equality and value == "":
            return f"{name} {operator} ''"
        is_number = NUMBER.fullmatch(value)
        if variable.kind == "one" and is_equality:
            if variable.values and value not in variable.values:
                raise Untranslatable(
                    _("%(name)s has no option %(value)s")
                    % {"name": variable.name, "value": value}
                )
            return f"{name} {operator} {quote(variable.values.get(value, value))}"
        # Options are compared as numbers only where they are, there and here.
        is_numeric = variable.kind == "number" or (
            variable.kind == "one"
            and all(k == v and NUMBER.fullmatch(k) for k, v in variable.values.items())
        )
        if is_numeric and is_number:
            return f"{name} {operator} {value}"
        if variable.kind == "date" and DATE.fullmatch(value):
            return f"{name} {operator} date('{value}')"
        if variable.kind == "text" and is_equality and kind == "text":
            return f"{name} {operator} {quote(value)}"
        # Programs compare quoted numbers letter by letter, some of them.
        if variable.kind == "text" and is_number and kind == "number":
            return f"{name} {operator} {value}"
        raise not_here(f"{variable.name} {operator} {value}")

    def membership(self, operator: str, left: Node, right: Node) -> str:
        """Translate `contains`, `anyof` and their likes."""
        if left[0] != "variable":
            raise not_here(operator)
        variable = self.variable(left[1])
        nodes = right[1] if right[0] == "list" else [right]
        if not nodes or any(node[0] not in ("text", "number") for node in nodes):
            raise not_here(operator)
        name, values = f"${{{variable.name}}}", [node[1] for node in nodes]
        # In one text, `contains` looks for a part of it, in any case.
        if variable.kind != "many" and operator not in ("anyof", "noneof"):
            raise not_here(f"{variable.name} {operator} {', '.join(values)}")
        parts = []
        for value in values:
            known = variable.values.get(value)
            if known is None or variable.kind not in ("one", "many"):
                raise not_here(f"{variable.name} {operator} {value}")
            if variable.kind == "many":
                parts.append(f"selected({name}, {quote(known)})")
            else:
                parts.append(f"{name} = {quote(known)}")
        joint = " and " if operator in ("contains", "notcontains", "allof") else " or "
        written = joint.join(parts)
        return f"not({written})" if operator in ("notcontains", "noneof") else written


def both(*conditions: str) -> str:
    """Join conditions that must all hold; blank ones hold always."""
    present = [condition for condition in conditions if condition]
    if len(present) == 1:
        return present[0]
    return " and ".join(
        f"({condition})" if " or " in condition else condition for condition in present
    )
