"""Import the places of schools with `manage.py import_schools`."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command
from openpyxl import Workbook

from accounts.models import AuditEntry, District, School, SchoolListing
from accounts.school_directory import find_schools, nearest_schools
from survey.simulation.schools import HEADER as MADE_UP_HEADER
from survey.simulation.schools import made_up_schools, made_up_towns

pytestmark = pytest.mark.django_db

HEADER = ["NCESSCH", "NAME", "STREET", "CITY", "STATE", "ZIP", "LAT", "LON"]
LINCOLN = ["lincoln", "Lincoln", "1 Elm St", "Springfield", "IL", "62701"]
LINCOLN += ["39.80", "-89.65"]


def row(**cells):
    names = [name.casefold() for name in HEADER]
    return [cells.get(name, cell) for name, cell in zip(names, LINCOLN, strict=True)]


@pytest.fixture
def run(tmp_path):
    """Return a function that imports rows and returns the report."""

    def run_command(*rows, options=(), header=HEADER):
        path = tmp_path / "schools.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        return command(path, *options)

    return run_command


def command(path, *options):
    out = io.StringIO()
    status = 0
    try:
        call_command("import_schools", str(path), "--json", *options, stdout=out)
    except SystemExit as end:
        status = end.code
    return json.loads(out.getvalue()) | {"status": status}


def rejections(report):
    return [
        (cell["row"], cell["column"], cell["reason"]) for cell in report["rejections"]
    ]


def test_a_file_places_known_schools_by_code_and_by_name(staff, run):
    report = run(
        LINCOLN, row(ncessch="170001", name="ROOSEVELT", city="Peoria", lat="40.69")
    )
    assert (report["status"], report["imported"], report["changed"]) == (0, True, 2)
    lincoln = SchoolListing.objects.get(school=staff.lincoln)
    assert (lincoln.street, lincoln.city, lincoln.state) == (
        "1 Elm St",
        "Springfield",
        "IL",
    )
    near = [near.listing.name for near in nearest_schools(39.8, -89.65)]
    assert near == ["Lincoln", "Roosevelt"]
    assert [each.name for each in find_schools("springfeild").schools] == ["Lincoln"]
    [entry] = AuditEntry.objects.filter(action="import schools")
    assert (entry.by, entry.after["changed"]) == ("import_schools", 2)

    repeated = run(LINCOLN)
    assert (repeated["changed"], repeated["unchanged"]) == (0, 1)


def test_the_federal_number_is_the_districts_and_the_schools_code(staff, run):
    District.objects.filter(pk=staff.riverside.pk).update(code="1700010")
    School.objects.filter(pk=staff.lincoln.pk).update(code="00042")
    report = run(row(ncessch="170001000042", name="Another name"))
    assert (report["changed"], report["rejected"]) == (1, 0)


def test_a_workbook_is_read_like_a_csv_file(staff, tmp_path):
    workbook = Workbook()
    for cells in (["Public schools"], [], HEADER, [*LINCOLN[:6], 39.8, -89.65]):
        workbook.active.append(cells)
    workbook.save(tmp_path / "schools.xlsx")
    assert command(tmp_path / "schools.xlsx")["changed"] == 1
    assert SchoolListing.objects.get(school=staff.lincoln).longitude == -89.65


@pytest.mark.parametrize(
    ("cells", "column", "reason"),
    [
        ({"lat": "north"}, "LAT", "is not a number"),
        ({"lat": ""}, "LAT", "is not a number"),
        ({"lat": "NaN"}, "LAT", "is not between -90 and 90"),
        ({"lat": "-inf"}, "LAT", "is not between -90 and 90"),
        ({"lat": "90.001"}, "LAT", "is not between -90 and 90"),
        ({"lon": "9" * 40}, "LON", "is not between -180 and 180"),
        ({"lat": "0", "lon": "0.0"}, "LAT", "and longitude are 0, which is in the sea"),
        ({"city": "x" * 101}, "CITY", "is longer than 100 letters"),
        ({"ncessch": "", "name": ""}, "NCESSCH", "names no school"),
        ({"ncessch": "", "name": "Unknown"}, "NAME", "is not a school here"),
        ({"ncessch": "99", "name": ""}, "NCESSCH", "is not a school here"),
    ],
)
def test_a_wrong_cell_is_reported_by_row_and_column(staff, run, cells, column, reason):
    report = run(row(ncessch="washington"), row(**cells))
    assert rejections(report) == [(3, column, reason)]
    # Nothing was stored, not even of the valid row.
    assert (report["status"], report["imported"]) == (1, False)
    assert not SchoolListing.objects.exclude(latitude=None).exists()
    assert not AuditEntry.objects.filter(action="import schools").exists()


@pytest.mark.parametrize("code", [0x01, 0x07, 0x1B, 0x7F, 0x80, 0x202E, 0xFFFF])
@pytest.mark.parametrize("column", ["ncessch", "name", "street", "city"])
def test_a_control_character_in_a_cell_is_reported(staff, run, column, code):
    before = list(SchoolListing.objects.values())
    report = run(row(**{column: f"lin{chr(code)}coln"}))
    [(number, name, reason)] = rejections(report)
    assert (number, name) == (2, column.upper())
    assert "an invisible control character" in reason
    assert list(SchoolListing.objects.values()) == before


def test_schools_that_cannot_be_told_apart_are_rejected(staff, run):
    School.objects.create(district=staff.lakeside, code="other", name="LINCOLN")
    report = run(
        row(ncessch="no", name="Lincoln"),
        row(ncessch="washington"),
        row(ncessch="washington"),
    )
    assert rejections(report) == [
        (2, "NAME", "is the name of several schools"),
        (4, "NCESSCH", "is the school of row 3 too"),
    ]


def test_valid_rows_are_imported_with_partial_and_the_others_written_to_a_file(
    staff, run, tmp_path
):
    rejects = tmp_path / "rejects.csv"
    report = run(
        LINCOLN,
        row(ncessch="washington", lat="=1"),
        options=["--partial", "--rejects", str(rejects)],
    )
    assert (report["status"], report["changed"], report["rejected"]) == (0, 1, 1)
    with rejects.open(encoding="utf-8-sig") as file:
        [line] = csv.DictReader(file)
    assert line["Rejected because"] == "Row 3: LAT is not a number"
    assert line["LAT"] == "'=1"


def test_a_longitude_that_was_escaped_in_a_file_of_rejected_rows_is_read(staff, run):
    assert run(row(lon="'-89.6"))["changed"] == 1
    assert SchoolListing.objects.get(school=staff.lincoln).longitude == -89.6


def test_a_dry_run_changes_nothing(staff, run):
    new = row(ncessch="170002000001", name="New")
    report = run(LINCOLN, new, options=["--dry-run", "--create"])
    assert (report["changed"], report["created"], report["imported"]) == (1, 1, False)
    assert not SchoolListing.objects.exclude(latitude=None).exists()
    assert not School.objects.filter(name="New").exists()


def test_unknown_schools_are_created_in_the_district_of_their_number(staff, run):
    new = row(ncessch="170002000001", name="New")
    assert run(LINCOLN, new, options=["--create"])["created"] == 1
    school = School.objects.get(name="New")
    assert (school.code, school.district.code) == ("170002000001", "1700020")
    assert school.listing.latitude == 39.8
    assert run(LINCOLN, new, options=["--create"])["unchanged"] == 2


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (["NCESSCH", "NAME", "LAT"], "No column for: LON."),
        (["CITY", "LAT", "LON"], "No column for: NCESSCH or NAME."),
        (["a", "b"], r"names the columns \(NCESSCH or NAME, LAT, LON, …\)"),
    ],
)
def test_a_file_without_the_columns_is_refused(staff, run, header, message):
    with pytest.raises(CommandError, match=message):
        run(header=header)


def test_made_up_schools_are_the_same_each_time_and_crowd_in_large_towns(tmp_path):
    schools = list(made_up_schools(2000))
    assert schools == list(made_up_schools(2000))
    assert schools != list(made_up_schools(2000, seed=2))
    assert len({school[0] for school in schools}) == 2000
    largest = made_up_towns(250)[0]
    town = MADE_UP_HEADER.index("ZIP")
    share = sum(school[town] == largest.postal_code for school in schools) / 2000
    assert 0.12 < share < 0.22
    states = MADE_UP_HEADER.index("STATE")
    assert {school[states] for school in made_up_schools(50, state="NM")} == {"NM"}

    path = tmp_path / "schools.csv"
    with path.open("w") as file:
        call_command("make_schools", schools=300, stdout=file)
    assert command(path, "--create")["created"] == 300
    assert SchoolListing.objects.exclude(latitude=None).count() == 300
