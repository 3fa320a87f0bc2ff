"""Make large drafts, and the requests of their editor, for `measure_editor`."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from openpyxl import Workbook

from accounts.models import User
from provisioning.staff_login import log_in
from survey.instrument.drafts.drafting import start_draft
from survey.instrument.drafts.store import book_of_workbook

LANGUAGES = {"en": "English", "es": "Español", "ar": "العربية"}
LABELS = [f"label::{name} ({code})" for code, name in LANGUAGES.items()]
STATE = "state@groundswell.example"
STATEMENT = "Adults at this school listen to what I say, point {}."
OPTION = "School number {}"
# Rules are about these options of the long list, one after the other.
FEWEST_OPTIONS = 20
Row = Sequence[str | int]


class Size(NamedTuple):
    pages: int
    questions: int
    # Of the list that the first question has.
    options: int


def workbook_of(size: Size) -> bytes:
    """Write an XLSForm in three languages; the first question has the long list."""
    book = Workbook()
    book.remove(book.active)
    sheets = {
        "survey": survey_rows(size),
        "choices": option_rows(size.options),
        "settings": [("form_title", "default_language"), ("Large", "English (en)")],
    }
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def survey_rows(size: Size) -> Iterator[Row]:
    yield ("type", "name", "appearance", *LABELS)
    per_page = size.questions // size.pages
    for page in range(1, size.pages + 1):
        yield ("begin_group", f"page{page}", "field-list", *texts(f"Part {page}"))
        for number in range((page - 1) * per_page + 1, page * per_page + 1):
            options = "long" if number == 1 else "agree"
            label = texts(STATEMENT.format(number))
            yield (f"select_one {options}", f"q{number}", "", *label)
        yield ("end_group", "", "")


def option_rows(count: int) -> Iterator[Row]:
    yield ("list_name", "name", *LABELS)
    for number in range(1, 5):
        yield ("agree", number, *texts(f"Agree with strength {number}"))
    for number in range(1, count + 1):
        yield ("long", number, *texts(OPTION.format(number)))


def texts(text: str) -> list[str]:
    return [f"{text} {code}" for code in LANGUAGES]


def create_draft(name: str, size: Sequence[int]) -> dict[str, Any]:
    """Import a workbook as a draft; return its address and rows for requests."""
    by = User.objects.get(email=STATE)
    book = book_of_workbook(workbook_of(Size(*size)))
    survey = start_draft(
        book=book, name=name, version="1", title="Large", district=None, by=by
    )
    sheet = book.sheet("survey")
    keys = {sheet.value(row, "name"): row.key for row in sheet.rows}
    choices = book.sheet("choices")
    first = next(row for row in choices.rows if choices.value(row, "list") == "long")
    return {
        "pk": survey.pk,
        "page": reverse("survey_edit", args=[survey.pk]),
        "canvas": reverse("survey_edit_canvas", args=[survey.pk]),
        "change": reverse("survey_edit_change", args=[survey.pk]),
        "first": keys["q1"],
        "middle": keys[f"q{size[1] // 2}"],
        "option": first.key,
        "text": texts(STATEMENT.format(size[1] // 2))[0],
    }


Form = dict[str, str]


def edits_of(draft: dict[str, Any], number: int) -> dict[str, Form]:
    """Return a request of each sort of edit, with what the `number`th one changes."""
    first, middle, option = draft["first"], draft["middle"], draft["option"]
    values = [str(each % FEWEST_OPTIONS + 1) for each in (number - 1, number)]
    rule = f"${{q1}} = '{values[0]}'" if number > 1 else ""
    return {
        "text": {
            "at": middle,
            **typed(f"survey:{middle}:label:en", draft["text"], number),
        },
        "option": {
            "at": first,
            **typed(f"choices:{option}:label:en", texts(OPTION.format(1))[0], number),
        },
        "move": {"at": middle, "act": f"{'down' if number % 2 else 'up'}:{middle}"},
        "add": {"at": middle, "act": "add:select_one"},
        "rule": {
            "at": middle,
            "rule-relevant-key": middle,
            "rule-relevant-seen": rule,
            "rule-relevant-code": rule,
            "rule-relevant-group0-join": "all",
            "rule-relevant-1-group": "0",
            "rule-relevant-1-item": "q1",
            "rule-relevant-1-operator": "is",
            "rule-relevant-1-value": values[1],
        },
    }


def rounds_of_edits(draft: dict[str, Any], times: int) -> list[dict[str, Form]]:
    return [edits_of(draft, number) for number in range(1, times + 1)]


def typed(address: str, first: str, number: int) -> Form:
    seen = f"Text {number - 1}" if number > 1 else first
    return {f"seen:{address}": seen, f"f:{address}": f"Text {number}"}


def count_statements(draft: dict[str, Any], number: int) -> dict[str, int]:
    """Return the SQL statements of opening the editor, and of each edit."""
    client = log_in(Client(SERVER_NAME="127.0.0.1"), User.objects.get(email=STATE))
    headers = {"accept": "application/json"}
    counts = {}
    with CaptureQueriesContext(connection) as statements:
        client.get(draft["page"])
    counts["open"] = len(statements)
    for name, form in edits_of(draft, number).items():
        with CaptureQueriesContext(connection) as statements:
            reply = client.post(draft["change"], form, headers=headers)
        if reply.status_code != 200:
            raise RuntimeError(f"The edit {name} was answered: {reply.content[:500]!r}")
        counts[name] = len(statements)
    return counts
