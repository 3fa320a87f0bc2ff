"""Download the current roster."""

from __future__ import annotations

import csv
import io
from datetime import date
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.console.people import roster_file
from survey.models import Identity, Respondent
from survey.people.rosters import row_parser
from survey.tests.people import invite
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

SAMPLE_FILES = Path(__file__).parents[1] / "rosters" / "sample_files"


@pytest.fixture
def people(administration, staff) -> list[Respondent]:
    administration.subgroups = {"lunch": ["free", "paid"]}
    administration.save()
    maya = invite(
        administration, staff.lincoln, "00123", "Maya López", grade="07", language="es"
    )
    Respondent.objects.filter(pk=maya.pk).update(
        attributes={"lunch": "free"}, classroom="7B", started_at=timezone.now()
    )
    Identity.objects.filter(pk=maya.pk).update(birth_date=date(2014, 3, 4))
    ali = invite(administration, staff.lincoln, "00124", "=1+1 Diaz", grade="08")
    # `invite` stores one of its own.
    Respondent.objects.filter(pk=ali.pk).update(attributes={})
    gone = invite(administration, staff.lincoln, "00125", "Zoe Kim")
    Respondent.objects.filter(pk=gone.pk).update(withdrawn_at=timezone.now())
    invite(administration, staff.roosevelt, "00123", "Noor Haddad")
    return [maya, ali]


def get_roster(client, administration, **query):
    people = f"/console/administrations/{administration.pk}/people/"
    return client.get(f"{people}roster.csv", query)


def lines_of(response) -> list[str]:
    return response.content.decode("utf-8-sig").splitlines()


def test_ms_chen_downloads_her_roster(client, staff, administration, people):
    log_in(client, staff.chen)
    response = get_roster(client, administration)
    assert response["Content-Type"].startswith("text/csv")
    assert "no-store" in response["Cache-Control"]
    assert lines_of(response) == [
        "District,School,Student ID,Given name,Family name,Grade,Class,Birth date,"
        "E-mail,Language,lunch",
        "riverside,lincoln,00123,Maya,López,07,7B,2014-03-04,,es,free",
        "riverside,lincoln,00124,'=1+1,Diaz,08,,,,,",
    ]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.school_id, entry.after) == (
        "download a roster",
        staff.lincoln.pk,
        {"people": 2},
    )


def test_uploading_the_file_again_changes_nothing(
    client, staff, administration, people
):
    log_in(client, staff.chen)
    lines = lines_of(get_roster(client, administration))
    report = run_import(administration, *lines, complete_for="schools")
    figures = (report.unchanged, report.changed, report.added, report.withdrawn)
    assert (report.rejected, *figures) == (0, 2, 0, 0, 0)


def upload_twice(client, staff, administration):
    """Import odd names and IDs, and the roster that is downloaded of them."""
    content = (SAMPLE_FILES / "own_roster_first.csv").read_text()
    first = run_import(administration, content, partial=True)
    assert first.added == 12
    log_in(client, staff.chen)
    response = get_roster(client, administration)
    content = response.content.decode("utf-8-sig")
    assert "'=V8" in content and "'-Ana" in content
    return run_import(administration, content, complete_for="schools", partial=True)


def test_names_and_ids_that_look_like_formulas_come_back_equal(
    client, staff, administration
):
    report = upload_twice(client, staff, administration)
    figures = (report.unchanged, report.changed, report.added, report.withdrawn)
    assert (report.rejected, *figures) == (0, 12, 0, 0, 0)


def test_people_would_be_made_anew_under_an_id_with_an_apostrophe(
    client, staff, administration, monkeypatch
):
    monkeypatch.setattr(row_parser, "unescape_formula", lambda cell: cell)
    report = upload_twice(client, staff, administration)
    assert (report.added, report.withdrawn) == (2, 2)


def test_only_the_users_own_schools_are_in_it(client, staff, administration, people):
    roosevelt = staff.roosevelt.pk
    log_in(client, staff.chen)
    assert get_roster(client, administration, school=roosevelt).status_code == 404
    log_in(client, staff.dana)
    lines = lines_of(get_roster(client, administration))
    rows = csv.DictReader(io.StringIO("\n".join(lines)))
    assert {row["School"] for row in rows} == {"lincoln"}
    assert AuditEntry.objects.latest("pk").district_id == staff.riverside.pk
    log_in(client, staff.state)
    assert len(lines_of(get_roster(client, administration))) == 4
    only = get_roster(client, administration, school=roosevelt)
    assert len(lines_of(only)) == 2
    log_in(client, staff.analyst)
    assert get_roster(client, administration).status_code == 404


def test_it_tells_nothing_about_progress(client, staff, administration, people):
    log_in(client, staff.chen)
    before = get_roster(client, administration).content
    Respondent.objects.filter(pk=people[0].pk).update(completed_at=timezone.now())
    assert get_roster(client, administration).content == before


def test_a_large_roster_is_downloaded_by_school(
    client, staff, administration, people, monkeypatch
):
    monkeypatch.setattr(roster_file, "MOST_PEOPLE", 2)
    log_in(client, staff.state)
    page = get_roster(client, administration)
    assert page.status_code == 302
    assert "Choose a school first" in client.get(page.url).content.decode()
    lincoln = get_roster(client, administration, school=staff.lincoln.pk)
    assert len(lines_of(lincoln)) == 3


@pytest.mark.parametrize("number", [1, 3])
def test_three_people_take_as_many_statements_as_one(
    client, staff, administration, django_assert_num_queries, number
):
    for n in range(number):
        invite(administration, staff.lincoln, str(n), "Ann Smith")
    log_in(client, staff.chen)
    get_roster(client, administration)
    # Session, user, memberships, administration, school; the number of people, the
    # audit, the people.
    with django_assert_num_queries(8):
        assert len(lines_of(get_roster(client, administration))) == number + 1
