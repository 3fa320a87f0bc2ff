"""Expressions of XLSForm: compiled once, evaluated here and in the browser.

The text (XPath 1.0 with the functions of ODK, without paths) becomes a form
that JSON can carry: a literal is a string, number or boolean, all else a list
`[operation, argument...]`, such as `["selected", ["$", "pets"], "dog"]`.
`static/js/expressions.js` evaluates the same form with the same results; the
vectors in `survey/tests/definitions/expression_vectors.json` run through both.

Values are text, numbers and booleans. Where a number is wanted, text that is
a date counts as days since 1970-01-01, a date and time as days with a
fraction, and a time as a fraction of a day, each by the clock on the wall:
an offset is not applied. Text that is none of these is NaN.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from survey.definitions import portable_regex
from survey.definitions.schema import Call, Expr

Value = str | float | bool

# Deep enough for any survey, shallow enough for Python's own stack.
DEEPEST = 100
LONGEST = 10_000
LONGEST_NUMBER = 30


class ExpressionError(ValueError):
    """What is wrong with an expression and where (`position` from 0)."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} (character {position + 1})")
        self.message = message
        self.position = position


def _no_label(name: str, value: str) -> str:
    return ""


@dataclass(frozen=True)
class Context:
    """What an expression may read.

    `today` is YYYY-MM-DD, `now` an ISO time with offset. `choice_label` takes
    an item's name and a value. `row` is the option that a choice filter looks
    at: its columns, and its value as `name`.
    """

    values: Mapping[str, str]
    today: str = ""
    now: str = ""
    choice_label: Callable[[str, str], str] = _no_label
    row: Mapping[str, str] = field(default_factory=dict)


