"""Confirm and cancel held scans through their page."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.tests.logging_in import log_in
from survey.models import FeedScan, RosterUpload
from survey.people.rosters import apply, apply_job
from survey.people.rosters.change_record import BEING_UNDONE
from survey.tests.rosters.feeds.feed_scans import (
    invited,
    offer,
    orgs_named,
    run_jobs,
    scan,
    students,
    zip_of,
)
from survey.work.files import path_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(held):
    return f"/console/feeds/{held.feed_id}/scans/{held.pk}/"


def state_of(scan):
    return FeedScan.objects.get(pk=scan.pk).state


def test_a_held_scan_is_applied_when_the_number_is_typed(client, staff, held, page):
    log_in(client, staff.dana)
    shown = client.get(page).content.decode()
    assert "4 people will be withdrawn" in shown
    assert 'name="typed"' in shown
    for typed in ("", "5", "four", "4" * 400):
        wrong = client.post(f"{page}confirm/", {"seen": "4", "typed": typed})
        assert wrong.status_code == 200
        assert "Type the number of people who will be withdrawn: 4." in (
            wrong.content.decode()
        )
    run_jobs()
    assert (state_of(held), len(invited())) == ("held", 30)

    assert client.post(f"{page}confirm/", {"seen": "4", "typed": "4"}).url == page
    run_jobs()
    assert (state_of(held), len(invited())) == ("applied", 26)
    shown = client.get(page).content.decode()
    assert f"Confirmed by {staff.dana}" in shown
    assert "Apply and withdraw" not in shown


def test_other_figures_than_those_of_the_page_are_not_confirmed(
    client, staff, held, page
):
    log_in(client, staff.dana)
    for seen in ("3", ""):
        response = client.post(
            f"{page}confirm/", {"seen": seen, "typed": "4"}, follow=True
        )
        assert "The figures have changed" in response.content.decode()
    run_jobs()
    assert (state_of(held), len(invited())) == ("held", 30)


def test_a_held_scan_is_cancelled(client, staff, held, page):
    log_in(client, staff.dana)
    assert "Cancel this scan" in client.get(page).content.decode()
    assert client.get(f"{page}cancel/").status_code == 405
    cancelled = client.post(f"{page}cancel/", follow=True)
    assert "The scan was cancelled." in cancelled.content.decode()
    assert (state_of(held), held.uploads.get().state) == ("cancelled", "cancelled")
    # Nothing is left to confirm.
    late = client.post(f"{page}confirm/", {"seen": "4", "typed": "4"}, follow=True)
    assert "can&#x27;t be done now" in late.content.decode()
    reply = client.post(f"{page}cancel/", follow=True)
    assert "The scan was cancelled." not in reply.content.decode()
    run_jobs()
    assert (state_of(held), len(invited())) == ("cancelled", 30)


def test_a_held_scan_that_withdraws_nobody_does_not_ask_for_a_number(
    client, staff, feed, sis
):
    rows = [row for n in range(4) for row in students(10, school=f"s{n}", first=10 * n)]
    offer(sis, zip_of(*rows, orgs=orgs_named("North", "South", "East", "West")))
    assert scan(feed).state == "applied"
    offer(sis, zip_of(*rows, orgs=orgs_named("Alder", "Birch", "Cedar", "Dogwood")))
    held = scan(feed)
    assert (held.state, held.message) == (
        "held",
        "4 schools have other names than before.",
    )
    log_in(client, staff.dana)
    page = f"/console/feeds/{feed.pk}/scans/{held.pk}/"
    shown = client.get(page).content.decode()
    assert "Nobody will be withdrawn." in shown
    assert "Apply and withdraw" not in shown
    assert 'name="typed"' not in shown
    check = f"/console/rosters/{held.uploads.get().pk}/#places-to-check"
    assert check in shown
    assert "Alder" in client.get(check).content.decode()
    client.post(f"{page}confirm/", {"seen": "0"})
    run_jobs()
    assert (state_of(held), len(invited())) == ("applied", 40)


def test_another_district_neither_sees_nor_confirms_nor_cancels_a_held_scan(
    client, staff, held, page
):
    staff.sam.memberships.update(role="district", district=staff.lakeside, school=None)
    for user in (staff.sam, staff.chen):
        log_in(client, user)
        assert client.get(page).status_code == 404
        for action in ("confirm/", "cancel/"):
            response = client.post(page + action, {"seen": "4", "typed": "4"})
            assert response.status_code == 404
    run_jobs()
    assert (state_of(held), len(invited())) == ("held", 30)


def test_the_roster_of_a_scan_is_decided_on_the_page_of_the_scan(
    client, staff, held, page
):
    [upload] = held.uploads.all()
    file, address = path_of(upload.file), f"/console/rosters/{upload.pk}/"
    typed = {"seen": "4", "typed": "4"}
    log_in(client, staff.dana)
    shown = client.get(address).content.decode()
    assert f'href="{page}"' in shown and "Review the scan" in shown
    assert "waits for its scan" in shown and "ready to apply" not in shown
    assert "Apply roster" not in shown and f"{address}confirm/" not in shown
    assert f"{address}cancel/" not in shown
    assert client.get(f"{address}missing/").status_code == 200
    for action in ("confirm/", "cancel/", "again/"):
        refused = client.post(address + action, typed, follow=True).content.decode()
        assert "This roster is part of a scan of a roster sync." in refused
    upload.refresh_from_db()
    assert (state_of(held), upload.state) == ("held", "checked")

    # After the scan was cancelled, nothing of it is left to confirm.
    client.post(f"{page}cancel/")
    for action in ("confirm/", "again/", "columns/"):
        client.post(address + action, typed)
    run_jobs()
    upload.refresh_from_db()
    assert (upload.state, upload.file) == ("cancelled", "")
    assert not file.exists()
    assert client.get(f"{address}missing/").status_code == 404
    assert (state_of(held), len(invited())) == ("cancelled", 30)


def test_a_number_that_was_typed_for_another_scan_confirms_nothing(
    client, staff, held, page, feed, sis
):
    """A newer scan would withdraw others: the page of the older one is out of date."""
    offer(sis, zip_of(*students(25)))
    newer = scan(feed)
    assert newer.state == "held"
    log_in(client, staff.dana)
    for pk in (held.pk, newer.pk):
        address = f"/console/feeds/{feed.pk}/scans/{pk}/"
        client.post(f"{address}confirm/", {"seen": "4", "typed": "4"})
    run_jobs()
    assert (state_of(held), state_of(newer), len(invited())) == (
        "cancelled",
        "held",
        30,
    )


def test_the_roster_of_a_trial_leads_back_to_the_trial(client, staff, feed, sis):
    offer(sis, zip_of(*students()))
    tried = scan(feed, reason="try")
    [upload] = tried.uploads.all()
    log_in(client, staff.dana)
    shown = client.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert f"/console/feeds/{feed.pk}/scans/{tried.pk}/" in shown
    assert "which never changes anything" in shown
    assert ">trial</span>" in shown and "ready to apply" not in shown
    assert ">trial</span>" in client.get("/console/rosters/").content.decode()
    assert "Apply roster" not in shown and "/confirm/" not in shown
    # The twin: an uploaded roster with the same figures is confirmed on its own page.
    RosterUpload.objects.filter(pk=upload.pk).update(scan=None)
    shown = client.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "Apply roster" in shown


@pytest.mark.parametrize("state", ["checking", "checked", "applying"])
def test_a_scan_that_is_running_offers_nothing_on_its_rosters(
    client, staff, held, page, state
):
    """No job of the roster's own runs then."""
    [upload] = held.uploads.all()
    FeedScan.objects.filter(pk=held.pk).update(state="running")
    confirmed = {"confirmed_at": timezone.now()} if state == "applying" else {}
    held.uploads.update(state=state, **confirmed)
    log_in(client, staff.dana)
    shown = client.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert page in shown
    for words in ("Processing has stopped", "Start again", "Apply roster"):
        assert words not in shown
    assert f"/console/rosters/{upload.pk}/confirm/" not in shown


