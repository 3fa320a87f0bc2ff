"""Surveys start empty, from a template, or as a copy or version of another one."""

from __future__ import annotations

import io

import pytest
from django.db import IntegrityError
from django.urls import reverse
from openpyxl import load_workbook

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from settings.base import BASE_DIR
from survey.console.surveys import starting
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.drafts import commands, drafting
from survey.instrument.drafts.beginnings import next_version
from survey.instrument.drafts.comments import add_comment
from survey.instrument.drafts.exporting import digest_of_content
from survey.instrument.drafts.reading import definition_of, read_rows_of
from survey.instrument.drafts.store import change_draft, load_book
from survey.instrument.xlsform import read_xlsform
from survey.instrument.xlsform.languages import ENGLISH
from survey.models import Survey
from survey.tests.console.test_survey_upload import send
from survey.tests.console.test_surveys import book, draft_of

pytestmark = pytest.mark.django_db
NEW = "/console/surveys/new/"


def newest() -> Survey:
    return Survey.objects.order_by("pk").last()


def set_label(survey, name, text, by=None, field="label"):
    def command(sheets):
        sheet = sheets.sheet("survey")
        [key] = [row.key for row in sheet.rows if sheet.value(row, "name") == name]
        commands.set_text(
            sheets, "survey", key, field=field, language=ENGLISH, text=text
        )

    change_draft(survey, command, action="set", by=by)
    survey.refresh_from_db()


@pytest.mark.parametrize("name", ["console_home", "survey_list", "administration_open"])
def test_each_start_page_leads_to_writing_a_questionnaire(staff, client, name):
    log_in(client, staff.dana)
    text = client.get(reverse(name), follow=True).content.decode()
    assert f'href="{NEW}"' in text and "Write a questionnaire" in text


def test_a_survey_starts_from_a_template_and_is_published(staff, client):
    log_in(client, staff.dana)
    text = client.get(NEW).content.decode()
    assert "How do you want to start?" in text and f"{NEW}template/" in text
    text = client.get(f"{NEW}template/").content.decode()
    assert "minutes" in text
    reply = client.post(
        f"{NEW}template/", {"template": "students", "title": "Our climate"}, follow=True
    )
    draft = newest()
    assert (draft.name, draft.version, draft.district) == (
        "climate",
        "1",
        staff.riverside,
    )
    assert "Our climate" in reply.content.decode()
    assert draft.items.exists() and draft.title["es"]
    text = client.get(reverse("survey_check", args=[draft.pk])).content.decode()
    assert "The survey can be published" in text
    seen = {"seen": draft.last_change}
    client.post(reverse("survey_publish", args=[draft.pk]), seen)
    draft.refresh_from_db()
    assert draft.published_at
    assert AuditEntry.objects.filter(action="start survey draft").count() == 1


def test_an_empty_survey_has_a_name_made_from_its_title(staff, client):
    log_in(client, staff.state)
    assert "Enter a title" in client.post(f"{NEW}empty/", {}).content.decode()
    given = {
        "title": "Do you feel safe at our school?",
        "language": "es",
        "translations": ["en", "es", "ar"],
        "owner": "state",
    }
    client.post(f"{NEW}empty/", given)
    draft = newest()
    assert (draft.name, draft.district) == ("feel_safe_school", None)
    assert draft.title == {"es": given["title"]}
    assert [row["code"] for row in draft.languages] == ["es", "en", "ar"]
    # It begins with a question that has no text yet, and its page says so.
    text = client.get(reverse("survey_detail", args=[draft.pk])).content.decode()
    assert "This draft has 1 problem" in text
    text = client.get(reverse("survey_check", args=[draft.pk])).content.decode()
    assert "1 problem to fix" in text and "It has no text." in text
    assert "Question 1 (page 1)" in text
    text = client.get(reverse("survey_publish", args=[draft.pk])).content.decode()
    assert "Question 1 (page 1)" in text and "?at=" in text
    assert "Publish version" not in text and "English (en)" not in text
    client.post(f"{NEW}empty/", {**given, "title": "«مدرستي»"})
    client.post(f"{NEW}empty/", {**given, "title": given["title"]})
    names = Survey.objects.order_by("pk").values_list("name", flat=True)
    assert [*names] == ["feel_safe_school", "survey", "feel_safe_school_2"]


