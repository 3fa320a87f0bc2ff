"""The table of scores and a school's report in a browser."""

from __future__ import annotations

import pypdfium2
import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import expect

from accounts.tests.logging_in import log_in
from reports.models import Calibration, ResultsRollUp, SchoolRate
from reports.school_report.pdf import NoPdf
from reports.tests.console.scores.conftest import (  # noqa: F401
    answered,
    fall,
    scored,
    survey,
)
from reports.tests.scores.conftest import closed
from settings.tests.patience import patience
from survey.tests.browser.accessibility import scrolls_sideways, violations

pytestmark = pytest.mark.django_db(transaction=True)
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
# A line without length has no box that could be clicked.
MIDDLE_OF_POINT = """one => {
  one.scrollIntoView({ block: "center" });
  const { x, y } = one.getPointAtLength(0).matrixTransform(one.getScreenCTM());
  return [x, y];
}"""


def test_a_school_is_found_and_its_report_read(at_screen, staff, fall):  # noqa: F811
    page = at_screen(staff.state)
    page.goto(f"/console/results/{fall.pk}/scores/")
    schools = page.locator(".heat tbody tr:not(.around) th")
    page.get_by_role("link", name="All measures").click()
    page.locator("thead").get_by_role("link", name="Trust").click()
    expect(schools).to_have_text(["Roosevelt", "Lincoln", "Washington"])
    assert violations(page) == []
    page.get_by_label("School", exact=True).fill("linc")
    page.get_by_role("button", name="Search").click()
    expect(schools).to_have_text(["Lincoln"])
    page.get_by_role("link", name="Lincoln").click()
    expect(page.get_by_text("How to read this report")).to_be_visible()
    expect(page.get_by_text("60 of 60 finished")).to_be_visible()
    assert violations(page) == []

    phone = at_screen(staff.state, **PHONE)
    for path in (
        *("scores/", "scores/?show=all&q=linc", "", "?questions=theme.safe"),
        *(f"?school={staff.lincoln.pk}", f"schools/{staff.lincoln.pk}/?language=es"),
    ):
        phone.goto(f"/console/results/{fall.pk}/{path}")
        assert violations(phone) == []
        assert not scrolls_sideways(phone)


def test_a_coordinator_reads_and_prints_the_report(at_screen, staff, fall):  # noqa: F811
    ResultsRollUp.objects.update(shared_at=timezone.now())
    page = at_screen(staff.chen)
    page.goto("/console/results/")
    page.get_by_role("link", name=fall.title).click()
    page.get_by_role("link", name="School report").click()
    expect(page.get_by_text("60 of 60 finished")).to_be_visible()
    document = pypdfium2.PdfDocument(page.pdf(format="Letter"))
    printed = "".join(
        printed_page.get_textpage().get_text_bounded() for printed_page in document
    )
    for text in ("Lincoln", "Safe school", "points of 99", "±", "95 % interval"):
        assert text in printed
    # Buttons, menus and links to other languages are no part of a report.
    for text in ("Download PDF", "Response rates", "Español", "Spanish"):
        assert text not in printed
    with page.expect_download() as download:
        page.get_by_role("link", name="Download PDF").click()
    assert download.value.path().read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_without_a_pdf_is_accessible(
    at_screen,
    staff,
    fall,  # noqa: F811
    monkeypatch,
    scheme,
):
    def fail(*arguments):
        raise NoPdf

    monkeypatch.setattr("reports.console.scores.views.pdf_files", fail)
    address = f"/console/results/{fall.pk}/schools/{staff.lincoln.pk}/"
    client = Client()
    log_in(client, staff.state)
    response = client.get(f"{address}report.pdf")
    assert response.status_code == 503
    page = at_screen(staff.state, **{**PHONE, "color_scheme": scheme})
    # The program fails in this process, and not in that of the server.
    page.route(
        "**/report.pdf",
        lambda route: route.fulfill(
            status=503, body=response.text, content_type="text/html"
        ),
    )
    page.goto(f"{address}report.pdf")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "The PDF could not be made"
    )
    assert violations(page) == []
    assert not scrolls_sideways(page)
    # Without figures, there is nothing to make one of.
    SchoolRate.objects.filter(school=staff.lincoln).update(finished=20)
    ResultsRollUp.objects.update(shared_at=timezone.now())
    page = at_screen(staff.chen, **{**PHONE, "color_scheme": scheme})
    page.goto(address)
    expect(page.locator(".empty")).to_be_visible()
    expect(page.get_by_role("link", name="Download PDF")).to_have_count(0)
    assert violations(page) == []
    assert not scrolls_sideways(page)


