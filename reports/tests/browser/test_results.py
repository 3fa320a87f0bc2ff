"""An analyst reads results, and a coordinator those that are shared."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from reports.models import SchoolRate
from reports.releases.rollup import roll_up_results
from reports.tests.exports.conftest import answer, enrol, fall  # noqa: F401
from survey.tests.browser.accessibility import scrolls_sideways, violations

pytestmark = pytest.mark.django_db(transaction=True)
PHONE = {"viewport": {"width": 390, "height": 844}}


@pytest.fixture
def closed(transactional_db, staff, fall, enrol):  # noqa: F811
    """Count a large school, and one with a single person in grade 08."""
    people = [(staff.lincoln, grade, n) for grade in ("07", "08") for n in range(12)]
    people += [(staff.washington, "07", n) for n in range(4)]
    people += [(staff.washington, "08", 0)]
    for school, grade, n in people:
        given = {"safe": ("1", "2")[n % 2], "age": str(9 + n % 5), "pets": "cat"}
        answer(enrol(fall, school, grade=grade), given)
    fall.minimum_group = 3
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.save()
    SchoolRate.objects.create(
        administration=fall,
        school=staff.lincoln,
        district=staff.riverside,
        eligible=30,
        started=24,
        finished=24,
        at_opening=30,
    )
    roll_up_results(fall, release=True)
    return fall


def test_an_analyst_chooses_a_place_and_a_group(at_screen, staff, closed):
    page = at_screen(staff.analyst)
    page.goto("/console/results/")
    page.get_by_role("link", name=closed.title).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Riverside")
    expect(page.get_by_text("29 people answered")).to_be_visible()
    safe = page.get_by_role("region", name="I am safe.").first
    expect(safe).to_contain_text("The most frequent answer is")
    page.get_by_role("combobox", name="School").select_option("Washington")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Washington")
    page.get_by_label("Group").select_option(label="Grade: 8 *")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Hidden: with so few people")).to_be_visible()
    assert "group=grade" in page.url
    page.get_by_role("combobox", name="School").select_option("All schools")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Not included: the people of schools")).to_be_visible()
    for figures in page.locator("details.figures").all():
        figures.evaluate("one => one.open = true")
    assert violations(page) == []
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    assert "I am safe." in text
    assert "Washington" not in text


def test_a_coordinator_reads_shared_results_on_a_phone(at_screen, staff, closed):
    page = at_screen(staff.state)
    page.goto(f"/console/results/{closed.pk}/")
    page.get_by_role("button", name="Share with schools").click()
    expect(page.get_by_text("can see their results now")).to_be_visible()
    phone = at_screen(staff.chen, **PHONE, color_scheme="dark")
    phone.goto("/console/results/")
    phone.get_by_role("link", name=closed.title).click()
    expect(phone.get_by_role("heading", level=1)).to_have_text("Lincoln")
    expect(phone.get_by_text("24 people answered")).to_be_visible()
    assert phone.get_by_role("button", name="Stop sharing").count() == 0
    assert violations(phone) == []
    assert not scrolls_sideways(phone)
