"""Scan feeds: download, parse, compare, apply, hold and confirm."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.utils.html import escape

from accounts.models import AuditEntry, District, QueuedEmail, School
from accounts.staff import dismiss
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from survey.models import FeedScan, FeedStage, Job, Respondent, RosterUpload
from survey.people.rosters import uploads
from survey.people.rosters.feeds import parse_stage, roster_stages, scans
from survey.people.rosters.feeds.feeds import change_feed
from survey.people.rosters.feeds.hold import reason_to_hold
from survey.people.rosters.feeds.scans import ScanConflict, cancel_scan, start_scan
from survey.people.rosters.feeds.stages import end_stage
from survey.people.rosters.upload_state import UploadConflict
from survey.people.rosters.uploads import WrongNumberTyped
from survey.tests.example_jobs import make_slowly
from survey.tests.rosters.feeds.feed_scans import (
    ORGS,
    confirm,
    invited,
    offer,
    run_jobs,
    scan,
    students,
    user,
    users,
    zip_of,
)
from survey.tests.rosters.oneroster.archives import archive
from survey.tests.rosters.roster_console import person
from survey.work import jobs
from survey.work.files import path_of
from survey.work.job_turns import next_job

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_scan_downloads_parses_compares_and_applies(feed, sis, staff):
    offer(sis, zip_of(*students(30), *students(20, school="washington", first=30)))
    ended = scan(feed)

    assert (ended.state, ended.message) == ("applied", "")
    assert len(invited()) == 50
    stages = {stage.stage: stage for stage in ended.stages.all()}
    assert list(stages) == ["download", "parse", "compare", "apply"]
    assert all(stage.is_done and stage.attempts == 1 for stage in stages.values())
    assert [stage.rows for stage in stages.values()] == [0, 50, 50, 50]
    assert stages["download"].bytes == len(sis.answers["/roster.zip"][2])
    assert feed.is_store_applied and path_of(feed.store).exists()
    [upload] = ended.uploads.all()
    assert (upload.state, upload.complete_for) == ("applied", "districts")
    # The download is deleted, and the store stays.
    names = [path.name for path in path_of("feeds/any").parent.iterdir()]
    assert f"feeds/{feed.store.removeprefix('feeds/')}" == feed.store
    assert feed.store.removeprefix("feeds/") in names
    assert ended.folder == ""
    assert not [name for name in names if path_of(f"feeds/{name}").is_dir()]
    actions = AuditEntry.objects.order_by("pk").values_list("action", "by")
    assert list(actions) == [
        ("add feed", staff.dana.email),
        ("scan feed", staff.dana.email),
        ("apply roster", "roster feed"),
    ]
    assert not QueuedEmail.objects.exists()


def test_a_districts_system_may_have_another_code_and_name_for_it(feed, sis):
    orgs = ORGS.replace("Riverside,district,riverside", "River Schools,district,0601")
    assert orgs != ORGS
    offer(sis, zip_of(*students(), orgs=orgs))
    assert scan(feed).state == "applied"
    assert len(invited()) == 30


def test_the_data_of_another_district_is_refused(feed, sis):
    District.objects.create(code="0602", name="Lakeshore")
    orgs = ORGS.replace("Riverside,district,riverside", "Lakeshore,district,77")
    offer(sis, zip_of(*students(), orgs=orgs))
    ended = scan(feed)
    assert (ended.state, invited()) == ("failed", [])
    assert "the data of Lakeshore (77)" in ended.message
    # The next download is not compared with this one.
    assert feed.store == ""


def test_unchanged_content_stops_after_the_download(feed, sis):
    offer(sis, zip_of(*students()))
    assert scan(feed).state == "applied"
    second = scan(feed)
    assert second.state == "unchanged"
    assert [stage.stage for stage in second.stages.all()] == ["download"]
    # The twin: other content.
    offer(sis, zip_of(*students(31)))
    assert scan(feed).state == "applied"
    assert len(invited()) == 31


def test_a_trial_shows_the_changes_and_never_applies_them(feed, sis, staff):
    offer(sis, zip_of(*students()))
    tried = scan(feed, reason="try")
    assert (tried.state, invited()) == ("tried", [])
    [upload] = tried.uploads.all()
    assert (upload.state, upload.report["added"]) == ("checked", 30)
    with pytest.raises(UploadConflict, match="part of a scan"):
        uploads.confirm(upload, by=staff.dana, seen="0")
    with pytest.raises(ScanConflict):
        confirm(tried, staff.dana)
    with pytest.raises(IntegrityError), transaction.atomic():
        FeedScan.objects.filter(pk=tried.pk).update(state="applied")

    # The content is known now, and was not applied: a scan does so.
    assert scan(feed).state == "applied"
    assert len(invited()) == 30
    tried.refresh_from_db()
    assert (tried.state, tried.message) == ("cancelled", "Replaced by a newer scan.")


def test_a_held_scan_names_the_number_that_confirms_it():
    """It is that of all administrations of the feed."""
    uploads_of_scan = [
        RosterUpload(withdrawn=5, must_be_typed=False),
        RosterUpload(withdrawn=28, must_be_typed=True),
    ]
    assert reason_to_hold(uploads_of_scan).startswith("33 people would be withdrawn")


def test_a_scan_that_withdraws_many_is_held_until_the_number_is_typed(feed, sis, staff):
    offer(sis, zip_of(*students()))
    scan(feed)
    offer(sis, zip_of(*students(26)))
    held = scan(feed)
    assert (held.state, len(invited())) == ("held", 30)
    assert "4 people would be withdrawn" in held.message
    assert not feed.is_store_applied
    # The owner is told once.
    assert list(QueuedEmail.objects.values_list("kind", "to")) == [
        ("feed scan held", staff.dana.email)
    ]
    with pytest.raises(WrongNumberTyped):
        confirm(held, staff.dana, typed="5")
    with pytest.raises(ScanConflict, match="figures have changed"):
        scans.confirm_scan(held, by=staff.dana, seen="3", typed="3")
    assert len(invited()) == 30

    confirm(held, staff.dana)
    run_jobs()
    held.refresh_from_db()
    assert (held.state, held.confirmed_by, held.typed) == ("applied", staff.dana, "4")
    assert len(invited()) == 26
    actions = AuditEntry.objects.order_by("-pk").values_list("action", "by")
    assert list(actions[:2]) == [
        ("apply roster", staff.dana.email),
        ("confirm feed scan", staff.dana.email),
    ]


def test_a_few_people_are_withdrawn_without_a_confirmation(feed, sis):
    """The twin: less than a tenth."""
    offer(sis, zip_of(*students()))
    scan(feed)
    offer(sis, zip_of(*students(28)))
    assert scan(feed).state == "applied"
    assert len(invited()) == 28


def test_the_next_scan_shows_held_content_again(feed, sis):
    offer(sis, zip_of(*students()))
    scan(feed)
    offer(sis, zip_of(*students(20)))
    held = scan(feed)
    next_scan = scan(feed)
    held.refresh_from_db()
    assert (held.state, next_scan.state) == ("cancelled", "held")
    assert QueuedEmail.objects.filter(kind="feed scan held").count() == 1


def test_new_ids_for_everybody_are_held(feed, sis):
    offer(sis, zip_of(*students()))
    scan(feed)
    # A delta withdraws nobody: everybody would exist twice.
    offer(sis, zip_of(*students(prefix="x"), mode="delta"))
    held = scan(feed)
    assert held.state == "held"
    assert "30 people are unknown" in held.message
    assert len(invited()) == 30


def test_unknown_schools_are_held(feed, sis):
    offer(sis, zip_of(*students()))
    scan(feed)
    names = ["North", "South", "East"]
    orgs = sis_orgs(names)
    more = [user(90 + n, school=name.lower()) for n, name in enumerate(names)]
    offer(sis, zip_of(*students(), *more, orgs=orgs))
    held = scan(feed)
    assert (held.state, len(invited())) == ("held", 30)
    assert "3 schools are unknown" in held.message


def test_a_new_school_with_a_name_near_a_known_one_waits_for_nobody(
    feed, sis, staff, client
):
    offer(sis, zip_of(*students()))
    scan(feed)
    rows = [*students(), *students(2, school="lincon", first=90)]
    offer(sis, zip_of(*rows, orgs=sis_orgs(["Lincon"])))
    tried = scan(feed, reason="try")
    [question] = tried.uploads.get().report["school_questions"]
    assert question["near"] == [staff.lincoln.pk]
    # Only an upload can be answered; here people are told, and change the source.
    log_in(client, staff.dana)
    shown = client.get(f"/console/rosters/{tried.uploads.get().pk}/").content.decode()
    assert "Did you mean <strong>Lincoln</strong>?" in shown
    assert "before you apply" not in shown
    assert (scan(feed).state, len(invited())) == ("applied", 32)
    assert School.objects.filter(district=staff.riverside, name="Lincon").count() == 1


def test_many_schools_with_other_names_are_held(feed, sis):
    names = ["North", "South", "East"]
    people = [user(90 + n, school=name.lower()) for n, name in enumerate(names)]
    offer(sis, zip_of(*people, orgs=sis_orgs(names)))
    assert scan(feed).state == "applied"
    orgs = sis_orgs(names)
    for name, new_name in zip(names, ("Adams", "Monroe", "Obama"), strict=True):
        orgs = orgs.replace(f",{name},school", f",{new_name},school")
    offer(sis, zip_of(*people, orgs=orgs))
    held = scan(feed)
    assert held.state == "held"
    assert "3 schools have other names" in held.message


def sis_orgs(names):
    rows = [f"o-{name.lower()},,,{name},school,{name}1,o-district" for name in names]
    return ORGS + "\n".join(rows) + "\n"


def test_many_rejected_rows_are_held(feed, sis):
    offer(sis, zip_of(*students()))
    scan(feed)
    offer(sis, zip_of(*students(), *students(11, first=50, grade="99")))
    held = scan(feed)
    assert (held.state, held.message) == ("held", "11 of 41 rows would be rejected.")


def test_a_delta_changes_only_what_it_names(feed, sis):
    offer(sis, zip_of(*students()))
    scan(feed)
    offer(sis, zip_of(user(30), user(1, given_name="Zoe"), mode="delta"))
    ended = scan(feed)
    assert ended.state == "applied", ended.message
    assert invited() == [f"u{number:04}" for number in range(31)]
    assert person("u0001").identity.given_name == "Zoe"


def test_a_delta_withdraws_people_who_have_left(feed, sis):
    offer(sis, zip_of(*students()))
    scan(feed)
    offer(sis, zip_of(user(0, status="tobedeleted"), user(30), mode="delta"))
    ended = scan(feed)
    assert ended.state == "applied", ended.message
    assert invited() == [f"u{number:04}" for number in range(1, 31)]


def test_a_delta_without_a_base_is_refused(feed, sis):
    offer(sis, zip_of(*students(), mode="delta"))
    ended = scan(feed)
    assert ended.state == "failed"
    assert "no complete users.csv was loaded before" in ended.message
    assert (invited(), feed.store) == ([], "")


def test_a_broken_file_fails_and_leaves_the_store(feed, sis):
    offer(sis, zip_of(*students()))
    scan(feed)
    before = feed.store
    offer(sis, b"PK\x03\x04 broken")
    assert scan(feed).state == "failed"
    assert feed.store == before and path_of(before).exists()
    # Not taken for known content.
    assert scan(feed).state == "failed"
    offer(sis, zip_of(*students(29)))
    assert scan(feed).state == "applied"


def test_credentials_that_cannot_be_decrypted_say_what_to_do(
    feed, sis, staff, settings
):
    offer(sis, zip_of(*students()))
    known = settings.FEED_KEYS
    change_feed(feed, by=staff.dana, credentials={"token": "correct-horse"})
    for keys, action in (
        (["another-key-" + "x" * 32], "Enter them again"),
        ([], "Ask your engineers to set GROUNDSWELL_FEED_KEYS"),
    ):
        settings.FEED_KEYS = keys
        ended = scan(feed)
        assert ended.state == "failed"
        assert action in ended.message
        assert action in ended.stages.get().message
    assert not sis.requests
    settings.FEED_KEYS = known
    assert scan(feed).state == "applied"


def test_ignored_files_and_columns_are_on_the_page_of_the_scan(
    feed, sis, staff, client
):
    rows = users(*(f"{row},x" for row in students())).replace(
        ",password\n", ",password,<b>ext</b>\n", 1
    )
    assert "<b>ext</b>" in rows
    files = {"orgs": ORGS, "users": rows, "lunch": "sourcedId,price\nMcIntyre,3\n"}
    offer(
        sis, archive(files, modes=dict.fromkeys(("orgs", "users"), "bulk")).getvalue()
    )
    ended = scan(feed)
    assert ended.state == "applied", ended.message
    notes = ended.stages.get(stage="parse").notes.splitlines()
    assert notes == [
        "'lunch.csv' was ignored: it is no file of OneRoster",
        "users.csv: column 'password' was ignored: passwords are never kept",
        "users.csv: column '<b>ext</b>' was ignored: it is no column of OneRoster",
    ]
    log_in(client, staff.dana)
    page = client.get(f"/console/feeds/{feed.pk}/scans/{ended.pk}/").content.decode()
    assert "What was ignored" in page
    assert all(escape(note) in page for note in notes)
    # No person's cell.
    for cell in ("Ali", "Diaz", "u0000", "McIntyre"):
        assert cell not in page
    # The twin: a later scan of other files says nothing about these.
    offer(sis, zip_of(*students(29)))
    later = scan(feed)
    assert "lunch" not in later.stages.get(stage="parse").notes


def test_notes_of_a_stage_are_limited(feed):
    row = FeedScan.objects.create(feed=feed, district=feed.district, reason="now")
    stage = FeedStage.objects.create(scan=row, stage="parse")
    end_stage(stage, notes=[f"column\n{n} " + "x" * 500 for n in range(150)])
    stage.refresh_from_db()
    lines = stage.notes.splitlines()
    assert (len(lines), lines[-1]) == (101, "and 50 more")
    assert max(map(len, lines)) == 200 and lines[0].startswith("column 0 x")


def test_three_failures_in_a_row_are_told_once(feed, sis, staff):
    offer(sis, zip_of(*students()))
    scan(feed)
    content = sis.answers["/roster.zip"][2]
    for _ in range(2):
        sis.give("/roster.zip", 404)
        assert scan(feed).state == "failed"
    assert not QueuedEmail.objects.exists()
    assert scan(feed).state == "failed"
    emails = [("feed scan failed", staff.dana.email)]
    assert list(QueuedEmail.objects.values_list("kind", "to")) == emails
    scan(feed)
    assert (QueuedEmail.objects.count(), feed.failures_in_a_row) == (1, 4)
    # A success ends the series.
    offer(sis, content)
    assert (scan(feed).state, feed.failures_in_a_row) == ("unchanged", 0)


def test_scans_of_a_district_do_not_overlap(feed, sis, staff):
    offer(sis, zip_of(*students()))
    first = start_scan(feed, reason="now", by=staff.dana)
    with pytest.raises(ScanConflict, match="is being scanned"):
        start_scan(feed, reason="now", by=staff.dana)
    with pytest.raises(IntegrityError), transaction.atomic():
        FeedScan.objects.create(feed=feed, district=staff.riverside, reason="now")
    assert FeedScan.objects.count() == Job.objects.count() == 1
    run_jobs()
    first.refresh_from_db()
    assert first.state == "applied"
    # The twin: it is over.
    start_scan(feed, reason="now", by=staff.dana)


def test_a_feed_fails_when_its_owner_loses_the_permission(feed, sis, staff):
    offer(sis, zip_of(*students()))
    for membership in staff.dana.memberships.all():
        dismiss(membership=membership, by=staff.state)
    ended = scan(feed)
    assert ended.state == "failed"
    assert "may no longer manage rosters" in ended.message
    assert (invited(), sis.requests) == ([], [])


def test_an_owner_who_has_lost_the_permission_is_told_nothing(feed, sis, staff):
    eve = member("eve@example.org", "district", district=staff.riverside)
    for membership in staff.dana.memberships.all():
        dismiss(membership=membership, by=staff.state)
    for _ in range(3):
        assert scan(feed, by=staff.state).state == "failed"
    emails = QueuedEmail.objects.filter(kind="feed scan failed")
    assert list(emails.values_list("to", flat=True)) == [eve.email]


def test_a_waiting_scan_can_be_cancelled(feed, sis, staff):
    offer(sis, zip_of(*students()))
    ended = start_scan(feed, reason="now", by=staff.dana)
    cancel_scan(ended, by=staff.dana)
    run_jobs()
    ended.refresh_from_db()
    assert (ended.state, invited()) == ("cancelled", [])
    assert AuditEntry.objects.filter(action="cancel feed scan").count() == 1
    with pytest.raises(ScanConflict):
        cancel_scan(ended, by=staff.dana)


def test_a_scan_cancelled_while_it_compares_is_not_applied(
    feed, sis, staff, monkeypatch
):
    offer(sis, zip_of(*students()))
    ended = start_scan(feed, reason="now", by=staff.dana)
    check = roster_stages.check_upload

    def check_and_cancel(upload, progress):
        check(upload, progress)
        cancel_scan(ended, by=staff.dana)

    monkeypatch.setattr(roster_stages, "check_upload", check_and_cancel)
    run_jobs()
    ended.refresh_from_db()
    assert (ended.state, invited()) == ("cancelled", [])
    assert ended.uploads.get().state == "cancelled"


def test_a_scan_cancelled_while_it_parses_is_not_applied(feed, sis, staff, monkeypatch):
    offer(sis, zip_of(*students()))
    ended = start_scan(feed, reason="now", by=staff.dana)
    load_into = parse_stage.load_into

    def load_and_cancel(store, download):
        notes = load_into(store, download)
        cancel_scan(ended, by=staff.dana)
        return notes

    monkeypatch.setattr(parse_stage, "load_into", load_and_cancel)
    run_jobs()
    ended.refresh_from_db()
    feed.refresh_from_db()
    assert (ended.state, invited(), feed.store) == ("cancelled", [], "")
    assert not ended.uploads.exists()


def test_a_confirmed_scan_and_an_upload_go_before_a_nightly_scan(feed, staff):
    night = Job.objects.create(kind="feed.scan")
    upload = jobs.start(make_slowly, by=staff.chen)
    confirmed = Job.objects.create(kind="feed.confirmed", by=staff.dana)
    order = []
    while (pk := next_job(jobs.SCANS)) is not None:
        order.append(pk)
        Job.objects.filter(pk=pk).delete()
    assert order == [confirmed.pk, upload.pk, night.pk]


def test_jobs_of_people_go_before_those_of_the_schedule(feed, staff):
    by_night = Job.objects.create(kind="feed.download")
    Job.objects.create(
        kind="feed.download",
        by=staff.dana,
        state="done",
        started_at=by_night.created_at,
        ended_at=by_night.created_at,
    )
    by_hand = Job.objects.create(kind="feed.download", by=staff.dana)
    assert next_job(jobs.DOWNLOADS) == by_hand.pk


def test_another_id_column_adds_nobody_a_second_time(feed, sis, staff):
    rows = [user(number, identifier=f"{number:05}") for number in range(30)]
    offer(sis, zip_of(*rows))
    scan(feed)
    people = {row["id"] for row in Respondent.objects.values("id")}
    change_feed(feed, by=staff.dana, identity="identifier")
    ended = scan(feed)
    if ended.state == "held":
        confirm(ended, staff.dana)
        run_jobs()
        ended.refresh_from_db()
    assert ended.state == "applied", ended.message
    assert invited() == [f"{number:05}" for number in range(30)]
    assert {row["id"] for row in Respondent.objects.values("id")} == people
    feed.refresh_from_db()
    assert feed.previous_identity == ""


def test_a_district_that_the_source_names_differently_is_that_of_the_feed(feed, sis):
    offer(sis, zip_of(*students(), orgs=ORGS.replace("Riverside", "Other Unified")))
    ended = scan(feed)
    assert ended.state == "applied", ended.message
    assert len(invited()) == 30
