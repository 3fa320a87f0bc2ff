"""The question bank: the state fills it, districts read it and insert from it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.instrument.drafts.drafting import publish_draft
from survey.instrument.drafts.store import load_book
from survey.models import BankQuestion, Wave
from survey.tests.bank.bank import (
    HEADER,
    MEASURES,
    OTHERS,
    OWN,
    SAFE,
    STATE,
    bank,
    key_of,
    row_of,
    survey_of,
)
from survey.tests.console.test_survey_text_files import downloaded, uploaded
from survey.tests.console.test_surveys import offered

pytestmark = pytest.mark.django_db


@pytest.fixture
def state(staff):
    return log_in(Client(), staff.state)


@pytest.fixture
def dana(staff):
    return log_in(Client(), staff.dana)


@pytest.fixture
def draft(staff):
    return survey_of(OWN, choices=OTHERS, district=staff.riverside)


def add_all(state, survey, *names, **new_names):
    data = {"question": names, **{f"name-{k}": v for k, v in new_names.items()}}
    return state.post(reverse("survey_to_bank", args=[survey.pk]), data)


def insert(client, draft, questions, how="locked", after="first"):
    data = {
        "question": [row.pk for row in questions],
        "at": key_of(draft, after),
        "act": f"bank-insert:{how}",
    }
    return client.post(reverse("survey_edit_bank", args=[draft.pk]), data)


def act(client, draft, verb, name):
    key = key_of(draft, name)
    data = {"act": f"{verb}:{key}", "at": key}
    return client.post(
        reverse("survey_edit_change", args=[draft.pk]),
        data,
        headers={"Accept": "application/json"},
    )


def page(client, route, *args, **query):
    response = client.get(reverse(route, args=args), query)
    assert response.status_code == 200
    return response.content.decode()


def test_the_state_fills_the_bank_and_a_district_inserts(staff, state, dana, draft):
    survey = survey_of(STATE, "state", measures=MEASURES)
    response = add_all(state, survey, "safe", "afraid", "calm")
    assert response["Location"] == reverse("bank_list")
    assert AuditEntry.objects.filter(action="add bank question").count() == 3
    listed = page(dana, "bank_list", q="safe seguro")
    assert "I feel safe here." in listed
    assert "It is calm here." not in listed
    assert "Climate: Safety" in listed
    questions = list(BankQuestion.objects.order_by("pk"))
    offer = page(dana, "survey_edit_bank", draft.pk, after=key_of(draft, "first"))
    assert "texts in Español." in offer
    response = insert(dana, draft, questions)
    key = key_of(draft, "safe")
    assert response["Location"] == f"/console/surveys/{draft.pk}/edit/?at={key}"
    editor = page(dana, "survey_edit", draft.pk, at=key)
    assert "The state’s question safe 1." in editor
    assert "Unlock to adapt a copy" in editor
    draft.refresh_from_db()
    published = publish_draft(survey=draft, by=staff.dana)
    wave = Wave.objects.create(name="Spring 2027", district=staff.riverside)
    round_ = offered(published)
    round_.wave, round_.district = wave, staff.riverside
    round_.save(update_fields=["wave", "district"])
    round_.districts.add(staff.riverside)
    shown = page(dana, "bank_question", questions[0].pk)
    assert "Me siento seguro aquí." in shown
    assert draft.full_title in shown
    assert "Spring 2027" in shown


def test_a_locked_question_is_unlocked_in_the_editor(staff, dana, draft):
    [question] = bank(staff.state, "safe")
    insert(dana, draft, [question])
    key = key_of(draft, "safe")
    address = f"survey:{key}:label:en"
    form = {
        "at": key,
        f"seen:{address}": "I feel safe here.",
        f"f:{address}": "I am safe.",
    }
    change = reverse("survey_edit_change", args=[draft.pk])
    response = dana.post(change, form, headers={"Accept": "application/json"})
    assert response.status_code == 422
    assert "Unlock it to adapt a copy." in response.json()["error"]
    assert act(dana, draft, "unlock", "safe").status_code == 200
    response = dana.post(change, form, headers={"Accept": "application/json"})
    assert response.status_code == 200
    assert row_of(draft, "safe_adapted")["label::English (en)"] == "I am safe."
    assert act(dana, draft, "unlock", "safe_adapted").status_code == 422


def test_texts_of_locked_questions_are_refused_on_the_page_of_texts(staff, dana, draft):
    [question] = bank(staff.state, "safe")
    insert(dana, draft, [question])
    form = {
        "text_id": f"survey-{key_of(draft, 'safe')}-label",
        "language": "en",
        "seen": "I feel safe here.",
        "text": "I am safe.",
    }
    response = dana.post(reverse("survey_edit_texts", args=[draft.pk]), form)
    assert response.status_code == 422
    assert "Unlock it to adapt a copy." in response.content.decode()


def test_a_file_of_translations_changes_no_locked_text(staff, dana):
    bank(staff.state, "safe")
    rows = [[*HEADER[:4], "bank_question"], [*SAFE, "safe 1"]]
    draft = survey_of(rows, district=staff.riverside)
    content = downloaded(dana, draft, "csv").replace(SAFE[3].encode(), b"Estoy bien.")
    page = uploaded(dana, draft, content)
    form = {"checked": page.context["checked"]}
    address = reverse("survey_edit_texts_upload_save", args=[draft.pk])
    reply = dana.post(address, form, follow=True)
    assert "Unlock it to adapt a copy." in reply.content.decode()
    assert row_of(draft, "safe")["label::Español (es)"] == SAFE[3]


def test_a_new_version_is_made_and_taken(staff, state, dana, draft):
    [question] = bank(staff.state, "safe")
    insert(dana, draft, [question])
    address = reverse("bank_version", args=[question.pk])
    form = state.get(f"{address}?language=French").context["form"]
    data = {name: form[name].value() for name in form.fields}
    assert state.post(address, data).status_code == 422
    data |= {"label-fr": "Je suis en sécurité.", "label-en": "I feel safe at school."}
    assert state.post(f"{address}?language=French", data).status_code == 302
    later = BankQuestion.objects.get(version=2)
    assert later.content["texts"]["label"]["fr"] == "Je suis en sécurité."
    assert later.content["options"] == question.content["options"]
    # The earlier version is not the one to start from any more.
    assert state.post(address, data).status_code == 422
    editor = page(dana, "survey_edit", draft.pk, at=key_of(draft, "safe"))
    assert "Use version 2" in editor
    assert act(dana, draft, "bank-version", "safe").status_code == 200
    assert row_of(draft, "safe")["bank_question"] == "safe 2"
    assert "An earlier version." in page(dana, "bank_question", question.pk)


def test_a_retired_question_is_not_offered(staff, state, dana, draft):
    [question] = bank(staff.state, "safe")
    address = reverse("bank_retire", args=[question.pk])
    state.post(address)
    state.post(address)
    assert AuditEntry.objects.filter(action="retire bank question").count() == 1
    assert "I feel safe" not in page(dana, "survey_edit_bank", draft.pk)
    assert "Retired" in page(dana, "bank_list")
    assert insert(dana, draft, [question]).status_code == 422
    state.post(address, {"restore": "1"})
    assert insert(dana, draft, [question]).status_code == 302


def test_districts_change_nothing_in_the_bank(staff, dana, draft):
    [question] = bank(staff.state, "safe")
    for route, pk in (
        ("bank_version", question.pk),
        ("bank_retire", question.pk),
        ("survey_to_bank", draft.pk),
    ):
        assert dana.post(reverse(route, args=[pk])).status_code == 404
    assert "Retire" not in page(dana, "bank_question", question.pk)
    assert "Add to question bank" not in page(dana, "survey_detail", draft.pk)


def test_surveys_of_other_districts_are_not_named(staff, state, dana):
    [question] = bank(staff.state, "safe")
    lakes = survey_of(OWN, "lakes", choices=OTHERS, district=staff.lakeside)
    assert insert(dana, lakes, [question]).status_code == 404
    insert(state, lakes, [question])
    assert "lakes" in page(state, "bank_question", question.pk)
    assert "lakes" not in page(dana, "bank_question", question.pk)


@pytest.mark.parametrize(
    ("names", "new_names", "reason"),
    [
        ([], {}, "Choose at least one question."),
        (["why"], {}, "quotes another answer"),
        (["nothing"], {}, "The survey has no question nothing."),
        (["afraid"], {"afraid": "two words"}, "The name can’t be used"),
        (["afraid"], {"afraid": ""}, "The name can’t be used"),
        (["afraid"], {"afraid": "a" * 65}, "Use at most 64 characters."),
        (["afraid"], {"afraid": "a\x00b"}, "The name can’t be used"),
        (["afraid"], {"afraid": "SAFE"}, "The bank has a question SAFE already."),
        (["safe"], {}, "The bank has a question safe already."),
    ],
)
def test_what_cannot_be_added(staff, state, names, new_names, reason):
    bank(staff.state, "safe")
    survey = survey_of(STATE, "second", measures=MEASURES)
    response = add_all(state, survey, *names, **new_names)
    assert response.status_code == 422
    assert reason in response.content.decode()
    assert BankQuestion.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        ("name", "", "required"),
        ("name", "two words", "The name can’t be used"),
        ("name", "afraid", "Another question is called afraid."),
        ("label-en", "", "required"),
        ("label-en", "Why ${name}?", "quotes no answer"),
        ("label-en", "a\x00b", ""),
        ("label-en", "x" * 5001, "5000"),
    ],
)
def test_what_is_no_version(staff, state, field, text, reason):
    question, _afraid = bank(staff.state, "safe", "afraid")
    address = reverse("bank_version", args=[question.pk])
    form = state.get(address).context["form"]
    data = {name: form[name].value() for name in form.fields} | {field: text}
    response = state.post(address, data)
    assert response.status_code == 422
    assert reason in response.content.decode()
    assert BankQuestion.objects.count() == 2


def test_bad_input(staff, state, dana, draft):
    [question] = bank(staff.state, "safe")
    address = reverse("survey_edit_bank", args=[draft.pk])
    for data in (
        {},
        {"question": "x"},
        {"question": "9" * 40, "act": "bank-insert:locked"},
        {"question": question.pk, "act": "bank-insert:locked", "at": "gone"},
        {"question": question.pk, "act": "nothing"},
    ):
        assert dana.post(address, data).status_code in (302, 422), data
    assert "safe" not in draft_names(draft)
    for query in ({"measure": "x", "language": "x"}, {"q": "\x00"}, {"page": "x"}):
        page(dana, "bank_list", **query)
    assert "not known" in page(state, "bank_version", question.pk, language="Elvish")
    assert dana.get(reverse("bank_question", args=[0])).status_code == 404


def draft_names(draft):
    sheet = load_book(draft).sheet("survey")
    return {sheet.value(row, "name") for row in sheet.rows}


def test_the_same_question_is_not_inserted_twice(staff, dana, draft):
    [question] = bank(staff.state, "safe")
    insert(dana, draft, [question])
    response = insert(dana, draft, [question])
    assert response.status_code == 422
    assert "has a question with the name safe already" in response.content.decode()
    insert(dana, draft, [question], "copy")
    assert "bank_question" not in row_of(draft, "safe_2")


def test_published_surveys_and_corrections_take_nothing(staff, state, draft):
    survey = survey_of(STATE, "state2", measures=MEASURES)
    publish_draft(survey=survey, by=staff.state)
    address = reverse("survey_edit_bank", args=[survey.pk])
    assert state.get(address).status_code == 404


def test_a_correction_changes_no_locked_text(staff, state):
    bank(staff.state, "safe")
    rows = [[*HEADER[:4], "bank_question"], [*SAFE, "safe 1"]]
    published = publish_draft(survey=survey_of(rows, "one"), by=staff.state)
    rows[1] = [*SAFE[:2], "I am safe.", SAFE[3], "safe 1"]
    correction = survey_of(rows, "two")
    correction.corrects = published
    correction.save(update_fields=["corrects"])
    response = state.post(reverse("survey_correction", args=[correction.pk]))
    assert response.status_code == 409
    assert "differs from the state’s question" in response.content.decode()
    assert not correction.published.exists()


@pytest.mark.parametrize("count", [1, 3])
def test_pages_cost_the_same_for_any_number_of_questions(
    staff, dana, draft, count, django_assert_num_queries
):
    questions = bank(staff.state, *["safe", "afraid", "calm"][:count])
    insert(dana, draft, questions)
    with django_assert_num_queries(4):
        dana.get(reverse("bank_list"))
    with django_assert_num_queries(8):
        dana.get(reverse("bank_question", args=[questions[0].pk]))
    with django_assert_num_queries(7):
        dana.get(reverse("survey_edit_bank", args=[draft.pk]))
