"""Pages of approved research projects: for the state alone, until the end."""

from __future__ import annotations

import csv
import html
import io
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from reports.console.exports import panel_form
from reports.exports import requests
from reports.exports.approved_projects import end_project
from reports.exports.job import PERMISSIONS_CHANGED
from reports.models import Export, PanelProject
from reports.models.exports import KEY_TABLE
from reports.tests.console.exports.test_panel_form import ADDRESS as PANEL
from reports.tests.console.exports.test_panel_form import (
    waves as waves,  # noqa: PLC0414
)
from reports.tests.console.exports.test_views import download
from reports.tests.exports.conftest import with_release
from reports.tests.exports.test_formats import rows_of
from survey.models import Administration

pytestmark = pytest.mark.django_db


@pytest.fixture
def approve(client, staff):
    """Submit the form of a new project."""

    def approved(**fields):
        log_in(client, staff.state)
        given = {
            "name": "Attendance",
            "purpose": "Does safety go with attendance?",
            "people": "Dr Okafor, State University",
            "approval_number": "IRB 12",
            "ends_on": (timezone.localdate() + timedelta(days=30)).isoformat(),
            **fields,
        }
        return client.post(reverse("project_new"), given)

    return approved


@pytest.fixture
def post(client, django_capture_on_commit_callbacks):
    """Submit a form of the project, and run the job."""

    def posted(route, project, **given):
        with django_capture_on_commit_callbacks(execute=True):
            return client.post(reverse(route, args=[project.pk]), given)

    return posted


@pytest.fixture
def make_file(post):
    def made(project, administrations, **choices):
        with_release(*administrations)
        keys = [administration.pk for administration in administrations]
        given = {"format": "wide", "language": "en", "administrations": keys}
        return post("project_file", project, **{**given, **choices})

    return made


def test_a_project_from_approval_to_its_end(
    staff, waves, client, approve, post, make_file
):
    response = approve()
    project = PanelProject.objects.get()
    assert response["Location"] == reverse("project_detail", args=[project.pk])
    entry = AuditEntry.objects.get(action="approve research project")
    assert entry.after["people"] == "Dr Okafor, State University"

    # Again later, with the same keys.
    make_file(project, waves)
    make_file(project, waves)
    first, second = Export.objects.order_by("pk")
    assert first.project == second.project == project and first.is_panel
    of_first = {row["age"]: row["panel_id"] for row in rows_of(first)}
    of_second = {row["age"]: row["panel_id"] for row in rows_of(second)}
    assert len(of_first) == 13 and of_first == of_second

    post("project_keys", project, reason="Linked with attendance of spring.")
    table = Export.objects.get(format=KEY_TABLE)
    assert set(table.administrations.all()) == set(waves)
    reply, body = download(client, table)
    assert reply["Content-Disposition"].endswith(f'fall-spring-keys-{table.pk}.csv"')
    keys = {row["project_key"] for row in csv.DictReader(io.StringIO(body.decode()))}
    assert keys == set(of_second.values())
    for action in ("ask for key table", "download key table"):
        entry = AuditEntry.objects.get(action=action)
        assert (entry.subject_id, entry.user_id) == (table.pk, staff.state.pk)
    page = client.get(reverse("project_detail", args=[project.pk])).content.decode()
    assert "Key table of a research project, CSV" in page and "IRB 12" in page
    page = client.get(reverse("export_detail", args=[table.pk])).content.decode()
    assert "Everyone on the rosters, without people who opted out" in page
    assert "who started" not in page and "with names" not in page

    response = post("project_end", project)
    page = client.get(response["Location"]).content.decode()
    assert "The project ended on" in page and "End the project" not in page
    project.refresh_from_db()
    assert project.key is None
    for export in (first, second, table):
        assert download(client, export)[0].status_code == 404
    for route in ("project_file", "project_keys"):
        assert client.get(reverse(route, args=[project.pk])).status_code == 404