def test_a_version_has_the_same_questions_and_keys(staff, client):
    published = publish_survey(survey=draft_of(district=staff.riverside))
    log_in(client, staff.dana)
    address = reverse("survey_new_version", args=[published.survey.pk])
    form = client.get(address).context["form"]
    assert form.initial["version"] == "2"
    client.post(address, {"version": "2"})
    draft = newest()
    assert (draft.name, draft.version) == ("pets", "2")
    original = load_book(published.survey).sheet("survey")
    copied = load_book(draft).sheet("survey")
    assert [row.key for row in copied.rows] == [row.key for row in original.rows]
    reading = read_rows_of(draft)
    assert reading.draft and not reading.problems
    definition = definition_of(reading.draft)
    before = definition_of(read_xlsform(book()).draft)
    assert digest_of_content({**definition, "version": "1"}) == digest_of_content(
        before
    )
    # A second click, or another tab.
    reply = client.post(address, {"version": "2"})
    assert "There is a survey pets, version 2, already" in reply.content.decode()
    assert Survey.objects.count() == 2


def test_a_survey_of_the_state_is_copied_for_a_district(staff, client):
    survey = draft_of()
    log_in(client, staff.dana)
    text = client.get(f"{NEW}copy/?q=pets").content.decode()
    address = reverse("survey_copy", args=[survey.pk])
    assert address in text
    form = client.get(address).context["form"]
    assert form.initial["title"] == "Copy of About pets"
    client.post(address, {"title": "Pets of ours"})
    draft = newest()
    assert (draft.name, draft.district) == ("pets_ours", staff.riverside)
    assert draft.items.count() == survey.items.count()


def test_surveys_of_other_districts_are_not_copied(staff, client):
    survey = draft_of(district=staff.lakeside)
    log_in(client, staff.dana)
    for route in ("survey_copy", "survey_new_version", "survey_compare"):
        assert client.get(reverse(route, args=[survey.pk])).status_code == 404
    mine = draft_of(district=staff.riverside)
    address = reverse("survey_compare", args=[mine.pk])
    assert client.get(address, {"with": survey.pk}).status_code == 404
    assert client.get(address, {"with": "x"}).status_code == 404


def test_a_district_cannot_start_a_survey_of_the_state(staff, client):
    log_in(client, staff.dana)
    given = {"title": "Pets", "language": "en", "owner": "state"}
    client.post(f"{NEW}empty/", given)
    assert newest().district == staff.riverside


@pytest.mark.parametrize(
    ("version", "taken", "following"),
    [
        ("1", {"1"}, "2"),
        ("2027.1", {"2027.1", "2027.2"}, "2027.3"),
        ("2026112901", {"2026112901"}, "2026112902"),
        ("99", set(), "100"),
        ("spring", set(), "spring.2"),
        ("x" * 64, set(), f"{'x' * 54}2"),
    ],
)
def test_the_next_version_is_proposed(version, taken, following):
    assert next_version(version, taken) == following


def test_pages_show_a_draft_as_it_is_now(staff, client):
    survey = draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    set_label(survey, "pet", "Which animal?")
    for route in ("survey_detail", "survey_variables", "survey_questionnaire"):
        text = client.get(reverse(route, args=[survey.pk])).content.decode()
        assert "Which animal?" in text and "Which pet?" not in text, route
    content = reverse("survey_preview_content", args=[survey.pk, 7, "en", 1])
    assert "Which animal?" in client.get(content).content.decode()
    exported = client.get(reverse("survey_original", args=[survey.pk]))
    rows = load_workbook(io.BytesIO(exported.content))["survey"].values
    assert "Which animal?" in [cell for row in rows for cell in row]
    definition = client.get(reverse("survey_json", args=[survey.pk])).json()
    assert definition["items"]["pet"]["label"]["en"] == "Which animal?"
    change_draft(
        survey,
        lambda sheets: commands.add_question(
            sheets, after=sheets.sheet("survey").rows[1].key, kind="text"
        ),
        action="add",
        by=None,
    )
    # Counting would read the whole draft; its own page does that.
    [row] = client.get(reverse("survey_list")).context["rows"]
    assert row.item_count is None


