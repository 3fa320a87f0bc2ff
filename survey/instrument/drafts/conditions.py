"""Read rules as conditions that people can edit, and write them as expressions.

A rule becomes a group of conditions only if it means exactly that: every other
expression stays code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from accounts.control_characters import has_control_character
from survey.instrument.definitions.expressions import (
    ExpressionError,
    compile_expression,
    to_text,
)
from survey.instrument.definitions.expressions.values import to_number
from survey.instrument.definitions.schema import MOMENTS, NUMBERS, Call, Expr
from survey.instrument.xlsform.rules import DATE, DECIMAL, straight_quotes

# The names of subjects that are no question: the answer that is judged, and, after
# a colon, a column of the options that are filtered. No question has such a name.
THIS = "."
COLUMN = ":"
TODAY = "today"
MOST_CONDITIONS = 50
LONGEST_VALUE = 255
REFERENCE = re.compile(r"\$\{([^{}]+)\}")
COUNT = re.compile(r"[0-9]{1,4}")
# Each piece can be quoted, and office programs' curly quotes count as quotes.
QUOTABLE = re.compile("[^'\u2018\u2019]+|[^\"\u201c\u201d]+")


class Operator(StrEnum):
    IS = "is"
    IS_NOT = "is not"
    INCLUDES = "includes"
    NOT_INCLUDES = "does not include"
    CONTAINS = "contains"
    NOT_CONTAINS = "does not contain"
    MORE = "more than"
    AT_LEAST = "at least"
    LESS = "less than"
    AT_MOST = "at most"
    COUNT_AT_LEAST = "count at least"
    COUNT_AT_MOST = "count at most"
    COUNT_IS = "count is"
    AMONG = "is among"
    NOT_AMONG = "is not among"
    ANSWERED = "is answered"
    NOT_ANSWERED = "is not answered"


EQUALITY = {"=": Operator.IS, "!=": Operator.IS_NOT}
ORDER = {
    "<": Operator.LESS,
    "<=": Operator.AT_MOST,
    ">": Operator.MORE,
    ">=": Operator.AT_LEAST,
}
COMPARISONS = EQUALITY | ORDER
SIGNS = {operator: sign for sign, operator in COMPARISONS.items()}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COUNTS = {
    Operator.COUNT_AT_LEAST: ">=",
    Operator.COUNT_AT_MOST: "<=",
    Operator.COUNT_IS: "=",
}
# `not(${age} > 5)` is not here: it holds for a blank answer, and `<=` does not.
NEGATIONS = {
    Operator.IS: Operator.IS_NOT,
    Operator.INCLUDES: Operator.NOT_INCLUDES,
    Operator.CONTAINS: Operator.NOT_CONTAINS,
    Operator.AMONG: Operator.NOT_AMONG,
    Operator.ANSWERED: Operator.NOT_ANSWERED,
}
NEGATIONS |= {negated: operator for operator, negated in NEGATIONS.items()}
WITHOUT_VALUE = frozenset((Operator.ANSWERED, Operator.NOT_ANSWERED))

BLANKNESS = (Operator.ANSWERED, Operator.NOT_ANSWERED)
SAMENESS = tuple(EQUALITY.values())
ORDERS = (Operator.MORE, Operator.AT_LEAST, Operator.LESS, Operator.AT_MOST)
INCLUSION = (Operator.INCLUDES, Operator.NOT_INCLUDES)
PARTS = (Operator.CONTAINS, Operator.NOT_CONTAINS)
OPERATORS: dict[str, tuple[Operator, ...]] = {
    "select_one": (*SAMENESS, *BLANKNESS),
    "select_multiple": (*INCLUSION, *BLANKNESS, *COUNTS),
    "acknowledge": BLANKNESS,
    "text": (*SAMENESS, *PARTS, *BLANKNESS, *COUNTS),
    **dict.fromkeys(NUMBERS | MOMENTS, (*SAMENESS, *ORDERS, *BLANKNESS)),
    **dict.fromkeys(
        ("calculate", "hidden"),
        (*SAMENESS, *ORDERS, *INCLUSION, *PARTS, *BLANKNESS),
    ),
    "column": (*SAMENESS, Operator.AMONG, Operator.NOT_AMONG, *BLANKNESS),
}
# Their answers are numbers or texts: a value that is a number is written as one.
UNTYPED = frozenset(("calculate", "hidden"))


@dataclass(frozen=True)
class Subject:
    """What a condition may be about: a question, this answer, or a column of options.

    `options` are values and labels, in order. `phrase` stands for the answer in
    sentences; empty for the label in quotes. Subjects that are not offered can be
    read in rules, but not chosen in new ones.
    """

    name: str
    kind: str
    label: str = ""
    options: tuple[tuple[str, str], ...] = ()
    phrase: str = ""
    is_offered: bool = True
    # Of the question, as the editor counts them; 0 for what nobody answers.
    number: int = 0

    @property
    def operators(self) -> tuple[Operator, ...]:
        operators = OPERATORS.get(self.kind, ())
        has_numbers = any(DECIMAL.fullmatch(value) for value, _ in self.options)
        if has_numbers and self.kind in ("select_one", "column"):
            return (*operators, *ORDERS)
        return operators


# By the name in conditions; that of `THIS` has the name of its question.
Subjects = Mapping[str, Subject]


@dataclass(frozen=True)
class Condition:
    """`value` is an option's value, a text, a number, a date, `today`, or `${name}`."""

    item: str
    operator: Operator
    value: str = ""


