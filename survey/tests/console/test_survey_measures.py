"""Measures of a draft are changed in the console; published ones are read."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.tests.logging_in import log_in
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.drafts.corrections import start_correction
from survey.instrument.drafts.measures import current_measures
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import Survey
from survey.tests.console.test_survey_editor import Editor
from survey.tests.workbooks import workbook
from survey.tests.xlsform.test_measures import CHOICES, SAFE, SETTINGS, SURVEY, TRUST
from survey.tests.xlsform.test_measures import HEADER as MEASURES_HEADER

pytestmark = pytest.mark.django_db

LABELS = ["label::English (en)", "label::Español (es)"]


def draft_with(*rows) -> Survey:
    sheets = {"survey": SURVEY, "choices": CHOICES, "settings": SETTINGS}
    if rows:
        sheets["measures"] = [MEASURES_HEADER, *rows]
    reading = read_xlsform(workbook(sheets))
    return import_survey(
        draft=reading.draft, source_name="book.xlsx", source=reading.source
    )


@pytest.fixture
def draft(staff) -> Survey:
    return draft_with(SAFE, TRUST)


@pytest.fixture
def client(staff) -> Client:
    return log_in(Client(), staff.state)


def form_of(client, survey, n=0, kind="measures", **changes):
    """Return the address and the form of a measure or essential, with changes."""
    address = f"/console/surveys/{survey.pk}/{kind}/{n}/"
    form = client.get(address).context["form"]
    given = {name: form[name].value() or "" for name in form.fields}
    return address, {**given, **changes}


CALM = {
    "name": "calm",
    "label-en": "Calm",
    "label-es": "Calma",
    "description-en": "No noise.",
    "essential": "safe",
    "items": ["q4", "q5", "q6"],
    "reversed": ["q6"],
    "missing": "dk",
}


def test_a_measure_is_added_changed_and_published(client, draft):
    address = f"/console/surveys/{draft.pk}/measures/"
    assert client.post(*form_of(client, draft, **CALM))["Location"] == address
    text = client.get(address).content.decode()
    assert "Calm is saved." in text
    calm = measures_of(draft)["measures"][1]
    assert calm == {
        "name": "calm",
        "label": {"en": "Calm", "es": "Calma"},
        "description": {"en": "No noise."},
        "essential": "safe",
        "direction": "positive",
        "items": [
            {"name": "q4", "reversed": False},
            {"name": "q5", "reversed": False},
            {"name": "q6", "reversed": True},
        ],
        "missing": ["dk"],
    }
    client.post(*form_of(client, draft, 2, name="quiet", direction="negative"))
    changed = measures_of(draft)["measures"][1]
    assert changed == {**calm, "name": "quiet", "direction": "negative"}
    change = draft.changes.latest("number")
    assert (change.action, change.about) == ("set_measure", {"name": "quiet"})
    publish_survey(survey=draft)
    text = client.get(address).content.decode()
    assert "can no longer change" in text and "Add measure" not in text
    assert client.get(f"{address}2/").status_code == 404


def test_measures_follow_their_essential(client, draft):
    changes = {"name": "secure", "label-en": "Secure"}
    reply = client.post(*form_of(client, draft, 1, "essentials", **changes))
    assert reply.status_code == 302
    content = measures_of(draft)
    assert content["essentials"][0]["label"]["en"] == "Secure"
    assert [row["essential"] for row in content["measures"]] == ["secure"]
    client.post(*form_of(client, draft, 1, "essentials", remove="1"))
    content = measures_of(draft)
    assert content["essentials"] == []
    assert [row["essential"] for row in content["measures"]] == [""]


def test_the_first_measure_of_a_survey_without_a_sheet(client, staff):
    draft = draft_with()
    assert "has no measures" in (
        client.get(f"/console/surveys/{draft.pk}/").content.decode()
    )
    client.post(
        *form_of(client, draft, kind="essentials", name="safe", **{"label-en": "Safe"})
    )
    client.post(*form_of(client, draft, **CALM))
    assert [row["name"] for row in measures_of(draft)["measures"]] == ["calm"]
    client.post(*form_of(client, draft, 1, remove="1"))
    assert measures_of(draft)["measures"] == []


def test_a_name_for_files_is_made_from_the_label(client, draft):
    page = client.get(f"/console/surveys/{draft.pk}/measures/0/").content.decode()
    assert "Level 1 · … · " in page and "<td>agree</td>" not in page
    more = {"name": "", "label-en": "A calm and safe school"}
    client.post(*form_of(client, draft, **{**CALM, **more}))
    client.post(*form_of(client, draft, 1, name="", **{"label-en": "Trusting"}))
    names = [row["name"] for row in measures_of(draft)["measures"]]
    assert names == ["trust", "calm_safe_school"]


def test_the_statements_of_a_grid_become_a_measure(client):
    grid = [
        ["begin_group", "feelings", "How are you?", "¿Cómo estás?", "table-list"],
        *(
            ["select_one agree", f"calm_{n}", f"Calm {n}", f"Calma {n}", ""]
            for n in range(3)
        ),
        ["end_group"],
    ]
    rows = [["type", "name", *LABELS, "appearance"], *grid]
    settings = {"choices": CHOICES, "settings": SETTINGS}
    reading = read_xlsform(workbook({"survey": rows, **settings}))
    draft = import_survey(draft=reading.draft, source=reading.source)
    address = f"/console/surveys/{draft.pk}/measures/0/"
    [offer] = client.get(address).context["grids"]
    form = client.get(f"{address}?{offer.query}").context["form"]
    given = {name: form[name].value() or "" for name in form.fields}
    given |= {"missing": "dk", "reversed": []}
    reply = client.post(address, given)
    assert reply.status_code == 302, reply.context["form"].errors
    [measure] = measures_of(draft)["measures"]
    assert measure["name"] == "how_are_you"
    assert [row["name"] for row in measure["items"]] == ["calm_0", "calm_1", "calm_2"]
    assert client.get(address).context["grids"] == []


def test_what_a_sheet_may_not_say_is_refused(client, draft):
    cases = [
        ({"items": ["q4", "q5"], "reversed": []}, "a measure needs at least 3 items"),
        ({"items": ["q4", "q5", "q1"]}, "q1 belongs to the measure trust already"),
        (
            {"items": ["q4", "q5", "often"]},
            "different lists: agree, often",
        ),
        ({"items": ["q4", "q5", "words"]}, "words"),
        ({"missing": "na"}, "not a value of its list"),
        ({"missing": "1 2 3 dk"}, "fewer than two answers are left"),
        ({"name": "my measure"}, "a name begins with a letter"),
        ({"name": "trust"}, "another measure or theme has this name already"),
        ({"name": "safe"}, "another measure or theme has this name already"),
        ({"label-en": ""}, "This field is required."),
        ({"reversed": ["q7"]}, "Choose a question before you reverse it."),
        ({"essential": "kind"}, "kind"),
    ]
    before = measures_of(draft)
    for changes, reason in cases:
        more = {"reversed": [], **changes} if "items" in changes else changes
        reply = client.post(*form_of(client, draft, **{**CALM, **more}))
        assert reply.status_code == 200
        form = reply.context["form"]
        assert reason in str(form.errors), form.errors
        assert "There is a problem" in reply.content.decode()
        assert measures_of(draft) == before


def test_two_people_do_not_overwrite_each_other(client, draft):
    address, late = form_of(client, draft, 1, name="late")
    client.post(*form_of(client, draft, 1, name="first"))
    reply = client.post(address, late, follow=True)
    assert "Somebody else has changed the measures" in reply.content.decode()
    assert [row["name"] for row in measures_of(draft)["measures"]] == ["first"]
    address, late = form_of(client, draft, 1, remove="1")
    publish_survey(survey=draft)
    assert client.post(address, late).status_code == 404
    assert measures_of(draft)["measures"]


def test_questions_of_a_draft_with_a_problem_stay_in_their_measure(
    client, draft, staff
):
    editor = Editor(draft, staff.state)
    editor.act("add:select_one")
    editor.type(f"survey:{editor.key('q1')}:name:", "renamed", seen="q1")
    editor.type(f"survey:{editor.key('q2')}:kind:", "text", seen="select_one")
    draft.refresh_from_db()
    assert read_rows_of(draft).problems
    address = f"/console/surveys/{draft.pk}/measures/1/"
    rows = client.get(address).context["form"].rows()
    ticked = {
        "items": [row.name for row, _l, _t, is_chosen, _r in rows if is_chosen],
        "reversed": [row.name for row, *_l, is_reversed in rows if is_reversed],
    }
    assert ticked == {"items": ["renamed", "q3", "q2"], "reversed": ["q3"]}
    assert {"q1", "q4"} & {row.name for row, *_rest in rows} == {"q4"}
    # One of them is no single choice, which is said.
    address, form = form_of(client, draft, 1, **ticked, **{"label-en": "Trusting"})
    assert "q2" in str(client.post(address, form).context["form"].errors)
    editor.act("undo")
    client.post(*form_of(client, draft, 1, **ticked, **{"label-en": "Trusting"}))
    draft.refresh_from_db()
    [measure] = current_measures(draft)["measures"]
    assert measure["label"]["en"] == "Trusting"
    assert [row["name"] for row in measure["items"]] == ["renamed", "q2", "q3"]


def test_measures_that_were_changed_before_drafts_had_rows(client, draft):
    draft.measures.content["changed_here"] = True
    draft.measures.save()
    reply = client.post(*form_of(client, draft, **CALM), follow=True)
    assert "Calm is saved." in reply.content.decode()
    assert [row["name"] for row in measures_of(draft)["measures"]] == ["trust", "calm"]


def test_a_label_in_an_added_language_stays(client, draft, staff):
    editor = Editor(draft, staff.state)
    editor.type("settings:-:title:en", "Climate", seen="")
    editor.act("language:fr")
    editor.act("add:select_one")
    client.post(*form_of(client, draft, 1, **{"label-fr": "Confiance"}))
    address, form = form_of(client, draft, 1, **{"label-en": "Trusting"})
    assert form["label-fr"] == "Confiance"


def test_corrections_and_surveys_of_others_are_not_changed(client, staff, draft):
    for user in (staff.dana, staff.chen, staff.analyst):
        address = f"/console/surveys/{draft.pk}/measures/1/"
        assert log_in(Client(), user).get(address).status_code == 404
    seen = log_in(Client(), staff.dana).get(f"/console/surveys/{draft.pk}/measures/")
    assert "Trust" in seen.content.decode()
    assert "Add measure" not in seen.content.decode()
    published = publish_survey(survey=draft)
    copy = start_correction(corrects=published, by=staff.state)
    assert client.get(f"/console/surveys/{copy.pk}/measures/1/").status_code == 404
    text = client.get(f"/console/surveys/{copy.pk}/measures/").content.decode()
    assert "A correction keeps the measures" in text


@pytest.mark.parametrize("measures", [1, 3])
def test_one_and_three_measures_cost_the_same(
    client, staff, measures, django_assert_num_queries
):
    survey = draft_with(SAFE, TRUST)
    content = measures_of(survey)
    content["measures"] *= measures
    survey.measures.content = content
    survey.measures.save()
    with django_assert_num_queries(11):
        client.get(f"/console/surveys/{survey.pk}/measures/")
    with django_assert_num_queries(8):
        client.get(f"/console/surveys/{survey.pk}/measures/1/")
