"""Search the audit log and download it."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts import audit
from accounts.console import audit as pages
from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in

pytestmark = pytest.mark.django_db

AUDIT, CSV = "/console/audit/", "/console/audit/entries.csv"


@pytest.fixture
def entries(staff) -> None:
    audit.record(
        "rename school",
        by=staff.dana,
        subject=staff.lincoln,
        school=staff.lincoln,
        before={"name": "Lincoln", "open": True},
        after={"name": "=Lincoln()", "grade": 4},
    )
    audit.record("import roster", by=staff.chen, school=staff.washington)
    audit.record("import roster", by=staff.sam, school=staff.roosevelt)
    audit.record("open wave", by=staff.state)


def table(response) -> list[dict[str, str]]:
    text = b"".join(response.streaming_content).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def actions(client: Client, **query: object) -> list[str]:
    response = client.get(AUDIT, query)
    assert response.status_code == 200
    return [row.action for row in response.context["rows"]]


def test_a_district_reads_and_downloads_its_entries(staff, client, entries):
    log_in(client, staff.dana)
    page = client.get(AUDIT).content.decode()
    assert actions(client) == ["import roster", "rename school"]
    assert "<del>Lincoln</del> <ins>=Lincoln()</ins>" in page
    assert "open: <del>yes</del>" in page
    assert "grade: <ins>4</ins>" in page
    assert "Washington" in page
    assert "dana@example.org</bdi> renamed the school <bdi>Lincoln</bdi>" in page
    assert "sam@example.org" not in page

    rows = table(client.get(CSV))

    assert [row["action"] for row in rows] == ["import roster", "rename school"]
    assert rows[1]["subject"] == "Lincoln"
    assert (rows[1]["district"], rows[1]["school"]) == ("Riverside", "Lincoln")
    assert '"name": "=Lincoln()"' in rows[1]["after"]
    entry = AuditEntry.objects.get(action="download audit")
    assert (entry.by, entry.after) == ("dana@example.org", {"entries": 2})
    assert entry.district_id == staff.riverside.pk
    assert actions(client)[0] == "download audit"


@pytest.mark.parametrize("name", ["chen", "analyst", "sam"])
@pytest.mark.parametrize("path", [AUDIT, CSV])
def test_other_roles_get_404(staff, client, name, path):
    assert log_in(client, getattr(staff, name)).get(path).status_code == 404
    assert not AuditEntry.objects.exists()


def test_entries_are_filtered_by_person_action_and_date(staff, client, entries):
    today = timezone.localdate()
    old = timezone.now() - timedelta(days=200)
    AuditEntry.objects.create(at=old, by="import_roster", action="old", subject="Long")
    log_in(client, staff.state)
    assert len(actions(client)) == 5
    assert actions(client, by="Chen@example.org ") == ["import roster"]
    assert actions(client, action="open wave") == ["open wave"]
    assert actions(client, q="linc") == ["rename school"]
    assert actions(client, school="washing") == ["import roster"]
    assert actions(client, school="nowhere") == []
    assert len(actions(client, since=today)) == 4
    assert actions(client, until=today - timedelta(days=1)) == ["old"]
    assert actions(client, until=today, since=today, action="old") == []
    assert actions(client, q="long") == ["old"]
    assert actions(client, q="ong") == []
    assert [row["action"] for row in table(client.get(CSV, {"by": "import_roster"}))]


def test_the_history_of_one_object_is_shown_within_the_users_places(
    staff, client, entries
):
    for school in (staff.lincoln, staff.roosevelt):
        audit.record("change", by=staff.state, subject=school, school=school)
    log_in(client, staff.dana)
    about = f"accounts.school:{staff.lincoln.pk}"
    assert actions(client, about=about) == ["change", "rename school"]
    assert (
        "Only entries about one person"
        in client.get(AUDIT, {"about": about}).content.decode()
    )
    assert actions(client, about=about, action="change") == ["change"]
    assert actions(client, about=f"accounts.school:{staff.roosevelt.pk}") == []
    assert len(table(client.get(CSV, {"about": about}))) == 2


@pytest.mark.parametrize(
    "query",
    [
        {"since": "yesterday"},
        {"since": "2026-02-02", "until": "2026-02-01"},
        {"action": "nonsense"},
        {"by": "x" * 300},
        {"about": "survey.respondent"},
        {"about": "survey.respondent:" + "9" * 30},
        {"about": "x:1;drop"},
        # Their midnight, or that of the day after, is outside of the calendar.
        {"since": "0001-01-01"},
        {"until": "9999-12-31"},
    ],
)
def test_invalid_filters_show_an_error_and_no_entries(staff, client, entries, query):
    log_in(client, staff.state)
    response = client.get(AUDIT, query)
    assert 'role="alert"' in response.content.decode()
    assert actions(client, **query) == []
    away = client.get(CSV, query)
    assert away["Location"].startswith(AUDIT)
    assert not AuditEntry.objects.filter(action="download audit").exists()


@pytest.mark.parametrize("query", [{"q": "\x00"}, {"page": "-1"}, {"page": "x"}])
def test_unknown_parameters_are_ignored(staff, client, entries, query):
    log_in(client, staff.state)
    assert len(actions(client, **query)) == 4


@pytest.mark.parametrize("more", [0, 2])
def test_one_row_and_three_rows_cost_the_same_queries(
    staff, client, more, django_assert_num_queries
):
    for number in range(1 + more):
        audit.record(
            "import roster",
            by=staff.chen,
            school=staff.lincoln,
            after={"added": 1 + number},
        )
    log_in(client, staff.dana)
    # Session, user, memberships; the actions, the number, the rows, and the names
    # of their districts, schools and users.
    with django_assert_num_queries(9):
        assert client.get(AUDIT).content.decode().count("<tr>") == 2 + more


def test_counting_stops_at_a_limit(staff, client, monkeypatch):
    monkeypatch.setattr(pages, "MOST_COUNTED", 100)
    AuditEntry.objects.bulk_create(
        AuditEntry(by="x", action="look") for _ in range(120)
    )
    log_in(client, staff.state)
    page = client.get(AUDIT).content.decode()
    assert "1–50 of more than 100 entries" in page
    assert "Page 2" in page
    assert "Page 3" not in page


def test_too_large_downloads_are_refused_with_advice(
    staff, client, entries, monkeypatch
):
    monkeypatch.setattr(pages, "MOST_DOWNLOADED", 3)
    log_in(client, staff.state)
    response = client.get(CSV, follow=True)
    assert "Choose a shorter period" in response.content.decode()
    assert not AuditEntry.objects.filter(action="download audit").exists()


def test_a_download_in_chunks_is_complete(staff, client, monkeypatch):
    monkeypatch.setattr(pages, "AT_ONCE", 3)
    now = timezone.now() - timedelta(hours=1)
    AuditEntry.objects.bulk_create(
        # Two and two at the same moment.
        AuditEntry(
            by="x", action=f"look {n}", at=now + timedelta(seconds=n // 2), subject="+1"
        )
        for n in range(10)
    )
    log_in(client, staff.state)
    rows = table(client.get(CSV))
    assert [row["action"] for row in rows] == [f"look {n}" for n in range(9, -1, -1)]
    assert {row["subject"] for row in rows} == {"'+1"}


def test_without_escaping_a_cell_would_run_as_a_formula(staff, client, monkeypatch):
    monkeypatch.setattr(pages, "escape_formula", str)
    AuditEntry.objects.create(by="x", action="look", subject="=1+1")
    log_in(client, staff.state)
    assert table(client.get(CSV))[0]["subject"] == "=1+1"