def test_an_analyst_compares_two_waves_and_downloads_the_table(
    at_screen,
    staff,
    survey,  # noqa: F811
    fall,  # noqa: F811
):
    spring = closed(survey, "spring-2027")
    answered(spring, staff.lincoln, 60, 7, shift=1.5)
    scored(spring)
    # Schools that differ by more than chance have bands.
    Calibration.objects.update(schools_deviation=1.0)
    page = at_screen(staff.analyst)
    page.goto(f"/console/results/{spring.pk}/scores/")
    page.get_by_role("link", name="Changes since an earlier season").click()
    page.get_by_label("Measure").select_option("Trust")
    expect(page.get_by_text("1 of 1 school changed more than chance")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    assert "Riverside,Lincoln,lincoln,trust" in text
    assert violations(page) == []
    page.get_by_role("link", name="1 school from").click()
    expect(page.get_by_role("link", name="Show schools of all bands")).to_be_visible()
    # Small and dark.
    page.set_viewport_size(PHONE["viewport"])
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []
    assert not scrolls_sideways(page)
    page.get_by_role("link", name="Response rate and score").click()
    expect(page.locator(".scatter a")).to_have_count(1)
    assert violations(page) == []
    assert not scrolls_sideways(page)
    # Each point leads to the report of its school.
    page.mouse.click(*page.locator(".scatter a path").evaluate(MIDDLE_OF_POINT))
    expect(page.get_by_role("heading", level=1)).to_have_text("Lincoln")


def test_reports_of_all_schools_are_ordered(at_screen, staff, fall):  # noqa: F811
    page = at_screen(staff.dana)
    page.goto(f"/console/results/{fall.pk}/scores/")
    page.get_by_role("link", name="Reports of all schools").click()
    page.get_by_label("Language of the reports").select_option("es")
    assert violations(page) == []
    page.get_by_role("button", name="Make the ZIP file").click()
    # This server runs a job within the request.
    link = page.get_by_role("link", name="Download the ZIP file")
    expect(link).to_be_visible(timeout=patience(15) * 1000)
    assert violations(page) == []
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "reports-fall-2026-riverside-es.zip"

    phone = at_screen(staff.dana, **PHONE)
    phone.goto(f"/console/results/{fall.pk}/reports/")
    assert violations(phone) == []
    assert not scrolls_sideways(phone)


def test_an_item_that_drifted_is_released(at_screen, staff, survey, fall):  # noqa: F811
    spring = closed(survey, "spring-2027")
    for n, school in enumerate((staff.lincoln, staff.roosevelt)):
        answered(spring, school, 250, 5 + n, moved={"q2": 1.2})
    scored(spring)
    page = at_screen(staff.state)
    page.goto(f"/console/results/{spring.pk}/scores/")
    page.get_by_role("link", name="Quality of measures").click()
    row = page.get_by_role("row", name="Question <2>")
    expect(row.get_by_text("drifted")).to_be_visible()
    page.get_by_text("How to read this page").click()
    assert violations(page) == []
    row.get_by_role("link", name="Release q2").click()
    expect(page.get_by_text("All scores of this season")).to_be_visible()
    assert violations(page) == []
    page.get_by_label("Reason").fill("Reworded in spring")
    page.get_by_role("button", name="Release item").click()
    # This server runs a job within the request.
    state = row.get_by_role("cell", name="Reworded in spring")
    expect(state).to_contain_text("released", timeout=patience(15) * 1000)
    expect(page.get_by_text("q2 has been released")).to_be_visible()
    assert violations(page) == []
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    assert "trust,q2,Question <2>,released,,Reworded in spring" in text

    phone = at_screen(staff.state, **PHONE)
    for path in ("", "trust/q2/"):
        phone.goto(f"/console/results/{spring.pk}/scores/quality/{path}")
        assert violations(phone) == []
        assert not scrolls_sideways(phone)
    phone.get_by_label("Reason").fill("It was the same question")
    phone.get_by_role("button", name="Anchor item again").click()
    expect(phone.get_by_role("link", name="Release q2")).to_be_visible()
