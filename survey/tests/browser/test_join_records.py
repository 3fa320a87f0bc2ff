"""A coordinator joins two records of one person in the browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import School
from survey.models import PlaceMerge, RecordJoin, Respondent
from survey.people.merging.dry_run import MergeReport
from survey.tests.browser.accessibility import DESK, PHONE, check_both
from survey.tests.browser.menus import choose_action
from survey.tests.browser.test_cards_journey import open_console
from survey.tests.people import invite

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def records(server, administration, staff) -> list[Respondent]:
    administration.coordinators_see_finished = True
    administration.save()
    return [
        invite(administration, staff.lincoln, *person, classroom="7B", grade="07")
        for person in (
            ("00123", "Maya López"),
            ("A-77-2027-0000123", "Maya López"),
            ("00124", "Alexandria-Konstantina Featherstonehaugh-Papadopoulos"),
        )
    ]


def test_a_coordinator_joins_two_records(
    device: Callable, server, staff, administration, records
):
    maya, twin, _ = records
    page = open_console(device(viewport=DESK), staff.chen, server.url)
    page.goto(f"/console/administrations/{administration.pk}/people/{maya.pk}/")
    choose_action(page, "Join with another record")
    page.get_by_role("link", name="López, Maya").click()
    page.get_by_label("ID of the other record").fill("A-77-2027-0000123")
    page.get_by_role("button", name="Join records").click()
    expect(page.get_by_text("Other IDs")).to_be_visible()
    expect(page.locator("#main")).to_contain_text("A-77-2027-0000123")
    assert RecordJoin.objects.get().state == "joined"
    twin.refresh_from_db()
    assert twin.withdrawn_at


def test_the_pages_are_accessible_and_fit_the_screen(
    device: Callable, server, staff, administration, records
):
    maya, twin, _ = records
    base = f"/console/administrations/{administration.pk}/people"
    sights = {
        "person": f"{base}/{maya.pk}/",
        "search": f"{base}/{maya.pk}/join/",
        "search nobody": f"{base}/{maya.pk}/join/?q=nobody",
        "compare": f"{base}/{maya.pk}/join/?other={twin.pk}",
    }
    page = open_console(device(viewport=PHONE), staff.chen, server.url)
    for name, address in sights.items():
        page.goto(address)
        check_both(page, name)
    for started in (twin, maya):
        people = Respondent.objects.filter(pk=started.pk)
        people.update(started_at=timezone.now())
        page.goto(sights["compare"])
        check_both(page, f"compare, {started.identity.external_id} started")
    page.get_by_label("ID of the other record").fill("x")
    page.get_by_label("The record with the ID 00123").check()
    page.get_by_role("button", name="Join records").click()
    expect(page.locator(".error")).to_be_visible()
    check_both(page, "wrong ID")
    administration.coordinators_see_finished = False
    administration.save()
    page.goto(sights["search"])
    check_both(page, "hidden")
    administration.coordinators_see_finished = True
    administration.save()
    Respondent.objects.update(started_at=None)
    RecordJoin.objects.create(
        administration=administration,
        kept=maya,
        other=twin,
        state="joined",
        district=staff.riverside,
        external_id="A-77-2027-0000123",
        by=staff.chen,
    )
    twin.identity.delete()
    Respondent.objects.filter(pk=twin.pk).update(withdrawn_at=timezone.now())
    for person, name in ((maya, "kept"), (twin, "withdrawn")):
        page.goto(f"{base}/{person.pk}/")
        check_both(page, name)


def test_the_list_of_people_with_two_records_fits_the_screen(
    device: Callable, server, staff, administration, records
):
    copy = School.objects.create(district=staff.lakeside, code="x", name="Lincoln")
    for record in records:
        name = f"{record.identity.given_name} {record.identity.family_name}"
        invite(administration, copy, record.identity.external_id, name)
    Respondent.objects.update(started_at=timezone.now())
    merge = PlaceMerge.objects.create(
        kind="districts",
        district=staff.riverside,
        kept_id=staff.riverside.pk,
        kept_name="Riverside",
        duplicate_id=staff.lakeside.pk,
        duplicate_name="Lakeside",
        duplicate_code="lakeside",
        state="checked",
        by=staff.state,
        report=MergeReport(pairs=3).as_dict(),
    )
    page = open_console(device(viewport=PHONE), staff.state, server.url)
    page.goto(f"/console/merges/{merge.pk}/")
    check_both(page, "merge")
    page.get_by_role("link", name="Choose for single people").click()
    check_both(page, "people of a merge")
    page.get_by_label("Record that stays").first.select_option("kept")
    page.get_by_role("button", name="Save choices").click()
    expect(page.get_by_text("Choices saved")).to_be_visible()
    check_both(page, "people of a merge, chosen")
    page.goto(f"/console/merges/{merge.pk}/people/?q=nobody")
    check_both(page, "nobody of a merge")