def compile_expression(
    text: str,
    *,
    self_name: str | None = None,
    columns: Collection[str] = (),
    items: Collection[str] | None = None,
) -> Expr:
    """The JSON form of an expression; raises ExpressionError.

    `.` is the item `self_name`. In a choice filter `columns` are the names
    of the option's columns (`name`, its value, is always one of them). With
    `items` a reference to any other item is an error.
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"longer than {LONGEST} characters", LONGEST)
    known = {*columns, "name"} if columns else set()
    compiled = _Parser(text, self_name, known, items).parse()
    if _depth(compiled) > DEEPEST:
        raise ExpressionError("nested too deeply", 0)
    return compiled


def references(expr: Expr) -> set[str]:
    """Names of the items whose values the expression reads."""
    return {node[1] for node in _nodes(expr) if node[0] == "$"}


def labels_of(expr: Expr) -> set[str]:
    """Names of the items whose option labels the expression reads."""
    return {node[2] for node in _nodes(expr) if node[0] == "jr:choice-name"}


def reads_clock(expr: Expr) -> bool:
    return any(node[0] in {"today", "now"} for node in _nodes(expr))


def _nodes(expr: Expr) -> list[Call]:
    found: list[Call] = []
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            found.append(node)
            waiting.extend(node[1:])
    return found


def _depth(expr: Expr) -> int:
    deepest, waiting = 0, [(expr, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(node, list):
            waiting.extend((argument, depth + 1) for argument in node[1:])
    return deepest


# --- From text to the JSON form ---------------------------------------------

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
    "sum": (1, MANY),
    "today": (0, 0),
    "true": (0, 0),
}
DATE_CODES = "YymndeHhMS3%"

MISTAKES = {
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not(...)` or `!=`",
    "/": "divide with `div`; paths are not supported, write ${name}",
    "%": "write `mod`",
    "[": "paths are not supported, write ${name}",
    "@": "paths are not supported, write ${name}",
    "‘": "use straight quotes",
    "’": "use straight quotes",
    "“": "use straight quotes",
    "”": "use straight quotes",
    "'": "the text is never closed",
    '"': "the text is never closed",
    "$": "an item is written ${name}",
    "≠": "write `!=`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "×": "write `*`",
    "÷": "write `div`",
    "−": "write a plain `-`",
    "–": "write a plain `-`",
}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    at: int


def _tokens(source: str) -> list[Token]:
    tokens, at = [], 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if match is None:
            raise ExpressionError(_mistake(source[at]), at)
        if match.lastgroup != "space":
            tokens.append(Token(match.lastgroup or "", match[0], at))
        at = match.end()
    return [*tokens, Token("end", "", len(source))]


def _mistake(character: str) -> str:
    advice = MISTAKES.get(character)
    return f"unexpected {character}" + (f": {advice}" if advice else "")


def _suggestion(wrong: str, right: Collection[str], form: str = "{}") -> str:
    lowered = {name.lower(): name for name in right}
    close = difflib.get_close_matches(wrong.lower(), lowered, 1, 0.6)
    return f"; did you mean {form.format(lowered[close[0]])}?" if close else ""


def _plural(low: int, high: int) -> str:
    if low < high < MANY:
        return f"{low} to {high} arguments"
    count = f"{low} argument{'' if low == 1 else 's'}"
    return f"at least {count}" if high == MANY else count


class _Parser:
    def __init__(
        self,
        source: str,
        self_name: str | None,
        columns: Collection[str],
        items: Collection[str] | None,
    ) -> None:
        self.tokens = _tokens(source)
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
        found = self.token.kind == "operator" and self.token.text == operator
        self.index += found
        return found

    def unexpected(self, token: Token) -> ExpressionError:
        if token.kind == "end":
            return ExpressionError("the expression ends too early", token.at)
        return ExpressionError(f"unexpected {token.text}", token.at)

    def parse(self) -> Expr:
        if self.token.kind == "end":
            raise ExpressionError("the expression is empty", 0)
        compiled = self.expression(1)
        if self.token.kind != "end":
            raise self.unexpected(self.token)
        return compiled

    def expression(self, weakest: int) -> Expr:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ExpressionError("nested too deeply", self.token.at)
        left = self.unary()
        while PRECEDENCE.get(self.operator(), 0) >= weakest:
            operator = self.take().text
            right = self.expression(PRECEDENCE[operator] + 1)
            left = _joined(operator, left, right)
        self.depth -= 1
        return left

    def operator(self) -> str:
        return self.token.text if self.token.kind in {"operator", "name"} else ""

    def unary(self) -> Expr:
        signs = 0
        while self.accept("-"):
            signs += 1
        operand = self.primary()
        for _ in range(signs):
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
            return self.own(token)
        raise self.unexpected(token)

    def number(self, token: Token) -> float:
        if len(token.text) > LONGEST_NUMBER:
            raise ExpressionError("the number is too long", token.at)
        value = float(token.text)
        return int(value) if value.is_integer() and value < 2**53 else value

    def grouped(self, opening: Token) -> Expr:
        inner = self.expression(1)
        if not self.accept(")"):
            if self.token.kind == "end":
                raise ExpressionError("( is never closed", opening.at)
            raise self.unexpected(self.token)
        return inner

    def own(self, token: Token) -> Expr:
        if self.token.text == ".":
            message = "paths are not supported, write ${name}"
            raise ExpressionError(message, token.at)
        if self.self_name is None:
            raise ExpressionError("there is no item here that . could be", token.at)
        return ["$", self.self_name]

    def item(self, name: str, at: int) -> str:
        if not ITEM_NAME.fullmatch(name):
            raise ExpressionError(f"${{{name}}} is not the name of an item", at)
        if self.items is not None and name not in self.items:
            hint = _suggestion(name, self.items, "${{{}}}")
            raise ExpressionError(f"there is no item ${{{name}}}{hint}", at)
        return name

    def named(self, token: Token) -> Expr:
        if self.token.kind == "operator" and self.token.text == "(":
            return self.call(token)
        if token.text in self.columns:
            return ["col", token.text]
        if token.text in ARGUMENTS:
            raise ExpressionError(f"after {token.text} comes (", self.token.at)
        raise ExpressionError(self.unknown_name(token.text), token.at)

    def unknown_name(self, name: str) -> str:
        if self.columns:
            hint = _suggestion(name, self.columns)
            return f"the choices have no column {name}{hint}"
        return f"unknown name {name}: an item is written ${{{name}}}"

    def call(self, token: Token) -> Expr:
        name = token.text
        if name not in ARGUMENTS:
            hint = _suggestion(name, ARGUMENTS, "{}()")
            raise ExpressionError(f"unknown function {name}(){hint}", token.at)
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
            return ExpressionError("( is never closed", opening.at)
        return self.unexpected(self.token)

    def check_count(self, token: Token, count: int) -> None:
        low, high = ARGUMENTS[token.text]
        if not low <= count <= high:
            wanted = _plural(low, high)
            message = f"{token.text}() takes {wanted}, not {count}"
            raise ExpressionError(message, token.at)

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
            raise ExpressionError("the pattern of regex() must be in quotes", at)
        try:
            return portable_regex.portable(pattern)
        except portable_regex.PatternError as refusal:
            position = at + 1 + refusal.position
            raise ExpressionError(f"regex: {refusal.message}", position) from refusal

    def date_format(self, codes: Expr, at: int) -> str:
        if not isinstance(codes, str):
            raise ExpressionError("the format of a date must be in quotes", at)
        for match in re.finditer(r"%(.?)", codes, re.DOTALL):
            if not match[1] or match[1] not in DATE_CODES:
                raise ExpressionError(
                    f"date code {match[0]} is not supported", at + 1 + match.start()
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
            message = "the second argument of jr:choice-name() is '${name}'"
            raise ExpressionError(message, token.at)
        if not self.accept(")"):
            raise self.unclosed(opening)
        return ["jr:choice-name", value, self.item(match[1].strip(), token.at)]


def _joined(operator: str, left: Expr, right: Expr) -> Expr:
    if operator in CHAINED and isinstance(left, list) and left[0] == operator:
        return [*left, right]
    return [operator, left, right]


# --- Conversions -------------------------------------------------------------

SPACE = " \t\r\n"
NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2}(?:\.[0-9]{1,9})?))?"
TIME = re.compile(CLOCK)
MOMENT = re.compile(
    rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})"
    rf"(?:T{CLOCK}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?"
)
EPOCH = date(1970, 1, 1).toordinal()
# From here on `repr` writes an exponent, and the shortest digits end in zeros.
LARGEST_PLAIN = 1e16
FARTHEST = 1e9


def truth(value: Value) -> bool:
    if isinstance(value, float):
        return value != 0 and not math.isnan(value)
    return bool(value)


def number(value: Value) -> float:
    if not isinstance(value, str):
        return float(value)
    stripped = value.strip(SPACE)
    if NUMBER.fullmatch(stripped):
        return float(stripped)
    return _as_days(stripped)


def text(value: Value) -> str:
    """As XPath writes it: no exponent, no `.0`, the shortest exact digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < LARGEST_PLAIN:
        return str(int(value))
    return format(Decimal(repr(float(value))), "f")


