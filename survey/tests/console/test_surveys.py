"""The list of surveys, one survey, and what can be done to it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.permissions import Permissions
from accounts.tests.logging_in import log_in
from survey.fieldwork.administrations import (
    change_administration,
    open_administration,
    plan_of,
    surveys_to_offer,
)
from survey.instrument.definitions.ownership import (
    SurveyInUse,
    is_offerable,
    offerable_for,
    restore_survey,
    retire_survey,
    surveys_for,
)
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import (
    Administration,
    Retirement,
    Role,
    Survey,
    SurveyMeasures,
)
from survey.tests.workbooks import form

pytestmark = pytest.mark.django_db

ROWS = [
    ["type", "name", "label::English (en)", "label::Español (es)", "required"]
    + ["relevant", "constraint"],
    ["begin group", "pets_page", "Pets", "Mascotas", None, None, None],
    ["select_one pets", "pet", "Which pet?", "¿Qué mascota?", "yes", None, None],
    ["integer", "age", "Its age?", "¿Su edad?", None, "${pet} = 'cat'", ". < 30"],
    ["end group", None, None, None, None, None, None],
]
CHOICES = [
    ["list_name", "name", "label::English (en)", "label::Español (es)"],
    ["pets", "cat", "Cat", "Gato"],
    ["pets", "dog", "Dog", "Perro"],
]


def settings(name="pets", version="1"):
    return [
        ["form_title", "form_id", "version", "default_language"],
        ["About pets", name, version, "English (en)"],
    ]


def book(rows=ROWS, choices=CHOICES, **named) -> bytes:
    return form(rows, choices, settings(**named))


def draft_of(*, district=None, rows=ROWS, choices=CHOICES, corrects=None, **named):
    content = book(rows, choices, **named)
    reading = read_xlsform(content)
    assert reading.draft, reading.problems
    return import_survey(
        draft=reading.draft,
        source_name="pets.xlsx",
        source=content,
        district=district,
        corrects=corrects,
    )


def offered(published, name="spring", opens=-1, **fields):
    now = timezone.now()
    return open_administration(
        name=name,
        published=published,
        role=Role.STUDENT,
        opens_at=now + timedelta(days=opens),
        closes_at=now + timedelta(days=30),
        **fields,
    )


def test_survey_is_viewed_published_offered_and_retired(staff, client):
    survey = draft_of()
    log_in(client, staff.state)

    detail = client.get(reverse("survey_detail", args=[survey.pk]))
    text = detail.content.decode()
    assert "About pets" in text and "A draft." in text
    assert "Which pet?" in text and "1 page, 2 questions" in text
    variables = client.get(reverse("survey_variables", args=[survey.pk]))
    text = variables.content.decode()
    assert "Which pet?" in text and "Shown if <code>${pet} = &#x27;cat&#x27;" in text
    assert "1 page, 2 questions, 1 option set" in text

    asked = client.get(reverse("survey_publish", args=[survey.pk]))
    assert "A published version can’t be changed" in asked.content.decode()
    assert not Survey.objects.get().published_at
    done = client.post(reverse("survey_publish", args=[survey.pk]), {"seen": "0"})
    assert done["Location"] == reverse("survey_detail", args=[survey.pk])
    published = survey.published.get()
    html = client.get(reverse("survey_publish", args=[survey.pk])).content.decode()
    assert "is published." in html and "Publish version" not in html

    of_spring = reverse("administration_detail", args=[offered(published).pk])
    assert of_spring in client.get(done["Location"]).content.decode()
    variables = client.get(reverse("survey_variables", args=[survey.pk]))
    assert published.digest in variables.content.decode()
    client.post(reverse("survey_retire", args=[survey.pk]))
    assert Retirement.objects.get().by == staff.state
    assert "Retired" in client.get(done["Location"]).content.decode()
    assert not is_offerable(published)
    assert not offerable_for(Permissions(staff.state)).exists()
    client.post(reverse("survey_bring_back", args=[survey.pk]))
    assert is_offerable(published)

    assert list(
        AuditEntry.objects.order_by("pk").values_list("action", "by", "district_id")
    ) == [
        ("upload survey", "import_survey", None),
        ("publish survey", "state@example.org", None),
        ("retire survey", "state@example.org", None),
        ("bring back survey", "state@example.org", None),
    ]


def test_owners_may_use_the_same_name_and_version(staff):
    state, riverside, lakeside = (
        draft_of(district=district)
        for district in (None, staff.riverside, staff.lakeside)
    )
    assert {survey.name for survey in (state, riverside, lakeside)} == {"pets"}

    assert set(surveys_for(Permissions(staff.state))) == {state, riverside, lakeside}
    assert set(surveys_for(Permissions(staff.dana))) == {state, riverside}
    assert not surveys_for(Permissions(staff.chen))


def test_name_and_version_are_unique_per_owner(staff):
    for district in (None, staff.riverside):
        Survey.objects.create(name="x", version="1", district=district)
        with pytest.raises(IntegrityError), transaction.atomic():
            Survey.objects.create(name="x", version="1", district=district)


def test_survey_of_another_district_is_not_found(staff, client):
    theirs = draft_of(district=staff.lakeside)
    publish_survey(survey=theirs)
    routes = ["survey_detail", "survey_original", "survey_publish", "survey_retire"]
    routes += ["survey_bring_back", "survey_delete", "survey_correct"]
    routes += ["survey_correction", "survey_preview"]
    log_in(client, staff.dana)
    for route in routes:
        for method in (client.get, client.post):
            reply = method(reverse(route, args=[theirs.pk]))
            assert reply.status_code in (404, 405), route
    # There was something to find.
    log_in(client, staff.state)
    for route in routes:
        status = client.get(reverse(route, args=[theirs.pk])).status_code
        assert status == (404 if route == "survey_correction" else 200), route


@pytest.mark.parametrize("name", ["chen", "analyst", "sam"])
def test_staff_without_the_capability_find_no_surveys(staff, client, name):
    survey = draft_of(district=staff.riverside)
    log_in(client, getattr(staff, name))
    for route, args in (
        ("survey_list", []),
        ("survey_upload", []),
        ("survey_detail", [survey.pk]),
        ("survey_preview_take", [survey.pk, 1]),
        ("survey_preview_content", [survey.pk, 1, "en", 1]),
        ("survey_original", [survey.pk]),
    ):
        assert client.get(reverse(route, args=args)).status_code == 404


@pytest.mark.parametrize(
    "route", ["survey_publish", "survey_retire", "survey_delete", "survey_bring_back"]
)
def test_district_can_view_but_not_change_surveys_of_the_state(staff, client, route):
    survey = draft_of()
    log_in(client, staff.dana)
    detail = client.get(reverse("survey_detail", args=[survey.pk]))
    assert detail.status_code == 200
    assert reverse("survey_publish", args=[survey.pk]) not in detail.content.decode()
    for method in (client.get, client.post):
        assert method(reverse(route, args=[survey.pk])).status_code == 404
    assert Survey.objects.get().published_at is None


def test_original_workbook_is_downloaded_and_audited(staff, client):
    survey = draft_of(district=staff.riverside, name="a/b")
    log_in(client, staff.dana)
    response = client.get(reverse("survey_original", args=[survey.pk]))
    assert response.content == bytes(survey.source)
    assert response["Content-Disposition"] == 'attachment; filename="a-b 1.xlsx"'
    assert "no-store" in response["Cache-Control"]
    entry = AuditEntry.objects.get(action="download survey")
    assert (entry.by, entry.district_id) == ("dana@example.org", staff.riverside.pk)


def test_draft_is_deleted_after_confirmation(staff, client):
    survey = draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    address = reverse("survey_delete", args=[survey.pk])
    assert "This can’t be undone." in client.get(address).content.decode()
    assert Survey.objects.exists()
    assert client.post(address)["Location"] == reverse("survey_list")
    assert not Survey.objects.exists()
    entry = AuditEntry.objects.get(action="delete survey")
    assert entry.before == {"name": "pets", "version": "1"}


def test_published_survey_is_not_deleted(staff, client):
    survey = draft_of()
    publish_survey(survey=survey)
    log_in(client, staff.state)
    response = client.post(reverse("survey_delete", args=[survey.pk]))
    assert response.status_code == 409
    assert "is published and can’t be deleted" in response.content.decode()
    assert Survey.objects.filter(pk=survey.pk).exists()


def test_survey_of_a_planned_administration_is_not_retired(staff, client):
    survey = draft_of()
    offered(publish_survey(survey=survey), "next-spring", opens=10)
    log_in(client, staff.state)
    response = client.post(reverse("survey_retire", args=[survey.pk]))
    assert response.status_code == 409
    assert "next-spring" in response.content.decode()
    assert not Retirement.objects.exists()


def test_draft_is_not_retired(staff):
    with pytest.raises(SurveyInUse, match="Delete it instead"):
        retire_survey(survey=draft_of(), by=staff.state)


def test_invalid_draft_is_not_published(staff, client):
    survey = draft_of()
    survey.items.filter(name="pet").update(rules={"required": ["$", "gone"]})
    log_in(client, staff.state)
    text = client.get(reverse("survey_detail", args=[survey.pk])).content.decode()
    assert "This draft cannot be published yet: pet: required reads gone" in text
    address = reverse("survey_publish", args=[survey.pk])
    response = client.post(address, {"seen": "0"})
    assert response.status_code == 409
    assert "reads gone" in response.content.decode()


def test_survey_page_lists_only_administrations_of_the_users_district(staff, client):
    survey = draft_of()
    published = publish_survey(survey=survey)
    ours, theirs = (
        reverse("administration_detail", args=[offered(published, name, district=d).pk])
        for name, d in (("ours", staff.riverside), ("theirs", staff.lakeside))
    )
    log_in(client, staff.dana)
    text = client.get(reverse("survey_detail", args=[survey.pk])).content.decode()
    assert ours in text and theirs not in text
    listed = client.get(reverse("survey_list")).content.decode()
    assert '<td class="number">1</td>' in listed
    log_in(client, staff.state)
    listed = client.get(reverse("survey_list")).content.decode()
    assert '<td class="number">2</td>' in listed


def test_retired_surveys_and_those_of_others_cannot_be_offered(staff):
    states, ours, theirs = (
        publish_survey(survey=draft_of(district=district))
        for district in (None, staff.riverside, staff.lakeside)
    )
    assert set(surveys_to_offer(Permissions(staff.dana))) == {states, ours}
    assert not surveys_to_offer(Permissions(staff.chen))
    with pytest.raises(ValidationError, match="no such survey"):
        offered(theirs, district=staff.riverside)
    retire_survey(survey=states.survey, by=staff.state)
    assert set(surveys_to_offer(Permissions(staff.dana))) == {ours}
    with pytest.raises(ValidationError, match="is retired"):
        offered(states)
    assert not Administration.objects.exists()
    # The twin: not retired and of the same owner.
    assert offered(ours, district=staff.riverside)
    assert offered(theirs, "states")


def test_planned_administration_cannot_change_to_a_retired_survey(staff):
    administration = offered(publish_survey(survey=draft_of()), opens=5)
    second = publish_survey(survey=draft_of(version="2"))
    retire_survey(survey=second.survey, by=staff.state)
    plan = replace(plan_of(administration), published=second)
    with pytest.raises(ValidationError, match="is retired"):
        change_administration(
            administration=administration, to=plan, seen=None, by=staff.state
        )
    restore_survey(survey=second.survey, by=staff.state)
    change_administration(
        administration=administration, to=plan, seen=None, by=staff.state
    )
    administration.refresh_from_db()
    assert administration.published == second


@pytest.mark.parametrize("count", [1, 3])
def test_list_costs_the_same_number_of_queries_for_any_number_of_surveys(
    staff, client, count, django_assert_num_queries
):
    for number in range(count):
        publish_survey(survey=draft_of(version=str(number), district=staff.riverside))
    log_in(client, staff.dana)
    # The number of rows, and the rows.
    with django_assert_num_queries(5):
        response = client.get(reverse("survey_list"))
    assert response.content.decode().count("survey-row") == count


@pytest.mark.parametrize("count", [1, 3])
def test_survey_page_costs_the_same_number_of_queries_for_any_size(
    staff, client, count, django_assert_num_queries
):
    rows = [ROWS[0]]
    for number in range(count):
        rows += [
            ["begin group", f"page{number}", "P", "P", None, None, None],
            ["select_one pets", f"pet{number}", "A", "A", None, None, None],
            ["end group", None, None, None, None, None, None],
        ]
    survey = draft_of(rows=rows)
    published = publish_survey(survey=survey)
    for number in range(count):
        offered(published, f"spring-{number}")
    log_in(client, staff.state)
    with django_assert_num_queries(10):
        response = client.get(reverse("survey_detail", args=[survey.pk]))
    assert len(response.context["pages"]) == count
    with django_assert_num_queries(11):
        response = client.get(reverse("survey_variables", args=[survey.pk]))
    assert response.content.decode().count("Page ") >= count


def test_a_survey_is_read_page_by_page_as_respondents_see_it(staff, client):
    rows = [ROWS[0]]
    for number in (1, 2, 3):
        rows += [
            ["begin group", f"page{number}", f"P{number}", None, None, None, None],
            ["select_one pets", f"pet{number}", f"Ask {number}", "A", None, None, None],
            ["end group", None, None, None, None, None, None],
        ]
    survey = draft_of(rows=rows)
    log_in(client, staff.state)
    address = reverse("survey_detail", args=[survey.pk])

    def shown(**query: object) -> list[str]:
        text = client.get(address, query).content.decode()
        return re.findall(r"Ask \d", text)

    # A draft too, one page at a time, with its options.
    assert shown() == ["Ask 1"]
    assert shown(page=2) == ["Ask 2"]
    for page, expected in ((0, "Ask 1"), (99, "Ask 3"), ("9" * 50, "Ask 1")):
        assert shown(page=page) == [expected]
    assert shown(page="<x>", language="<x>") == ["Ask 1"]
    text = client.get(address, {"page": 2}).content.decode()
    assert "Page 2 of 3" in text
    assert text.count('aria-current="page">2') == 1
    assert "Previous page" in text and "Next page" in text
    assert "Next page" not in client.get(address, {"page": 3}).content.decode()
    publish_survey(survey=survey)
    assert shown(page=3) == ["Ask 3"]


def test_a_survey_without_questions_says_what_is_missing(staff, client):
    survey = Survey.objects.create(name="empty", version="1")
    log_in(client, staff.state)
    page = client.get(reverse("survey_detail", args=[survey.pk]))
    assert page.status_code == 200
    assert "page" not in page.context
    assert "cannot be published yet" in page.content.decode()
    variables = client.get(reverse("survey_variables", args=[survey.pk]))
    assert variables.status_code == 200


def test_list_is_searched_and_sorted(staff, client):
    cases = [
        {"q": "PETS"},
        {"q": "about"},
        {"q": "river"},
        {"sort": "state"},
        {"sort": "-offered"},
        {"sort": "owner", "page": "99"},
        {"sort": "nonsense", "page": "x"},
    ]
    draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    for query in cases:
        page = client.get(reverse("survey_list"), query)
        assert "survey-row" in page.content.decode(), query


def test_invalid_search_finds_nothing(staff, client):
    draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    for query in ("zebra", "\x00", "%", "'\"<b>", "x" * 5000):
        response = client.get(reverse("survey_list"), {"q": query})
        assert response.status_code == 200, query
        assert b"<b>" not in response.content


def test_number_larger_than_any_key_is_not_found(staff, client):
    log_in(client, staff.state)
    for route in ("survey_detail", "survey_uploaded"):
        address = reverse(route, args=[10**30])
        assert client.get(address).status_code == 404


def test_commands_accept_the_owner(staff, tmp_path, capsys):
    from django.core.management import CommandError, call_command

    file = tmp_path / "pets.xlsx"
    file.write_bytes(book())
    call_command("import_survey", str(file), "--json", "--district", "riverside")
    assert json.loads(capsys.readouterr().out)["imported"]
    assert Survey.objects.get().district == staff.riverside
    with pytest.raises(CommandError, match="no survey"):
        call_command("publish_survey", "pets")
    call_command("publish_survey", "pets", "--district", "riverside")
    assert Survey.objects.get().published_at
    for command in (["import_survey", str(file)], ["publish_survey", "pets"]):
        with pytest.raises(CommandError, match="No district has the code atlantis"):
            call_command(*command, "--district", "atlantis")


def test_the_preview_of_a_survey_lists_its_measures(client, staff):
    measure = {"name": "trust", "label": {"en": "Trust"}, "description": {}}
    measure |= {"essential": "safe", "direction": "negative", "missing": ["dog"]}
    measure["items"] = [{"name": "pet", "reversed": True}]
    safe = {"name": "safe", "label": {"en": "Safe school"}, "description": {}}
    survey = draft_of()
    SurveyMeasures.objects.create(
        survey=survey, content={"essentials": [safe], "measures": [measure]}
    )
    log_in(client, staff.state)
    page = client.get(f"/console/surveys/{survey.pk}/preview/").content.decode()
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "Trust Safe school, 1 question Which pet? (reversed)" in text
    assert "A high score is unfavorable." in text
    assert "Counts as not answered: dog" in text
