"""The reports of all schools as one file: who may order and download which."""

from __future__ import annotations

import csv
import io
import os
import re
import zipfile
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, District, School
from accounts.permissions import Permissions
from accounts.staff import dismiss
from accounts.tests.logging_in import log_in
from reports.models import (
    Export,
    GroupResults,
    ReportArchive,
    ResultsRollUp,
    SchoolRate,
    ScoreRow,
)
from reports.school_report import archives, pdf
from reports.school_report.report import SchoolReports
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.scores.conftest import closed
from survey.models import Administration, Job
from survey.work import jobs, requested_files
from survey.work.files import ORPHANED_AFTER, path_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def quick_files(request, monkeypatch):
    """Make files of the HTML at once, except in tests of the whole way."""
    if "whole_way" not in request.node.name:
        monkeypatch.setattr(
            archives,
            "pdf_files",
            lambda documents: {key: html.encode() for key, html in documents.items()},
        )


def address(administration, archive=None, action="file"):
    if archive is None:
        return reverse("scores_reports", args=[administration.pk])
    return reverse(f"scores_reports_{action}", args=[administration.pk, archive.pk])


def order(client, user, administration, district=None, language="en"):
    """Submit the form without running the job."""
    log_in(client, user)
    chosen = {"language": language, "district": district.pk if district else ""}
    return client.post(address(administration), chosen)


def made(client, user, administration, district=None, language="en"):
    response = order(client, user, administration, district, language)
    assert response.status_code == 302, response.content.decode()
    return run(ReportArchive.objects.first())


def run(archive):
    jobs.run(archive.job_id)
    archive.refresh_from_db()
    archive.job.refresh_from_db()
    return archive


def content_of(response):
    assert response.status_code == 200
    return zipfile.ZipFile(io.BytesIO(b"".join(response)))


def index_of(archive_file):
    text = archive_file.read("index.csv").decode("utf-8-sig")
    return {row["school"]: row for row in csv.DictReader(io.StringIO(text))}


def files():
    return {path.name for path in path_of("school-reports/any").parent.iterdir()}


def test_the_whole_way_from_the_order_to_the_file(client, staff, fall):
    log_in(client, staff.dana)
    page = client.get(reverse("scores_table", args=[fall.pk])).content.decode()
    assert f'href="{address(fall)}"' in page
    assert order(client, staff.dana, fall, staff.riverside, "es").status_code == 302
    archive = ReportArchive.objects.get()
    page = client.get(address(fall)).content.decode()
    assert "Waiting to start." in page
    assert f"/jobs/{archive.job_id}/" in page

    run(archive)
    assert archive.job.message == "Ready: reports of 1 of 2 schools."
    page = client.get(address(fall)).content.decode()
    assert "Download the ZIP file" in page
    response = client.get(address(fall, archive))
    name = "reports-fall-2026-riverside-es.zip"
    assert name in response["Content-Disposition"]
    content = content_of(response)
    report = "riverside/lincoln-es.pdf"
    assert content.namelist() == [report, "index.csv"]
    assert content.read(report).startswith(b"%PDF-1.7")
    assert content.testzip() is None
    index = index_of(content)
    assert (index["Lincoln"]["file"], index["Lincoln"]["reason"]) == (report, "")
    assert index["Washington"]["file"] == ""
    assert "5" in index["Washington"]["reason"]
    assert index["Washington"]["district code"] == "riverside"
    assert archive.size == path_of(archive.file_name).stat().st_size

    actions = AuditEntry.objects.filter(action__endswith="school reports")
    assert [
        (action.action, action.user_id, action.district_id) for action in actions[::-1]
    ] == [
        (f"{action} school reports", staff.dana.pk, staff.riverside.pk)
        for action in ("ask for", "make", "download")
    ]

    client.post(address(fall, archive, "delete"))
    assert not path_of(archive.file_name).exists()
    assert client.get(address(fall, archive)).status_code == 404
    assert AuditEntry.objects.filter(action="delete school reports").exists()


def test_the_state_gets_all_districts_sorted(client, staff, fall):
    archive = made(client, staff.state, fall)
    content = content_of(client.get(address(fall, archive)))
    assert content.namelist() == [
        "lakeside/roosevelt-en.pdf",
        "riverside/lincoln-en.pdf",
        "index.csv",
    ]
    assert (archive.schools, archive.reports) == (3, 2)
    # The same report as on its page.
    [text] = [
        content.read(name).decode() for name in content.namelist() if "linc" in name
    ]
    assert "60 of 60 finished (100 %); a report needs 30." in text