def _as_days(moment: str) -> float:
    clock = TIME.fullmatch(moment)
    if clock:
        return _day_fraction(*clock.groups())
    found = MOMENT.fullmatch(moment)
    if not found:
        return math.nan
    return _days(*found.groups()[:3]) + _day_fraction(*found.groups()[3:])


def _days(year: str, month: str, day: str) -> float:
    try:
        return float(date(int(year), int(month), int(day)).toordinal() - EPOCH)
    except ValueError:
        return math.nan


def _day_fraction(hour: str | None, minute: str | None, second: str | None) -> float:
    if hour is None or minute is None:
        return 0.0
    hours, minutes, seconds = int(hour), int(minute), float(second or 0)
    if hours > 23 or minutes > 59 or seconds >= 60:
        return math.nan
    return (hours * 3600 + minutes * 60 + seconds) / 86400


def _whole(value: Value) -> int | None:
    """The argument as a position in a text; None for NaN."""
    position = number(value)
    if math.isnan(position):
        return None
    return int(max(-FARTHEST, min(FARTHEST, position)))


# --- Operations --------------------------------------------------------------


def evaluate(expr: Expr, context: Context) -> Value:
    """The value of a compiled expression; never raises for any answers."""
    if isinstance(expr, list):
        return OPERATIONS[expr[0]](context, *expr[1:])
    return float(expr) if type(expr) is int else expr


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return truth(left) == truth(right)
    if isinstance(left, float) or isinstance(right, float):
        return number(left) == number(right)
    return left == right


