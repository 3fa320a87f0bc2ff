"""Numbers of families or students that schools supply, by form and by file."""

from __future__ import annotations

import io
import re
import zipfile

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, transaction
from django.test import Client
from openpyxl import Workbook

from accounts.models import AuditEntry, Membership, School
from accounts.tests.logging_in import log_in
from survey.console.table_files import UPLOAD_TABLE
from survey.fieldwork.school_counts.changes import NewCount, import_counts, supply_count
from survey.models import SchoolCount
from survey.tests.conftest import open_now, publish_items
from survey.tests.open_codes.cast import open_to_parents

pytestmark = pytest.mark.django_db


@pytest.fixture
def parents(staff):
    return open_to_parents()


@pytest.fixture
def chen(staff) -> Client:
    return log_in(Client(), staff.chen)


@pytest.fixture
def dana(staff) -> Client:
    return log_in(Client(), staff.dana)


def address(parents, *, school: School | None = None, page: str = "") -> str:
    last = f"{school.pk}/" if school else page
    return f"/console/administrations/{parents.pk}/counts/{last}"


def csv_of(*rows: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("counts.csv", "\n".join(rows).encode())


def upload(client: Client, parents, file, unit: str = "students"):
    where = address(parents, page="upload/")
    return client.post(where, {"file": file, "unit": unit})


def save_checked(client: Client, parents, page):
    [checked] = re.findall('name="checked" value="([^"]+)"', page.content.decode())
    return client.post(address(parents, page="save/"), {"checked": checked})


def numbers() -> dict[str, tuple[int, str]]:
    rows = SchoolCount.objects.current().select_related("school")
    return {row.school.name: (row.count, row.unit) for row in rows}


def rejected(page) -> list[tuple[int, str]]:
    """Return rows and problems of a checked file."""
    return [(cell.row, cell.reason) for cell in page.context["problems"]]


# One school ---------------------------------------------------------------------


def test_a_coordinator_supplies_and_corrects_the_number_of_the_own_school(
    parents, staff, chen, dana
):
    where = address(parents, school=staff.lincoln)
    listed = chen.get(address(parents)).content.decode()
    assert "Lincoln" in listed and "No count yet" in listed
    assert "Washington" not in listed

    sent = {"count": "250", "unit": "families", "seen": ""}
    assert chen.post(where, sent)["Location"] == address(parents)
    assert numbers() == {"Lincoln": (250, "families")}
    first = SchoolCount.objects.get()

    sent = {"count": "310", "unit": "students", "seen": first.pk}
    assert dana.post(where, sent).status_code == 302
    assert numbers() == {"Lincoln": (310, "students")}
    page = chen.get(where).content.decode()
    assert "310 students" in page and "dana@example.org" in page
    assert "250 families" in page and "chen@example.org" in page
    listed = chen.get(address(parents)).content.decode()
    assert "310 students" in listed and "by dana@example.org" in listed

    entries = AuditEntry.objects.filter(action="change count").order_by("pk")
    assert [(entry.by, entry.before, entry.after) for entry in entries] == [
        ("chen@example.org", {}, {"count": 250, "of": "families"}),
        (
            "dana@example.org",
            {"count": 250, "of": "families"},
            {"count": 310, "of": "students"},
        ),
    ]
    assert {entry.school_id for entry in entries} == {staff.lincoln.pk}


def test_the_same_number_again_is_no_change(parents, staff, chen):
    where = address(parents, school=staff.lincoln)
    chen.post(where, {"count": "250", "unit": "students", "seen": ""})
    seen = SchoolCount.objects.get().pk
    chen.post(where, {"count": "250", "unit": "students", "seen": seen})
    assert SchoolCount.objects.count() == 1
    assert AuditEntry.objects.filter(action="change count").count() == 1


def test_numbers_that_cannot_be_are_refused_with_the_range(parents, staff, chen):
    where = address(parents, school=staff.lincoln)
    numbers = ["-5", "0", "many", "1" * 40, "100001", "3.5", "NaN", "", "1e3", "\x00"]
    for typed in numbers:
        page = chen.post(where, {"count": typed, "unit": "students", "seen": ""})
        assert page.status_code == 200
        text = page.content.decode()
        assert "Type a whole number from 1 to 100,000." in text, typed
    assert not SchoolCount.objects.exists()


@pytest.mark.parametrize("field", [{"unit": "cats"}, {"seen": "9" * 40}, {"unit": ""}])
def test_other_bad_fields_store_nothing(parents, staff, chen, field):
    sent = {"count": "5", "unit": "students", "seen": ""} | field
    page = chen.post(address(parents, school=staff.lincoln), sent)
    assert page.status_code == 200
    assert not SchoolCount.objects.exists()


def test_a_number_that_was_changed_meanwhile_is_not_overwritten(
    parents, staff, chen, dana
):
    where = address(parents, school=staff.lincoln)
    chen.post(where, {"count": "250", "unit": "students", "seen": ""})
    # Dana's page shows no number yet.
    page = dana.post(where, {"count": "9", "unit": "students", "seen": ""})
    assert "Somebody else has changed a count meanwhile" in page.content.decode()
    assert numbers() == {"Lincoln": (250, "students")}


def test_numbers_of_other_places_do_not_exist(parents, staff, chen, dana):
    for client, school in ((chen, staff.washington), (dana, staff.roosevelt)):
        where = address(parents, school=school)
        assert client.get(where).status_code == 404
        sent = {"count": "5", "unit": "students", "seen": ""}
        assert client.post(where, sent).status_code == 404
    assert log_in(Client(), staff.analyst).get(address(parents)).status_code == 404
    with pytest.raises(PermissionDenied):
        supply_count(
            administration=parents,
            school=staff.roosevelt,
            unit="students",
            count=5,
            seen=None,
            by=staff.dana,
        )
    assert not SchoolCount.objects.exists()


def test_an_administration_with_a_roster_has_no_numbers(staff, chen):
    students = open_now(publish_items())
    assert chen.get(address(students)).status_code == 404
    with pytest.raises(ValidationError, match="on a roster"):
        supply_count(
            administration=students,
            school=staff.lincoln,
            unit="students",
            count=5,
            seen=None,
            by=staff.chen,
        )
    page = chen.get(f"/console/administrations/{students.pk}/").content.decode()
    assert "/counts/" not in page


def test_the_page_of_the_administration_leads_to_the_numbers(parents, chen):
    page = chen.get(f"/console/administrations/{parents.pk}/").content.decode()
    assert address(parents) in page


def test_a_number_that_a_command_supplied_is_the_systems(parents, staff, chen):
    supply_count(
        administration=parents,
        school=staff.lincoln,
        unit=SchoolCount.Unit.STUDENTS,
        count=40,
        seen=None,
        by="load_demo",
    )
    for where in (address(parents), address(parents, school=staff.lincoln)):
        assert "System (load_demo)" in chen.get(where).content.decode()


def test_the_database_keeps_one_number_in_the_bounds(parents, staff):
    fields = {"administration": parents, "school": staff.lincoln, "by": "a test"}
    SchoolCount.objects.create(count=5, **fields)
    for count in (7, 0, 100_001):
        with pytest.raises(IntegrityError), transaction.atomic():
            SchoolCount.objects.create(count=count, **fields)


@pytest.mark.parametrize("schools", [1, 3])
def test_the_list_costs_the_same_for_one_school_and_for_three(
    parents, staff, dana, schools, django_assert_num_queries
):
    for n in range(schools):
        school = School.objects.create(
            district=staff.riverside, code=f"more-{n}", name=f"More {n}"
        )
        supply_count(
            administration=parents,
            school=school,
            unit="students",
            count=5,
            seen=None,
            by="a test",
        )
    with django_assert_num_queries(8):
        page = dana.get(address(parents))
    assert page.content.decode().count("5 students") == schools


# A file ---------------------------------------------------------------------------


def test_a_file_is_checked_first_and_saved_then(parents, staff, dana):
    # The script of uploads would not show the answer.
    form = dana.get(address(parents, page="upload/")).content.decode()
    assert "multipart/form-data" in form and "data-upload" not in form
    file = csv_of("School code,Students", "lincoln,310", 'washington,"1,250"')
    page = upload(dana, parents, file)
    assert rejected(page) == []
    assert "2 schools would get a new count" in page.content.decode()
    assert not SchoolCount.objects.exists()

    assert save_checked(dana, parents, page)["Location"] == address(parents)
    assert numbers() == {
        "Lincoln": (310, "students"),
        "Washington": (1250, "students"),
    }
    entry = AuditEntry.objects.get(action="import counts")
    assert (entry.by, entry.after) == ("dana@example.org", {"schools": 2})
    assert set(SchoolCount.objects.values_list("by", flat=True)) == {entry.by}
    # What was saved is not saved again.
    repeated = save_checked(dana, parents, page)
    assert repeated["Location"] == address(parents, page="upload/")
    assert SchoolCount.objects.count() == 2


def test_rejected_rows_are_named_and_the_others_can_be_saved(parents, staff, dana):
    file = csv_of(
        "school,count,unit",
        "lincoln,310,families",
        "washington,-5,families",
        "washington,many,families",
        f"washington,{'9' * 40},families",
        "roosevelt,7,families",
        "nowhere,7,families",
        ",7,families",
        "washington,7,cats",
        "washington,,families",
    )
    page = upload(dana, parents, file)
    bounds = "is not between 1 and 100,000"
    unknown = "is not one of your schools in this survey"
    assert rejected(page) == [
        (3, bounds),
        (4, "is not a whole number"),
        (5, bounds),
        # A school of another district is answered like one that does not exist.
        (6, unknown),
        (7, unknown),
        (8, "is empty"),
        (9, "is neither “students” nor “families”"),
    ]
    assert page.context["report"].blank == 1
    save_checked(dana, parents, page)
    assert numbers() == {"Lincoln": (310, "families")}


def test_a_school_in_several_rows_is_rejected_in_each(parents, staff, dana):
    file = csv_of("school,count", "lincoln,310", "Lincoln,320", "washington,5")
    page = upload(dana, parents, file)
    assert rejected(page) == [
        (2, "is in several rows: 2, 3"),
        (3, "is in several rows: 2, 3"),
    ]
    save_checked(dana, parents, page)
    assert numbers() == {"Washington": (5, "students")}


def test_equal_codes_of_two_districts_need_the_district(parents, staff):
    School.objects.create(district=staff.lakeside, code="lincoln", name="Lincoln II")
    state = log_in(Client(), staff.state)
    page = upload(state, parents, csv_of("school,count", "lincoln,310"))
    [(row, reason)] = rejected(page)
    assert row == 2 and "add a column with the district code" in reason
    file = csv_of("district,school,count", "lakeside,lincoln,9")
    save_checked(state, parents, upload(state, parents, file))
    assert numbers() == {"Lincoln II": (9, "students")}


def test_excel_files_are_read_with_the_unit_of_the_form(parents, staff, chen):
    book = Workbook()
    book.active.append(["Numbers of this year"])
    book.active.append(["School code", "Number"])
    book.active.append(["lincoln", 42])
    content = io.BytesIO()
    book.save(content)
    file = SimpleUploadedFile("counts.xlsx", content.getvalue())
    save_checked(chen, parents, upload(chen, parents, file, unit="families"))
    assert numbers() == {"Lincoln": (42, "families")}


def test_the_downloaded_list_can_be_filled_in_and_uploaded(parents, staff, chen):
    sent = chen.get(address(parents, page="template.csv")).content.decode("utf-8-sig")
    assert sent.splitlines() == [
        "District code,School code,School name,Count,Unit",
        "riverside,lincoln,Lincoln,,students",
    ]
    file = csv_of(*sent.replace(",,", ",77,").splitlines())
    save_checked(chen, parents, upload(chen, parents, file))
    assert numbers() == {"Lincoln": (77, "students")}


def large_workbook() -> bytes:
    """Return a workbook of some kilobytes whose sheet has 40 MiB."""
    book, small, file = Workbook(), io.BytesIO(), io.BytesIO()
    book.active.append(["school", "count"])
    book.save(small)
    with (
        zipfile.ZipFile(small) as parts,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in parts.namelist():
            padding = b" " * 40 * 2**20 if "sheet1" in name else b""
            archive.writestr(name, parts.read(name) + padding)
    return file.getvalue()


def test_unreadable_files_are_refused_with_the_reason(parents, dana):
    cases = [
        ("counts.pdf", b"%PDF", f"This is a PDF. {UPLOAD_TABLE}"),
        ("counts.csv", b"", "The submitted file is empty"),
        ("counts.csv", b"a,b\n1,2\n", "names the columns (school code, count"),
        ("counts.csv", b"school\nlincoln\n", "No column for: count"),
        ("counts.csv", b"school,count\nlincoln,\x00", "NUL character"),
        ("counts.csv", b"school,count\n" + b"x,1\n" * 20_001, "more than 20,000 rows"),
        ("counts.csv", b"school,count\n" + b"x" * 2**22, "larger than 4 MB"),
        ("counts.xlsx", b"PK\x03\x04" + b"\0" * 50, "workbook"),
        ("counts.xlsx", large_workbook(), "larger than 4 MB"),
    ]
    for name, content, message in cases:
        page = upload(dana, parents, SimpleUploadedFile(name, content))
        assert page.status_code == 200
        assert message in page.content.decode()
    assert not SchoolCount.objects.exists()


def test_a_file_overwrites_no_number_that_came_after_its_check(
    parents, staff, chen, dana
):
    page = upload(dana, parents, csv_of("school,count", "lincoln,310"))
    sent = {"count": "250", "unit": "students", "seen": ""}
    chen.post(address(parents, school=staff.lincoln), sent)
    assert save_checked(dana, parents, page)["Location"].endswith("/upload/")
    assert numbers() == {"Lincoln": (250, "students")}


def test_a_checked_file_is_of_its_user_and_administration(parents, staff, chen, dana):
    page = upload(dana, parents, csv_of("school,count", "lincoln,310"))
    assert save_checked(chen, parents, page)["Location"].endswith("/upload/")
    second = open_to_parents(name="other-parents", published=parents.published)
    assert save_checked(dana, second, page)["Location"].endswith("/upload/")
    where = address(parents, page="save/")
    for forged in ("", "x", "9" * 4000):
        assert dana.post(where, {"checked": forged})["Location"].endswith("/upload/")
    assert not SchoolCount.objects.exists()


def test_permission_is_checked_again_when_a_file_is_saved(parents, staff, dana):
    file = csv_of("school,count", "lincoln,310", "washington,5")
    page = upload(dana, parents, file)
    membership = staff.dana.memberships.get()
    Membership.objects.filter(pk=membership.pk).update(
        role=Membership.Role.COORDINATOR, district=None, school=staff.lincoln
    )
    assert save_checked(log_in(Client(), staff.dana), parents, page).status_code == 302
    # All or nothing: not even the school that is still the user's own.
    assert not SchoolCount.objects.exists()


def test_all_numbers_of_an_import_are_stored_or_none(parents, staff):
    counts = [
        NewCount(staff.lincoln.pk, "students", 5, None),
        NewCount(staff.washington.pk, "students", 100_001, None),
    ]
    with pytest.raises(ValidationError):
        import_counts(administration=parents, counts=counts, by="a test")
    assert not SchoolCount.objects.exists()
