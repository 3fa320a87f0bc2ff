"""Name the people whom a roster would withdraw, to the right people only."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry, School
from accounts.permissions import Permissions
from survey.console.rosters import missing_people as pages
from survey.models import Respondent, RosterMissing, RosterUpload
from survey.people.rosters import missing_people, retention
from survey.people.rosters.apply_job import MORE_WITHDRAWN
from survey.tests.rosters.roster_console import ALI, HEADER, MAYA, NOOR, ZOE, person
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

EVE = "riverside,lincoln,00130,Eve,Ngo,8,8C"


@pytest.fixture
def administration(administration):
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    return administration


@pytest.fixture
def upload(staff, administration, console_of):
    """Maya, Ali and Zoe are on the roster; the new one lists Eve and Zoe."""
    run_import(administration, HEADER, MAYA, ALI, ZOE)
    return console_of(staff.dana).upload(administration, HEADER, EVE, ZOE)


def listed(upload):
    stored = RosterMissing.objects.filter(upload=upload)
    people = Respondent.objects.filter(pk__in=stored.values("respondent"))
    return sorted(people.values_list("identity__external_id", flat=True))


def address(upload, school=None, ending="/"):
    school = f"/{school.pk}" if school else ""
    return f"/console/rosters/{upload.pk}/missing{school}{ending}"


def rows_of(response):
    return list(csv.reader(io.StringIO(response.content.decode("utf-8-sig"))))


def test_people_to_withdraw_are_named_by_school_and_downloaded(
    staff, administration, console_of, upload
):
    dana = console_of(staff.dana)
    page = dana.get(f"/console/rosters/{upload.pk}/").content.decode()
    assert f'href="{address(upload)}"' in page
    page = dana.get(address(upload)).content.decode()
    assert "2 people of Lincoln" in page and "Washington" not in page
    page = dana.get(address(upload, staff.lincoln)).content.decode()
    assert "Lopez" in page and "00124" in page and "not started" in page
    assert "Kim" not in page and "Ngo" not in page
    page = dana.get(address(upload, staff.lincoln), q="lop").content.decode()
    assert "Lopez" in page and "Diaz" not in page

    assert rows_of(dana.get(address(upload, ending=".csv"))) == [
        ["District", "School", "ID", "Family name", "Given name", "Grade", "Class",
         "Reason", "Started"],
        ["Riverside", "Lincoln", "00124", "Diaz", "Ali", "07", "7A",
         "not in the file", "no"],
        ["Riverside", "Lincoln", "00123", "Lopez", "Maya", "07", "7B",
         "not in the file", "no"],
    ]  # fmt: skip
    assert len(rows_of(dana.get(address(upload, staff.lincoln, ".csv")))) == 3
    assert len(rows_of(dana.get(address(upload, staff.washington, ".csv")))) == 1
    entries = AuditEntry.objects.filter(action="download people to withdraw")
    assert [entry.after["people"] for entry in entries.order_by("pk")] == [2, 2, 0]
    assert not any("Lopez" in str(entry.after) for entry in AuditEntry.objects.all())


def test_a_coordinator_goes_straight_to_the_own_school(
    staff, administration, console_of
):
    chen = console_of(staff.chen)
    run_import(administration, HEADER, MAYA, ALI)
    upload = chen.upload(administration, HEADER, MAYA)
    page = chen.get(address(upload)).content.decode()
    assert "1 person of Lincoln" in page and "Diaz" in page


def test_other_districts_and_analysts_see_no_list(staff, console_of, upload):
    for user in (staff.sam, staff.chen, staff.analyst):
        stranger = console_of(user)
        for school in (None, staff.lincoln, staff.roosevelt):
            for ending in ("/", ".csv"):
                place = address(upload, school, ending)
                assert stranger.get(place).status_code == 404, (user, place)
    assert console_of(staff.dana).get(address(upload)).status_code == 200
    foreign = address(upload, staff.roosevelt)
    assert console_of(staff.dana).get(foreign).status_code == 404


def test_people_who_moved_to_another_district_are_not_named(
    staff, console_of, upload, monkeypatch
):
    """With the rule on places off, their names are shown."""
    Respondent.objects.filter(pk=person("00123").pk).update(school=staff.roosevelt)
    dana = console_of(staff.dana)
    everything = address(upload, ending=".csv")
    assert [row[2] for row in rows_of(dana.get(everything))] == ["ID", "00124"]
    monkeypatch.setattr(Permissions, "schools", lambda *_: School.objects.all())
    assert b"00123" in dana.get(everything).content


def test_progress_is_hidden_where_completion_is_confidential(
    staff, administration, console_of, upload
):
    Respondent.objects.update(started_at=timezone.now())
    dana = console_of(staff.dana)
    assert b"started" in dana.get(address(upload, staff.lincoln)).content
    administration.coordinators_see_finished = False
    administration.save(update_fields=["coordinators_see_finished"])
    assert b"started" not in dana.get(address(upload, staff.lincoln)).content
    [header, first, *_] = rows_of(dana.get(address(upload, ending=".csv")))
    assert header[-1] == "Reason" and "yes" not in first


def test_pages_take_the_same_queries_for_three_rows_as_for_one(
    staff, administration, console_of, django_assert_num_queries
):
    dana = console_of(staff.dana)

    def pages(upload, people, schools):
        with django_assert_num_queries(6):
            assert len(dana.get(address(upload)).context["rows"]) == schools
        with django_assert_num_queries(9):
            response = dana.get(address(upload, staff.lincoln))
        assert len(response.context["rows"]) == people
        with django_assert_num_queries(7):
            dana.get(address(upload, ending=".csv"))

    run_import(administration, HEADER, MAYA, ALI, EVE, ZOE)
    pages(dana.upload(administration, HEADER, MAYA, ALI, ZOE), 1, 1)
    row = "riverside,{},0099,Kai,Okafor,8,8A"
    lines = [row.format(code) for code in ("lincoln", "washington")]
    lines[1] = lines[1].replace("0099", "0098")
    pages(dana.upload(administration, HEADER, *lines), 3, 2)


def test_a_file_with_too_many_people_is_downloaded_by_school(
    staff, console_of, upload, monkeypatch
):
    monkeypatch.setattr(pages, "MOST_IN_A_FILE", 1)
    dana = console_of(staff.dana)
    assert b"Download all" not in dana.get(address(upload)).content
    assert dana.get(address(upload, ending=".csv")).status_code == 302
    assert len(rows_of(dana.get(address(upload, staff.lincoln, ".csv")))) == 3


def test_the_list_is_kept_until_the_roster_is_applied(staff, console_of, upload):
    assert listed(upload) == ["00123", "00124"]
    dana = console_of(staff.dana)
    dana.confirm(upload, typed="2")
    assert upload.state == "applied"
    assert person("00123").withdrawn_at and not person("00125").withdrawn_at
    assert listed(upload) == []
    assert dana.get(address(upload)).status_code == 404


def test_the_list_of_a_cancelled_or_old_roster_is_deleted(
    staff, administration, console_of, upload
):
    dana = console_of(staff.dana)
    old = dana.upload(administration, HEADER, EVE, ZOE)
    listed_roster = dana.upload(administration, HEADER, EVE, ZOE)
    RosterUpload.objects.filter(pk=old.pk).update(
        uploaded_at=timezone.now() - timedelta(days=31)
    )
    dana.post(f"/console/rosters/{upload.pk}/cancel/")
    assert dana.get(address(upload)).status_code == 404
    assert retention.forget_decided_lists() == 2
    assert listed(upload) == listed(old) == []
    assert listed(listed_roster) == ["00123", "00124"]


def test_other_people_than_shown_are_not_withdrawn_unseen(
    staff, administration, console_of, upload
):
    """As many people of the same school, but others."""
    dana = console_of(staff.dana)
    Respondent.objects.filter(pk=person("00123").pk).update(withdrawn_at=timezone.now())
    nia = EVE.replace("00130", "00140")
    dana.apply(administration, HEADER, nia, complete_for="changes")
    dana.confirm(upload, typed="2")
    assert (upload.state, upload.message) == ("checked", MORE_WITHDRAWN)
    assert upload.withdrawn == 2
    assert not person("00140").withdrawn_at and not person("00124").withdrawn_at
    # Now they are shown, and can be confirmed.
    assert listed(upload) == ["00124", "00140"]
    dana.confirm(upload, typed="2")
    assert upload.state == "applied"
    assert person("00140").withdrawn_at


def test_people_who_changed_schools_after_the_check_are_not_withdrawn_unseen(
    staff, console_of, upload
):
    """The same people, but more of another school than the page showed."""
    dana = console_of(staff.dana)
    Respondent.objects.filter(pk=person("00123").pk).update(school=staff.washington)
    dana.confirm(upload, typed="2")
    assert (upload.state, upload.message) == ("checked", MORE_WITHDRAWN)
    assert not person("00123").withdrawn_at
    assert "1 person of Washington" in dana.get(address(upload)).content.decode()


def test_lists_are_stored_and_deleted_in_batches(
    staff, administration, console_of, upload, monkeypatch
):
    monkeypatch.setattr(missing_people, "AT_ONCE", 1)
    lincoln = [EVE.replace("00130", f"002{number:02}") for number in range(5)]
    run_import(administration, HEADER, *lincoln)
    second = console_of(staff.dana).upload(administration, HEADER, EVE, ZOE)
    assert len(listed(second)) == 7
    missing_people.forget_missing_people(second)
    assert listed(second) == []
    assert len(listed(upload)) == 2


STATUS = f"{HEADER},status"


def left(line):
    return f"{line},withdrawn"


def active(line):
    return f"{line},active"


def test_people_marked_as_left_are_listed_and_withdrawn_whatever_the_file_is_for(
    staff, administration, console_of
):
    dana = console_of(staff.dana)
    run_import(administration, HEADER, MAYA, ALI, ZOE)
    upload = dana.upload(
        administration, STATUS, active(MAYA), left(ALI), left(EVE),
        complete_for="changes",
    )  # fmt: skip
    assert listed(upload) == ["00124"]
    figures = [upload.report[name] for name in ("left", "left_withdrawn", "withdrawn")]
    assert figures == [2, 1, 1]
    detail = " ".join(
        dana.get(f"/console/rosters/{upload.pk}/").content.decode().split()
    )
    assert "2 people are marked as inactive, withdrawn or exited." in detail
    assert "1 is on the roster and is withdrawn when you apply" in detail
    page = dana.get(address(upload, staff.lincoln)).content.decode()
    assert "marked as left" in page and "not in the file" not in page
    dana.confirm(upload, typed="1")
    assert upload.state == "applied"
    assert person("00124").withdrawn_at
    assert not person("00123").withdrawn_at and not person("00125").withdrawn_at
    assert not Respondent.objects.filter(identity__external_id="00130").exists()


def test_marked_and_missing_people_are_told_apart(staff, administration, console_of):
    dana = console_of(staff.dana)
    run_import(administration, HEADER, MAYA, ALI, EVE)
    upload = dana.upload(administration, STATUS, active(MAYA), left(ALI))
    assert [upload.report[name] for name in ("left_withdrawn", "withdrawn")] == [1, 2]
    rows = rows_of(dana.get(address(upload, ending=".csv")))
    assert [(row[2], row[7]) for row in rows[1:]] == [
        ("00124", "marked as left"),
        ("00130", "not in the file"),
    ]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            [left(ALI), active(ALI.replace("lincoln", "washington"))],
            id="an active row at the new school",
        ),
        pytest.param(
            [left(ALI.replace("lincoln", "washington"))],
            id="a row of an earlier school",
        ),
        pytest.param([left(ALI), active(ALI.replace(",7,", ",77,"))], id="a bad row"),
    ],
)
def test_people_with_another_row_or_school_are_not_withdrawn(
    staff, administration, console_of, lines
):
    dana = console_of(staff.dana)
    run_import(administration, HEADER, MAYA, ALI, ZOE)
    upload = dana.upload(administration, STATUS, *lines, complete_for="changes")
    assert (upload.withdrawn, listed(upload)) == (0, [])
    assert School.objects.count() == 3


def test_a_coordinator_cannot_withdraw_people_of_another_school(
    staff, administration, console_of
):
    run_import(administration, HEADER, MAYA, ZOE, NOOR)
    upload = console_of(staff.chen).upload(
        administration, STATUS, active(MAYA), left(ZOE), left(NOOR),
        complete_for="changes",
    )  # fmt: skip
    assert (upload.withdrawn, listed(upload)) == (0, [])
    upload = console_of(staff.state).upload(
        administration, STATUS, active(MAYA), left(ZOE), left(NOOR),
        complete_for="changes",
    )  # fmt: skip
    assert listed(upload) == ["00123", "00125"]


def test_a_district_cannot_withdraw_people_of_another_one(
    staff, administration, console_of
):
    """Noor has the same ID in the other district as Maya in this one."""
    run_import(administration, HEADER, MAYA, ZOE, NOOR)
    gone = [left(NOOR), left(NOOR.replace("roosevelt", "nowhere"))]
    upload = console_of(staff.dana).upload(
        administration, STATUS, active(ZOE), *gone, complete_for="changes"
    )
    assert (upload.withdrawn, listed(upload)) == (0, [])
    upload = console_of(staff.state).upload(
        administration, STATUS, active(ZOE), *gone, complete_for="changes"
    )
    [missing] = RosterMissing.objects.filter(upload=upload)
    assert missing.respondent_id == person("00123", "lakeside").pk