def _divide(left: Value, right: Value) -> float:
    over, under = number(left), number(right)
    if under != 0:
        return over / under
    if over == 0 or math.isnan(over):
        return math.nan
    return math.copysign(math.inf, over) * math.copysign(1, under)


def _modulo(left: Value, right: Value) -> float:
    over, under = number(left), number(right)
    if math.isinf(over) or under == 0:
        return math.nan
    return math.fmod(over, under)


def _add(*values: Value) -> float:
    # Not sum(): newer Pythons round it differently from plain additions.
    total = number(values[0])
    for value in values[1:]:
        total += number(value)
    return total


def _least(*values: Value) -> float:
    least = number(values[0])
    for candidate in map(number, values):
        if math.isnan(candidate):
            return math.nan
        least = candidate if candidate < least else least
    return least


def _greatest(*values: Value) -> float:
    return -_least(*(-number(value) for value in values))


def _rounded(value: Value, places: Value = 0.0) -> float:
    """Half goes up, on the digits that a person sees: round(1.005, 2) = 1.01."""
    exact, wanted = number(value), _whole(places)
    if wanted is None:
        return math.nan
    if not math.isfinite(exact):
        return exact
    wanted = max(-400, min(400, wanted))
    whole, _, fraction = text(exact).partition(".")
    if len(fraction) <= wanted:
        return exact
    scale: int = 10 ** (len(fraction) - wanted)
    rounded = (2 * int(whole + fraction) + scale) // (2 * scale)
    return float(f"{rounded}e{-wanted}")


def _integral(function: Callable[[float], int], value: Value) -> float:
    exact = number(value)
    return float(function(exact)) if math.isfinite(exact) else exact


def _selected(options: Value, option: Value) -> bool:
    return text(option).strip(SPACE) in text(options).split(" ")


def _selected_at(options: Value, position: Value) -> str:
    chosen, index = _words(options), _whole(position)
    return chosen[index] if index is not None and 0 <= index < len(chosen) else ""


def _words(value: Value) -> list[str]:
    return [word for word in re.split(r"[ \t\r\n]+", text(value)) if word]


def _part(value: Value, start: Value, end: Value = FARTHEST) -> str:
    first, last = _whole(start), _whole(end)
    return "" if first is None or last is None else text(value)[first:last]


def _date(value: Value) -> str:
    days = number(value)
    if isinstance(value, str) and MOMENT.fullmatch(value.strip(SPACE)):
        return "" if math.isnan(days) else value.strip(SPACE)[:10]
    ordinal = math.floor(days) + EPOCH if math.isfinite(days) else 0
    return date.fromordinal(ordinal).isoformat() if 0 < ordinal <= LAST_DAY else ""


LAST_DAY = date.max.toordinal()


def _formatted_date(value: Value, codes: str) -> str:
    day = _date(value)
    if not day:
        return ""
    found = MOMENT.fullmatch(text(value).strip(SPACE))
    parts = _date_parts(day, found.groups()[3:] if found else ())
    return re.sub(r"%(.)", lambda match: parts[match[1]], codes)