def test_batches_read_the_same_as_single_reports(client, staff, fall, monkeypatch):
    whole = content_of(client.get(address(fall, made(client, staff.state, fall))))
    monkeypatch.setattr(archives, "BATCH", 1)
    single = content_of(client.get(address(fall, made(client, staff.state, fall))))
    assert whole.namelist() == single.namelist()
    for name in whole.namelist():
        assert whole.read(name) == single.read(name)


def test_names_are_safe_and_unique(client, staff, fall):
    for number, school in enumerate((staff.lincoln, staff.roosevelt)):
        School.objects.filter(pk=school.pk).update(
            name="../../=É" + "x" * 90, code=".a/"[: 2 + number]
        )
    District.objects.filter(pk=staff.riverside.pk).update(name="学区", code="学")
    School.objects.update(district=staff.riverside)
    SchoolRate.objects.update(district=staff.riverside)
    archive = made(client, staff.state, fall)
    content = content_of(client.get(address(fall, archive)))
    *reports, index = content.namelist()
    assert index == "index.csv"
    assert len({name.lower() for name in reports}) == 2
    for name in reports:
        assert re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+\.pdf", name)
        assert name.startswith(f"district-{staff.riverside.pk}/ex")
        assert len(name) < 120
    rows = csv.DictReader(io.StringIO(content.read(index).decode("utf-8-sig")))
    assert {row["school"][:9] for row in rows} >= {"../../=É" + "x"}


# Who may not -----------------------------------------------------------------


@pytest.mark.parametrize("person", ["sam", "chen"])
def test_coordinators_find_nothing_even_when_shared(client, staff, fall, person):
    archive = made(client, staff.dana, fall, staff.riverside)
    ResultsRollUp.objects.update(shared_at=timezone.now())
    user = getattr(staff, person)
    assert order(client, user, fall, staff.riverside).status_code == 404
    assert client.get(address(fall)).status_code == 404
    assert client.get(address(fall, archive)).status_code == 404
    assert client.post(address(fall, archive, "delete")).status_code == 404
    assert ReportArchive.objects.count() == 1
    page = client.get(reverse("scores_table", args=[fall.pk])).content.decode()
    assert address(fall) not in page


def test_a_district_orders_neither_another_one_nor_the_state(client, staff, fall):
    for district in (staff.lakeside, None):
        response = order(client, staff.dana, fall, district)
        assert response.status_code == 200
    assert not ReportArchive.objects.exists()
    # The form refuses them; the state may order both.
    for district in (staff.lakeside, None):
        assert order(client, staff.state, fall, district).status_code == 302


def test_the_job_checks_permissions_again(client, staff, fall):
    for district in (staff.lakeside, None):
        archive = ReportArchive.objects.create(
            administration=fall,
            district=district,
            language="en",
            by=staff.dana,
            job=Job.objects.create(kind="school_reports.make", by=staff.dana),
        )
        Job.objects.filter(pk=archive.job_id).update(subject_id=archive.pk)
        run(archive)
        assert archive.job.message == archives.PERMISSIONS_CHANGED
        assert archive.file_name == ""


def test_nobody_else_downloads_a_file(client, staff, fall):
    archive = made(client, staff.dana, fall, staff.riverside)
    for person in (staff.state, staff.analyst):
        log_in(client, person)
        assert client.get(address(fall, archive)).status_code == 404
        assert "Riverside, English" not in client.get(address(fall)).content.decode()
    assert may_download(client, staff.dana, archive)
    assert "Riverside, English" in client.get(address(fall)).content.decode()


def test_a_role_that_ended_makes_and_downloads_nothing(client, staff, fall):
    archive = made(client, staff.analyst, fall, staff.riverside)
    order(client, staff.analyst, fall, staff.riverside)
    waiting = ReportArchive.objects.first()
    assert may_download(client, staff.analyst, archive)
    dismiss(membership=staff.analyst.memberships.get(), by=staff.state)
    run(waiting)
    assert (waiting.job.message, waiting.file_name) == (
        archives.PERMISSIONS_CHANGED,
        "",
    )
    assert not may_download(client, staff.analyst, archive)
    assert AuditEntry.objects.filter(action="download school reports").count() == 1


