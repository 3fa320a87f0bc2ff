"""Export to each format, and read the files with other libraries."""

# Fixtures are imported, and then arguments of the same name.
# ruff: noqa: F811

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import openpyxl
import polars
import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from reports.models import Export
from reports.tests.exports.conftest import (  # noqa: F401
    SKIP,
    answer,
    empty_caches,
    enrol,
    fall,
    identify,
    requested,
    spring,
    with_release,
)
from survey.models import Administration, Job, Response
from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.menus import navigate

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
SCREENS = [{"viewport": LAPTOP}, PHONE]


@pytest.fixture
def answered(transactional_db, staff, fall, spring, enrol):
    for number, school in enumerate((staff.lincoln, staff.washington, staff.roosevelt)):
        for administration in (fall, spring):
            answers = {"safe": "1", "pets": "cat", "age": str(9 + number)}
            person = enrol(administration, school, completed_at=timezone.now())
            answer(person, {**answers, "comment": SKIP, "last": "=fine"})
    with_release(fall, spring)
    return fall, spring


def check_round(page: Page, administration: Administration) -> None:
    page.locator(f"[name=administrations][value='{administration.pk}']").check()


def create_export(page: Page, *administrations, **choices: str) -> None:
    page.goto("/console/")
    navigate(page, "Surveys", "Exports")
    page.get_by_role("link", name="New export").first.click()
    for administration in administrations:
        check_round(page, administration)
    for label in choices.values():
        page.get_by_label("File type").select_option(label)
    expect(page.locator("#export-size")).to_contain_text("respondents")
    page.get_by_role("button", name="Create export").click()
    expect(page.get_by_role("link", name="Download the file")).to_be_visible()


def downloaded(page: Page, link: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.get_by_role("link", name=link).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_other_libraries_read_each_format(at_screen, staff, answered, tmp_path):
    page = at_screen(staff.dana)
    people = 4

    create_export(page, *answered)
    wide = downloaded(page, "Download the file", tmp_path)
    checksum = page.locator(".checksum").text_content()
    assert checksum == hashlib.sha256(wide.read_bytes()).hexdigest()
    frame = polars.read_csv(wide)
    assert frame.height == people
    assert sorted(frame["age"].to_list()) == [9, 9, 10, 10]
    assert set(frame["comment"]) == {-98}
    assert set(frame["last"]) == {"'=fine"}
    codebook = downloaded(page, "Download the codebook", tmp_path).read_text()
    assert "How is lunch?" in codebook

    create_export(page, *answered, format="CSV, one row for each answer")
    long = downloaded(page, "Download the file", tmp_path)
    with long.open(newline="") as file:
        rows = list(csv.DictReader(file))
    schools = (staff.lincoln, staff.washington)
    stored = Response.objects.filter(
        respondent_id__in=[
            respondent.pk
            for school in schools
            for respondent in school.respondents.all()
        ]
    )
    assert len(rows) == stored.count() == 5 * people

    create_export(page, *answered, format="Excel, one row for each respondent")
    sheet = openpyxl.load_workbook(downloaded(page, "Download the file", tmp_path))
    assert sheet["Responses"].max_row == people + 1


def test_schools_are_those_of_the_chosen_district(at_screen, staff, answered):
    page = at_screen(staff.state)
    page.goto("/console/exports/new/")
    check_round(page, answered[0])
    expect(page.locator("#export-size")).to_contain_text("3 respondents")
    page.get_by_label("District (optional)").select_option("Lakeside")
    expect(page.locator("#export-size")).to_contain_text("1 respondent")
    page.get_by_label("School (optional)").select_option("Roosevelt")
    page.get_by_role("button", name="Create export").click()
    expect(page.locator(".facts")).to_contain_text("Roosevelt")


def test_export_pages_are_accessible(at_screen, staff, answered, tmp_path):
    page = at_screen(staff.dana, **PHONE)

    def check_page(sight: str) -> None:
        assert (sight, violations_on(page, SCREENS)) == (sight, [])

    page.goto("/console/exports/")
    check_page("no export yet")
    page.goto("/console/exports/new/")
    check_page("the form")
    page.get_by_role("checkbox", name="Include names").check()
    page.get_by_role("button", name="Create export").click()
    check_page("the form, with errors")
    create_export(page, answered[0])
    check_page("ready")
    codebook = downloaded(page, "Download the codebook", tmp_path)
    running = requested(staff.dana, answered[0])
    Job.objects.filter(pk=running.job_id).update(
        state="running", message="Reading the responses.", done=300, total=900
    )
    page.goto(f"/console/exports/{running.pk}/")
    check_page("being made")
    page.goto("/console/exports/")
    check_page("the list")
    page.goto(codebook.as_uri())
    check_page("the codebook")


def test_the_page_of_a_running_export_updates_itself(at_screen, staff, answered):
    export = requested(staff.dana, answered[0])
    page = at_screen(staff.dana)
    page.goto(f"/console/exports/{export.pk}/")
    expect(page.locator(".job")).to_contain_text("Waiting")
    Job.objects.filter(pk=export.job_id).update(
        state="failed", message="The disk is full.", ended_at=timezone.now()
    )
    expect(page.locator(".job")).to_contain_text("The disk is full.")
    expect(page.get_by_role("link", name="Create a new export")).to_be_visible()
    assert not Export.objects.exclude(file_name="").exists()


def test_a_refused_export_leads_to_its_errors(at_screen, staff, answered):
    page = at_screen(staff.dana)
    page.goto("/console/exports/new/")
    page.get_by_role("button", name="Create export").click()
    summary = page.locator(".error-summary")
    expect(summary).to_be_focused()
    expect(summary).to_be_in_viewport()
    summary.get_by_role("link").first.click()
    expect(page.get_by_role("checkbox").first).to_be_focused()


@pytest.fixture
def joinable(answered):
    """Let the same people be in both waves, with one ID in each."""
    for administration in answered:
        administration.joins_waves = True
        administration.save(update_fields=["joins_waves"])
        for person in administration.respondents.select_related("school"):
            identify(person, external_id=f"S-{person.school.code}")
    return answered


def test_two_waves_are_in_one_file_after_six_clicks(
    at_screen, staff, joinable, tmp_path
):
    page = at_screen(staff.dana, **PHONE)
    page.goto("/console/")
    navigate(page, "Surveys", "Exports")
    page.get_by_role("link", name="Join seasons (panel)").click()
    # The script counts after each tick.
    page.wait_for_load_state()
    for box in page.locator("[name=administrations]").all():
        box.check()
    expect(page.locator("#export-size")).to_contain_text("can be followed")
    assert violations_on(page, SCREENS) == []
    page.get_by_role("button", name="Create export").click()
    expect(page.get_by_role("link", name="Download the file")).to_be_visible()
    assert violations_on(page, SCREENS) == []
    frame = polars.read_csv(downloaded(page, "Download the file", tmp_path))
    assert frame.height == 4
    waves = frame.group_by("panel_id").agg(polars.col("administration").n_unique())
    assert waves["administration"].to_list() == [2, 2]
    page.locator("summary", has_text="More actions").click()
    table = polars.read_csv(downloaded(page, "Codebook as CSV", tmp_path))
    assert table["column"][0] == "panel_id"
