"""Upload, correct and confirm a roster in a browser."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import District, School, User
from accounts.staff_cookies import PREFIX
from accounts.tests.logging_in import log_in
from survey.models import Administration, Respondent, RosterUpload
from survey.people.rosters import uploads
from survey.tests.browser.accessibility import violations_on
from survey.tests.browser.conftest import LAPTOP, PHONE
from survey.tests.browser.live_server import Server
from survey.tests.browser.menus import choose_action, navigate
from survey.tests.people import invite
from survey.tests.workbooks import workbook

pytestmark = pytest.mark.django_db(transaction=True)

HEADER = (
    "District,School,Student ID,Given name,Family name,Grade,Class,Lunch,Home Phone"
)
GOOD = [
    f"riverside,lincoln,{n:05},Ann {n},Lopez,7,7{'AB'[n % 2]},free,555"
    for n in range(40)
]
BAD = [
    "riverside,lincoln,,Ali,Diaz,7,7A,paid,555",
    "riverside,lincoln,00101,Noor,Haddad,77,7A,paid,555",
    "riverside,washington,00102,Zoe,Kim,8,8A,paid,555",
    "riverside,lincoln,1.2E+10,Kai,Okafor,8,8A,paid,555",
    "riverside,lincoln,00001,Twin,Lopez,8,8A,paid,555",
]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUNDSWELL_FILES", str(tmp_path / "files"))


@pytest.fixture
def console(files, staff, administration, server: Server, device: Callable):
    """Return a function that opens the console as a user."""

    def open_page(user: User, **options) -> Page:
        context = device(**{"viewport": LAPTOP, **options})
        cookies = log_in(Client(), user).cookies
        context.add_cookies(
            [
                {
                    "name": name,
                    "value": cookie.value,
                    "url": server.url,
                }
                for name, cookie in cookies.items()
                if name.startswith(PREFIX)
            ]
        )
        return context.new_page()

    return open_page


def check_page(page: Page) -> None:
    """Check a page on a laptop and on a phone, and leave it on the phone."""
    screens = [{"viewport": LAPTOP}, {"viewport": PHONE}]
    assert violations_on(page, screens) == []


def choose_file(page: Page, content: str, name: str = "roster.csv") -> None:
    page.get_by_label("Roster file").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    )


def figure_fits(page: Page, figure: str) -> bool:
    return page.locator(".figures .figure").first.evaluate(
        """(place, figure) => {
            const before = place.textContent;
            const height = place.offsetHeight;
            place.textContent = figure;
            const fits = place.offsetHeight === height
                && place.scrollWidth <= place.clientWidth;
            place.textContent = before;
            return fits;
        }""",
        figure,
    )


def test_a_coordinator_corrects_five_rejected_rows(staff, console):
    page = console(staff.chen, viewport=PHONE)
    page.goto("/console/")
    navigate(page, "Schools", "Rosters")
    check_page(page)
    page.get_by_role("link", name="students,").first.click()
    check_page(page)

    # A file that is no roster is reported on the same page.
    choose_file(page, "no roster at all")
    page.get_by_role("button", name="Upload and check").click()
    expect(page.locator(".form-row.wrong .error")).to_contain_text("names the columns")
    check_page(page)
    choose_file(page, "\n".join([HEADER, *BAD, *GOOD]))
    page.get_by_role("button", name="Upload and check").click()
    page.wait_for_url(re.compile(r"/console/rosters/\d+/$"))

    # The dry run.
    expect(page.get_by_text("Nothing has changed yet")).to_be_visible()
    expect(page.locator(".panel", has_text="rejected rows").first).to_contain_text("5")
    check_page(page)
    for screen in (LAPTOP, PHONE):
        page.set_viewport_size(screen)
        assert figure_fits(page, "2,000,000")
        assert not figure_fits(page, "2,000,000 and more than there is room")
    assert not Respondent.objects.exists()
    page.get_by_role("link", name="View problems").click()
    expect(page.locator("tbody tr")).to_have_count(5)
    check_page(page)

    with page.expect_download() as download:
        page.get_by_role("link", name="Download rejected rows").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 5
    assert all(row["Rejected because"].startswith("Row ") for row in rows)
    for number, row in enumerate(rows):
        row |= {"School": "lincoln", "Grade": "8", "Student ID": f"0020{number}"}
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)

    # Apply the valid rows first, then the corrected ones.
    page.go_back()
    page.get_by_role("button", name="Apply roster").click()
    expect(page.get_by_text("This roster was applied")).to_be_visible()
    check_page(page)
    assert Respondent.objects.count() == 40
    page.get_by_role("link", name="Upload corrected rows").click()
    choose_file(page, file.getvalue(), "corrected.csv")
    page.get_by_label("People of the schools in this file").check()
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("has corrected rows only")).to_be_visible()
    page.get_by_role("button", name="Apply roster").click()
    expect(page.get_by_text("This roster was applied")).to_be_visible()
    assert Respondent.objects.filter(withdrawn_at=None).count() == 45


def test_a_sheet_is_chosen_and_the_file_stays_chosen(staff, console):
    page = console(staff.chen, viewport=PHONE)
    page.goto("/console/rosters/")
    page.get_by_role("link", name="students,").first.click()
    header = ["Student ID", "Given name", "Grade"]
    sheets = {"Grade 7": [header, ["1", "Maya", 7]], "8": [header, ["2", "Ali", 8]]}
    page.get_by_label("Roster file").set_input_files(
        {"name": "r.xlsx", "mimeType": "application/zip", "buffer": workbook(sheets)}
    )
    page.get_by_role("button", name="Upload and check").click()
    expect(page.locator(".form-row.wrong .error")).to_contain_text("'Grade 7', '8'")
    check_page(page)
    page.get_by_label("Sheet").select_option("All of them (*)")
    page.get_by_role("button", name="Upload and check").click()
    read = page.locator(".panel", has_text="What was read")
    expect(read).to_contain_text("Excel, sheets Grade 7 (headers in row 1), 8 (headers")
    check_page(page)
    page.get_by_role("button", name="Apply roster").click()
    expect(page.get_by_text("This roster was applied")).to_be_visible()
    assert Respondent.objects.count() == 2


def test_withdrawing_many_requires_typing_their_number(staff, console):
    page = console(staff.chen)
    for rows in (GOOD, GOOD[30:]):
        page.goto("/console/rosters/")
        page.get_by_role("link", name="students,").first.click()
        choose_file(page, "\n".join([HEADER, *rows]))
        page.get_by_label("People of the schools in this file").check()
        page.get_by_role("button", name="Upload and check").click()
        if rows is GOOD:
            page.get_by_role("button", name="Apply roster").click()
            expect(page.get_by_text("This roster was applied")).to_be_visible()
    expect(page.get_by_text("30 people will be withdrawn", exact=True)).to_be_visible()
    check_page(page)
    typed = page.get_by_label("How many people will be withdrawn?")
    typed.fill("yes")
    page.get_by_role("button", name="Apply roster and withdraw 30").click()
    expect(page.locator("#typed_error")).to_be_visible()
    expect(typed).to_have_value("yes")
    check_page(page)
    assert Respondent.objects.filter(withdrawn_at=None).count() == 40
    typed.fill("30")
    page.get_by_role("button", name="Apply roster and withdraw 30").click()
    expect(page.get_by_text("This roster was applied")).to_be_visible()
    assert Respondent.objects.filter(withdrawn_at=None).count() == 10


def test_a_roster_can_be_uploaded_without_javascript(staff, console):
    page = console(staff.chen, java_script_enabled=False)
    page.goto("/console/rosters/")
    page.get_by_role("link", name="students,").first.click()
    choose_file(page, "\n".join([HEADER, *GOOD]))
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Apply roster").click()
    expect(page.get_by_text("This roster was applied")).to_be_visible()
    assert RosterUpload.objects.get().state == uploads.State.APPLIED


def test_an_administrator_undoes_a_roster(staff, console, administration):
    administration.opens_at = timezone.now() + timedelta(days=1)
    administration.save(update_fields=["opens_at"])
    page = console(staff.dana, viewport=PHONE)
    page.goto(f"/console/administrations/{administration.pk}/roster/")
    choose_file(page, "\n".join([HEADER, *GOOD]))
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Apply roster").click()
    choose_action(page, "Undo this roster")
    expect(page.get_by_text("40 people whom the roster added")).to_be_visible()
    check_page(page)
    page.get_by_role("button", name="Undo roster and remove 40").click()
    expect(page.get_by_text("applied and then undone")).to_be_visible()
    check_page(page)
    assert not Respondent.objects.exists()


def test_a_district_sees_whom_a_roster_would_withdraw(staff, console):
    page = console(staff.dana, viewport=PHONE)
    administration = Administration.objects.get()
    upload_and_check(page, administration, [HEADER, *GOOD])
    page.get_by_role("button", name="Apply roster").click()
    expect(page.get_by_text("This roster was applied")).to_be_visible()
    header = HEADER.replace("District,School,", "District,School code,School name,")
    lines = [line.replace("lincoln", "lincoln,Obama Academy") for line in GOOD[30:]]
    lines.append("riverside,x-7,Washington School,00700,Kai,Okafor,8,8A,free,555")
    upload_and_check(page, administration, [header, *lines])
    expect(page.get_by_text("Renamed?")).to_be_visible()
    expect(page.get_by_text("Found by name")).to_be_visible()
    check_page(page)
    page.get_by_role("link", name="View the people").click()
    check_page(page)
    page.get_by_role("link", name="30 people of Lincoln").click()
    expect(page.locator("tbody tr")).to_have_count(30)
    check_page(page)
    page.get_by_label("Name or ID").fill("00007")
    expect(page.locator("tbody tr")).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download list").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    assert len(list(csv.DictReader(io.StringIO(text)))) == 30


def upload_and_check(page: Page, administration: Administration, lines: list[str]):
    """Upload a roster that is complete for its schools, and wait for the figures."""
    page.goto(f"/console/administrations/{administration.pk}/roster/")
    choose_file(page, "\n".join(lines))
    page.locator("[name=complete_for][value=schools]").check()
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("Nothing has changed yet")).to_be_visible()


def test_two_districts_are_merged(staff, console, administration):
    copy = District.objects.create(code="0017", name="Northfield Unified")
    school = School.objects.create(district=copy, code="0042", name="Lincoln")
    invite(administration, school, "00123", "Maya Lopez")
    invite(administration, staff.lincoln, "00123", "Maya Lopez")
    page = console(staff.state, viewport=PHONE)
    page.goto("/console/rosters/")
    choose_action(page, "Merge duplicates")
    check_page(page)
    page.get_by_role("link", name="New merge").click()
    check_page(page)
    page.get_by_label("Duplicate").select_option(str(copy.pk))
    page.get_by_label("Merge it into").select_option(str(staff.riverside.pk))
    page.get_by_role("button", name="Check merge").click()
    expect(page.get_by_text("Check the figures")).to_be_visible()
    check_page(page)
    page.get_by_label("Name of the duplicate").fill("Northfield Unified")
    page.get_by_role("button", name="Merge into Riverside").click()
    expect(page.get_by_text("These were merged")).to_be_visible()
    check_page(page)
    assert Respondent.objects.filter(withdrawn_at=None).count() == 1


def test_a_misspelt_school_is_chosen_in_place(staff, administration, console):
    page = console(staff.dana)
    page.goto(f"/console/administrations/{administration.pk}/roster/")
    rows = [GOOD[0].replace("lincoln", "Lincon"), GOOD[1].replace("lincoln", "Lyceum")]
    choose_file(page, "\n".join([HEADER, *rows]))
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("2 schools to check")).to_be_visible()
    check_page(page)
    page.set_viewport_size(LAPTOP)
    # The bar stays in sight, and leads to what must be answered first.
    apply = page.get_by_role("button", name="Apply roster")
    expect(apply).to_have_count(0)
    first = page.get_by_role("link", name="Check 1 school before you apply")
    expect(first).to_be_in_viewport()
    first.click()
    expect(page.get_by_text("Did you mean Lincoln (Riverside)?")).to_be_in_viewport()

    lyceum = page.get_by_role("group", name="Lyceum")
    lyceum.get_by_label("Name or code of the school").fill("washing")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    lyceum.get_by_label("Washington (Riverside)").check()
    check_page(page)
    page.get_by_label("Lincoln (Riverside)").check()
    page.get_by_role("button", name="Check again with these schools").click()
    expect(page.get_by_text("is read as")).to_have_count(2)
    expect(apply).to_be_in_viewport()
    check_page(page)
    page.get_by_role("button", name="Undo the choice for Lyceum").click()
    expect(page.get_by_text("1 school to check")).to_be_visible()


def test_what_is_missing_is_listed_while_columns_are_chosen(
    staff, administration, console
):
    page = console(staff.dana)
    page.goto(f"/console/administrations/{administration.pk}/roster/")
    choose_file(page, "Kennung,Vorname,Nachname,Haus\n1,Maya,Lopez,lincoln\n")
    page.get_by_role("button", name="Upload and check").click()
    needs = page.locator("#needs li:visible")
    page.get_by_label("Kennung").select_option("")
    expect(needs).to_have_count(2)
    check_page(page)
    page.get_by_label("Kennung").select_option(label="Student ID (required)")
    expect(needs).to_have_count(1)
    place = page.get_by_label("All rows belong to this school")
    expect(place).to_be_visible()
    page.get_by_label("Haus").select_option("school")
    expect(page.get_by_text("Nothing: the file can be checked.")).to_be_visible()
    expect(place).to_be_hidden()
    page.get_by_role("button", name="Save and check file").click()
    expect(page.get_by_text("Applying this roster adds 1 person.")).to_be_visible()
