"""Parse expressions of XLSForm into their JSON form.

The grammar is XPath 1.0 with the functions of ODK and without paths: an item
is written `${name}`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from survey.instrument.definitions import portable_regex
from survey.instrument.definitions.expressions.inspection import depth_of
from survey.instrument.definitions.schema import Expr

# Deep enough for any survey, shallow enough for Python's own stack.
MAX_DEPTH = 100
MAX_LENGTH = 10_000
MAX_NUMBER_LENGTH = 30

NAME = r"[^\W\d][\w.-]*"
TOKEN = re.compile(
    rf"""(?P<space>\s+)
    |(?P<reference>\$\{{[^{{}}]*\}})
    |(?P<text>'[^']*'|"[^"]*")
    |(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<name>{NAME}(?::{NAME})?)
    |(?P<operator><=|>=|!=|[=<>+\-*(),.])""",
    re.VERBOSE,
)
ITEM_NAME = re.compile(NAME)
QUOTED_REFERENCE = re.compile(r"\$\{([^{}]*)\}")

PRECEDENCE = {
    "or": 1,
    "and": 2,
    "=": 3,
    "!=": 3,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "div": 6,
    "mod": 6,
}
# Long chains of these stay flat, so that a sum of 150 items is not deep.
CHAINED = {"or", "and", "+"}


MANY = 1000
ARGUMENTS: dict[str, tuple[int, int]] = {
    "abs": (1, 1),
    "boolean": (1, 1),
    "ceiling": (1, 1),
    "coalesce": (2, MANY),
    "concat": (1, MANY),
    "contains": (2, 2),
    "count-selected": (1, 1),
    "date": (1, 1),
    "decimal-date-time": (1, 1),
    "ends-with": (2, 2),
    "false": (0, 0),
    "floor": (1, 1),
    "format-date": (2, 2),
    "if": (3, 3),
    "int": (1, 1),
    "jr:choice-name": (2, 2),
    "max": (1, MANY),
    "min": (1, MANY),
    "normalize-space": (1, 1),
    "not": (1, 1),
    "now": (0, 0),
    "number": (1, 1),
    "once": (1, 1),
    "regex": (2, 2),
    "round": (1, 2),
    "selected": (2, 2),
    "selected-at": (2, 2),
    "starts-with": (2, 2),
    "string": (1, 1),
    "string-length": (1, 1),
    "substr": (2, 3),
    "substring-after": (2, 2),
    "substring-before": (2, 2),
    "sum": (1, MANY),
    "today": (0, 0),
    "translate": (3, 3),
    "true": (0, 0),
}
NO_REPEATS = gettext_noop("%(name)s() is for repeats, which surveys do not have")
NO_FILES = gettext_noop("%(name)s() reads another file, which surveys do not have")
NO_CHANCE = gettext_noop("%(name)s() is not supported: its value changes every time")
UNSUPPORTED = {
    **dict.fromkeys(("count", "indexed-repeat", "position"), NO_REPEATS),
    **dict.fromkeys(("instance", "pulldata"), NO_FILES),
    **dict.fromkeys(("random", "uuid"), NO_CHANCE),
}
DATE_CODES = "YymndeHhMS3%"

MISTAKES = {
    "&": gettext_noop("write `and`"),
    "|": gettext_noop("write `or`"),
    "!": gettext_noop("write `not(...)` or `!=`"),
    "/": gettext_noop("divide with `div`; paths are not supported, write ${name}"),
    "%": gettext_noop("write `mod`"),
    "[": gettext_noop("paths are not supported, write ${name}"),
    "@": gettext_noop("paths are not supported, write ${name}"),
    "‘": gettext_noop("use straight quotes"),
    "’": gettext_noop("use straight quotes"),
    "“": gettext_noop("use straight quotes"),
    "”": gettext_noop("use straight quotes"),
    "'": gettext_noop("the text is never closed"),
    '"': gettext_noop("the text is never closed"),
    "$": gettext_noop("an item is written ${name}"),
    "≠": gettext_noop("write `!=`"),
    "≤": gettext_noop("write `<=`"),
    "≥": gettext_noop("write `>=`"),
    "×": gettext_noop("write `*`"),
    "÷": gettext_noop("write `div`"),
    "−": gettext_noop("write a plain `-`"),
    "–": gettext_noop("write a plain `-`"),
}


class ExpressionError(ValueError):
    """A mistake in an expression; `position` is the character's, from 0."""

    def __init__(self, message: str, position: int) -> None:
        place = _("(character %(number)s)") % {"number": position + 1}
        super().__init__(f"{message} {place}")
        self.message = message
        self.position = position