def test_only_the_state_has_projects(staff, client, approve):
    approve()
    project = PanelProject.objects.get()
    addresses = [
        *(reverse(route) for route in ("project_list", "project_new")),
        *(
            reverse(route, args=[project.pk])
            for route in ("project_detail", "project_file", "project_keys")
        ),
    ]
    for address in addresses[:4]:
        assert client.get(address).status_code == 200, address
    assert addresses[0] in client.get(reverse("export_list")).content.decode()
    for user in (staff.dana, staff.analyst, staff.chen):
        log_in(client, user)
        for address in addresses:
            assert client.get(address).status_code == 404, address
        ended = client.post(reverse("project_end", args=[project.pk]))
        assert ended.status_code == 404
    log_in(client, staff.dana)
    assert addresses[0] not in client.get(reverse("export_list")).content.decode()
    project.refresh_from_db()
    assert project.key


def test_what_a_user_named_has_no_page_here(staff, client):
    project = PanelProject.objects.create(name="Study", by=staff.dana)
    log_in(client, staff.state)
    assert "Study" not in client.get(reverse("project_list")).content.decode()
    for route in ("project_detail", "project_file", "project_keys"):
        address = reverse(route, args=[project.pk])
        assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("purpose", "", "This field is required."),
        ("people", "", "This field is required."),
        ("name", "", "This field is required."),
        ("ends_on", "", "This field is required."),
        ("ends_on", "2020-01-01", "This day is over."),
        ("ends_on", "9999-01-01", "in the next ten years"),
        ("ends_on", "soon", "Enter a valid date."),
    ],
)
def test_a_project_without_purpose_people_or_end_is_refused(
    approve, field, value, message
):
    assert message in approve(**{field: value}).content.decode()
    assert not PanelProject.objects.exists()


def test_a_title_is_used_once(approve):
    approve()
    page = approve(name="ATTENDANCE").content.decode()
    assert "You have a project of this title." in page
    assert PanelProject.objects.count() == 1


def test_its_title_typed_for_a_panel_leads_to_its_page(staff, waves, client, approve):
    approve()
    with_release(*waves)
    given = {"format": "wide", "language": "en", "project": "attendance"}
    given["administrations"] = [wave.pk for wave in waves]
    page = client.post(PANEL, given).content.decode()
    assert "Attendance is an approved project." in page
    assert not Export.objects.exists()


def test_all_files_have_the_same_schools_people_and_rounds(
    staff, waves, client, approve, make_file
):
    approve()
    project = PanelProject.objects.get()
    page = client.get(reverse("project_file", args=[project.pk])).content.decode()
    assert "The first file decides which survey rounds the project has" in page
    make_file(project, waves[:1])
    # Beside the first file, it would tell more than what is left out in it.
    page = make_file(project, waves).content.decode()
    assert "have the survey rounds of its first file, and no others: fall." in page
    page = make_file(project, waves[1:]).content.decode()
    assert "Choose exactly these" in page
    page = make_file(project, waves[:1], district=staff.riverside.pk).content.decode()
    assert "are about other schools" in page
    assert Export.objects.count() == 1
    make_file(project, waves[:1])
    assert Export.objects.count() == 2