@dataclass(frozen=True)
class Group:
    """Conditions of which `all`, `any` or `none` are true."""

    join: str
    parts: tuple[Condition | Group, ...]

    @property
    def depth(self) -> int:
        inner = (part.depth for part in self.parts if isinstance(part, Group))
        return 1 + max(inner, default=0)

    def conditions(self) -> Iterator[Condition]:
        for part in self.parts:
            if isinstance(part, Group):
                yield from part.conditions()
            else:
                yield part


def words_of(
    expression: str, subjects: Subjects, depth: int | None = 2
) -> Group | None:
    """Read a cell; None if its rule is not a group of conditions and groups.

    Groups that are nested deeper than `depth` are not read.
    """
    columns = {name[1:] for name in subjects if name.startswith(COLUMN)}
    self_name = subjects[THIS].name if THIS in subjects else None
    try:
        compiled = compile_expression(
            straight_quotes(expression), self_name=self_name, columns=columns
        )
    except (ExpressionError, RecursionError):
        return None
    group = group_of(compiled, subjects)
    if group is None or (depth and group.depth > depth):
        return None
    return group if len(list(group.conditions())) <= MOST_CONDITIONS else None


def unchanged(expression: str, group: Group, subjects: Subjects) -> bool:
    """Return whether the group is what the expression says already."""
    return words_of(expression, subjects) == simplified(group)


def group_of(expr: Expr, subjects: Subjects) -> Group | None:
    """Read a compiled rule, with groups nested as deep as they are."""
    part = _Reader(subjects).part(expr)
    if part is None:
        return None
    return simplified(part if isinstance(part, Group) else Group("all", (part,)))


def condition_of(expr: Expr, subjects: Subjects) -> Condition | None:
    """Read a part of a compiled rule; None if it is not a single condition."""
    part = _Reader(subjects).part(expr)
    return part if isinstance(part, Condition) else None


def simplified(group: Group) -> Group:
    """Drop groups that change nothing: of one part, or joined like the one around."""
    parts: list[Condition | Group] = []
    for part in group.parts:
        if isinstance(part, Group):
            part = simplified(part)
            if part.join != "none" and (
                part.join == group.join
                or len(part.parts) == 1
                or (group.join, part.join) == ("none", "any")
            ):
                parts += part.parts
                continue
        parts.append(part)
    if len(parts) > 1:
        return replace(group, parts=tuple(parts))
    if group.join == "none":
        [part] = parts
        if isinstance(part, Condition) and part.operator in NEGATIONS:
            negated = replace(part, operator=NEGATIONS[part.operator])
            return Group("all", (negated,))
        return replace(group, parts=tuple(parts))
    if parts and isinstance(parts[0], Group):
        return parts[0]
    return Group("all", tuple(parts))


