"""Connect a feed, and decide about its held scans, in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone
from playwright.sync_api import BrowserContext, Locator, Page, expect

from accounts.models import User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from survey.models import Identity, RosterFeed
from survey.people.rosters.feeds.scans import start_scan
from survey.simulation.oneroster_server import District, OneRosterServer, serve
from survey.tests.browser.accessibility import check_both
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.live_server import Server
from survey.tests.browser.menus import navigate
from survey.tests.console.feed_cast import create_feed, create_scan
from survey.tests.rosters.feeds.feed_scans import (
    invited,
    orgs_named,
    students,
    user,
    zip_of,
)

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "correct-horse-battery-staple"
SMALL = {"width": 390, "height": 844}
MONDAY = date(2027, 1, 11)


@pytest.fixture
def desk(device: Callable[..., BrowserContext], server: Server) -> Callable[..., Page]:
    """Return a function that opens a tab in which a user is logged in."""

    def open_tab(user: User, **options: object) -> Page:
        context = device(**{"viewport": LAPTOP, **options})
        name = PREFIX + django_settings.SESSION_COOKIE_NAME
        cookie = log_in(Client(), user).cookies[name].value
        context.add_cookies([{"name": name, "value": cookie, "url": server.url}])
        return context.new_page()

    return open_tab


@pytest.fixture
def north() -> District:
    return District(authorization="bearer", token=KEY)


@pytest.fixture
def system(north: District) -> Iterator[OneRosterServer]:
    """The student information system of the district."""
    with serve({"north": north}) as system:
        yield system


def forty_students(*, missing: int = 0) -> bytes:
    left = students(20 - missing, school="washington", first=20)
    return zip_of(*students(20), *left)


@pytest.fixture
def shared_files(settings) -> None:
    """Let this process scan feeds whose files the server's process has."""
    settings.STORAGES = {**settings.STORAGES, "private": settings.PRIVATE_FILES}


def scan_at_night(feed: RosterFeed, night: date) -> None:
    start_scan(
        feed,
        reason="night",
        by=None,
        night=night,
        begins_before=timezone.now() + timedelta(hours=1),
    )


def status_of(page: Page) -> Locator:
    return page.locator("#scan [role=status]")


def scan_now(page: Page, state: str) -> None:
    page.get_by_role("button", name="Scan now").click()
    expect(status_of(page)).to_contain_text(state)


def open_feed(page: Page) -> None:
    page.goto("/console/feeds/")
    page.get_by_role("link", name="PowerSchool").click()


