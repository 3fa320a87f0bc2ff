"""The page for a panel export: from the home page to a file in a few clicks."""

from __future__ import annotations

import html
import re

import pytest
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.console.exports import forms, panel_form
from reports.models import Export, PanelProject
from reports.tests.exports.conftest import (
    answer,
    identify,
    opened,
    with_release,
)
from reports.tests.exports.test_formats import rows_of
from survey.models import Administration, Role

pytestmark = pytest.mark.django_db

ADDRESS = "/console/exports/panel/"


@pytest.fixture
def waves(staff, fall, spring, enrol) -> list[Administration]:
    """Six people took both waves, and one more the second one."""
    for number, administration in enumerate((fall, spring)):
        administration.joins_waves = True
        administration.save(update_fields=["joins_waves"])
        for person in range(6 + number):
            row = enrol(administration, staff.lincoln)
            identify(row, external_id=f"S{person}")
            answer(row, {"age": str(10 * person + number)})
    return [fall, spring]


@pytest.fixture
def submit(client, django_capture_on_commit_callbacks):
    """Submit the form and run the job; first make releases, if it needs them."""

    def submitted(user, *administrations, **choices):
        with_release(*administrations)
        log_in(client, user)
        given = {"format": "wide", "language": "en", **choices}
        given["administrations"] = [
            administration.pk for administration in administrations
        ]
        with django_capture_on_commit_callbacks(execute=True):
            return client.post(ADDRESS, given)

    return submitted


def ticked(page: str) -> set[str]:
    boxes = re.findall(r'<input[^>]*name="administrations"[^>]*>', page)
    return {re.search('value="([0-9]+)"', box)[1] for box in boxes if " checked" in box}


def shown(client, user, **given) -> str:
    with_release(
        *Administration.objects.filter(pk__in=given.get("administrations", ()))
    )
    log_in(client, user)
    headers = {"HX-Request": "true"} if given else {}
    page = client.get(ADDRESS, given, headers=headers).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def test_two_waves_are_one_file_after_three_clicks(staff, waves, client, submit):
    log_in(client, staff.analyst)
    assert ADDRESS in client.get(reverse("export_list")).content.decode()
    page = client.get(f"{ADDRESS}?administrations={waves[0].pk}").content.decode()
    # The other waves are ticked as well.
    assert ticked(page) == {str(wave.pk) for wave in waves}
    assert 'name="identities"' not in page and 'value="long"' not in page

    response = submit(staff.analyst, *waves)
    export = Export.objects.get()
    assert response["Location"] == reverse("export_detail", args=[export.pk])
    assert (export.is_panel, export.rows, export.joined_people) == (True, 13, 6)
    assert len({row["panel_id"] for row in rows_of(export)}) == 7
    page = client.get(response["Location"]).content.decode()
    assert "People in several survey rounds" in page
    assert "13, plus the header" in page and "7, each with one random ID" in page
    assert "Number of respondents" not in page and "for each respondent" not in page
    assert "the same in all survey rounds of this file" in page
    assert f"fall-spring-panel-{export.pk}.csv" in page
    entry = AuditEntry.objects.get(action="ask for export")
    assert entry.after["panel"] == "IDs of this file"


def test_the_page_says_how_many_people_took_part_in_several(staff, waves, client):
    keys = [wave.pk for wave in waves]
    page = shown(client, staff.analyst, administrations=keys, format="wide")
    assert "13 rows" in page and "respondents" not in page
    assert "At least 6 people took part in several" in page
    page = shown(client, staff.analyst, administrations=keys[:1], format="wide")
    assert "Choose at least two survey rounds to see the size." in page
    # A few could be recognised.
    gone = waves[0].respondents.order_by("pk")[:2]
    for person in gone:
        person.identity.delete()
    page = shown(client, staff.analyst, administrations=keys, format="wide")
    assert "Fewer than 5 people took part in several" in page


def test_very_many_people_are_not_counted_while_the_page_waits(
    staff, waves, client, monkeypatch
):
    monkeypatch.setattr(panel_form, "MOST_COUNTED", 12)
    keys = [wave.pk for wave in waves]
    page = shown(client, staff.analyst, administrations=keys, format="wide")
    assert "are counted when the file is made" in page


def test_administrations_that_promised_otherwise_are_refused_with_the_reason(
    staff, waves, client, submit
):
    other_wave = opened(waves[0].published, "other")
    page = shown(client, staff.analyst)
    assert "Survey rounds that can't be joined (1)" in page
    assert "(other) have been promised that their answers are not joined" in page
    refused = submit(staff.analyst, *waves, other_wave).content.decode()
    assert "(other) have been promised" in refused
    assert not Export.objects.exists()


def test_without_waves_to_join_the_page_says_so(staff, fall, client):
    page = shown(client, staff.analyst)
    assert "There are no seasons to join yet." in page


def test_one_administration_is_no_panel(staff, waves, submit):
    page = submit(staff.analyst, waves[0]).content.decode()
    assert "Choose at least two survey rounds." in page
    page = submit(staff.analyst).content.decode()
    assert "Choose at least one survey round." in page
    page = submit(staff.analyst, *waves, format="long").content.decode()
    assert "Select a valid choice" in page
    assert not Export.objects.exists()


