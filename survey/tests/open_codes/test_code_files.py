"""Posters, letters and lists of open codes, from the order to the deletion."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from accounts.models import AuditEntry, District
from accounts.place_settings import Brand
from accounts.tests.logging_in import log_in
from survey.fieldwork.open_codes import code_files
from survey.fieldwork.open_codes.codes import (
    code_of,
    link_of,
    replace_open_code,
    revoke_open_code,
)
from survey.fieldwork.open_codes.paper import CodePage, draw_pages
from survey.models import Administration, Job, OpenCode, OpenCodeFile
from survey.models.requested_file import KEPT_FOR
from survey.people.access_codes import format_code
from survey.tasks import delete_old_cards
from survey.tests.card_readers import read_pages
from survey.tests.open_codes.cast import open_code, open_to_parents
from survey.tests.open_codes.test_console import errors_of, text_of, url
from survey.work import job_turns
from survey.work.files import path_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def parents(staff) -> Administration:
    return open_to_parents()


@pytest.fixture
def code(parents, staff) -> OpenCode:
    return open_code(parents, staff.lincoln, limit=120)


@pytest.fixture
def make(client, parents, django_capture_on_commit_callbacks):
    """Order a file on the page and run the job."""

    def make(code=None, **fields) -> OpenCodeFile:
        where = f"?open_code={code.pk}" if code else ""
        with django_capture_on_commit_callbacks(execute=True):
            response = client.post(
                url(parents, f"files/{where}"), {"format": "poster", **fields}
            )
        assert response.status_code == 302, errors_of(response)
        return OpenCodeFile.objects.latest("pk")

    return make


def url_of(file, action=""):
    return url(file.administration, f"files/{file.pk}/{action}")


def download(client, file) -> bytes:
    response = client.get(url_of(file, "file/"))
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    return b"".join(response.streaming_content)


@pytest.mark.parametrize("format", ["poster", "letter"])
def test_a_coordinator_prints_a_page_that_leads_to_the_survey(
    client, staff, code, make, format
):
    log_in(client, staff.chen)
    file = make(code, format=format, language="es")
    assert "Download" in text_of(client.get(url_of(file)))
    [page] = read_pages(download(client, file))
    assert page.links == [link_of(code)]
    assert format_code(code_of(code)) in page.text
    assert "survey.example.org/open/" in page.text
    words = " ".join(page.text.split())
    for part in (
        "Lincoln",
        "Our school",
        "Nuestra escuela",
        "run by the state",
        "Open from",
        "Abierto del",
        "The first 120 people",
        "without names",
        "sin nombres",
    ):
        assert part in words
    actions = ["make a file with open codes", "download a file with open codes"]
    entries = AuditEntry.objects.filter(action__in=actions).order_by("pk")
    assert [entry.action for entry in entries] == actions
    assert not any(code_of(code) in str(entry.after) for entry in entries)


@pytest.mark.parametrize("is_poster", [True, False])
@pytest.mark.parametrize("second", ["", "es", "ar"])
def test_long_names_stay_on_the_page(is_poster, second):
    languages = ["en", second] if second else ["en"]
    page = CodePage(
        school="Academy of Engineering and Environmental Science at Saint " * 2,
        owner="Consolidated Independent School District of the Northern Valleys",
        role="parent",
        titles=dict.fromkeys(languages, "How families see our school " * 4),
        code="ABCD-EFGH-KLMN",
        link="https://survey.of-a-very-long-name.example.org/open/#ABCD-EFGH-KLMN",
        address="survey.of-a-very-long-name.example.org/open/",
        opens_at=datetime(2027, 9, 1, 8, tzinfo=timezone.get_current_timezone()),
        closes_at=datetime(2027, 9, 30, 8, tzinfo=timezone.get_current_timezone()),
        zone=timezone.get_current_timezone(),
        limit=10_000,
        brand=Brand(
            name="Department of Elementary and Secondary Education of the State",
            accent="#7a1f5c",
            contact="Help desk · 614 555 0134 · a-very-long-address@state.example.org",
        ),
    )
    pdf = draw_pages(
        [page],
        title="A poster",
        languages=languages,
        is_poster=is_poster,
        advance=lambda: None,
    )
    [read] = read_pages(bytes(pdf))
    assert read.links == [page.link]
    assert page.address in read.text and page.code in read.text
    assert "Help desk" in read.text
    # Printers leave out some millimetres at the border.
    assert read.empty_below > 0.015


def test_a_file_for_all_schools_has_a_page_for_each_code(client, staff, parents, make):
    codes = [
        open_code(parents, school)
        for school in (staff.roosevelt, staff.lincoln, staff.washington)
    ]
    revoke_open_code(code=open_code(parents, staff.lincoln), by="a test")
    log_in(client, staff.state)
    pages = read_pages(download(client, make(place="state")))
    # District by district, school by school.
    assert [page.links for page in pages] == [[link_of(code)] for code in codes]
    of_district = make(place=f"district-{staff.riverside.pk}")
    pages = read_pages(download(client, of_district))
    assert [page.links for page in pages] == [[link_of(code)] for code in codes[1:]]


def test_the_list_for_newsletters_runs_no_formula(client, staff, parents, make):
    code = open_code(parents, staff.lincoln, label='=HYPERLINK("x")', language="es")
    log_in(client, staff.chen)
    content = download(client, make(format="excel"))
    assert content.startswith(b"\xef\xbb\xbf")
    [row] = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    opens = timezone.localtime(parents.opens_at)
    closes = timezone.localtime(parents.closes_at)
    assert row == {
        "school": "Lincoln",
        "label": '\'=HYPERLINK("x")',
        "language": "es",
        "link": link_of(code),
        "code": format_code(code_of(code)),
        "opens": f"{opens:%Y-%m-%d %H:%M}",
        "closes": f"{closes:%Y-%m-%d %H:%M}",
    }
    assert not download(client, make(format="csv")).startswith(b"\xef\xbb\xbf")


def test_a_list_has_the_times_of_each_districts_clocks(client, staff, parents, make):
    District.objects.filter(pk=staff.riverside.pk).update(time_zone="America/Denver")
    for school in (staff.lincoln, staff.roosevelt):
        open_code(parents, school)
    log_in(client, staff.state)
    content = download(client, make(format="csv", place="state")).decode()
    opens = {
        row["school"]: row["opens"] for row in csv.DictReader(io.StringIO(content))
    }
    for school, zone in (("Lincoln", "America/Denver"), ("Roosevelt", None)):
        local = timezone.localtime(parents.opens_at, zone and ZoneInfo(zone))
        assert opens[school] == f"{local:%Y-%m-%d %H:%M}"


def test_a_replaced_or_revoked_code_makes_its_files_outdated(
    client, staff, parents, code, make
):
    log_in(client, staff.state)
    everywhere, of_lincoln = make(format="csv", place="state"), make(code)
    lakeside = make(format="csv", place=f"district-{staff.riverside.pk}")
    open_code(parents, staff.roosevelt)
    elsewhere = make(format="csv", place=f"district-{staff.lakeside.pk}")
    replace_open_code(code=code, by="a test")
    for file in (everywhere, of_lincoln, lakeside):
        assert "no longer works" in text_of(client.get(url_of(file)))
    assert "no longer works" not in text_of(client.get(url_of(elsewhere)))
    revoke_open_code(code=code, by="a test")
    assert "nothing to print" in text_of(client.get(url_of(make(code))))


def test_nobody_sees_a_file_with_codes_of_other_schools(
    client, staff, parents, code, make
):
    log_in(client, staff.state)
    everywhere = make(format="csv", place="state")
    riverside = make(format="csv", place=f"district-{staff.riverside.pk}")
    of_lincoln = make(code)
    open_code(parents, staff.roosevelt)
    for user, seen in (
        (staff.chen, [of_lincoln]),
        (staff.dana, [riverside, of_lincoln]),
        (staff.sam, []),
        (staff.analyst, []),
    ):
        log_in(client, user)
        for file in (everywhere, riverside, of_lincoln):
            expected = 200 if file in seen else 404
            assert client.get(url_of(file)).status_code == expected
            response = client.get(url_of(file, "file/"))
            assert response.status_code == expected
            # Read to its end, which closes the file.
            b"".join(getattr(response, "streaming_content", ()))
            if expected != 200:
                assert client.post(url_of(file, "again/")).status_code == 404


def test_a_place_or_code_of_others_is_refused(client, staff, parents, code):
    elsewhere = open_code(parents, staff.roosevelt)
    log_in(client, staff.dana)
    for key in (elsewhere.pk, "x", "9" * 40):
        where = url(parents, f"files/?open_code={key}")
        assert client.post(where, {"format": "poster"}).status_code == 404
    log_in(client, staff.state)
    page = client.post(
        url(parents, "files/"), {"format": "poster", "place": "school-1"}
    )
    assert "Choose one of your places" in errors_of(page)
    page = client.post(url(parents, "files/"), {"format": "zip", "place": "state"})
    assert errors_of(page)
    page = client.post(
        url(parents, "files/"),
        {"format": "poster", "place": "state", "language": "xx"},
    )
    assert errors_of(page)
    assert not OpenCodeFile.objects.exists() and not Job.objects.exists()


def test_too_many_pages_are_refused(client, staff, code, make, monkeypatch):
    open_code(code.administration, staff.roosevelt)
    monkeypatch.setattr(code_files, "MOST_PAGES", 1)
    log_in(client, staff.state)
    file = make(place="state")
    assert "Make a file for each district" in text_of(client.get(url_of(file)))
    assert not file.is_ready and make(format="csv", place="state").is_ready


def test_a_user_with_many_tasks_waits(client, staff, parents, code, monkeypatch):
    monkeypatch.setattr(job_turns, "MOST_UNFINISHED", 0)
    log_in(client, staff.chen)
    page = client.post(url(parents, "files/"), {"format": "poster"})
    assert "tasks that are not done yet" in errors_of(page)
    assert not OpenCodeFile.objects.exists()


def test_a_file_that_failed_can_be_made_again(
    client, staff, code, make, django_capture_on_commit_callbacks
):
    log_in(client, staff.chen)
    file = make(code)
    OpenCodeFile.objects.update(made_at=None)
    Job.objects.update(state="failed")
    with django_capture_on_commit_callbacks(execute=True):
        client.post(url_of(file, "again/"))
    assert read_pages(download(client, file))


def test_files_are_deleted_after_a_week(client, staff, code, make):
    log_in(client, staff.chen)
    old, new = make(code), make(code)
    long_ago = timezone.now() - KEPT_FOR - timedelta(minutes=1)
    OpenCodeFile.objects.filter(pk=old.pk).update(created_at=long_ago)
    delete_old_cards()
    assert not path_of(old.file_name).exists() and path_of(new.file_name).exists()
    assert "deleted" in text_of(client.get(url_of(old)))
    response = client.get(url_of(old, "file/"), follow=True)
    assert "no longer exists" in text_of(response)