def may_download(client, user, archive):
    log_in(client, user)
    response = client.get(address(archive.administration, archive))
    # Reading to the end closes the file.
    return response.status_code == 200 and bool(b"".join(response))


def test_results_that_are_no_longer_shared_are_not_downloaded(client, staff, fall):
    ResultsRollUp.objects.update(shared_at=timezone.now())
    # Dana sees Riverside without sharing, but not the state beside it.
    archive = made(client, staff.dana, fall, staff.riverside)
    by_state = made(client, staff.state, fall, staff.riverside)
    assert archive.shows_state
    assert may_download(client, staff.dana, archive)
    ResultsRollUp.objects.update(shared_at=None)
    assert not may_download(client, staff.dana, archive)
    page = client.get(address(fall)).content.decode()
    assert "you can no longer download it" in page
    assert may_download(client, staff.state, by_state)
    # A file that was made since does not compare with the state.
    new_archive = made(client, staff.dana, fall, staff.riverside)
    content = content_of(client.get(address(fall, new_archive)))
    assert "All schools" not in content.read(content.namelist()[0]).decode()
    assert may_download(client, staff.dana, new_archive)


def test_a_trend_needs_its_earlier_waves_at_each_download(client, staff, survey, fall):
    spring = closed(survey, "spring-2027")
    answered(spring, staff.lincoln, 60, 7, shift=1.5)
    scored(spring)
    archive = made(client, staff.dana, spring, staff.riverside)
    assert sorted(archive.waves) == [fall.pk, spring.pk]
    content = content_of(client.get(address(spring, archive)))
    assert "Change since last time: " in content.read(content.namelist()[0]).decode()
    # Fall is not over for Dana, and was never shared.
    later = timezone.now() + timedelta(days=1)
    Administration.objects.filter(pk=fall.pk).update(closes_at=later)
    assert not may_download(client, staff.dana, archive)


# What changes meanwhile --------------------------------------------------------


def test_a_school_that_lost_its_report_is_not_in_the_file(client, staff, fall):
    order(client, staff.state, fall)
    GroupResults.objects.filter(
        administration=fall, level="school", place_id=staff.lincoln.pk
    ).update(is_hidden=True)
    archive = run(ReportArchive.objects.get())
    content = content_of(client.get(address(fall, archive)))
    assert content.namelist() == [
        "lakeside/roosevelt-en.pdf",
        "index.csv",
    ]
    assert "with so few answers" in index_of(content)["Lincoln"]["reason"]
    assert "points of 99" not in content.read("index.csv").decode()


def test_a_district_without_a_report_is_told_so(client, staff, fall):
    SchoolRate.objects.filter(school=staff.lincoln).update(finished=20)
    response = order(client, staff.dana, fall, staff.riverside)
    assert response.status_code == 200
    assert "No school here has a report" in response.content.decode()
    assert not ReportArchive.objects.exists()


def test_a_file_without_any_report_is_not_made(client, staff, fall):
    before = files()
    order(client, staff.dana, fall, staff.riverside)
    ScoreRow.objects.all().delete()
    archive = run(ReportArchive.objects.get())
    assert (archive.job.state, archive.file_name) == (Job.State.FAILED, "")
    assert archive.job.message == archives.NO_REPORTS
    assert files() == before


def test_without_the_program_there_is_no_file(client, staff, fall, monkeypatch):
    def fail(documents):
        raise pdf.NoPdf

    before = files()
    monkeypatch.setattr(archives, "pdf_files", fail)
    archive = made(client, staff.state, fall)
    assert archive.job.message == archives.NO_PDF
    assert files() == before


@pytest.mark.parametrize("stop", [jobs.Interrupted, jobs.TakenOver, jobs.Cancelled])
def test_an_interrupted_job_leaves_nothing_and_starts_again(
    client, staff, fall, monkeypatch, stop
):
    monkeypatch.setattr(archives, "BATCH", 1)
    before = files()
    advance = jobs.Progress.advance

    def interrupt(self, count=1):
        advance(self, count)
        if self.done == 2:
            raise stop

    with monkeypatch.context() as patch:
        patch.setattr(jobs.Progress, "advance", interrupt)
        archive = made(client, staff.state, fall)
    assert (archive.file_name, archive.made_at) == ("", None)
    assert files() == before
    wait_again(archive)
    run(archive)
    content = content_of(client.get(address(fall, archive)))
    assert len(content.namelist()) == 3
    assert files() - before == {archive.file_name.split("/")[1]}
    # A second delivery of the message makes no second file.
    wait_again(archive)
    run(archive)
    assert len(files() - before) == 1