class _Reader:
    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects

    def part(self, expr: Expr) -> Condition | Group | None:
        if not isinstance(expr, list):
            return None
        operation, *arguments = expr
        if operation in ("and", "or"):
            return self.joined("all" if operation == "and" else "any", arguments)
        if operation == "not":
            return self.negated(arguments[0])
        if operation in COMPARISONS:
            left, right = arguments
            if self.rank(right) > self.rank(left):
                left, right, operation = right, left, MIRRORED[operation]
            return self.comparison(operation, left, right)
        if operation == "selected":
            return self.selection(*arguments)
        if operation == "contains":
            return self.condition(self.name_of(arguments[0]), *PARTS[:1], arguments[1])
        return None

    def joined(self, join: str, arguments: list[Expr]) -> Group | None:
        parts = [self.part(argument) for argument in arguments]
        read = tuple(part for part in parts if part is not None)
        return Group(join, read) if len(read) == len(parts) else None

    def negated(self, expr: Expr) -> Condition | Group | None:
        part = self.part(expr)
        if part is None:
            return None
        if isinstance(part, Condition) and part.operator in NEGATIONS:
            return replace(part, operator=NEGATIONS[part.operator])
        return Group("none", (part,))

    def name_of(self, expr: Expr) -> str:
        if not isinstance(expr, list) or expr[0] not in ("$", "col"):
            return ""
        name: str = (COLUMN if expr[0] == "col" else "") + expr[1]
        if THIS in self.subjects and self.subjects[THIS].name == name:
            return THIS
        return name if name in self.subjects else ""

    def rank(self, expr: Expr) -> int:
        """Order what could be the subject of a comparison."""
        if isinstance(expr, list) and expr[0] in ("string-length", "count-selected"):
            return 1
        name = self.name_of(expr)
        return 3 if name.startswith(COLUMN) else 2 if name == THIS else bool(name)

    def comparison(self, sign: str, left: Expr, right: Expr) -> Condition | None:
        if not isinstance(left, list):
            return None
        if left[0] in ("string-length", "count-selected"):
            return self.count(left, sign, right)
        name = self.name_of(left)
        if right == "" and sign in EQUALITY:
            operator = Operator.NOT_ANSWERED if sign == "=" else Operator.ANSWERED
            return Condition(name, operator) if name else None
        if name and self.subjects[name].kind == "acknowledge" and right == "OK":
            operator = Operator.ANSWERED if sign == "=" else Operator.NOT_ANSWERED
            return Condition(name, operator) if sign in EQUALITY else None
        return self.condition(name, COMPARISONS[sign], right)

    def count(self, call: Call, sign: str, right: Expr) -> Condition | None:
        name = self.name_of(call[1])
        if not name or call[0] != counting(self.subjects[name]):
            return None
        if isinstance(right, bool | str | list) or right != int(right):
            return None
        number = int(right) + {">": 1, "<": -1}.get(sign, 0)
        operators = {">": Operator.COUNT_AT_LEAST, "<": Operator.COUNT_AT_MOST}
        operator = Operator.COUNT_IS if sign == "=" else operators.get(sign[0])
        if operator in self.subjects[name].operators:
            is_count = COUNT.fullmatch(str(number))
            return Condition(name, operator, str(number)) if is_count else None
        # How long other answers are is not asked, but whether there is one.
        if (operator, number) == (Operator.COUNT_IS, 0):
            return Condition(name, Operator.NOT_ANSWERED)
        if (operator, number) == (Operator.COUNT_AT_LEAST, 1):
            return Condition(name, Operator.ANSWERED)
        return None

    def selection(self, options: Expr, option: Expr) -> Condition | None:
        if isinstance(option, int | float) and not isinstance(option, bool):
            option = to_text(float(option))
        column = self.name_of(option)
        if column.startswith(COLUMN):
            return self.condition(column, Operator.AMONG, options)
        name = self.name_of(options)
        if not name:
            return None
        subject = self.subjects[name]
        if Operator.INCLUDES in subject.operators:
            return self.condition(name, Operator.INCLUDES, option)
        # A single choice is all of its words only if there is no other one.
        words = {word for value, _ in subject.options for word in value.split(" ")}
        is_text = subject.kind == "select_one" and isinstance(option, str)
        if is_text and option and words.issuperset(v for v, _ in subject.options):
            return self.condition(name, Operator.IS, option)
        return None

    def condition(self, name: str, operator: Operator, right: Expr) -> Condition | None:
        if not name or operator not in self.subjects[name].operators:
            return None
        value = self.value(self.subjects[name], operator, right)
        return None if value is None else Condition(name, operator, value)

    def value(self, subject: Subject, operator: Operator, expr: Expr) -> str | None:
        """Read a value; None if writing it would give another one."""
        if isinstance(expr, list):
            return self.computed_value(subject, operator, expr)
        if isinstance(expr, bool) or operator in (Operator.AMONG, Operator.NOT_AMONG):
            return None
        if isinstance(expr, int | float):
            return number_value(subject, operator, float(expr))
        if expr != expr.strip() or has_control_character(expr) or "${" in expr:
            return None
        if not 0 < len(expr) <= LONGEST_VALUE:
            return None
        if subject.kind in MOMENTS:
            return None if math.isnan(to_number(expr)) else expr
        if operator in ORDERS:
            if subject.kind in UNTYPED and not DECIMAL.fullmatch(expr):
                return None if math.isnan(to_number(expr)) else expr
            return to_text(to_number(expr)) if DECIMAL.fullmatch(expr) else None
        if subject.kind in NUMBERS or subject.kind in UNTYPED:
            # Compared as text, so that 5 is not 5.0.
            is_number = DECIMAL.fullmatch(expr) or subject.kind in NUMBERS
            return None if is_number and operator in SAMENESS else expr
        return expr

    def computed_value(
        self, subject: Subject, operator: Operator, expr: Call
    ) -> str | None:
        if expr[0] == "$":
            # The answer itself has no name to be written by on the right side.
            name = self.name_of(expr)
            is_question = bool(name) and name != THIS and name != subject.name
            return f"${{{name}}}" if is_question else None
        if operator in (Operator.AMONG, Operator.NOT_AMONG):
            return None
        if expr[0] == "neg" and type(expr[1]) in (int, float):
            return number_value(subject, operator, -float(expr[1]))
        if expr[0] == "concat" and all(isinstance(part, str) for part in expr[1:]):
            return self.value(subject, operator, "".join(map(str, expr[1:])))
        if expr == ["today"] and subject.kind in ("date", "datetime"):
            return TODAY
        if expr[0] == "date" and subject.kind in MOMENTS and len(expr) == 2:
            day = str(expr[1])
            return day if is_day(day) else None
        return None