def test_a_draft_with_problems_is_shown_and_not_published(staff, client):
    survey = draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    set_label(survey, "pet", "Which ${beast}?")
    text = client.get(reverse("survey_detail", args=[survey.pk])).content.decode()
    assert "This draft has 1 problem" in text and "beast" in text
    assert "See what to fix" in text and "Publish version" not in text
    preview = client.get(reverse("survey_preview", args=[survey.pk])).content.decode()
    assert "follows no rules" in preview
    for route in ("survey_preview_take", "survey_variables", "survey_measures"):
        arguments = [survey.pk, 7] if route == "survey_preview_take" else [survey.pk]
        assert client.get(reverse(route, args=arguments)).status_code == 200
    check = client.get(reverse("survey_check", args=[survey.pk])).content.decode()
    assert "1 problem to fix" in check and "Question 1 (page 1)" in check
    assert "repeats the answer to a question that was deleted" in check
    survey.refresh_from_db()
    seen = {"seen": survey.last_change}
    refused = client.post(reverse("survey_publish", args=[survey.pk]), seen)
    text = refused.content.decode()
    assert refused.status_code == 409 and "The survey was not published." in text
    assert "Question 1 (page 1)" in text and "survey, row" not in text
    survey.refresh_from_db()
    assert survey.published_at is None


def test_a_check_lists_what_colleagues_and_translators_left(staff, client):
    survey = draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    set_label(survey, "pet", "Which animal?")
    key = read_rows_of(survey).keys["pet"]
    add_comment(survey=survey, key=key, text="Too long", by=staff.state)
    address = reverse("survey_check", args=[survey.pk])
    text = client.get(address).content.decode()
    assert "A comment is open: “Too long”" in text
    assert "The translation is older than the text." in text


def test_a_check_lists_rules_that_read_what_comes_later(staff, client):
    survey = draft_of(
        district=staff.riverside,
        rows=[
            [
                "type",
                "name",
                "label::English (en)",
                "label::Español (es)",
                "relevant",
            ],
            ["text", "why", "Why?", "¿Por qué?", "${age} > 3"],
            ["text", "last", "Last?", "¿Último?", "${why} = '1'"],
            ["integer", "age", "How old?", "¿Edad?", ""],
        ],
    )
    log_in(client, staff.dana)
    address = reverse("survey_check", args=[survey.pk])
    text = client.get(address).content.decode()
    assert "Question 1 (page 1): Why?" in text
    assert "This depends on question 3, which comes after it." in text
    assert text.count("comes after it") == 1
    change_draft(
        survey,
        lambda book: commands.delete_rows(book, read_rows_of(survey).keys["age"]),
        action="delete",
        by=staff.dana,
    )
    text = client.get(address).content.decode()
    assert "This depends on a question that was deleted." in text
    assert "${" not in text and "no item" not in text


def test_the_audience_of_a_check_is_remembered(staff, client):
    survey = draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    address = reverse("survey_check", args=[survey.pk])
    assert client.get(address).context["audience"] == "students"
    client.get(address, {"audience": "adults"})
    assert client.get(address).context["audience"] == "adults"
    assert client.get(address, {"audience": "dogs"}).context["audience"] == "adults"
    Survey.objects.filter(pk=survey.pk).update(title={"en": "For our teachers"})
    log_in(client, staff.state)
    assert client.get(address).context["audience"] == "adults"


def test_measures_of_an_edited_draft_stay_when_its_rows_change(staff, client):
    log_in(client, staff.dana)
    client.post(f"{NEW}template/", {"template": "students", "title": ""})
    draft = newest()
    before = measures_of(draft)
    address = reverse("survey_essential", args=[draft.pk, 1])
    form = client.get(address).context["form"]
    given = {name: form[name].value() or "" for name in form.fields}
    client.post(address, {**given, "label-en": "Renamed here"})
    name = draft.items.filter(kind="select_one").first().name
    set_label(draft, name, "Changed later")
    client.get(reverse("survey_detail", args=[draft.pk]))
    after = measures_of(draft)
    assert after["essentials"][0]["label"]["en"] == "Renamed here"
    assert after["measures"] == before["measures"]
    assert draft.items.get(name=name).label["en"] == "Changed later"


def test_a_draft_is_published_as_its_page_showed_it(staff, client):
    survey = draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    address = reverse("survey_publish", args=[survey.pk])
    set_label(survey, "pet", "Which animal?")
    for shown in ({"seen": "0"}, {}):
        refused = client.post(address, shown)
        assert refused.status_code == 409
        assert "was changed while this page was open" in refused.content.decode()
    client.post(address, {"seen": "1"})
    assert "Which animal?" in survey.published.get().definition


