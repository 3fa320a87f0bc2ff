"""Texts of drafts are translated and corrected in the console, one by one."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import AuditEntry, Membership, User
from accounts.tests.logging_in import log_in
from survey.instrument.definitions.corrections import publish_correction
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import NotPublishable, publish_survey
from survey.instrument.drafts.corrections import start_correction
from survey.instrument.drafts.drafting import refresh_rows
from survey.instrument.drafts.store import load_book
from survey.models import PublishedSurvey, Survey
from survey.tests.console.test_survey_editor import Editor
from survey.tests.console.test_survey_measures import draft_with
from survey.tests.console.test_surveys import CHOICES, ROWS, draft_of, offered
from survey.tests.definitions.test_corrections import with_measures
from survey.tests.xlsform.test_measures import SAFE, TRUST

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(staff):
    published = publish_survey(survey=draft_of())
    return published, offered(published)


@pytest.fixture
def client(staff):
    return log_in(Client(), staff.state)


def begin(client, survey) -> Survey:
    address = f"/console/surveys/{survey.pk}/correct/here/"
    location = client.post(address)["Location"]
    pk = int(location.split("/surveys/")[1].split("/")[0])
    assert location == f"/console/surveys/{pk}/edit/texts/?language=en"
    return Survey.objects.get(pk=pk)


def rows_of(client, draft, code="en", **query):
    address = f"/console/surveys/{draft.pk}/edit/texts/"
    return client.get(address, {"language": code, **query}).context["rows"]


def form_of(client, draft, name, text, code="en"):
    """Return the address and the form of a text, changed."""
    rows = rows_of(client, draft, code)
    row = next(row for row in rows if row.name == name)
    form = {"text_id": row.id, "language": code, "seen": row.text, "text": text}
    return f"/console/surveys/{draft.pk}/edit/texts/", form


def label_of(draft, name, code="en") -> str:
    draft.refresh_from_db()
    refresh_rows(draft)
    return draft.items.get(name=name).label.get(code, "")


def test_a_typing_mistake_is_corrected_compared_and_published(client, running):
    published, administration = running
    draft = begin(client, published.survey)
    assert (draft.version, draft.source_name) == ("1.1", "")
    reply = client.post(*form_of(client, draft, "pet", " Which animal? "))
    assert reply.status_code == 302
    correction = f"/console/surveys/{draft.pk}/correction/"
    text = client.get(correction).content.decode()
    # The new words are marked.
    assert ">Which pet?<" in text and "Which <del>pet</del><ins>animal</ins>?" in text
    assert "1 changed text" in text
    administration.refresh_from_db()
    assert administration.published == published
    seen = {"seen": Survey.objects.get(pk=draft.pk).last_change}
    client.post(correction, {**seen, "administrations": [administration.pk]})
    administration.refresh_from_db()
    corrected = administration.published
    assert corrected.survey == draft and "Which animal?" in corrected.definition
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert [*actions][-3:] == [
        "start survey draft",
        "publish correction",
        "correct texts of administration",
    ]
    # A published one is not changed any more.
    address = f"/console/surveys/{draft.pk}/edit/texts/"
    assert client.get(address).status_code == 404


def test_it_is_the_same_correction_as_that_of_a_workbook(client, running, staff):
    published, _ = running
    draft = begin(client, published.survey)
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    assert label_of(draft, "pet") == "Which animal?"
    here = publish_correction(survey=draft, corrects=published, by=staff.state)
    rows = [[*row] for row in ROWS]
    rows[2][2] = "Which animal?"
    workbook = draft_of(rows=rows, version="1.2", corrects=published)
    there = publish_correction(survey=workbook, corrects=published, by=staff.state)
    assert here.definition.replace('"1.1"', '"1.2"') == there.definition


def test_what_was_not_compared_is_not_published(client, running, staff):
    published, _ = running
    draft = begin(client, published.survey)
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    draft.refresh_from_db()
    with pytest.raises(NotPublishable, match="changed"):
        publish_correction(survey=draft, corrects=published, by=staff.state)
    with pytest.raises(NotPublishable, match="editor"):
        publish_survey(survey=draft, by=staff.state)


def colleague() -> Client:
    user = User.objects.create(email="pat@example.org")
    Membership.objects.create(user=user, role=Membership.Role.STATE)
    return log_in(Client(), user)


@pytest.mark.parametrize("says_what_it_showed", [True, False])
def test_a_correction_is_published_as_its_page_showed_it(
    client, running, says_what_it_showed
):
    draft = begin(client, running[0].survey)
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    correction = f"/console/surveys/{draft.pk}/correction/"
    page = client.get(correction).content.decode()
    [shown] = re.findall(r'name="seen" value="(\d+)"', page)
    pat = colleague()
    pat.post(*form_of(pat, draft, "pet", "Which beast?"))
    refused = client.post(correction, {"seen": shown} if says_what_it_showed else {})
    text = refused.content.decode()
    assert refused.status_code == 409 and "changed meanwhile" in text
    assert "<ins>beast</ins>?" in text and not PublishedSurvey.objects.filter(
        survey=draft
    )
    # The page has shown the second text by now.
    [shown] = re.findall(r'name="seen" value="(\d+)"', text)
    client.post(correction, {"seen": shown})
    assert "Which beast?" in draft.published.get().definition


def test_without_what_was_shown_a_correction_is_published_unseen(client, running):
    draft = begin(client, running[0].survey)
    client.post(*form_of(client, draft, "pet", "Which beast?"))
    refresh_rows(draft)
    publish_correction(survey=draft, corrects=running[0], seen=None, by="test")
    assert "Which beast?" in draft.published.get().definition


def test_nothing_but_texts_of_a_correction_is_changed(client, running, staff):
    draft = begin(client, running[0].survey)
    texts = f"/console/surveys/{draft.pk}/edit/texts/"
    editor = Editor(draft, staff.state)
    names = editor.names()
    reply = editor.post(act=f"delete:{editor.key('pet')}")
    assert reply.status_code == 409 and "only change the texts" in reply.json()["error"]
    change = f"/console/surveys/{draft.pk}/edit/change/"
    assert client.post(change, {"act": "add:text"})["Location"] == texts
    assert editor.names() == names and not draft.changes.exists()
    page = client.get(f"/console/surveys/{draft.pk}/edit/", follow=True)
    assert page.redirect_chain == [(texts, 302)]
    assert "You can only change the texts" in page.content.decode()
    check = client.get(f"/console/surveys/{draft.pk}/check/").content.decode()
    assert f'href="{texts}' in check and "/edit/?" not in check
    # What is restored were texts.
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    address = f"/console/surveys/{draft.pk}/edit/history/0/"
    draft.refresh_from_db()
    restored = client.post(address, {"seen": draft.last_change})
    assert restored.status_code == 302
    assert label_of(draft, "pet") == "Which pet?"


def test_a_second_click_goes_on_with_the_same_draft(client, running):
    published, _ = running
    draft = begin(client, published.survey)
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    assert begin(client, published.survey) == draft
    assert Survey.objects.filter(corrects=published).count() == 1


def test_an_unpublished_copy_has_nothing_to_correct(client, running):
    draft = begin(client, running[0].survey)
    text = client.get(f"/console/surveys/{draft.pk}/correction/").content.decode()
    assert "there is nothing to correct" in text


def test_wrong_texts_are_refused_and_stay_in_the_form(client, running):
    cases = [
        ("", "Enter a text"),
        ("Hello ${nobody}", "There is no question ${nobody}"),
        ("Hello ${pets_page}", "There is no question ${pets_page}"),
        ("Hello ${age", "never closed"),
        ("Bell\x07", "cannot be seen"),
        ("Zero\u200bwidth", "cannot be seen"),
        ("x" * 32_768, "at most 32,767 characters"),
    ]
    draft = begin(client, running[0].survey)
    for text, reason in cases:
        address, form = form_of(client, draft, "pet", text)
        reply = client.post(address, form)
        assert reply.status_code == 422
        content = reply.content.decode()
        assert reason in content and text[:40].replace("\x07", "") in content
        assert label_of(draft, "pet") == "Which pet?"


def test_two_people_do_not_overwrite_each_other(client, running, staff):
    draft = begin(client, running[0].survey)
    address, late = form_of(client, draft, "pet", "Which beast?")
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    reply = client.post(address, late)
    content = reply.content.decode()
    assert reply.status_code == 409
    assert "You changed this text in another window" in content
    assert "Which animal?" in content and "Which beast?" in content
    assert label_of(draft, "pet") == "Which animal?"
    # Who has seen the other text may replace it.
    client.post(address, {**late, "seen": "Which animal?"})
    assert label_of(draft, "pet") == "Which beast?"


def test_a_colleague_is_not_oneself(client, running):
    draft = begin(client, running[0].survey)
    address, late = form_of(client, draft, "pet", "Which beast?")
    pat = colleague()
    pat.post(*form_of(pat, draft, "pet", "Which animal?"))
    # Of another row.
    client.post(*form_of(client, draft, "age", "Age?"))
    reply = client.post(address, late, headers={"accept": "application/json"})
    assert reply.status_code == 409 and reply.json()["text"] == "Which animal?"
    assert "Somebody has changed this text" in reply.json()["error"]


def test_a_text_that_is_gone_does_not_stop_those_behind_it(client, running):
    draft = begin(client, running[0].survey)
    address, form = form_of(client, draft, "pet", "Which beast?")
    form["text_id"] = "survey-gone-label"
    reply = client.post(address, form, headers={"accept": "application/json"})
    assert reply.status_code == 422 and "deleted" in reply.json()["error"]


def test_options_stand_below_their_question(client, staff):
    choices = [*CHOICES, ["unused", "x", "Nobody sees this", None]]
    draft = draft_of(rows=[*ROWS[:3], ROWS[2][:1] + ["pet2"] + ROWS[2][2:], *ROWS[3:]])
    names = [row.name for row in rows_of(client, draft)]
    first = names.index("pet")
    options = [f"pets {row[1]}" for row in CHOICES[1:]]
    assert names[first + 1 : first + 1 + len(options)] == options
    assert names.count(options[0]) == 1 and names[first + 1 + len(options)] == "pet2"
    survey = draft_of(choices=choices, version="2")
    assert "unused x" in {
        row["list"] + " " + row["name"] for row in rows_in_choices(survey)
    }
    assert "unused x" not in {row.name for row in rows_of(client, survey)}


def rows_in_choices(survey) -> list[dict[str, str]]:
    sheet = load_book(survey).sheet("choices")
    names = ("list", "name")
    return [{name: sheet.value(row, name) for name in names} for row in sheet.rows]


def test_a_correction_keeps_the_languages_of_the_survey(client, running):
    published, _ = running
    draft = begin(client, published.survey)
    page = f"/console/surveys/{draft.pk}/edit/texts/"
    remove = f"{page}languages/es/remove/"
    assert "Remove Español" not in client.get(f"{page}?language=es").content.decode()
    assert client.post(remove).status_code == 404
    # One that was added may go again, and so may one of another draft.
    client.post(f"{page}languages/", {"token": "French"})
    added = client.get(f"{page}?language=fr").content.decode()
    assert f"{page}languages/fr/remove/" in added
    assert client.post(f"{page}languages/fr/remove/").status_code == 302
    alone = draft_of(version="3")
    remove = f"/console/surveys/{alone.pk}/edit/texts/languages/es/remove/"
    assert client.post(remove).status_code == 302


@pytest.mark.parametrize("source_name", ["", "pets.xlsx"])
def test_a_survey_that_was_written_here_is_corrected_here(client, staff, source_name):
    survey = draft_of()
    Survey.objects.filter(pk=survey.pk).update(source_name=source_name)
    publish_survey(survey=survey)
    menu = client.get(f"/console/surveys/{survey.pk}/").content.decode()
    here = f'action="/console/surveys/{survey.pk}/correct/here/"'
    # Opening the page starts no version.
    correct = f"/console/surveys/{survey.pk}/correct/"
    assert f'href="{correct}"' in menu and here not in menu
    assert here in client.get(correct).content.decode()
    assert Survey.objects.count() == 1
    draft = begin(client, survey)
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    page = client.get(f"/console/surveys/{draft.pk}/correction/").content.decode()
    assert ("into your workbook too" in page) == bool(source_name)


def test_a_second_copy_of_a_request_is_no_conflict(client, running):
    draft = begin(client, running[0].survey)
    request = form_of(client, draft, "pet", "Which animal?")
    assert [client.post(*request).status_code for _ in range(2)] == [302, 302]
    assert draft.changes.count() == 1


def test_a_translation_is_marked_until_it_follows_the_original(client, staff):
    draft = draft_of()
    address, form = form_of(client, draft, "pet", "Which animal?")
    client.post(address, form)
    rows = {row.name: row.state for row in rows_of(client, draft, "es")}
    assert rows["pet"] == "stale" and rows["age"] == "done"
    assert [row.name for row in rows_of(client, draft, "es", show="stale")] == ["pet"]
    same = form_of(client, draft, "pet", "¿Qué mascota?", "es")
    client.post(*same)
    rows = {row.name: row.state for row in rows_of(client, draft, "es")}
    assert rows["pet"] == "done"


def test_missing_translations_are_listed(client, staff):
    draft = draft_of()
    client.post(*form_of(client, draft, "age", "", "es"))
    assert [row.place for row in rows_of(client, draft, "es", show="missing")] == [
        # The title has no Spanish.
        "Title",
        "Page 1: Its age?",
    ]


def test_a_translation_keeps_what_is_filled_in(client, staff):
    rows = [[*row] for row in ROWS]
    rows[3][2], rows[3][3] = "Age of your ${pet}?", "¿Edad de su ${pet}?"
    draft = draft_of(rows=rows)
    for text, reason in (
        ("¿Edad?", "Add ${pet}"),
        ("¿${pet} ${pet}?", "Remove ${pet}"),
        ("¿${age} ${pet}?", "Remove ${age}"),
    ):
        reply = client.post(*form_of(client, draft, "age", text, "es"))
        assert reply.status_code == 422 and reason in reply.content.decode()
    reply = client.post(*form_of(client, draft, "age", "Edad: ${ pet }", "es"))
    assert reply.status_code == 302
    assert label_of(draft, "age", "es") == "Edad: ${pet}"


def test_options_are_corrected_too(client, running):
    draft = begin(client, running[0].survey)
    client.post(*form_of(client, draft, "pets cat", "A cat"))
    label_of(draft, "pet")
    [options] = draft.option_sets.all()
    assert options.options.get(value="cat").label["en"] == "A cat"


def test_others_change_nothing(staff, running, client):
    published, _ = running
    draft = start_correction(corrects=published, by=staff.state)
    address = f"/console/surveys/{draft.pk}/edit/texts/"
    for user in (staff.dana, staff.chen, staff.analyst):
        assert log_in(Client(), user).get(address).status_code == 404


@pytest.mark.parametrize("items", [1, 3])
def test_texts_of_one_and_of_three_questions_cost_the_same(
    client, staff, items, django_assert_num_queries
):
    rows = [*ROWS[:2], ROWS[4]]
    rows[2:2] = [[ROWS[2][0], f"pet{n}", *ROWS[2][2:]] for n in range(items)]
    published = publish_survey(survey=draft_of(rows=rows))
    draft = start_correction(corrects=published, by=staff.state)
    with django_assert_num_queries(7):
        rows_of(client, draft)


def test_labels_of_measures_are_corrected_too(client, staff):
    published = publish_survey(survey=draft_with(SAFE, TRUST))
    draft = begin(client, published.survey)
    client.post(*form_of(client, draft, "trust", "Trusting"))
    reply = client.get(f"/console/surveys/{draft.pk}/correction/")
    text = reply.content.decode()
    assert "1 changed text" in text and "measure trust" in text and "Trusting" in text
    corrected = publish_correction(survey=draft, corrects=published, by=staff.state)
    [measure] = measures_of(corrected.survey)["measures"]
    assert measure["label"]["en"] == "Trusting"
    [measure] = measures_of(published.survey)["measures"]
    assert measure["label"]["en"] == "Trust"


def test_other_items_of_a_measure_are_listed_as_a_difference(client):
    published = publish_survey(survey=with_measures(draft_of()))
    corrected = draft_of(version="1.1", corrects=published)
    with_measures(corrected, items=("pet",))
    reply = client.get(f"/console/surveys/{corrected.pk}/correction/")
    [difference] = reply.context["comparison"].differences
    assert difference.place == "measure trust, items"
    assert (difference.was, difference.now) == ("pet age", "pet")


def test_a_hundred_texts_are_on_two_pages(client, staff):
    choices = [*CHOICES, *(["pets", f"p{n}", f"Pet {n}", None] for n in range(90))]
    draft = draft_of(choices=choices)
    assert len(rows_of(client, draft)) == 50
    assert len(rows_of(client, draft, page=2)) == 46
    assert [row.name for row in rows_of(client, draft, q="pet 77")] == ["pets p77"]
