"""A pasted questionnaire is shown as questions, changed, and inserted by one act."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.tests.logging_in import log_in
from survey.console.surveys.editor import pasted_form
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.drafts import pasted_inserting, store
from survey.instrument.drafts.beginnings import empty_book
from survey.instrument.drafts.drafting import start_draft
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import load_book
from survey.instrument.xlsform.languages import Language
from survey.models import DraftChange, Survey
from survey.tests.console.test_survey_editor import ROWS, Editor
from survey.tests.console.test_surveys import draft_of
from survey.tests.drafts.test_pasted_questions import document

pytestmark = pytest.mark.django_db
LANGUAGES = [Language("en", "English"), Language("es", "Español")]
TWO = "1. How do you feel?\nGood\nBad\n2. And at home?\nGood\nBad\n"


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
    pattern = re.compile(r'<input type="hidden" name="(changes|token)" value="(.*?)">')
    return {name: unescape(value) for name, value in pattern.findall(html)}


def new_survey(staff) -> Survey:
    return start_draft(
        book=empty_book("Climate", LANGUAGES),
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


def lists(survey: Survey) -> list[tuple[str, str, str]]:
    """Return list, value and English text of each option."""
    sheet = load_book(survey).sheet("choices")
    label = sheet.column_or_none("label", LANGUAGES[0]) or sheet.column("label")
    return [
        (sheet.value(row, "list"), sheet.value(row, "name"), row.cells.get(label, ""))
        for row in sheet.rows
    ]


def test_one_act_is_one_change_that_is_undone_as_a_whole(pasting, staff):
    before = pasting.rows()
    editor = Editor(pasting.survey, staff.dana)
    pasting.insert(document("grid_table"), at=editor.key("question"))
    [change] = DraftChange.objects.all()
    assert (change.action, change.by) == ("paste-questions", staff.dana)
    history = reverse("survey_edit_history", args=[pasting.survey.pk])
    page = pasting.client.get(history).content.decode()
    assert page.count('class="change-row') == 1
    assert "“Teaching and learning”" in page
    editor.act("undo")
    assert pasting.rows() == before
    editor.act("redo")
    assert ("begin_group", "Teaching and learning") in pasting.rows()


def test_a_request_that_comes_twice_inserts_once(pasting):
    sent = {**pasting.preview(TWO), "act": "paste-questions"}
    replies = [pasting.post(**sent) for _attempt in range(2)]
    assert replies[0].headers["Location"] == replies[1].headers["Location"]
    assert [text for _kind, text in pasting.rows()].count("How do you feel?") == 1


def test_without_its_token_it_is_inserted_twice(pasting):
    """The twin: what the token is for."""
    sent = {**pasting.preview(TWO), "act": "paste-questions", "token": ""}
    for _attempt in range(2):
        pasting.post(**sent)
    assert [text for _kind, text in pasting.rows()].count("How do you feel?") == 2


def test_the_same_text_may_be_inserted_again_on_purpose(pasting):
    pasting.insert(TWO)
    pasting.insert(TWO)
    assert [text for _kind, text in pasting.rows()].count("How do you feel?") == 2
    # All four questions share the list.
    assert lists(pasting.survey) == [
        ("feel_options", "1", "Good"),
        ("feel_options", "2", "Bad"),
    ]


def test_a_list_with_another_translation_is_not_shared(pasting):
    spanish = "1. ¿Cómo estás?\nBien\nMal\n2. ¿Y en casa?\nBueno\nMalo\n"
    pasting.insert(TWO, translation=spanish)
    assert {row[0] for row in lists(pasting.survey)} == {"feel_options", "home_options"}
    # Without a translation it fits the first one.
    pasting.insert("3. Elsewhere?\nGood\nBad\n")
    assert len(lists(pasting.survey)) == 4


def test_questions_go_below_the_selected_one_and_pages_below_its_page(staff):
    draft = draft_of(rows=ROWS)
    pasting = Pasting(draft, staff.state)
    text = "1. Where?\n2. When?\n# More\n3. Why not?\n"
    pasting.insert(text, at=Editor(draft, staff.state).key("pet"))
    assert [text for _kind, text in pasting.rows()][:8] == [
        *("Pets", "Which pet?", "Where?", "When?", "Why a ${pet}?", "", "More"),
        "Why not?",
    ]


def test_an_empty_question_that_is_selected_gives_way(staff):
    draft = draft_of(rows=ROWS)
    editor = Editor(draft, staff.state)
    added = editor.act("add:select_one", at=editor.key("pet"))["at"]
    editor.act("add:select_one", at=added)
    pasting = Pasting(draft, staff.state)
    pasting.insert(TWO, at=added)
    assert [kind.split()[0] for kind, _text in pasting.rows()][:6] == [
        *("begin", "select_one", "select_one", "select_one", "select_one", "text"),
    ]


def test_a_question_that_somebody_deleted_meanwhile_is_no_obstacle(pasting):
    assert pasting.insert(TWO, at="gone").status_code == 302
    assert ("select_one feel_options", "How do you feel?") in pasting.rows()


def test_guesses_are_changed_before_they_are_inserted(pasting):
    first = pasting.preview(TWO)
    page = pasting.post(**first, open="1-3").content.decode()
    assert 'name="role-3"' in page and 'name="role-4"' not in page
    second = {**first, **hidden(page)}
    changed = {"role-3": "out", "kind-1": "select_multiple", "required-1": "yes"}
    page = pasting.post(**second, **changed).content.decode()
    assert "Left out" in page and '<option value="out" selected>' in page
    # The page that follows has the earlier changes in its hidden field.
    third = {**second, **hidden(page), "kind-4": "date", "act": "paste-questions"}
    assert pasting.post(**third).status_code == 302
    assert pasting.rows()[1:3] == [
        ("select_multiple feel_options", "How do you feel?"),
        ("date", "And at home?"),
    ]
    assert lists(pasting.survey) == [("feel_options", "1", "Good")]


def test_a_guess_that_nobody_has_changed_follows_the_lines(pasting):
    text = "1. What could we do better?\nThanks, Pat\n"
    first = pasting.preview(text)
    opened = {**first, **hidden(pasting.post(**first, open="1-2").content.decode())}
    # The page sends the menus of all questions, and boxes that are ticked.
    sent = {**opened, "kind-1": "select_one", "role-2": "out"}
    page = pasting.post(**sent).content.decode()
    assert '<option value="text" selected>' in page
    # A second text changes no line of the first one.
    sent = {**opened, **hidden(page), "translation": "1. ¿Qué?\n", "read": "yes"}
    assert '<option value="text" selected>' in pasting.post(**sent).content.decode()
    changed = {**sent, "text": "2. More?\nYes\nNo\n"}
    assert '<option value="select_one" selected>' in (
        pasting.post(**changed).content.decode()
    )


def test_a_text_that_was_changed_after_its_preview_is_not_inserted_unseen(pasting):
    sent = {**pasting.preview(TWO), "text": TWO + "3. New?\n"}
    reply = pasting.post(**sent, act="paste-questions")
    page = reply.content.decode()
    assert reply.status_code == 422
    assert "The text was changed after the preview" in page and "3 questions" in page
    assert not DraftChange.objects.exists()


def test_nothing_is_lost_if_the_draft_changes_meanwhile(pasting, staff):
    sent = {**pasting.preview(TWO), "act": "paste-questions"}
    editor = Editor(pasting.survey, staff.dana)
    editor.act("add:note", at=editor.key("question"))
    assert pasting.post(**sent).status_code == 302
    kinds = [kind.split()[0] for kind, _text in pasting.rows()]
    assert kinds.count("select_one") == 2 and "note" in kinds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Paste your questions first."),
        (" \n\t\n", "Paste your questions first."),
        ("-----\n=====", "There are no questions in this text."),
        ("x" * 200_001, "at most 200 KB"),
        ("?\n" * 10_000, "3,000 lines"),
        ("Why?\n" * 301, "at most 300 questions at a time"),
        ("W" * 40_000, "Line 1 has more than 32,767 characters"),
    ],
)
def test_what_cannot_be_read_is_said(pasting, text, words):
    page = pasting.post(text=text, read="yes").content.decode()
    assert words in page
    assert "Insert " not in page.split("paste-preview")[1]
    reply = pasting.post(text=text, act="paste-questions")
    assert reply.status_code == 422 and words in reply.content.decode()
    assert not DraftChange.objects.exists()


def test_the_limits_of_a_survey_are_kept(pasting, monkeypatch):
    monkeypatch.setattr(pasted_inserting, "MAX_ITEMS", 2)
    reply = pasting.insert(TWO)
    assert reply.status_code == 422
    assert "at most 2 questions. This one has 1, and 2 would" in reply.content.decode()
    monkeypatch.setattr(pasted_inserting, "MAX_ITEMS", 3)
    monkeypatch.setattr(pasted_inserting, "MAX_OPTIONS", 1)
    reply = pasting.insert(TWO)
    assert "A list has at most 1 options." in reply.content.decode()
    assert not DraftChange.objects.exists()
    monkeypatch.setattr(pasted_inserting, "MAX_OPTIONS", 2)
    assert pasting.insert(TWO).status_code == 302


def test_hostile_texts_are_shown_as_they_are(pasting):
    text = '1. <script>alert(1)</script>?\n- =HYPERLINK(1)\n- "><img src=x>\n'
    page = pasting.post(text=text, read="yes").content.decode()
    assert "<script>alert" not in page and "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;?" in page
    pasting.insert(text)
    assert [row[2] for row in lists(pasting.survey)] == [
        "=HYPERLINK(1)",
        '"><img src=x>',
    ]


@pytest.mark.parametrize(
    "changes",
    ["", "[]", "x", '{"roles": 3}', '{"roles": {"1": "root"}, "kinds": {"x": "text"}}']
    + ['{"opened": [[1]]}', '{"opened": ["1", "99999999"]}', "[" * 100_000],
)
def test_a_hidden_field_that_somebody_made_up_changes_nothing(pasting, changes):
    reply = pasting.post(text=TWO, read="yes", changes=changes)
    assert "2 questions" in reply.content.decode()


def test_menus_stay_within_the_fields_that_are_read():
    fields = 2 * pasted_form.MOST_QUESTIONS + pasted_form.MOST_OPENED
    assert fields + 20 < 1000


def test_lines_are_offered_to_become_questions(pasting):
    def offer(text: str) -> str:
        reply = pasting.client.post(
            pasting.address, {"text": text}, headers={"accept": "application/json"}
        )
        return reply.json()["offer"]

    assert offer(TWO) == "Make 2 questions of these lines?"
    assert offer("Which?\nThis\nThat") == (
        "Make a question with its answers of these lines?"
    )
    assert offer("Dear families,\nwe want to hear from you.") == ""
    assert offer("x" * 300_000) == ""
    assert not DraftChange.objects.exists()


def test_only_its_own_drafts_take_pasted_questions(staff, pasting):
    for survey in (
        draft_of(rows=ROWS),
        publish_survey(survey=draft_of(district=staff.riverside)).survey,
    ):
        address = reverse("survey_edit_paste", args=[survey.pk])
        for reply in (
            pasting.client.get(address),
            pasting.client.post(address, {"text": TWO, "act": "paste-questions"}),
        ):
            assert reply.status_code == 404
    assert not DraftChange.objects.exists()


def test_a_new_survey_starts_by_pasting(staff, client):
    log_in(client, staff.dana)
    assert reverse("survey_new_paste") in client.get("/console/surveys/new/").text
    reply = client.post(
        reverse("survey_new_paste"), {"title": "Families", "language": "en"}
    )
    draft = Survey.objects.get()
    assert reply.headers["Location"] == reverse("survey_edit_paste", args=[draft.pk])
    page = client.get(reply.headers["Location"]).text
    # It has one language, so there is no box for a translation.
    assert 'name="text"' in page and 'name="translation"' not in page


def test_pages_only_replace_the_empty_one(pasting):
    pasting.insert("# First\n1. Where?\n# Second\n2. When?\n")
    assert [text for _kind, text in pasting.rows()] == [
        *("First", "Where?", "", "Second", "When?", ""),
    ]
    assert len(store.load_book(pasting.survey).sheet("choices").rows) == 0