def test_an_administrator_connects_a_feed_and_decides_about_held_scans(
    desk, staff, administration, north, system, shared_files
):
    north.archive = forty_students()
    page = desk(staff.dana, viewport=SMALL)
    page.goto("/console/")
    navigate(page, "Schools", "Roster syncs")
    expect(page.get_by_text("There are no roster syncs yet")).to_be_visible()
    check_both(page, "01-no-feeds")
    page.get_by_role("link", name="Last scan window").click()
    expect(page.get_by_text("No nightly scan has run yet")).to_be_visible()
    check_both(page, "02-no-window")
    page.go_back()

    page.get_by_role("link", name="Add a roster sync").first.click()
    page.get_by_label("A OneRoster ZIP file at a web address").check()
    check_both(page, "03-kind")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Name", exact=True).fill("PowerSchool")
    page.get_by_label("Address of the ZIP file").fill(system.archive_address())
    page.get_by_label("Bearer token").fill("a wrong one")
    page.get_by_label("sourcedId: the system's own ID").check()
    check_both(page, "04-settings")
    page.get_by_role("button", name="Add roster sync").click()
    expect(
        page.get_by_text("Choose at least one survey round.", exact=True)
    ).to_be_visible()
    check_both(page, "05-settings-with-an-error")
    page.get_by_label("students-2027").check()
    page.get_by_label("Bearer token").fill("a wrong one")
    page.get_by_role("button", name="Add roster sync").click()
    expect(page.get_by_text("PowerSchool was added")).to_be_visible()
    check_both(page, "06-feed")

    page.get_by_role("button", name="Try it").click()
    expect(status_of(page)).to_contain_text("refused the credentials")
    check_both(page, "07-failed")
    open_feed(page)
    check_both(page, "08-feed-that-failed")
    page.get_by_role("link", name="Change settings").click()
    page.get_by_label("Bearer token").fill(KEY)
    page.get_by_role("button", name="Save changes").click()
    page.get_by_role("button", name="Try it").click()
    expect(status_of(page)).to_contain_text("tried, nothing applied")
    check_both(page, "09-tried")
    assert invited() == []
    page.get_by_role("link", name="Schools and rows").click()
    check_both(page, "10-schools")
    page.go_back()
    page.get_by_role("link", name="Change settings").click()
    page.get_by_label("Scan window begins").fill("01:00")
    page.get_by_label("Scan window ends").fill("04:00")
    check_both(page, "11-schedule")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_text("1:00 AM to 4:00 AM")).to_be_visible()
    scan_now(page, "applied")
    assert len(invited()) == 40
    check_both(page, "12-applied")
    open_feed(page)
    scan_now(page, "nothing new")
    expect(page.get_by_role("row", name="Download")).to_contain_text("unchanged")
    check_both(page, "13-unchanged")

    # A fifth of the people is missing at night.
    feed = RosterFeed.objects.get()
    north.archive = forty_students(missing=8)
    scan_at_night(feed, MONDAY)
    page.goto("/console/feeds/")
    expect(page.get_by_text("waits for confirmation")).to_be_visible()
    check_both(page, "14-feeds")
    page.get_by_role("link", name="PowerSchool").click()
    check_both(page, "15-feed-with-a-held-scan")
    page.get_by_role("link", name="Review it").click()
    expect(page.get_by_text("8 people will be withdrawn")).to_be_visible()
    check_both(page, "16-held")
    page.get_by_role("link", name="Missing people").click()
    check_both(page, "17-missing")
    page.go_back()
    page.get_by_role("button", name="Cancel this scan").click()
    expect(page.get_by_text("The scan was cancelled.")).to_be_visible()
    check_both(page, "18-cancelled")
    assert len(invited()) == 40

    # So they are in the next night, and this time it is right.
    scan_at_night(feed, MONDAY + timedelta(days=1))
    open_feed(page)
    page.get_by_role("link", name="Review it").click()
    page.get_by_label("How many people will be withdrawn?").fill("7")
    page.get_by_role("button", name="Apply and withdraw 8").click()
    expect(page.locator("#typed_error")).to_be_visible()
    check_both(page, "19-wrong-number")
    assert len(invited()) == 40
    page.get_by_label("How many people will be withdrawn?").fill("8")
    page.get_by_role("button", name="Apply and withdraw 8").click()
    expect(page.get_by_text(f"Confirmed by {staff.dana}")).to_be_visible()
    expect(status_of(page)).to_contain_text("applied")
    check_both(page, "20-confirmed")
    assert len(invited()) == 32
    open_feed(page)
    expect(page.get_by_text("8 people would be withdrawn")).to_have_count(0)
    check_both(page, "21-history")
    page.goto("/console/feeds/")
    expect(page.get_by_text("up to date")).to_be_visible()
    page.get_by_role("link", name="Last scan window").click()
    expect(page.get_by_text("Slowest stage")).to_be_visible()
    check_both(page, "22-window")
    assert len(north.requests) >= 6


def test_a_coordinator_sees_no_feeds(desk, staff):
    page = desk(staff.chen)
    page.goto("/console/")
    menu = page.get_by_role("navigation", name="Console")
    expect(menu.get_by_role("link", name="Schools")).to_be_visible()
    expect(menu.get_by_role("link", name="Roster syncs")).to_have_count(0)


def four_schools(*names: str) -> bytes:
    rows = (
        user(n, f"s{n % 4}", identifier=f"{n:05}", given_name=f"Ann{n}")
        for n in range(40)
    )
    return zip_of(*rows, orgs=orgs_named(*names))


