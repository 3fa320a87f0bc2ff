"""Evaluate compiled expressions.

`static/js/expressions.js` does the same in the browser, with the same
results: the vectors in `survey/tests/definitions/expression_vectors.json` run
through both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date

from survey.instrument.definitions import portable_regex
from survey.instrument.definitions.expressions.values import (
    EPOCH,
    MOMENT,
    SPACE,
    Value,
    to_boolean,
    to_number,
    to_text,
)
from survey.instrument.definitions.schema import Expr

LAST_DAY = date.max.toordinal()
# Beyond every position in a text.
FARTHEST = 1e9


@dataclass(frozen=True)
class Context:
    """Everything that an expression may read.

    `today` is YYYY-MM-DD, `now` an ISO time with offset. `choice_label` maps
    an item's name and a value to the option's label. In a choice filter,
    `row` holds the option's columns, and its value as `name`.
    """

    values: Mapping[str, str]
    today: str = ""
    now: str = ""
    choice_label: Callable[[str, str], str] = lambda name, value: ""
    row: Mapping[str, str] = field(default_factory=dict)


def evaluate(expr: Expr, context: Context) -> Value:
    """Evaluate a compiled expression. Never raises, whatever the answers are."""
    if isinstance(expr, list):
        return OPERATIONS[expr[0]](context, *expr[1:])
    # Not isinstance: True is an int as well.
    return float(expr) if type(expr) is int else expr


# Operations on values: all arguments are evaluated first.


def equal(left: Value, right: Value) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return to_boolean(left) == to_boolean(right)
    if isinstance(left, float) or isinstance(right, float):
        return to_number(left) == to_number(right)
    return left == right


def divide(left: Value, right: Value) -> float:
    over, under = to_number(left), to_number(right)
    if under != 0:
        return over / under
    # Python raises ZeroDivisionError here; XPath and JavaScript have a result.
    if over == 0 or math.isnan(over):
        return math.nan
    return math.copysign(math.inf, over) * math.copysign(1, under)


def modulo(left: Value, right: Value) -> float:
    over, under = to_number(left), to_number(right)
    # Where JavaScript has NaN, `fmod` raises ValueError.
    if math.isinf(over) or under == 0:
        return math.nan
    return math.fmod(over, under)


def add(*values: Value) -> float:
    # Not sum(): newer Pythons round it differently from plain additions.
    total = to_number(values[0])
    for value in values[1:]:
        total += to_number(value)
    return total


def least_of(*values: Value) -> float:
    least = to_number(values[0])
    for candidate in map(to_number, values):
        if math.isnan(candidate):
            return math.nan
        least = candidate if candidate < least else least
    return least


def greatest_of(*values: Value) -> float:
    return -least_of(*(-to_number(value) for value in values))


def round_half_up(value: Value, places: Value = 0.0) -> float:
    """Half goes up, on the digits that a person sees: round(1.005, 2) = 1.01."""
    exact, wanted = to_number(value), to_position(places)
    if wanted is None:
        return math.nan
    if not math.isfinite(exact):
        return exact
    wanted = max(-400, min(400, wanted))
    whole, _, fraction = to_text(exact).partition(".")
    if len(fraction) <= wanted:
        return exact
    scale: int = 10 ** (len(fraction) - wanted)
    rounded = (2 * int(whole + fraction) + scale) // (2 * scale)
    return float(f"{rounded}e{-wanted}")


def to_position(value: Value) -> int | None:
    """Convert to a position in a text; None for NaN."""
    position = to_number(value)
    if math.isnan(position):
        return None
    return int(max(-FARTHEST, min(FARTHEST, position)))


def to_integer(function: Callable[[float], int], value: Value) -> float:
    exact = to_number(value)
    return float(function(exact)) if math.isfinite(exact) else exact


def selected(options: Value, option: Value) -> bool:
    return to_text(option).strip(SPACE) in to_text(options).split(" ")


def selected_at(options: Value, position: Value) -> str:
    chosen, index = split_words(options), to_position(position)
    return chosen[index] if index is not None and 0 <= index < len(chosen) else ""


def split_words(value: Value) -> list[str]:
    return [word for word in re.split(r"[ \t\r\n]+", to_text(value)) if word]


def substring(value: Value, start: Value, end: Value = FARTHEST) -> str:
    first, last = to_position(start), to_position(end)
    return "" if first is None or last is None else to_text(value)[first:last]


def substring_before(value: Value, part: Value) -> str:
    text = to_text(value)
    position = text.find(to_text(part))
    return text[:position] if position >= 0 else ""


def substring_after(value: Value, part: Value) -> str:
    text, sought = to_text(value), to_text(part)
    position = text.find(sought)
    return text[position + len(sought) :] if position >= 0 else ""


def translate(value: Value, characters: Value, replacements: Value) -> str:
    """Replace characters one by one; those without a replacement are removed."""
    replacing: dict[int, str] = {}
    written = to_text(replacements)
    for position, character in enumerate(to_text(characters)):
        replacing.setdefault(ord(character), written[position : position + 1])
    return to_text(value).translate(replacing)


def to_date(value: Value) -> str:
    days = to_number(value)
    if isinstance(value, str) and MOMENT.fullmatch(value.strip(SPACE)):
        return "" if math.isnan(days) else value.strip(SPACE)[:10]
    ordinal = math.floor(days) + EPOCH if math.isfinite(days) else 0
    return date.fromordinal(ordinal).isoformat() if 0 < ordinal <= LAST_DAY else ""


def format_date(value: Value, codes: str) -> str:
    """Write a date and time by codes such as `%Y-%m-%d`; "" for no date."""
    day = to_date(value)
    if not day:
        return ""
    moment = MOMENT.fullmatch(to_text(value).strip(SPACE))
    clock = moment.groups()[3:] if moment else (None, None, None)
    hour, minute, second = (part or "00" for part in clock)
    parts = {
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
    return re.sub(r"%(.)", lambda match: parts[match[1]], codes)


# Operations that evaluate their arguments themselves.

Operation = Callable[..., Value]


def evaluating_arguments(function: Operation) -> Operation:
    def operation(context: Context, *arguments: Expr) -> Value:
        return function(*[evaluate(argument, context) for argument in arguments])

    return operation


def all_true(context: Context, *arguments: Expr) -> bool:
    return all(to_boolean(evaluate(argument, context)) for argument in arguments)


def any_true(context: Context, *arguments: Expr) -> bool:
    return any(to_boolean(evaluate(argument, context)) for argument in arguments)


def choose(context: Context, condition: Expr, then: Expr, otherwise: Expr) -> Value:
    chosen = then if to_boolean(evaluate(condition, context)) else otherwise
    return evaluate(chosen, context)


def coalesce(context: Context, *arguments: Expr) -> Value:
    value: Value = ""
    for argument in arguments:
        value = evaluate(argument, context)
        if value != "" and value == value:  # NaN is not equal to itself.
            return value
    return value


def matches_pattern(context: Context, argument: Expr, pattern: str) -> bool:
    return portable_regex.matches(to_text(evaluate(argument, context)), pattern)


def choice_name(context: Context, argument: Expr, name: str) -> str:
    return context.choice_label(name, to_text(evaluate(argument, context)))


EAGER: dict[str, Operation] = {
    "=": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": lambda left, right: to_number(left) < to_number(right),
    "<=": lambda left, right: to_number(left) <= to_number(right),
    ">": lambda left, right: to_number(left) > to_number(right),
    ">=": lambda left, right: to_number(left) >= to_number(right),
    "+": add,
    "-": lambda left, right: to_number(left) - to_number(right),
    "*": lambda left, right: to_number(left) * to_number(right),
    "div": divide,
    "mod": modulo,
    "neg": lambda value: -to_number(value),
    "abs": lambda value: abs(to_number(value)),
    "boolean": to_boolean,
    "ceiling": lambda value: to_integer(math.ceil, value),
    "concat": lambda *values: "".join(map(to_text, values)),
    "contains": lambda value, part: to_text(part) in to_text(value),
    "count-selected": lambda value: float(len(split_words(value))),
    "date": to_date,
    "decimal-date-time": to_number,
    "ends-with": lambda value, part: to_text(value).endswith(to_text(part)),
    "floor": lambda value: to_integer(math.floor, value),
    "int": lambda value: to_integer(math.trunc, value),
    "max": greatest_of,
    "min": least_of,
    "normalize-space": lambda value: " ".join(split_words(value)),
    "not": lambda value: not to_boolean(value),
    "number": to_number,
    "once": lambda value: value,
    "round": round_half_up,
    "selected": selected,
    "selected-at": selected_at,
    "starts-with": lambda value, part: to_text(value).startswith(to_text(part)),
    "string": to_text,
    "string-length": lambda value: float(len(to_text(value))),
    "substr": substring,
    "substring-after": substring_after,
    "substring-before": substring_before,
    "sum": add,
    "translate": translate,
}
OPERATIONS: dict[str, Operation] = {
    **{name: evaluating_arguments(function) for name, function in EAGER.items()},
    "$": lambda context, name: context.values.get(name) or "",
    "col": lambda context, name: context.row.get(name) or "",
    "and": all_true,
    "or": any_true,
    "if": choose,
    "coalesce": coalesce,
    "regex": matches_pattern,
    "format-date": lambda context, argument, codes: format_date(
        evaluate(argument, context), codes
    ),
    "jr:choice-name": choice_name,
    "today": lambda context: context.today,
    "now": lambda context: context.now,
}