@pytest.fixture
def half_applied(feed, sis, administration, monkeypatch):
    """A scan that applied 30 people, and one that failed before it withdrew two."""
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    offer(sis, zip_of(*students()))
    first = scan(feed)
    offer(sis, zip_of(*students(28), *students(2, first=90)))
    with monkeypatch.context() as patch:
        patch.setattr(apply, "withdraw_people", lambda *_: 1 / 0)
        second = scan(feed)
    assert (first.state, second.state) == ("applied", "failed")
    assert len(invited()) == 32
    return first.uploads.get(), second.uploads.get()


def undo(client, upload):
    client.post(f"/console/rosters/{upload.pk}/undo/")
    run_jobs()
    upload.refresh_from_db()
    return upload.state


def test_a_roster_that_was_applied_in_part_is_undone(client, staff, half_applied):
    first, second = half_applied
    log_in(client, staff.dana)
    # The earlier roster names it, and waits.
    shown = client.get(f"/console/rosters/{first.pk}/undo/").content.decode()
    assert "“PowerSchool” of " in shown and "Undo that roster first." in shown
    assert undo(client, first) == "applied"

    shown = client.get(f"/console/rosters/{second.pk}/").content.decode()
    assert f"/console/rosters/{second.pk}/undo/" in shown
    assert "The next scan of the roster sync PowerSchool applies the rest" in shown
    assert undo(client, second) == "undone"
    assert invited() == [f"u{n:04}" for n in range(30)]
    shown = client.get(f"/console/rosters/{second.pk}/").content.decode()
    assert "applied in part and then undone" in shown
    assert undo(client, first) == "undone"
    assert invited() == []


def test_the_next_scan_applies_the_rest_of_a_roster(client, staff, half_applied, feed):
    _, second = half_applied
    assert scan(feed).state == "applied"
    assert len(invited()) == 30
    # Its changes are undone after those of the scan that followed, which it does not
    # block, because they are older.
    log_in(client, staff.dana)
    assert undo(client, second) == "failed"
    newest = feed.scans.first().uploads.get()
    assert undo(client, newest) == "undone"
    assert undo(client, second) == "undone"
    assert invited() == [f"u{n:04}" for n in range(30)]


def test_an_undo_that_is_refused_by_its_job_leaves_the_roster_as_it_was(
    client, staff, half_applied
):
    _, second = half_applied
    log_in(client, staff.dana)
    client.post(f"/console/rosters/{second.pk}/undo/")
    staff.dana.memberships.update(ended_at=timezone.now())
    run_jobs()
    second.refresh_from_db()
    assert second.state == "failed"
    assert len(invited()) == 32


def test_a_scan_that_failed_before_it_changed_anything_blocks_nothing(
    client, staff, feed, sis, administration, monkeypatch
):
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    offer(sis, zip_of(*students()))
    first = scan(feed).uploads.get()
    offer(sis, zip_of(*students(28)))
    with monkeypatch.context() as patch:
        patch.setattr(apply_job, "refuse_while_undoing", lambda _: BEING_UNDONE)
        failed = scan(feed)
    [upload] = failed.uploads.all()
    assert (failed.message, upload.state) == (BEING_UNDONE, "failed")
    assert upload.confirmed_at
    log_in(client, staff.dana)
    shown = client.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert "Undo what was applied" not in shown
    assert undo(client, first) == "undone"
    assert invited() == []