def test_a_file_does_not_replace_a_draft_that_was_edited(staff, client):
    survey = draft_of(district=staff.riverside)
    set_label(survey, "pet", "Which animal?")
    log_in(client, staff.dana)
    text = send(client, book()).content.decode()
    assert "was changed in the editor" in text and "new version" in text
    set_label(survey, "pet", "Still here?")
    assert Survey.objects.get() == survey


def test_a_file_replaces_a_draft_that_nobody_edited(staff, client):
    survey = draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    send(client, book())
    assert Survey.objects.get() != survey


def test_a_name_that_is_taken_in_the_same_moment_is_refused(staff, client, monkeypatch):
    def taken(**fields):
        raise IntegrityError

    monkeypatch.setattr(drafting.Survey.objects, "create", taken)
    log_in(client, staff.dana)
    reply = client.post(f"{NEW}empty/", {"title": "Pets", "language": "en"})
    assert "There is a survey pets, version 1, already" in reply.content.decode()


@pytest.mark.parametrize("count", [1, 3])
def test_list_costs_the_same_number_of_queries_for_any_number_of_changed_drafts(
    staff, client, count, django_assert_num_queries
):
    for number in range(count):
        draft = draft_of(version=str(number), district=staff.riverside)
        set_label(draft, "pet", "Which animal?")
    log_in(client, staff.dana)
    with django_assert_num_queries(5):
        response = client.get(reverse("survey_list"), {"sort": "-items"})
    assert response.content.decode().count("survey-row") == count
    assert {row.item_count for row in response.context["rows"]} == {None}
    client.get(reverse("survey_detail", args=[draft.pk]))
    rows = client.get(reverse("survey_list")).context["rows"]
    assert {row.pk: row.item_count for row in rows}[draft.pk] == 2


def test_a_title_that_another_survey_has_is_mentioned(staff, client):
    log_in(client, staff.state)
    form = {"title": "Our climate", "template": "students", "owner": "state"}
    reply = client.post(f"{NEW}template/", form, follow=True)
    assert "is called" not in reply.content.decode()
    first = newest()
    reply = client.post(
        f"{NEW}template/", {**form, "title": "our Climate "}, follow=True
    )
    warning = "Another survey is called “our Climate” too: version 1 (The state)."
    assert warning in reply.content.decode()
    second = newest()
    assert (
        warning in client.get(f"/console/surveys/{second.pk}/publish/").content.decode()
    )
    # Versions of one survey have one title; districts do not see each other's.
    client.post(
        f"/console/surveys/{first.pk}/new-version/", {"version": "2", "owner": "state"}
    )
    Survey.objects.filter(pk=second.pk).update(district=staff.lakeside)
    Survey.objects.filter(name=first.name).update(district=staff.riverside)
    log_in(client, staff.dana)
    page = client.get(f"/console/surveys/{newest().pk}/publish/").content.decode()
    assert "is called" not in page


def test_the_language_of_the_texts_is_no_language_of_a_translation():
    style = (BASE_DIR / "static/css/administration_forms.css").read_text()
    for code in starting.LANGUAGES:
        assert f'[name="translations"][value="{code}"]' in style


def test_what_a_workbook_warns_of_is_still_there_after_an_edit(staff, client):
    survey = draft_of(
        rows=[
            ["type", "name", "label::English (en)", "disabled"],
            ["text", "why", "Why?", ""],
            ["text", "when", "When?", "yes"],
        ],
        district=staff.riverside,
    )
    log_in(client, staff.dana)
    address = reverse("survey_check", args=[survey.pk])
    assert "The row is disabled: ignored." in client.get(address).content.decode()
    change_draft(
        survey,
        lambda book: commands.add_question(
            book, after=read_rows_of(survey).keys["why"], kind="text"
        ),
        action="add",
        by=staff.dana,
    )
    assert "The row is disabled: ignored." in client.get(address).content.decode()


def test_a_check_names_answers_without_a_text_in_the_first_language(staff, client):
    survey = draft_of(
        district=staff.riverside,
        rows=[
            ["type", "name", "label::English (en)", "label::Español (es)"],
            ["select_one pets", "pet", "Which pet?", "¿Qué mascota?"],
        ],
        choices=[
            ["list_name", "name", "label::English (en)", "label::Español (es)"],
            ["pets", "1", "Cat", "Gato"],
            ["pets", "2", "", "Perro"],
        ],
    )
    log_in(client, staff.dana)
    text = client.get(reverse("survey_check", args=[survey.pk])).content.decode()
    assert "Question 1 (page 1), option 2" in text
    assert "“Perro” has no English text, so people who read English see it" in text
