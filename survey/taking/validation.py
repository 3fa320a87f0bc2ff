"""A page's answers against the page's own part of the published survey.

Queued pages arrive in any order, so a save is never refused for what another
page says: only rules that read nothing but this page are applied here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal

from survey.definitions.rules import page_state
from survey.definitions.schema import ItemDefinition, RangeScale, SurveyDefinition
from survey.models import Response
from survey.taking.published import Published
from survey.taking.storage import Row

# Plain strings: an enum member is looked up and adapted more slowly.
ANSWERED = Response.State.ANSWERED.value
SKIPPED = Response.State.SKIPPED.value
HIDDEN = Response.State.HIDDEN.value
LONGEST_TEXT = 5000
INTEGER = re.compile(r"-?[0-9]{1,15}")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,10})?")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2})?")
DATETIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?")
# A hostile page of unknown names gets a short list back, not itself.
MOST_PROBLEMS = 50

Problems = dict[str, str]


class BadAnswer(ValueError):
    """The key of a message about one answer."""


def check_page(
    published: Published,
    n: int,
    answers: Mapping[str, object],
    *,
    today: str,
    now: str,
    language: str,
) -> tuple[list[Row], Problems]:
    """The rows to store, or a message key for each answer that is wrong.

    `answers` maps each answerable item of page `n` to its wire value.
    """
    expected = published.answerable[n - 1]
    problems = {name: "unknown_item" for name in answers if name not in expected}
    texts: dict[str, str | None] = {}
    for name, item in expected.items():
        try:
            if name not in answers:
                raise BadAnswer("missing")
            texts[name] = stored(item, answers[name], published.definition)
        except BadAnswer as bad:
            problems[name] = str(bad)
    if problems:
        return [], dict(list(problems.items())[:MOST_PROBLEMS])
    names = published.ruled[n - 1]
    if not names:
        rows = [_row(item["id"], texts[name], True) for name, item in expected.items()]
        return rows, {}
    given = {name: text for name, text in texts.items() if text is not None}
    state = page_state(
        published.definition,
        n,
        given,
        today=today,
        now=now,
        language=language,
        names=names,
    )
    problems = {
        name: {"option": "not_an_option"}.get(kind, kind)
        for name, kind in state.problems.items()
        if kind != "required" and name in given
    }
    if problems:
        return [], problems
    return [
        _row(item["id"], texts[name], state.relevant[name])
        for name, item in expected.items()
    ], {}


def _row(item_id: int, text: str | None, relevant: bool) -> Row:
    if not relevant:
        return Row(item_id, HIDDEN, None)
    if text is None:
        return Row(item_id, SKIPPED, None)
    return Row(item_id, ANSWERED, text)


def stored(
    item: ItemDefinition, value: object, definition: SurveyDefinition
) -> str | None:
    """The text to store for a wire value; None for blank. Raises BadAnswer."""
    if value is None or value == "" or value == []:
        return None
    kind = item["kind"]
    if kind == "select_multiple":
        return _several(item, value, definition)
    if not isinstance(value, str):
        raise BadAnswer("not_text")
    if not _is_storable(value):
        raise BadAnswer("not_text")
    if kind == "text":
        return _text(value)
    if kind == "select_one":
        if value not in _offered(item, definition):
            raise BadAnswer("not_an_option")
    elif kind == "acknowledge":
        if value != "OK":
            raise BadAnswer("not_an_option")
    elif kind in ("integer", "decimal"):
        _check_number(kind, value)
    elif kind == "range":
        _check_range(item["range"], value)
    else:
        _check_moment(kind, value)
    return value


def _is_storable(value: str) -> bool:
    # PostgreSQL has no NUL in text, and UTF-8 no lone surrogates.
    return "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)


def _text(value: str) -> str | None:
    if len(value) > LONGEST_TEXT:
        raise BadAnswer("too_long")
    return value if value.strip() else None


def _offered(item: ItemDefinition, definition: SurveyDefinition) -> list[str]:
    return [option["value"] for option in definition["option_sets"][item["option_set"]]]


def _several(item: ItemDefinition, value: object, definition: SurveyDefinition) -> str:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadAnswer("not_text")
    offered = _offered(item, definition)
    if len(set(value)) != len(value) or not set(value) <= set(offered):
        raise BadAnswer("not_an_option")
    return " ".join(one for one in offered if one in value)


def _check_number(kind: str, value: str) -> None:
    if not DECIMAL.fullmatch(value):
        raise BadAnswer("not_a_number")
    if kind == "integer" and not INTEGER.fullmatch(value):
        raise BadAnswer("not_whole")


def _check_range(bounds: RangeScale, value: str) -> None:
    _check_number("decimal", value)
    number, start = Decimal(value), Decimal(bounds["start"])
    if not start <= number <= Decimal(bounds["end"]):
        raise BadAnswer("out_of_range")
    if (number - start) % Decimal(bounds["step"]):
        raise BadAnswer("out_of_range")


def _check_moment(kind: str, value: str) -> None:
    pattern, parse = {
        "date": (DATE, date.fromisoformat),
        "time": (TIME, time.fromisoformat),
        "datetime": (DATETIME, datetime.fromisoformat),
    }[kind]
    try:
        if not pattern.fullmatch(value):
            raise ValueError(value)
        parse(value)
    except ValueError:
        raise BadAnswer("not_a_date") from None
