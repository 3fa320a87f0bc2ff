"""A pasted questionnaire is shown as questions, changed, and inserted by one act."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.tests.logging_in import log_in
from survey.instrument.drafts.beginnings import empty_book
from survey.instrument.drafts.drafting import start_draft
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import load_book
from survey.instrument.xlsform.languages import Language
from survey.models import DraftChange, Survey
from survey.tests.drafts.test_pasted_questions import document

pytestmark = pytest.mark.django_db
ENGLISH_AND_SPANISH = [Language("en", "English"), Language("es", "Español")]


class Pasting:
    """The requests of a browser without scripts."""

    def __init__(self, survey: Survey, user: User) -> None:
        self.survey = survey
        self.client = log_in(Client(), user)
        self.address = reverse("survey_edit_paste", args=[survey.pk])

    def post(self, **data: Any) -> Any:
        return self.client.post(self.address, data)

    def preview(self, text: str, **more: str) -> dict[str, str]:
        """Return what the preview sends back, as its form has it."""
        html = self.post(text=text, read="yes", **more).content.decode()
        return {"text": text, **more, **hidden(html)}

    def insert(self, text: str, **more: str) -> Any:
        return self.post(**self.preview(text, **more), act="paste-questions")

    def rows(self) -> list[tuple[str, str]]:
        """Return the type and the English text of each row."""
        sheet = load_book(self.survey).sheet("survey")
        label = sheet.column("label", Language("en", "English"))
        return [
            (sheet.value(row, "type"), row.cells.get(label, "")) for row in sheet.rows
        ]


def hidden(html: str) -> dict[str, str]:
    from html import unescape

    found_in = re.compile(r'<input type="hidden" name="(changes|token)" value="(.*?)">')
    return {name: unescape(value) for name, value in found_in.findall(html)}


def new_survey(staff) -> Survey:
    return start_draft(
        book=empty_book("Climate", ENGLISH_AND_SPANISH),
        name="climate",
        version="1",
        title="Climate",
        district=staff.riverside,
        by=staff.dana,
    )


@pytest.fixture
def pasting(staff) -> Pasting:
    return Pasting(new_survey(staff), staff.dana)


def test_a_questionnaire_is_pasted_into_a_new_survey(pasting, staff):
    english, spanish = document("families_en"), document("padres_es")
    page = pasting.post(text=english, translation=spanish).content.decode()
    assert "6 questions and 2 new pages" in page
    assert "¿Se siente bienvenido en la escuela?" in page
    assert not DraftChange.objects.exists()
    reply = pasting.insert(english, translation=spanish)
    assert reply.status_code == 302
    pasting.survey.refresh_from_db()
    assert not read_rows_of(pasting.survey).problems
    rows = pasting.rows()
    assert [kind.split()[0] for kind, _text in rows] == [
        *("begin_group", "select_one", "select_multiple", "select_one", "text"),
        *("text", "end_group", "begin_group", "text", "end_group"),
    ]
    assert rows[0][1] == "About your family"
    sheet = load_book(pasting.survey).sheet("survey")
    es = sheet.column("label", Language("es", "Español"))
    assert sheet.rows[3].cells[es] == "¿Se siente bienvenido en la escuela?"
    assert sheet.value(sheet.rows[3], "required") == "yes"
    assert sheet.value(sheet.rows[3], "name") == "feel_welcome_school"
