"""Read the rules of a row: expressions, defaults, appearance and parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import date, datetime, time
from decimal import Decimal

from django.utils.translation import gettext as _
from pyxform.errors import PyXFormError
from pyxform.parsing.parameters import parse as parse_parameters

from survey.instrument.definitions.expressions import (
    ExpressionError,
    compile_expression,
)
from survey.instrument.definitions.schema import SELECTS, Expr, RangeScale
from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.draft import ItemDraft, OptionDraft
from survey.instrument.xlsform.problems import Findings

LONGEST_EXPRESSION = 4_000
# As long as the longest answer that may be stored (`survey.taking.validation`).
LONGEST_DEFAULT = 5_000
# Office programs curl the quotes of an expression while it is typed, sometimes one
# of two. A curly quote ends a text if an expression can go on after it.
AFTER_TEXT = r"(?=\s*(?:[])=!<>+*,/-]|(?:and|or|div|mod)\b|$))"
QUOTED_TEXT = re.compile(
    rf"""['\u2018\u2019][^']*?(?:'|[\u2018\u2019]{AFTER_TEXT})
    |["\u201c\u201d][^"]*?(?:"|[\u201c\u201d]{AFTER_TEXT})""",
    re.VERBOSE,
)
YES = frozenset(("yes", "true", "true()"))
NO = frozenset(("no", "false", "false()"))

# Fifteen digits are exact in a double, the only number that JavaScript has.
INTEGER = re.compile(r"-?\d{1,15}", re.ASCII)
DECIMAL = re.compile(r"-?\d{1,15}(\.\d{1,10})?", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
TIME = re.compile(r"\d\d:\d\d(:\d\d)?", re.ASCII)
DATETIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", re.ASCII)
MOMENTS: dict[str, tuple[re.Pattern[str], Callable[[str], object]]] = {
    "date": (DATE, date.fromisoformat),
    "time": (TIME, time.fromisoformat),
    "datetime": (DATETIME, datetime.fromisoformat),
}
FUNCTION_CALL = re.compile(r"[A-Za-z][\w:-]*\(")
MAX_STEPS = 10_000

# The appearances that a page knows; others are ignored with a warning.
LOOKS = {
    "minimal": ("minimal", SELECTS),
    "autocomplete": ("minimal", SELECTS),
    "horizontal": ("horizontal", SELECTS),
    "horizontal-compact": ("horizontal", SELECTS),
    "compact": ("horizontal", SELECTS),
    "quickcompact": ("horizontal", SELECTS),
    "columns": ("horizontal", SELECTS),
    "columns-pack": ("horizontal", SELECTS),
    "list": ("horizontal", SELECTS),
    "likert": ("likert", ("select_one",)),
    "multiline": ("multiline", ("text",)),
}
# These place a row in a page or grid, and are read with the pages.
PLACES = frozenset(("label", "list-nolabel", "field-list", "table-list"))


def straight_quotes(text: str) -> str:
    """Straighten the quotes around texts; those inside are part of a value."""

    def straightened(match: re.Match[str]) -> str:
        quote = "'" if match[0][0] in "'\u2018\u2019" else '"'
        return quote + match[0][1:-1] + quote

    return QUOTED_TEXT.sub(straightened, text)


def compiled(
    row: SurveyRow,
    key: str,
    findings: Findings,
    *,
    self_name: str | None = None,
    columns: Collection[str] = (),
) -> Expr | None:
    """Compile the expression in a column; None if it is blank or wrong."""
    text = row.get(key).strip()
    if not text:
        return None
    # A spreadsheet program writes the whole cell so; pyxform reads it as true().
    if (answer := yes_or_no(text)) is not None and not columns:
        return answer
    if len(text) > LONGEST_EXPRESSION:
        reason = _(
            "an expression is at most %(longest_expression)s characters long"
        ) % {"longest_expression": f"{LONGEST_EXPRESSION:,}"}
        row.refuse(findings, key, reason)
        return None
    if row.fields:
        rewritten = row.fields.rewritten(row, key, findings, columns)
        if rewritten is None:
            return None
        text = rewritten
    try:
        return compile_expression(text, self_name=self_name, columns=columns)
    except ExpressionError as error:
        row.refuse(findings, key, str(error))
    except RecursionError:
        row.refuse(findings, key, _("the expression is nested too deeply"))
    return None


def both(first: Expr | None, second: Expr | None) -> Expr | None:
    if first is None:
        return second
    return first if second is None else ["and", first, second]


def yes_or_no(text: str) -> bool | None:
    """Read a yes or no; None if it is neither."""
    word = text.strip().lower()
    return True if word in YES else False if word in NO else None


def read_required(item: ItemDraft, findings: Findings) -> None:
    text = item.row.get("required")
    answer = yes_or_no(text) if text else False
    if answer is None:
        expression = compiled(item.row, "required", findings, self_name=item.name)
        if expression is not None:
            item.rules["required"] = expression
    elif answer:
        item.rules["required"] = True


def read_default(
    item: ItemDraft, options: list[OptionDraft], findings: Findings
) -> None:
    """Read a text, or an expression if it reads answers or calls a function."""
    text = item.row.get("default")
    if not text:
        return
    if "${" in text or FUNCTION_CALL.match(text):
        expression = compiled(item.row, "default", findings, self_name=item.name)
        if expression is not None:
            item.rules["default_expression"] = expression
        return
    value = as_answer(item, text, [option.value for option in options])
    if value is None:
        reason = _("is not an answer to an item of type %(kind)s") % {"kind": item.kind}
        item.row.refuse(findings, "default", reason)
    else:
        item.rules["default"] = value


def as_answer(item: ItemDraft, text: str, values: list[str]) -> str | None:
    """Return the text as it would be stored, or None if it is not an answer."""
    kind = item.kind
    if kind == "select_one":
        return text if text in values else None
    if kind == "select_multiple":
        chosen = set(text.split())
        known = chosen <= set(values)
        # In the order of the list, as answers are stored.
        return " ".join(v for v in values if v in chosen) if known else None
    if kind == "acknowledge":
        return "OK" if text.lower() in ("ok", *YES) else None
    if kind == "integer":
        return text if INTEGER.fullmatch(text) else None
    if kind == "decimal":
        return text if DECIMAL.fullmatch(text) else None
    if kind == "range":
        scale = item.rules.get("range")
        if not DECIMAL.fullmatch(text) or scale is None:
            return text if DECIMAL.fullmatch(text) else None
        number, start = Decimal(text), Decimal(scale["start"])
        is_inside = start <= number <= Decimal(scale["end"])
        is_step = not (number - start) % Decimal(scale["step"])
        return text if is_inside and is_step else None
    if kind in MOMENTS:
        pattern, parse = MOMENTS[kind]
        # A spreadsheet writes midnight as a mere date.
        if kind == "datetime" and DATE.fullmatch(text):
            text += "T00:00"
        try:
            parse(text)
        except ValueError:
            return None
        return text if pattern.fullmatch(text) else None
    return text if len(text) <= LONGEST_DEFAULT else None


def read_looks(item: ItemDraft, findings: Findings) -> None:
    looks = []
    for word in item.row.get("appearance").split():
        if word.lower() in PLACES:
            continue
        if word.lower().startswith(("search(", "image-map")):
            item.row.refuse(findings, "appearance", _("needs another file"), word)
            continue
        bare = re.sub(r"-\d+$", "", word.lower())
        look, kinds = LOOKS.get(bare, ("", ()))
        if item.kind in kinds:
            looks.append(look)
        else:
            item.row.warn(findings, "appearance", "ignored", word)
    if looks:
        item.rules["appearance"] = list(dict.fromkeys(looks))


def read_parameters(item: ItemDraft, findings: Findings) -> None:
    row, text = item.row, item.row.get("parameters")
    try:
        given = parse_parameters(text, row.number)
    except PyXFormError:
        reason = _("parameters are written as name=value, with spaces between them")
        row.refuse(findings, "parameters", reason)
        return
    if item.kind in SELECTS:
        read_order(item, given, findings)
    elif item.kind == "range":
        read_range(item, given, findings)
    elif item.kind == "text" and given.pop("rows", ""):
        looks = item.rules.setdefault("appearance", [])
        looks += ["multiline"] * ("multiline" not in looks)
    for name in given:
        row.warn(findings, "parameters", _("unknown parameter: ignored"), name)


def read_order(item: ItemDraft, given: dict[str, str], findings: Findings) -> None:
    randomize, seed = given.pop("randomize", "false"), given.pop("seed", "")
    if randomize not in ("true", "false"):
        item.row.refuse(
            findings, "parameters", _("randomize is true or false"), randomize
        )
    if randomize == "true":
        item.rules["randomize"] = True
    elif seed:
        item.row.refuse(findings, "parameters", _("a seed needs randomize=true"), seed)
    if INTEGER.fullmatch(seed):
        item.rules["seed"] = int(seed)
    elif seed.startswith("${"):
        reason = _("ignored: each respondent's order stays the same without a seed")
        item.row.warn(findings, "parameters", reason, seed)
    elif seed:
        item.row.refuse(findings, "parameters", _("a seed is a whole number"), seed)


def read_range(item: ItemDraft, given: dict[str, str], findings: Findings) -> None:
    scale: RangeScale = {
        "start": given.pop("start", "1"),
        "end": given.pop("end", "10"),
        "step": given.pop("step", "1"),
    }
    numbers = scale["start"], scale["end"], scale["step"]
    if not all(map(DECIMAL.fullmatch, numbers)):
        reason = _("start, end and step are numbers of at most ten decimals")
    elif Decimal(scale["start"]) >= Decimal(scale["end"]):
        reason = _("start must be less than end")
    elif Decimal(scale["step"]) <= 0:
        reason = _("step must be more than zero")
    elif (steps := count_steps(scale)) < 1:
        reason = _("step is wider than the range")
    elif steps > MAX_STEPS:
        reason = _("more than %(max_steps)s steps") % {"max_steps": f"{MAX_STEPS:,}"}
    else:
        item.rules["range"] = scale
        return
    item.row.refuse(findings, "parameters", reason)


def count_steps(scale: RangeScale) -> Decimal:
    width = Decimal(scale["end"]) - Decimal(scale["start"])
    return width / Decimal(scale["step"])
