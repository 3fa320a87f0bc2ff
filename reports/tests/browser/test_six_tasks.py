"""Six tasks, by the buttons that the pages name, with the clicks that each takes.

The browser counts: each press of a mouse button or finger, and each choice of
a file or of an entry in a list. Typing and Enter are no clicks. The tasks
begin on the home page, where staff are after they have logged in.
"""

# Fixtures are imported, and then arguments of the same name.
# ruff: noqa: F811

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import polars
import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from reports.rates.rollup import roll_up
from reports.tests.browser.test_exports import downloaded
from reports.tests.exports.conftest import (  # noqa: F401
    empty_caches,
    enrol,
    fall,
    spring,
    take_part,
    waves,
    with_release,
)
from survey.models import Administration, CardSet, Respondent
from survey.tests.browser.accessibility import violations
from survey.tests.card_readers import read_pages
from survey.tests.conftest import administration, publish  # noqa: F401
from survey.tests.people import invite
from survey.tests.workbooks import form

pytestmark = pytest.mark.django_db(transaction=True)

SCREENS = [{"width": 1280, "height": 800}, {"width": 390, "height": 844}]
# Runs before each page's own scripts. The count is kept for the tab.
COUNT_CLICKS = """
const count = () =>
  sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks")) + 1);
// Not while it is captured: Playwright cancels and repeats presses there that would
// miss a button that is still moving, as it does on a busy machine.
addEventListener("pointerdown", (event) => event.isTrusted && count());
addEventListener(
  "change", ({ target }) => target.matches("select, [type=file]") && count(), true
);
"""


@pytest.fixture(params=SCREENS, ids=["desk", "phone"])
def start(request, at_screen) -> Iterator[Callable[[User], Page]]:
    """Open the home page in a tab that counts clicks; report them at the end."""
    pages: list[Page] = []
    started = time.monotonic()

    def opened(user: User) -> Page:
        page = at_screen(user, viewport=request.param, accept_downloads=True)
        page.add_init_script(COUNT_CLICKS)
        page.goto("/console/")
        pages.append(page)
        return page

    yield opened
    seconds = time.monotonic() - started
    for page in pages:
        task = request.node.originalname.removeprefix("test_")
        width = request.param["width"]
        print(f"{task}, {width} px: {clicks(page)} clicks, {seconds:.1f} s")


def clicks(page: Page) -> int:
    return page.evaluate("Number(sessionStorage.getItem('clicks'))")


@pytest.fixture
def pupils(server, staff, administration) -> Administration:
    """Invite twelve pupils of Lincoln, of whom three have finished."""
    administration.coordinators_see_finished = True
    administration.save()
    now = timezone.now()
    for n in range(11):
        moment = now if n < 3 else None
        name = f"Pupil{'abcdefghijk'[n]} Adams"
        times = {"started_at": moment, "completed_at": moment}
        invite(administration, staff.lincoln, f"4030{n}", name, **times)
    invite(administration, staff.lincoln, "40399", "Maya López", classroom="7B")
    roll_up()
    return administration


def test_from_a_workbook_to_login_cards(start, staff, tmp_path: Path):
    page = start(staff.state)
    page.get_by_role("link", name="Upload questionnaire").click()
    rows = [["type", "name", "label"], ["select_one agree", "safe", "I am safe."]]
    page.set_input_files(
        "input[type=file]",
        {"name": "climate.xlsx", "mimeType": "", "buffer": form(rows)},
    )
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("A published version can’t be changed")).to_be_visible()
    page.get_by_role("button", name="Publish and open a survey round").click()
    page.get_by_label("Students").click()
    page.get_by_role("button", name="Use suggested dates and privacy").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Check and open")
    page.get_by_role("button", name="Schedule survey round").click()
    expect(page.locator("#messages")).to_contain_text("Next, upload a roster")
    assert Administration.objects.get().published.survey.name == "climate"
    people = [
        f"{place},{n:02},7"
        for place in ("riverside,lincoln", "lakeside,roosevelt")
        for n in range(CardSet.MIN_DRAWN)
    ]
    roster = "\n".join(["district,school,id,grade", *people]).encode()
    page.set_input_files(
        "input[type=file]",
        {"name": "roster.csv", "mimeType": "text/csv", "buffer": roster},
    )
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Apply roster").click()
    page.get_by_role("button", name="Make login cards for all schools").click()
    with ZipFile(downloaded(page, "Download", tmp_path)) as cards:
        schools = {Path(name).stem for name in cards.namelist()}
    assert schools == {"lincoln", "roosevelt"}
    assert clicks(page) == 12


def test_the_rate_of_the_own_school(start, staff, pupils):
    page = start(staff.chen)
    expect(page.locator(".home-rate")).to_contain_text("3 of 12 students finished")
    page.get_by_role("link", name="Lincoln", exact=True).click()
    expect(page.locator(".role-panel")).to_contain_text("3 of 12 finished")
    assert clicks(page) == 1


def test_who_is_missing(start, staff, pupils):
    page = start(staff.chen)
    page.get_by_role("link", name="See who has not finished").click()
    expect(page.get_by_role("link", name="López, Maya")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(9)
    assert clicks(page) == 1


def test_the_card_of_one_pupil(start, staff, pupils, tmp_path: Path):
    page = start(staff.chen)
    clicks_to_find = find(page, "maya")
    page.get_by_role("button", name="Print card again").click()
    [card] = read_pages(downloaded(page, "Download", tmp_path))
    assert "Maya López" in card.text
    assert clicks(page) == clicks_to_find + 2


def test_opting_a_pupil_out(start, staff, pupils):
    page = start(staff.chen)
    clicks_to_find = find(page, "40399")
    page.get_by_role("link", name="Opt out").click()
    page.get_by_role("button", name="Opt out").click()
    expect(page.get_by_role("heading", name="Opted out")).to_be_visible()
    assert Respondent.objects.get(opted_out_at__isnull=False).classroom == "7B"
    assert clicks(page) == clicks_to_find + 2


def find(page: Page, words: str) -> int:
    """Open the page of Maya; return the clicks that this takes, on a phone one more.

    One survey round is open, so Enter leads to its people.
    """
    is_phone = page.viewport_size == SCREENS[1]
    if is_phone:
        page.get_by_role("link", name="Search", exact=True).click()
        page.get_by_label("Survey round, school, person or page").fill(words)
    else:
        page.get_by_role("searchbox", name="Search").fill(words)
    page.keyboard.press("Enter")
    maya = page.get_by_role("link", name="López, Maya")
    expect(maya).to_be_visible()
    assert violations(page) == []
    maya.click()
    return 2 if is_phone else 1


def test_two_waves_of_the_same_people_in_one_file(
    start, staff, waves, take_part, tmp_path: Path
):
    for n, wave in enumerate(waves):
        take_part(wave, staff.lincoln, "S1", 10 + n)
        take_part(wave, staff.washington, "S2", 12 + n)
    with_release(*waves)
    page = start(staff.dana)
    page.get_by_role("rowheader").get_by_role("link").first.click()
    page.get_by_role("link", name="Join seasons (panel)").click()
    page.get_by_role("button", name="Create export").click()
    file = polars.read_csv(downloaded(page, "Download the file", tmp_path))
    assert file["panel_id"].n_unique() == 2 and file.height == 4
    assert clicks(page) == 4
