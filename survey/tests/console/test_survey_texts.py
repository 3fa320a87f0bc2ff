"""Texts of a published survey are corrected in the console, page by page."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.instrument.definitions.corrections import publish_correction
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.definitions.text_drafts import sections_of, start_text_draft
from survey.models import Survey
from survey.tests.console.test_surveys import ROWS, draft_of, offered
from survey.tests.definitions.test_corrections import with_measures

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
    assert location == f"/console/surveys/{pk}/texts/1/"
    return Survey.objects.get(pk=pk)


def number_of(draft, place) -> int:
    for number, section in enumerate(sections_of(draft), 1):
        if any(text.place == place for text in section.texts):
            return number
    raise AssertionError(place)


def form_of(client, draft, place, text, code="en", **more):
    """Return the address and the form of a section, with one text changed."""
    address = f"/console/surveys/{draft.pk}/texts/{number_of(draft, place)}/"
    form = client.get(address).context["form"]
    [key] = [row.key for row, _ in form.rows() if row.place == place]
    given = {name: form[name].value() or "" for name in form.fields}
    return address, {**given, f"{key}-{code}": text, **more}


def test_a_typing_mistake_is_corrected_compared_and_published(client, running):
    published, administration = running
    draft = begin(client, published.survey)
    assert (draft.version, draft.source_name) == ("1.1", "")
    reply = client.post(*form_of(client, draft, "pet", " Which animal? ", review="1"))
    correction = f"/console/surveys/{draft.pk}/correction/"
    assert reply["Location"] == correction
    text = client.get(correction).content.decode()
    assert "Which pet?" in text and "Which animal?" in text
    assert "1 changed text" in text and "into your workbook too" in text
    administration.refresh_from_db()
    assert administration.published == published
    client.post(correction, {"administrations": [administration.pk]})
    administration.refresh_from_db()
    corrected = administration.published
    assert corrected.survey == draft and "Which animal?" in corrected.definition
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert [*actions][-4:] == [
        "upload survey",
        "change texts of draft",
        "publish correction",
        "correct texts of administration",
    ]
    # A published one is not changed any more.
    assert client.get(f"/console/surveys/{draft.pk}/texts/1/").status_code == 404


def test_it_is_the_same_correction_as_that_of_a_workbook(client, running, staff):
    published, _ = running
    draft = begin(client, published.survey)
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    here = publish_correction(survey=draft, corrects=published, by=staff.state)
    rows = [[*row] for row in ROWS]
    rows[2][2] = "Which animal?"
    workbook = draft_of(rows=rows, version="1.2", corrects=published)
    there = publish_correction(survey=workbook, corrects=published, by=staff.state)
    assert here.definition.replace('"1.1"', '"1.2"') == there.definition


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
        ("Hello ${age", "never closed"),
        ("Bell\x07", "Character 5 is invisible (U+0007)"),
        ("Zero\u200bwidth", "cannot be seen"),
        ("x" * 32_768, "at most 32767 characters"),
    ]
    draft = begin(client, running[0].survey)
    for text, reason in cases:
        address, form = form_of(client, draft, "pet", text)
        reply = client.post(address, form)
        assert reply.status_code == 200
        assert reason in reply.content.decode(), text[:50]
        draft.refresh_from_db()
        assert draft.items.get(name="pet").label["en"] == "Which pet?"


def test_two_people_do_not_overwrite_each_other(client, running, staff):
    draft = begin(client, running[0].survey)
    address, late = form_of(client, draft, "pet", "Which beast?")
    client.post(*form_of(client, draft, "pet", "Which animal?"))
    reply = client.post(address, late, follow=True)
    assert "Somebody else has changed these texts" in reply.content.decode()
    assert draft.items.get(name="pet").label["en"] == "Which animal?"


def test_options_are_corrected_too(client, running):
    draft = begin(client, running[0].survey)
    [options] = [row for row in sections_of(draft) if row.name.startswith("Options")]
    place = options.texts[0].place
    client.post(*form_of(client, draft, place, "A cat"))
    assert (
        options.texts[0]
        .row.__class__.objects.filter(
            option_set__survey=draft, value=place, label__en="A cat"
        )
        .exists()
    )


def test_drafts_of_workbooks_and_other_districts_are_not_edited(staff, running, client):
    published, _ = running
    uploaded = draft_of(version="7", corrects=published)
    Survey.objects.filter(pk=uploaded.pk).update(source=b"workbook")
    address = f"/console/surveys/{uploaded.pk}/texts/1/"
    assert client.get(address).status_code == 404
    draft = start_text_draft(corrects=published, by=staff.state)
    address = f"/console/surveys/{draft.pk}/texts/1/"
    for user in (staff.dana, staff.chen, staff.analyst):
        assert log_in(Client(), user).get(address).status_code == 404
    for number in (0, 99):
        assert client.get(
            f"/console/surveys/{draft.pk}/texts/{number}/"
        ).status_code == (404)


@pytest.mark.parametrize("items", [1, 3])
def test_texts_of_one_and_of_three_questions_cost_the_same(
    client, staff, items, django_assert_num_queries
):
    rows = [*ROWS[:2], ROWS[4]]
    rows[2:2] = [[ROWS[2][0], f"pet{n}", *ROWS[2][2:]] for n in range(items)]
    published = publish_survey(survey=draft_of(rows=rows))
    draft = start_text_draft(corrects=published, by=staff.state)
    with django_assert_num_queries(11):
        assert client.get(f"/console/surveys/{draft.pk}/texts/2/").status_code == 200


def test_labels_of_measures_are_corrected_too(client, staff):
    published = publish_survey(survey=with_measures(draft_of()))
    draft = begin(client, published.survey)
    reply = client.post(*form_of(client, draft, "trust", "Trusting", review="1"))
    text = client.get(reply["Location"]).content.decode()
    assert "1 changed text" in text and "measure trust" in text and "Trusting" in text
    corrected = publish_correction(survey=draft, corrects=published, by=staff.state)
    [measure] = measures_of(corrected.survey)["measures"]
    assert measure["label"] == {"en": "Trusting"}
    [measure] = measures_of(published.survey)["measures"]
    assert measure["label"] == {"en": "Trust"}


def test_other_items_of_a_measure_are_listed_as_a_difference(client):
    published = publish_survey(survey=with_measures(draft_of()))
    corrected = draft_of(version="1.1", corrects=published)
    with_measures(corrected, items=("pet",))
    reply = client.get(f"/console/surveys/{corrected.pk}/correction/")
    [difference] = reply.context["comparison"].differences
    assert difference.place == "measure trust, items"
    assert (difference.was, difference.now) == ("pet age", "pet")