class TestTwoRequestsAtOnce:
    """The form has looked before; another request came in between."""

    @pytest.fixture
    def between(self, staff, waves, approve, make_file, monkeypatch):
        """Store a file of both rounds after the form of one round has looked."""
        approve()
        project, look = PanelProject.objects.get(), panel_form.refusal_by_project

        def look_before(*args):
            message = look(*args)
            make_first(project, waves, staff.state)
            return message

        monkeypatch.setattr(panel_form, "refusal_by_project", look_before)
        return project

    def test_the_later_one_is_refused(self, waves, between, make_file):
        page = make_file(between, waves[:1]).content.decode()
        assert "Choose exactly these" in page
        assert Export.objects.get().administrations.count() == 2

    def test_without_looking_again_both_would_be_made(
        self, waves, between, make_file, monkeypatch
    ):
        monkeypatch.setattr(requests, "refusal_by_project", lambda *args: "")
        make_file(between, waves[:1])
        assert Export.objects.count() == 2

    def test_the_key_table_and_the_end_are_looked_at_again(
        self, staff, waves, approve, make_file
    ):
        approve()
        project = PanelProject.objects.get()
        make_file(project, waves)
        choices = {
            "format": KEY_TABLE,
            "identities": True,
            "reason": "Linked with attendance.",
            "places": Export.objects.get().places,
        }
        ask = partial(requests.request_export, by=staff.state, project=project)
        with pytest.raises(requests.ProjectRefused, match="Choose exactly these"):
            ask(administrations=waves[:1], **choices)
        # Of the time before its end.
        stale = PanelProject.objects.get()
        end_project(project, by=staff.state)
        assert not stale.is_over
        with pytest.raises(requests.ProjectRefused, match="has ended"):
            requests.request_export(
                administrations=waves, by=staff.state, project=stale, **choices
            )
        assert Export.objects.count() == 1

    def test_the_project_is_locked(self, staff, waves, approve):
        approve()
        project = PanelProject.objects.get()
        with CaptureQueriesContext(connection) as captured:
            make_first(project, waves, staff.state)
        statements = [query["sql"] for query in captured]
        [reading] = [
            number
            for number, sql in enumerate(statements)
            if sql.startswith("SELECT") and 'FROM "reports_panelproject"' in sql
        ]
        if connection.features.has_select_for_update:
            assert "FOR UPDATE" in statements[reading]
        # Before it reads what the project has.
        assert any('FROM "reports_export"' in sql for sql in statements[reading:])


def make_first(project, waves, user):
    return requests.request_export(
        administrations=waves,
        by=user,
        project=project,
        format="wide",
        language="en",
        is_panel=True,
        places={"state": True, "districts": [], "schools": []},
        finished_only=False,
    )


def test_files_need_the_capability_for_projects_until_they_are_downloaded(
    staff, waves, client, approve, make_file, django_capture_on_commit_callbacks
):
    approve()
    project = PanelProject.objects.get()
    make_file(project, waves)
    export = Export.objects.get()
    assert download(client, export)[0].status_code == 200
    # Now an analyst of the whole state, who sees responses and approves no projects.
    staff.state.memberships.update(role="analyst")
    assert download(client, export)[0].status_code == 404
    with django_capture_on_commit_callbacks(execute=True):
        later = make_first(project, waves, staff.state)
    later.refresh_from_db()
    assert not later.file_name and later.job.message == PERMISSIONS_CHANGED
    # Files of no project are still theirs.
    export.project = None
    export.save(update_fields=["project"])
    assert download(client, export)[0].status_code == 200


def test_rounds_that_promised_otherwise_are_not_offered(
    staff, waves, client, approve, make_file
):
    approve()
    project = PanelProject.objects.get()
    Administration.objects.filter(pk=waves[0].pk).update(joins_waves=False)
    page = make_file(project, waves[:1]).content.decode()
    assert "have been promised that their answers are not joined" in html.unescape(page)
    assert not Export.objects.exists()


def test_a_key_table_needs_a_file_and_a_reason(
    staff, waves, client, approve, post, make_file
):
    approve()
    project = PanelProject.objects.get()
    response = post("project_keys", project, reason="Linked with attendance.")
    page = response.content.decode()
    assert "Make a file of the project first." in page
    make_file(project, waves)
    page = post("project_keys", project, reason="short").content.decode()
    assert "Explain in one sentence" in page
    assert not Export.objects.filter(format=KEY_TABLE).exists()


@pytest.mark.parametrize("more", [0, 2])
def test_the_pages_read_as_much_for_many_projects(
    staff, waves, client, approve, make_file, more, django_assert_num_queries
):
    approve()
    project = PanelProject.objects.get()
    make_file(project, waves)
    for number in range(more):
        approve(name=f"Project {number}")
        make_file(project, waves)
    client.get(reverse("project_list"))
    with django_assert_num_queries(5):
        client.get(reverse("project_list"))
    with django_assert_num_queries(5):
        client.get(reverse("project_detail", args=[project.pk]))