def _date_parts(day: str, clock: tuple[str | None, ...]) -> dict[str, str]:
    hour, minute, second = (part or "00" for part in clock or ("", "", ""))
    return {
        "Y": day[:4],
        "y": day[2:4],
        "m": day[5:7],
        "n": str(int(day[5:7])),
        "d": day[8:],
        "e": str(int(day[8:])),
        "H": hour,
        "h": str(int(hour)),
        "M": minute,
        "S": second[:2],
        "3": second[3:6].ljust(3, "0"),
        "%": "%",
    }


Operation = Callable[..., Value]


def _eager(function: Operation) -> Operation:
    def operation(context: Context, *arguments: Expr) -> Value:
        return function(*[evaluate(argument, context) for argument in arguments])

    return operation


def _and(context: Context, *arguments: Expr) -> bool:
    return all(truth(evaluate(argument, context)) for argument in arguments)


def _or(context: Context, *arguments: Expr) -> bool:
    return any(truth(evaluate(argument, context)) for argument in arguments)


def _if(context: Context, condition: Expr, then: Expr, otherwise: Expr) -> Value:
    chosen = then if truth(evaluate(condition, context)) else otherwise
    return evaluate(chosen, context)


def _coalesce(context: Context, *arguments: Expr) -> Value:
    value: Value = ""
    for argument in arguments:
        value = evaluate(argument, context)
        if value != "" and value == value:  # NaN is not equal to itself.
            return value
    return value


def _regex(context: Context, argument: Expr, pattern: str) -> bool:
    return portable_regex.matches(text(evaluate(argument, context)), pattern)


def _format_date(context: Context, argument: Expr, codes: str) -> str:
    return _formatted_date(evaluate(argument, context), codes)


def _choice_name(context: Context, argument: Expr, name: str) -> str:
    return context.choice_label(name, text(evaluate(argument, context)))


EAGER: dict[str, Operation] = {
    "=": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": lambda left, right: number(left) < number(right),
    "<=": lambda left, right: number(left) <= number(right),
    ">": lambda left, right: number(left) > number(right),
    ">=": lambda left, right: number(left) >= number(right),
    "+": _add,
    "-": lambda left, right: number(left) - number(right),
    "*": lambda left, right: number(left) * number(right),
    "div": _divide,
    "mod": _modulo,
    "neg": lambda value: -number(value),
    "abs": lambda value: abs(number(value)),
    "boolean": truth,
    "ceiling": lambda value: _integral(math.ceil, value),
    "concat": lambda *values: "".join(map(text, values)),
    "contains": lambda value, part: text(part) in text(value),
    "count-selected": lambda value: float(len(_words(value))),
    "date": _date,
    "decimal-date-time": number,
    "ends-with": lambda value, part: text(value).endswith(text(part)),
    "floor": lambda value: _integral(math.floor, value),
    "int": lambda value: _integral(math.trunc, value),
    "max": _greatest,
    "min": _least,
    "not": lambda value: not truth(value),
    "number": number,
    "once": lambda value: value,
    "round": _rounded,
    "selected": _selected,
    "selected-at": _selected_at,
    "starts-with": lambda value, part: text(value).startswith(text(part)),
    "string": text,
    "string-length": lambda value: float(len(text(value))),
    "substr": _part,
    "sum": _add,
}
OPERATIONS: dict[str, Operation] = {
    **{name: _eager(function) for name, function in EAGER.items()},
    "$": lambda context, name: context.values.get(name) or "",
    "col": lambda context, name: context.row.get(name) or "",
    "and": _and,
    "or": _or,
    "if": _if,
    "coalesce": _coalesce,
    "regex": _regex,
    "format-date": _format_date,
    "jr:choice-name": _choice_name,
    "today": lambda context: context.today,
    "now": lambda context: context.now,
}