def number_value(subject: Subject, operator: Operator, number: float) -> str | None:
    text = to_text(number)
    if not DECIMAL.fullmatch(text):
        return None
    if subject.kind in NUMBERS or subject.kind in UNTYPED:
        return None if operator in PARTS else text
    if subject.kind not in ("select_one", "column"):
        return None
    if operator in ORDERS:
        return text
    values = [value for value, _ in subject.options if to_number(value) == number]
    return values[0] if len(values) == 1 else None


def is_day(text: str) -> bool:
    return bool(DATE.fullmatch(text)) and not math.isnan(to_number(text))


def counting(subject: Subject) -> str:
    is_choice = subject.kind == "select_multiple"
    return "count-selected" if is_choice else "string-length"


def expression_of(group: Group, subjects: Subjects) -> str:
    """Write a group as an XLSForm expression. Raises KeyError for unknown names."""
    return _written(simplified(group), subjects)


def _written(group: Group, subjects: Subjects) -> str:
    parts = []
    for part in group.parts:
        if isinstance(part, Condition):
            parts.append(_written_condition(part, subjects))
        else:
            text = _written(part, subjects)
            is_joined = part.join != "none" and len(group.parts) > 1
            parts.append(f"({text})" if is_joined else text)
    if group.join == "none":
        return f"not({' or '.join(parts)})"
    return (" and " if group.join == "all" else " or ").join(parts)


def _written_condition(condition: Condition, subjects: Subjects) -> str:
    subject, operator = subjects[condition.item], condition.operator
    if condition.item == THIS:
        left = THIS
    elif condition.item.startswith(COLUMN):
        left = condition.item[1:]
    else:
        left = f"${{{condition.item}}}"
    if operator in WITHOUT_VALUE:
        return f"{left} {'=' if operator == Operator.NOT_ANSWERED else '!='} ''"
    if operator in COUNTS:
        return f"{counting(subject)}({left}) {COUNTS[operator]} {condition.value}"
    right = _written_value(subject, operator, condition.value)
    if operator in SIGNS:
        return f"{left} {SIGNS[operator]} {right}"
    if operator in (Operator.AMONG, Operator.NOT_AMONG):
        call = f"selected({right}, {left})"
    elif operator in PARTS:
        call = f"contains({left}, {right})"
    else:
        call = f"selected({left}, {right})"
    is_negated = operator.value.startswith(("does not", "is not"))
    return f"not({call})" if is_negated else call


def _written_value(subject: Subject, operator: Operator, value: str) -> str:
    if REFERENCE.fullmatch(value):
        return value
    if subject.kind in MOMENTS:
        if value == TODAY:
            return "today()"
        # ODK compares dates only if they are called so.
        return f"date('{value}')" if is_day(value) else quoted(value)
    is_number = operator in ORDERS or (
        operator in SAMENESS and (subject.kind in NUMBERS or subject.kind in UNTYPED)
    )
    return value if is_number and DECIMAL.fullmatch(value) else quoted(value)


def quoted(value: str) -> str:
    """Write a text; one with both kinds of quotes is put together from pieces."""
    if not re.search("['\u2018\u2019]", value):
        return f"'{value}'"
    if not re.search('["\u201c\u201d]', value):
        return f'"{value}"'
    return f"concat({', '.join(map(quoted, QUOTABLE.findall(value)))})"