def test_a_number_too_long_for_a_key_is_refused(staff, waves, client):
    log_in(client, staff.analyst)
    for digits in (18, 19, 40):
        given = {"administrations": ["9" * digits], "format": "wide", "language": "en"}
        page = client.post(ADDRESS, given).content.decode()
        assert "Select a valid choice" in page


def test_names_cannot_be_asked_for(staff, waves, submit):
    submit(staff.dana, *waves, identities="on", reason="By order of the board.")
    export = Export.objects.get()
    assert (export.identities, export.reason) == (False, "")
    assert "given_name" not in rows_of(export)[0]


def test_files_of_a_project_are_about_the_same_people(staff, waves, submit):
    district = {"district": staff.riverside.pk}
    submit(staff.state, *waves, project="Study", **district)
    submit(staff.state, *waves, project="study", **district)
    first_export, second_export = Export.objects.order_by("pk")
    assert first_export.project == second_export.project == PanelProject.objects.get()
    first, second = (
        {row["age"]: row["panel_id"] for row in rows_of(e)}
        for e in (first_export, second_export)
    )
    assert first == second
    for changed in ({}, {**district, "school": staff.lincoln.pk}):
        page = submit(staff.state, *waves, project="Study", **changed)
        assert "Earlier files of Study are about other schools" in page.content.decode()
    page = submit(staff.state, *waves, project="Study", finished_only="1", **district)
    assert page.status_code == 200
    # Another user's project of this name is another one.
    submit(staff.dana, *waves, project="Study")
    assert PanelProject.objects.count() == 2
    entry = AuditEntry.objects.filter(action="ask for export").latest("pk")
    assert entry.after["panel"] == "Study"


def test_small_numbers_are_refused_in_each_wave(staff, waves, submit):
    Administration.objects.filter(pk=waves[0].pk).update(minimum_group=7)
    page = submit(staff.analyst, *waves).content.decode()
    assert "fewer than 7 people" in page
    assert not Export.objects.exists()


def test_only_visible_administrations_are_offered(staff, waves, client):
    log_in(client, staff.chen)
    assert client.get(ADDRESS).status_code == 404
    assert client.post(ADDRESS, {}).status_code == 404


def test_different_audiences_are_not_chosen_together(staff, waves, client):
    teachers = opened(waves[0].published, "teachers", Role.TEACHER)
    teachers.joins_waves = True
    teachers.save(update_fields=["joins_waves"])
    log_in(client, staff.analyst)
    assert ticked(client.get(ADDRESS).content.decode()) == set()
    page = client.get(f"{ADDRESS}?administrations={teachers.pk}").content.decode()
    assert ticked(page) == {str(teachers.pk)}
    page = client.get(f"{ADDRESS}?administrations={waves[1].pk}").content.decode()
    assert ticked(page) == {str(wave.pk) for wave in waves}


def test_what_was_chosen_for_an_export_is_chosen_for_a_panel(staff, waves, client):
    third = opened(waves[0].published, "third")
    third.joins_waves = True
    third.save(update_fields=["joins_waves"])
    log_in(client, staff.analyst)
    for chosen in (waves[:1], waves):
        keys = [administration.pk for administration in chosen]
        page = client.get(
            reverse("export_new"),
            {"administrations": keys, "format": "wide"},
            headers={"HX-Request": "true"},
        ).content.decode()
        address = "&amp;".join(f"administrations={key}" for key in keys)
        assert f'href="{ADDRESS}?{address}"' in page
    page = client.get(html.unescape(f"{ADDRESS}?{address}")).content.decode()
    assert ticked(page) == {str(wave.pk) for wave in waves}
    detail = reverse("administration_detail", args=[third.pk])
    page = client.get(detail).content.decode()
    assert f'href="{ADDRESS}?administrations={third.pk}"' in page


def test_the_page_needs_as_many_queries_for_four_administrations(
    staff, waves, client, django_assert_num_queries
):
    log_in(client, staff.analyst)
    for names in ([], ["third", "fourth"]):
        for name in names:
            administration = opened(waves[0].published, name)
            administration.joins_waves = True
            administration.save(update_fields=["joins_waves"])
        with django_assert_num_queries(7):
            client.get(ADDRESS)


def test_the_largest_excel_sheet_is_checked_as_well(staff, waves, submit, monkeypatch):
    monkeypatch.setattr(forms, "MOST_ROWS", 4)
    assert "Choose CSV" in submit(staff.analyst, *waves, format="xlsx").content.decode()


def test_files_of_a_project_have_the_same_rounds(staff, waves, submit):
    third = opened(waves[0].published, "third")
    third.joins_waves = True
    third.save(update_fields=["joins_waves"])
    submit(staff.state, *waves, project="Study")
    submit(staff.state, *waves, project="Study")
    assert Export.objects.count() == 2
    refused = submit(staff.state, *waves, third, project="Study").content.decode()
    assert "the survey rounds of its first file, and no others: fall, spring." in (
        refused
    )
    assert Export.objects.count() == 2
    submit(staff.state, *waves, third, project="Study of three")
    assert Export.objects.count() == 3
