"""Log in to the console in a browser, and check each page's accessibility."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts import audit, invitations, passwords
from accounts.models import Invitation, Membership, User
from accounts.tests.logging_in import PASSWORD, code_of, give_app
from survey.tests.browser.accessibility import scrolls_sideways, violations
from survey.tests.browser.conftest import LAPTOP

# What a page looks like does not depend on the database.
pytestmark = pytest.mark.django_db(transaction=True)

SMALL = {"width": 390, "height": 800}


def clean(page: Page) -> None:
    assert violations(page) == []
    assert not scrolls_sideways(page), page.url


def log_in(page: Page, email: str) -> None:
    page.goto("/console/")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def set_up(page: Page) -> str:
    """Set up an authenticator app on its page, and return the secret."""
    secret = page.locator("code.key").inner_text().replace(" ", "")
    page.get_by_role("textbox", name="Code").fill(code_of(secret))
    page.get_by_role("button", name="Set up").click()
    expect(page.locator(".codes li")).to_have_count(10)
    return secret


def test_the_first_login_sets_up_the_second_factor(device: Callable, staff):
    page = device(viewport=LAPTOP).new_page()
    page.goto("/console/")
    clean(page)
    page.get_by_label("E-mail address").fill("dana@example.org")
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("is wrong. Wait 1 second")).to_be_visible()
    clean(page)
    page.wait_for_timeout(1000)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()

    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Set up your second factor"
    )
    assert page.locator(".qr svg").bounding_box()["width"] > 150
    clean(page)
    page.get_by_role("textbox", name="Code").fill("12")
    page.get_by_role("button", name="Set up").click()
    expect(page.locator("#id_code_error")).to_contain_text("does not match")
    clean(page)
    secret = set_up(page)
    clean(page)
    page.get_by_role("link", name="I have saved them").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Welcome")

    page.locator(".console-me summary").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_text("You are logged out.")).to_be_visible()
    log_in(page, "dana@example.org")
    expect(page.get_by_role("heading", level=1)).to_have_text("Your second factor")
    clean(page)
    page.get_by_role("textbox", name="Code").fill(code_of(secret, later=1))
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page).to_have_url(re.compile("/console/$"))


def test_a_district_invites_a_coordinator_who_logs_in(device: Callable, staff):
    secret = give_app(staff.dana)
    page = device(viewport=LAPTOP).new_page()
    log_in(page, "dana@example.org")
    page.get_by_role("textbox", name="Code").fill(code_of(secret))
    page.get_by_role("button", name="Log in", exact=True).click()
    page.get_by_role("link", name="Staff").first.click()
    clean(page)
    page.get_by_role("link", name="Invite a colleague").click()
    clean(page)
    page.get_by_label("E-mail address").fill("noor@example.org")
    page.get_by_label("First name").fill("Noor")
    page.get_by_label("school coordinator").check()
    page.get_by_label("School", exact=False).last.select_option(label="Washington")
    page.get_by_role("button", name="Send invitation").click()
    expect(page.get_by_text("Sent an invitation to noor@example.org")).to_be_visible()
    page.get_by_role("link", name="Noor").click()
    expect(page.get_by_text("not accepted yet")).to_be_visible()
    clean(page)

    theirs = device(viewport=SMALL).new_page()
    key = invitations.key_of(Invitation.objects.get())
    theirs.goto(f"/console/invitation/?key={key}")
    clean(theirs)
    theirs.get_by_label("New password").fill("long-quiet-river")
    theirs.get_by_label("Repeat it").fill("long-quiet-river")
    theirs.get_by_role("button", name="Set password").click()
    clean(theirs)
    set_up(theirs)
    theirs.get_by_role("link", name="I have saved them").click()
    theirs.locator(".console-me summary").click()
    expect(theirs.get_by_text("school coordinator, Washington")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Dismiss Noor")).to_be_visible()
    clean(page)


def test_a_long_email_address_fits_the_page(device: Callable, staff):
    """A user without a name is shown by address, on a phone too."""
    User.objects.filter(pk=staff.chen.pk).update(
        email="coordinator-of-the-middle-school@lincoln.riverside.example.org",
        first_name="",
        last_name="",
    )
    secret = give_app(staff.dana)
    page = device(viewport=SMALL).new_page()
    log_in(page, "dana@example.org")
    page.get_by_role("textbox", name="Code").fill(code_of(secret))
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page).to_have_url(re.compile("/console/$"))
    page.goto(f"/console/staff/{staff.chen.memberships.get().pk}/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("coordinator-of")
    clean(page)


def test_choosing_a_district_loads_its_schools(device: Callable, staff):
    secret = give_app(staff.state)
    page = device(viewport=SMALL).new_page()
    log_in(page, "state@example.org")
    page.get_by_role("textbox", name="Code").fill(code_of(secret))
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page).to_have_url(re.compile("/console/$"))
    page.goto("/console/staff/invite/")
    clean(page)
    page.get_by_label("District").last.select_option(label="Lakeside")
    school = page.locator("#id_school")
    expect(school.locator("option")).to_have_count(2)
    school.select_option(label="Roosevelt")
    page.get_by_label("E-mail address").fill("ira@example.org")
    page.get_by_label("school coordinator").check()
    page.get_by_role("button", name="Send invitation").click()
    expect(page.get_by_text("Sent an invitation to ira@example.org")).to_be_visible()
    assert Membership.objects.get(user__email="ira@example.org").school == (
        staff.roosevelt
    )


def test_all_pages_are_accessible(device: Callable, staff):
    secret = give_app(staff.state)
    audit.record(
        "rename school",
        by=staff.dana,
        subject=staff.lincoln,
        school=staff.lincoln,
        before={"name": "Lincoln"},
        after={"name": "Lincoln High"},
    )
    new = User.objects.create_user("new@example.org", PASSWORD)
    outside = device(viewport=SMALL, color_scheme="dark").new_page()
    key = passwords.reset_key(new)
    for path in (
        "account/login/",
        "account/password/reset/",
        "account/password/reset/done/",
        f"account/password/reset/new/?key={key}",
        "account/password/reset/new/?key=x",
        "invitation/?key=x",
    ):
        outside.goto(f"/console/{path}")
        clean(outside)
    for viewport, scheme in ((SMALL, "light"), (LAPTOP, "dark")):
        page = device(viewport=viewport, color_scheme=scheme).new_page()
        log_in(page, "state@example.org")
        later = 0 if scheme == "light" else 1
        page.get_by_role("textbox", name="Code").fill(code_of(secret, later=later))
        page.get_by_role("button", name="Log in", exact=True).click()
        expect(page).to_have_url(re.compile("/console/$"))
        for path in (
            "me/",
            "account/password/change/",
            "account/again/code/",
            "second-factor/set-up/",
            "second-factor/recovery-codes/",
            "account/logout/",
            "staff/",
            "staff/?q=zzz",
            f"staff/{staff.chen.memberships.get().pk}/",
            "staff/invite/",
            "audit/",
            "audit/?q=zzz",
            "audit/?since=nonsense",
        ):
            page.goto(f"/console/{path}")
            clean(page)


def test_the_audit_log_is_filtered_in_place(device: Callable, staff):
    secret = give_app(staff.state)
    audit.record("open wave", by=staff.state)
    page = device(viewport=LAPTOP).new_page()
    log_in(page, "state@example.org")
    page.get_by_role("textbox", name="Code").fill(code_of(secret))
    page.get_by_role("button", name="Log in", exact=True).click()
    page.get_by_role("link", name="Activity").first.click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Action").select_option("open wave")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("action=open"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert "open wave" in download.value.path().read_text("utf-8-sig")
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
