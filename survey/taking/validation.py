"""Validate the answers of one page against the published survey.

Pages wait in the browser and arrive in any order, so a save is never refused
because of another page: only rules that read nothing but this page apply here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal

from survey.instrument.definitions.rules import page_state
from survey.instrument.definitions.schema import ItemDefinition, SurveyDefinition
from survey.models import Response
from survey.taking.published import Published
from survey.taking.storage import AnswerRow

# Plain strings: an enum member costs a look-up for each answer.
ANSWERED = Response.State.ANSWERED.value
SKIPPED = Response.State.SKIPPED.value
HIDDEN = Response.State.HIDDEN.value

LONGEST_TEXT = 5000
INTEGER = re.compile(r"-?[0-9]{1,15}")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,10})?")
# For each kind of date and time: its form, and what finds impossible ones.
TIMES = {
    "date": (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), date.fromisoformat),
    "time": (re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2})?"), time.fromisoformat),
    "datetime": (
        re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?"),
        datetime.fromisoformat,
    ),
}
# A hostile page of unknown names gets a short list back, not all of them.
MOST_PROBLEMS = 50

Problems = dict[str, str]


class BadAnswer(ValueError):
    """One answer can't be stored; the argument is the key of a message."""


def check_page(
    published: Published,
    n: int,
    answers: Mapping[str, object],
    *,
    today: str,
    now: str,
    language: str,
) -> tuple[list[AnswerRow], Problems]:
    """Return the rows to store, or a message key for each answer that is wrong.

    `answers` maps answerable items of page `n` to their values as received,
    None where the person passed the item and left it blank. An item that is
    absent was not passed yet: it gets no row, and keeps one that it has.
    """
    expected = published.answerable[n - 1]
    problems = {name: "unknown_item" for name in answers if name not in expected}
    texts: dict[str, str | None] = {}
    for name, item in expected.items():
        if name not in answers:
            continue
        try:
            texts[name] = stored_text(item, answers[name], published.definition)
        except BadAnswer as bad:
            problems[name] = str(bad)
    if problems:
        return [], dict(list(problems.items())[:MOST_PROBLEMS])
    relevant: Mapping[str, bool] = {}
    names = published.ruled[n - 1]
    if names:
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
            name: "not_an_option" if problem == "option" else problem
            for name, problem in state.problems.items()
            if problem != "required" and name in given
        }
        if problems:
            return [], problems
        relevant = state.relevant
    rows = []
    for name, text in texts.items():
        item = expected[name]
        if names and not relevant[name]:
            rows.append(AnswerRow(item["id"], HIDDEN, None))
        elif text is None:
            rows.append(AnswerRow(item["id"], SKIPPED, None))
        else:
            rows.append(AnswerRow(item["id"], ANSWERED, text))
    return rows, {}


def stored_text(
    item: ItemDefinition, value: object, definition: SurveyDefinition
) -> str | None:
    """Return the text to store for a received value, None if it is blank.

    Raises BadAnswer.
    """
    if value is None or value == "" or value == []:
        return None
    kind = item["kind"]
    if kind == "select_multiple":
        return _joined_options(item, value, definition)
    if not isinstance(value, str):
        raise BadAnswer("not_text")
    # PostgreSQL has no NUL in text, and UTF-8 no lone surrogates.
    if "\0" in value or (
        not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)
    ):
        raise BadAnswer("not_text")
    if kind == "text":
        if len(value) > LONGEST_TEXT:
            raise BadAnswer("too_long")
        return value if value.strip() else None
    if kind == "select_one":
        if value not in _option_values(item, definition):
            raise BadAnswer("not_an_option")
    elif kind == "acknowledge":
        if value != "OK":
            raise BadAnswer("not_an_option")
    elif kind in TIMES:
        form, parse = TIMES[kind]
        try:
            if not form.fullmatch(value):
                raise ValueError(value)
            parse(value)
        except ValueError:
            raise BadAnswer("not_a_date") from None
        # A browser's control for dates takes "15" for a year.
        if kind != "time" and value < "1000":
            raise BadAnswer("year_incomplete")
    else:
        _check_number(item, value)
    return value


def _option_values(item: ItemDefinition, definition: SurveyDefinition) -> list[str]:
    return [option["value"] for option in definition["option_sets"][item["option_set"]]]


def _joined_options(
    item: ItemDefinition, values: object, definition: SurveyDefinition
) -> str:
    """Join the chosen options in the order in which the survey offers them."""
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise BadAnswer("not_text")
    offered = _option_values(item, definition)
    if len(set(values)) != len(values) or not set(values) <= set(offered):
        raise BadAnswer("not_an_option")
    return " ".join(option for option in offered if option in values)


def _check_number(item: ItemDefinition, value: str) -> None:
    """Raises BadAnswer if the value is no number, or not on the item's scale."""
    if not DECIMAL.fullmatch(value):
        raise BadAnswer("not_a_number")
    if item["kind"] == "integer" and not INTEGER.fullmatch(value):
        raise BadAnswer("not_whole")
    if item["kind"] == "range":
        bounds = item["range"]
        number, start = Decimal(value), Decimal(bounds["start"])
        inside = start <= number <= Decimal(bounds["end"])
        if not inside or (number - start) % Decimal(bounds["step"]):
            raise BadAnswer("out_of_range")