def wait_again(archive):
    Job.objects.filter(pk=archive.job_id).update(
        state=Job.State.WAITING, ended_at=None, heartbeat_at=None
    )


def test_cancelling_at_the_last_moment_leaves_no_file(client, staff, fall, monkeypatch):
    before = files()

    def cancelled(self):
        raise jobs.Cancelled

    monkeypatch.setattr(jobs.Progress, "confirm", cancelled)
    archive = made(client, staff.state, fall)
    assert archive.job.state == Job.State.CANCELLED
    assert (archive.file_name, files()) == ("", before)
    assert not AuditEntry.objects.filter(action="make school reports").exists()


# Quotas and expiry ---------------------------------------------------------------


def test_exports_and_reports_share_one_quota(client, staff, fall):
    for _ in range(requested_files.MOST_UNFINISHED - 1):
        assert order(client, staff.dana, fall, staff.riverside).status_code == 302
    export = Export.objects.create(by=staff.dana, format="wide")
    export.job = Job.objects.create(kind="export.make", by=staff.dana)
    export.save()
    response = order(client, staff.dana, fall, staff.riverside)
    assert "You have 5 files that are not ready yet." in response.content.decode()
    assert ReportArchive.objects.count() == 4


def test_files_count_against_the_quota_of_bytes(client, staff, fall, monkeypatch):
    archive = made(client, staff.dana, fall, staff.riverside)
    monkeypatch.setattr(requested_files, "MOST_BYTES", archive.size)
    response = order(client, staff.dana, fall, staff.riverside)
    assert "Delete files that you no longer need" in response.content.decode()
    monkeypatch.setattr(requested_files, "MOST_BYTES", archive.size + 1)
    assert order(client, staff.dana, fall, staff.riverside).status_code == 302


def test_expired_files_are_deleted_and_not_downloaded(client, staff, fall):
    archive = made(client, staff.dana, fall, staff.riverside)
    orphan = path_of("school-reports/nobodys.zip")
    orphan.write_text("x")
    old = timezone.now().timestamp() - ORPHANED_AFTER - 60
    for path in (orphan, path_of(archive.file_name)):
        os.utime(path, (old, old))
    requested_files.delete_expired(ReportArchive)
    # A file that a row names stays.
    assert not orphan.exists()
    assert may_download(client, staff.dana, archive)
    ReportArchive.objects.update(expires_at=timezone.now())
    assert not may_download(client, staff.dana, archive)
    requested_files.delete_expired(ReportArchive)
    assert not path_of(archive.file_name).exists()
    archive.refresh_from_db()
    assert archive.deleted_at is not None
    entry = AuditEntry.objects.get(action="delete school reports")
    assert entry.user_id is None


# What it costs --------------------------------------------------------------------


def test_a_batch_takes_as_many_statements_as_a_school(
    staff, fall, django_assert_num_queries
):
    permissions = Permissions(staff.state)
    reader = SchoolReports(permissions, fall, "en")
    schools = list(School.objects.select_related("district"))
    # The benchmarks are read once for all batches.
    with django_assert_num_queries(6):
        reader.of(schools[:1])
    with django_assert_num_queries(5):
        assert len(reader.of(schools)) == 3
    with django_assert_num_queries(6):
        assert len(reader.of(schools, with_questions=True)) == 3


def test_languages_are_offered_under_their_own_names(client, staff, fall, monkeypatch):
    log_in(client, staff.dana)
    monkeypatch.setattr(
        "reports.console.scores.archives.published_survey",
        lambda pk: SimpleNamespace(languages=["en", "es"]),
    )
    page = client.get(address(fall)).content.decode()
    assert '<option value="es" lang="es">Español</option>' in page
    assert "Spanish" not in page


def test_the_page_takes_as_many_statements(
    client, staff, fall, django_assert_num_queries
):
    log_in(client, staff.dana)
    client.get(address(fall))
    with django_assert_num_queries(7):
        client.get(address(fall))
    for _ in range(3):
        made(client, staff.dana, fall, staff.riverside)
    with django_assert_num_queries(8):
        client.get(address(fall))