def compile_expression(
    text: str,
    *,
    self_name: str | None = None,
    columns: Collection[str] = (),
    items: Collection[str] | None = None,
) -> Expr:
    """Compile an expression to its JSON form. Raises ExpressionError.

    `.` is the item `self_name`. In a choice filter `columns` are the names
    of the option's columns (`name`, its value, is always one of them). With
    `items` a reference to any other item is an error.
    """
    if len(text) > MAX_LENGTH:
        message = _("longer than %(most)s characters") % {"most": MAX_LENGTH}
        raise ExpressionError(message, MAX_LENGTH)
    known = {*columns, "name"} if columns else set()
    compiled = Parser(text, self_name, known, items).parse()
    if depth_of(compiled) > MAX_DEPTH:
        raise ExpressionError(_("nested too deeply"), 0)
    return compiled


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    at: int


def tokenize(source: str) -> list[Token]:
    """Split an expression into tokens; the last one has the kind "end"."""
    tokens, at = [], 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if match is None:
            advice = MISTAKES.get(source[at])
            message = _("unexpected %(text)s") % {"text": source[at]}
            if advice:
                message = f"{message}: {_(advice)}"
            raise ExpressionError(message, at)
        if match.lastgroup != "space":
            tokens.append(Token(match.lastgroup or "", match[0], at))
        at = match.end()
    return [*tokens, Token("end", "", len(source))]


def suggestion(wrong: str, right: Collection[str], form: str = "{}") -> str:
    """Write "; did you mean ...?" for a name that is close to a known one."""
    lowered = {name.lower(): name for name in right}
    close = difflib.get_close_matches(wrong.lower(), lowered, 1, 0.6)
    if not close:
        return ""
    name = form.format(lowered[close[0]])
    return _("; did you mean %(name)s?") % {"name": name}


