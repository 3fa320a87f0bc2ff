"""A coordinator makes a limited code and a poster, and watches the places fill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from survey.fieldwork.open_codes.codes import code_of, link_of
from survey.models import OpenCode, OpenCodeSeat, Respondent
from survey.tests.browser.accessibility import PHONE, check_both
from survey.tests.browser.conftest import LAPTOP
from survey.tests.browser.test_cards_journey import open_console
from survey.tests.browser.test_open_codes import begin
from survey.tests.card_readers import read_pages
from survey.tests.open_codes.cast import open_code, open_to_parents

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_coordinator_makes_a_poster_and_a_limited_code_and_watches_it_fill(
    device: Callable, server, staff, tmp_path: Path
):
    parents = open_to_parents()
    page = open_console(device(viewport=LAPTOP), staff.chen, server.url)
    page.goto(f"/console/administrations/{parents.pk}/")
    page.get_by_role("link", name="Hand out school links").first.click()
    page.get_by_role("link", name="Create a code").click()
    page.get_by_label("Label").fill("Parents' evening")
    page.get_by_label("Places").fill("0")
    page.get_by_role("button", name="Create code").click()
    # The browser itself refuses it; without that, the server does.
    page.evaluate("document.querySelector('.form').noValidate = true")
    page.get_by_role("button", name="Create code").click()
    expect(page.locator(".error")).to_contain_text("from 1 to 10,000")
    page.get_by_label("Places").fill("2")
    page.get_by_role("button", name="Create code").click()
    expect(page.locator(".code")).to_be_visible()
    code = OpenCode.objects.get()

    page.get_by_role("link", name="Posters and letters").click()
    page.get_by_label("Second language").select_option("es")
    page.get_by_role("button", name="Make file").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    [poster] = read_pages(file)
    assert poster.links == [link_of(code)]

    page.goto(f"/console/administrations/{parents.pk}/open-codes/{code.pk}/")
    figures = page.locator("#figures")
    expect(figures).to_contain_text("2 of 2")
    loaded = page.evaluate("performance.timeOrigin")
    for left in (1, 0):
        parent = device().new_page()
        parent.goto(f"{server.url}/open/#{code_of(code)}")
        begin(parent)
        expect(figures).to_contain_text(f"{left} of 2", timeout=20_000)
    late = device().new_page()
    late.goto(f"{server.url}/open/#{code_of(code)}")
    late.get_by_role("button", name="Begin").click()
    expect(late.locator("body")).to_contain_text("All the places for this code are")
    assert Respondent.objects.count() == 2
    expect(figures).to_contain_text("All places are taken")
    # The figures were refreshed without loading the page again.
    assert page.evaluate("performance.timeOrigin") == loaded

    # So is the list, whose link keeps the focus.
    page.goto(f"/console/administrations/{parents.pk}/open-codes/")
    row = page.locator("#codes")
    expect(row).to_contain_text("0 of 2")
    page.locator(f"#code-{code.pk}").focus()
    OpenCodeSeat.objects.filter(respondent__isnull=False).update(respondent=None)
    expect(row).to_contain_text("2 of 2", timeout=20_000)
    expect(page.locator(f"#code-{code.pk}")).to_be_focused()


def test_the_pages_are_accessible_and_fit_the_screen(device: Callable, server, staff):
    parents = open_to_parents()
    code = open_code(
        parents, staff.lincoln, label="Spring newsletter of the school", limit=100
    )
    base = f"/console/administrations/{parents.pk}/open-codes"
    page = open_console(device(viewport=PHONE), staff.state, server.url)
    sights = {
        "list": f"{base}/",
        "schools": f"{base}/new/",
        "new": f"{base}/new/?school={staff.lincoln.pk}",
        "all": f"{base}/all/",
        "files": f"{base}/files/",
        "files of one": f"{base}/files/?open_code={code.pk}",
        "replace": f"{base}/{code.pk}/replace/",
        "revoke": f"{base}/{code.pk}/revoke/",
        "code": f"{base}/{code.pk}/",
    }
    for name, address in sights.items():
        page.goto(address)
        check_both(page, name)
    page.get_by_role("button", name="Show code and link").click()
    check_both(page, "code shown")
    page.goto(sights["files"])
    page.get_by_role("button", name="Make file").click()
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    check_both(page, "file")
    page.goto(sights["all"])
    page.get_by_role("button", name="Create codes").click()
    expect(page.get_by_role("heading", name="Done")).to_be_visible()
    check_both(page, "batch")
    page.goto(sights["all"])
    expect(page.get_by_role("button", name="Create codes")).to_have_count(0)
    check_both(page, "all, with codes")