def test_people_keep_their_records_when_ids_and_schools_change(
    desk, staff, administration, north, system
):
    north.archive = four_schools("North", "South", "East", "West")
    page = desk(staff.dana)
    page.goto(f"/console/feeds/new/{staff.riverside.pk}/zip/")
    page.get_by_label("Name", exact=True).fill("PowerSchool")
    page.get_by_label("Address of the ZIP file").fill(system.archive_address())
    page.get_by_label("Bearer token").fill(KEY)
    page.get_by_label("sourcedId: the system's own ID").check()
    page.get_by_label("students-2027").check()
    page.get_by_role("button", name="Add roster sync").click()
    scan_now(page, "applied")
    before = dict(Identity.objects.values_list("respondent", "given_name"))
    assert invited() == [f"u{n:04}" for n in range(40)]

    open_feed(page)
    page.get_by_role("link", name="Change settings").click()
    page.get_by_label("Here: 00000, 00001, 00002").check()
    check_both(page, "30-other-id")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_text("Changed from sourcedId.")).to_be_visible()
    check_both(page, "31-feed-with-another-id")
    scan_now(page, "applied")
    check_both(page, "32-people-with-other-ids")
    assert invited() == [f"{n:05}" for n in range(40)]
    assert dict(Identity.objects.values_list("respondent", "given_name")) == before
    page.get_by_role("link", name="Schools and rows").click()
    page.get_by_text("How columns were read").click()
    expect(page.get_by_text("Previous ID", exact=True)).to_be_visible()
    open_feed(page)
    expect(page.get_by_text("Changed from sourcedId.")).to_have_count(0)

    north.archive = four_schools("Alder", "Birch", "Cedar", "Dogwood")
    scan_now(page, "4 schools have other names than before.")
    expect(page.get_by_text("Nobody will be withdrawn.")).to_be_visible()
    check_both(page, "33-renamed")
    page.get_by_role("link", name="Schools to check").click()
    expect(page.get_by_text("Renamed?")).to_be_visible()
    check_both(page, "34-schools-to-check")
    page.go_back()
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(status_of(page)).to_contain_text("changes below were made")
    assert dict(Identity.objects.values_list("respondent", "given_name")) == before


def test_the_state_sees_the_chart_of_a_night(desk, staff, administration):
    for n in range(24):
        feed = create_feed(staff.lakeside, staff.state, name=f"Feed {n}")
        began = datetime(2027, 1, 12, 7, tzinfo=UTC) + timedelta(minutes=n * n / 20)
        scan = create_scan(feed, reason="night", night=MONDAY, began=began)
        ends = {"download": 150 + 10 * n, "compare": 3 + 5 * n}
        for stage, seconds in ends.items():
            scan.stages.filter(stage=stage).update(
                ended_at=began + timedelta(seconds=seconds)
            )
    create_scan(
        create_feed(staff.riverside, staff.dana, failures_in_a_row=1),
        "failed",
        message="sis.example.org answered with status 503 (service unavailable),"
        " six times in a row. Ask the people who run the server.",
        reason="night",
        night=MONDAY,
        began=datetime(2027, 1, 12, 7, tzinfo=UTC),
    )
    page = desk(staff.state)
    page.goto("/console/feeds/window/")
    expect(page.get_by_text("Slowest stage: Download")).to_be_visible()
    expect(page.locator(".strip-chart polyline")).to_have_count(2)
    for screen in (LAPTOP, SMALL):
        page.set_viewport_size(screen)
        heights = page.locator(".strip-chart rect").evaluate_all(
            "bars => bars.map((bar) => bar.getBoundingClientRect().height)"
        )
        assert len(heights) > 20
        assert max(heights) > 100
    check_both(page, "40-chart")
    page.get_by_text("Show the numbers as a table").click()
    table = page.get_by_role("region", name="Scans and idle workers per minute")
    expect(table.locator("tbody tr")).to_have_count(len(heights))
    check_both(page, "41-numbers")
    page.goto("/console/feeds/")
    check_both(page, "42-feeds-of-the-state")
    page.get_by_role("link", name="PowerSchool").click()
    # The message has room, and is not cut off.
    cell = page.locator("td", has_text="six times in a row")
    for screen in (LAPTOP, SMALL):
        page.set_viewport_size(screen)
        assert cell.evaluate("cell => cell.offsetWidth") >= 200
        assert not page.get_by_role("region", name="Scans", exact=True).evaluate(
            "frame => frame.scrollWidth > frame.clientWidth"
        )
    check_both(page, "43-message")