class Parser:
    """Recursive descent parser, with operator precedence climbing."""

    def __init__(
        self,
        source: str,
        self_name: str | None,
        columns: Collection[str],
        items: Collection[str] | None,
    ) -> None:
        self.tokens = tokenize(source)
        self.index = 0
        self.depth = 0
        self.self_name = self_name
        self.columns = columns
        self.items = items

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def take(self) -> Token:
        token = self.token
        self.index += token.kind != "end"
        return token

    def accept(self, operator: str) -> bool:
        is_accepted = self.token.kind == "operator" and self.token.text == operator
        self.index += is_accepted
        return is_accepted

    def unexpected(self, token: Token) -> ExpressionError:
        if token.kind == "end":
            return ExpressionError(_("the expression ends too early"), token.at)
        return ExpressionError(
            _("unexpected %(text)s") % {"text": token.text}, token.at
        )

    def parse(self) -> Expr:
        if self.token.kind == "end":
            raise ExpressionError(_("the expression is empty"), 0)
        compiled = self.expression(1)
        if self.token.kind != "end":
            raise self.unexpected(self.token)
        return compiled

    def expression(self, weakest: int) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(_("nested too deeply"), self.token.at)
        left = self.unary()
        while PRECEDENCE.get(self.operator(), 0) >= weakest:
            operator = self.take().text
            right = self.expression(PRECEDENCE[operator] + 1)
            if operator in CHAINED and isinstance(left, list) and left[0] == operator:
                left = [*left, right]
            else:
                left = [operator, left, right]
        self.depth -= 1
        return left

    def operator(self) -> str:
        return self.token.text if self.token.kind in {"operator", "name"} else ""

    def unary(self) -> Expr:
        signs = 0
        while self.accept("-"):
            signs += 1
        operand = self.primary()
        for _sign in range(signs):
            operand = ["neg", operand]
        return operand

    def primary(self) -> Expr:
        token = self.take()
        if token.kind == "number":
            return self.number(token)
        if token.kind == "text":
            return token.text[1:-1]
        if token.kind == "reference":
            return ["$", self.item(token.text[2:-1].strip(), token.at)]
        if token.kind == "name":
            return self.named(token)
        if token.kind == "operator" and token.text == "(":
            return self.grouped(token)
        if token.kind == "operator" and token.text == ".":
            return self.current_value(token)
        raise self.unexpected(token)

    def number(self, token: Token) -> float:
        if len(token.text) > MAX_NUMBER_LENGTH:
            raise ExpressionError(_("the number is too long"), token.at)
        value = float(token.text)
        # 4 and 4.0 are one literal, written as JavaScript writes it.
        return int(value) if value.is_integer() and value < 2**53 else value

    def grouped(self, opening: Token) -> Expr:
        inner = self.expression(1)
        if not self.accept(")"):
            if self.token.kind == "end":
                raise ExpressionError(_("( is never closed"), opening.at)
            raise self.unexpected(self.token)
        return inner

    def current_value(self, token: Token) -> Expr:
        if self.token.text == ".":
            message = _("paths are not supported, write ${name}")
            raise ExpressionError(message, token.at)
        if self.self_name is None:
            raise ExpressionError(_("there is no item here that . could be"), token.at)
        return ["$", self.self_name]

    def item(self, name: str, at: int) -> str:
        if not ITEM_NAME.fullmatch(name):
            raise ExpressionError(
                _("${%(name)s} is not the name of an item") % {"name": name}, at
            )
        if self.items is not None and name not in self.items:
            hint = suggestion(name, self.items, "${{{}}}")
            message = _("there is no item ${%(name)s}%(hint)s")
            raise ExpressionError(message % {"name": name, "hint": hint}, at)
        return name

    def named(self, token: Token) -> Expr:
        if self.token.kind == "operator" and self.token.text == "(":
            return self.call(token)
        if token.text in self.columns:
            return ["col", token.text]
        if token.text in ARGUMENTS:
            message = _("after %(name)s comes (") % {"name": token.text}
            raise ExpressionError(message, self.token.at)
        raise ExpressionError(self.unknown_name(token.text), token.at)

    def unknown_name(self, name: str) -> str:
        if self.columns:
            hint = suggestion(name, self.columns)
            return _("the choices have no column %(name)s%(hint)s") % {
                "name": name,
                "hint": hint,
            }
        return _("unknown name %(name)s: an item is written ${%(name)s}") % {
            "name": name
        }

    def call(self, token: Token) -> Expr:
        name = token.text
        if name in UNSUPPORTED:
            message = _(UNSUPPORTED[name])
            raise ExpressionError(message % {"name": name}, token.at)
        if name not in ARGUMENTS:
            hint = suggestion(name, ARGUMENTS, "{}()")
            message = _("unknown function %(name)s()%(hint)s")
            raise ExpressionError(message % {"name": name, "hint": hint}, token.at)
        opening = self.take()
        if name == "jr:choice-name":
            return self.choice_name(opening)
        starts, arguments = self.arguments(opening)
        self.check_count(token, len(arguments))
        return self.built(name, arguments, starts)

    def arguments(self, opening: Token) -> tuple[list[int], list[Expr]]:
        starts: list[int] = []
        arguments: list[Expr] = []
        if self.accept(")"):
            return starts, arguments
        while True:
            starts.append(self.token.at)
            arguments.append(self.expression(1))
            if self.accept(")"):
                return starts, arguments
            if not self.accept(","):
                raise self.unclosed(opening)

    def unclosed(self, opening: Token) -> ExpressionError:
        if self.token.kind == "end":
            return ExpressionError(_("( is never closed"), opening.at)
        return self.unexpected(self.token)

    def check_count(self, token: Token, count: int) -> None:
        low, high = ARGUMENTS[token.text]
        if not low <= count <= high:
            if low < high < MANY:
                message = _(
                    "%(name)s() takes %(low)s to %(high)s arguments, not %(count)s"
                )
            elif high == MANY:
                message = ngettext(
                    "%(name)s() takes at least %(low)s argument, not %(count)s",
                    "%(name)s() takes at least %(low)s arguments, not %(count)s",
                    low,
                )
            else:
                message = ngettext(
                    "%(name)s() takes %(low)s argument, not %(count)s",
                    "%(name)s() takes %(low)s arguments, not %(count)s",
                    low,
                )
            values = {"name": token.text, "low": low, "high": high, "count": count}
            raise ExpressionError(message % values, token.at)

    def built(self, name: str, arguments: list[Expr], starts: list[int]) -> Expr:
        if name in {"true", "false"}:
            return name == "true"
        if name == "regex":
            return [name, arguments[0], self.pattern(arguments[1], starts[1])]
        if name == "format-date":
            return [name, arguments[0], self.date_format(arguments[1], starts[1])]
        return [name, *arguments]

    def pattern(self, pattern: Expr, at: int) -> str:
        if not isinstance(pattern, str):
            raise ExpressionError(_("the pattern of regex() must be in quotes"), at)
        try:
            return portable_regex.portable(pattern)
        except portable_regex.PatternError as refusal:
            position = at + 1 + refusal.position
            raise ExpressionError(f"regex: {refusal.message}", position) from refusal

    def date_format(self, codes: Expr, at: int) -> str:
        if not isinstance(codes, str):
            raise ExpressionError(_("the format of a date must be in quotes"), at)
        for match in re.finditer(r"%(.?)", codes, re.DOTALL):
            if not match[1] or match[1] not in DATE_CODES:
                raise ExpressionError(
                    _("date code %(code)s is not supported") % {"code": match[0]},
                    at + 1 + match.start(),
                )
        return codes

    def choice_name(self, opening: Token) -> Expr:
        value = self.expression(1)
        if not self.accept(","):
            raise self.unclosed(opening)
        token = self.take()
        quoted = token.text[1:-1] if token.kind == "text" else token.text
        match = QUOTED_REFERENCE.fullmatch(quoted)
        if token.kind not in {"text", "reference"} or match is None:
            message = _("the second argument of jr:choice-name() is '${name}'")
            raise ExpressionError(message, token.at)
        if not self.accept(")"):
            raise self.unclosed(opening)
        return ["jr:choice-name", value, self.item(match[1].strip(), token.at)]
