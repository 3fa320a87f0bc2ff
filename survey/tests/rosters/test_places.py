"""Find the school of each row by code and name, and never create one twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import District, School
from survey.models import Identity, Respondent
from survey.people.rosters import place_names, schools
from survey.people.rosters.place_resolution import TWO_CODES, UNCLEAR
from survey.people.rosters.schools import (
    CLOSED,
    PlacesChanged,
    SchoolMatches,
    code_for_name,
    create_new_schools,
)
from survey.people.rosters.scope import NOT_YOURS
from survey.tests.rosters.roster_console import reasons
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

HEADER = "district code,district name,school code,school name,student ID,given name"
MAX = "0153,Northfield USD,0201,Northfield High,0000202,Max"


@pytest.fixture
def northfield():
    district = District.objects.create(code="0153", name="Northfield USD")
    for code, name in (("0201", "Northfield High"), ("0202", "Lincoln Elementary")):
        School.objects.create(district=district, code=code, name=name)
    return district


def codes():
    return sorted(District.objects.values_list("code", flat=True)), sorted(
        School.objects.values_list("code", flat=True)
    )


def schools_of_people():
    people = Identity.objects.order_by("external_id")
    return list(people.values_list("external_id", "respondent__school__code"))


def places_of(report, *keys):
    return [report.as_dict()[key] for key in keys]


def test_a_file_with_codes_and_names_finds_places_and_people_again(
    administration, northfield
):
    run_import(administration, "district,school,student ID", "0153,0201,0000202")
    report = run_import(administration, HEADER, MAX)
    assert codes() == (["0153"], ["0201", "0202"])
    assert Respondent.objects.count() == 1
    assert (report.added, report.changed, report.rejected) == (0, 1, 0)
    assert places_of(report, "renamed", "taken_by_name", "conflicts") == [[], [], []]


@pytest.mark.parametrize(
    "header",
    [
        "district,district code,school,school code,student ID",
        "district name,lea id,school name,site id,student ID",
    ],
)
def test_names_beside_codes_create_no_second_district(
    administration, northfield, header
):
    run_import(administration, "district,school,student ID", "0153,0201,0000202")
    run_import(
        administration, header, "Northfield USD,0153,Northfield High,0201,0000202"
    )
    assert codes() == (["0153"], ["0201", "0202"])
    assert Respondent.objects.count() == 1


@pytest.mark.parametrize(
    ("district", "school"),
    [
        ("153", "201"),
        ("Northfield USD", "Northfield High"),
        ("NORTHFIELD Unified School District", "northfield high school"),
        ("North-field U.S.D.", "Northfield H.S."),
        ("Northfield Unified", "0201"),
        ("0153", "NorthField HS"),
    ],
)
def test_other_spellings_in_a_single_column_find_known_places(
    administration, northfield, district, school
):
    report = run_import(
        administration, "district,school,student ID", f"{district},{school},1"
    )
    assert codes() == (["0153"], ["0201", "0202"])
    assert report.added == 1
    assert schools_of_people() == [("1", "0201")]


def test_without_matching_by_name_places_would_exist_twice(
    administration, northfield, monkeypatch
):
    monkeypatch.setattr(
        place_names.PlaceDirectory,
        "find_by_name",
        lambda self, name: place_names.NOT_FOUND,
    )
    run_import(administration, HEADER, MAX.replace("0153", "CA-77"))
    assert codes()[0] == ["0153", "ca-77"]


def test_a_known_code_with_another_name_is_reported_and_not_renamed(
    administration, northfield
):
    report = run_import(
        administration, HEADER, MAX.replace("Northfield High", "Obama Academy")
    )
    assert places_of(report, "renamed") == [
        [
            {
                "place": "school",
                "district": "Northfield USD",
                "code": "0201",
                "name": "Northfield High",
                "theirs": "Obama Academy",
            }
        ]
    ]
    assert School.objects.get(code="0201").name == "Northfield High"
    assert report.added == 1


def test_an_unknown_code_with_a_known_name_is_taken_as_that_place_and_reported(
    administration, northfield
):
    report = run_import(
        administration, HEADER, "CA-77,Northfield USD,X9,Lincoln Elem. School,1,Max"
    )
    assert codes() == (["0153"], ["0201", "0202"])
    assert [
        (entry["place"], entry["code"], entry["name"], entry["theirs"])
        for entry in report.as_dict()["taken_by_name"]
    ] == [
        ("district", "0153", "Northfield USD", "ca-77"),
        ("school", "0202", "Lincoln Elementary", "x9"),
    ]
    assert schools_of_people() == [("1", "0202")]


@pytest.mark.parametrize(
    ("twin_name", "name"),
    [
        ("Lincoln Elementary", "Lincoln Elementary"),
        ("Lincoln Elementary School", "Lincoln Elem"),
        # "Lincoln" could be either.
        ("Lincoln High", "Lincoln"),
    ],
)
def test_a_name_of_two_schools_is_rejected_and_creates_none(
    administration, northfield, twin_name, name
):
    School.objects.create(district=northfield, code="0203", name=twin_name)
    report = run_import(
        administration, HEADER, f"0153,,X9,{name},1,Max", f"0153,,,{name},2,Ali", MAX,
        partial=True,
    )  # fmt: skip
    rejected = [(cell.row, cell.reason) for cell in report.rejections]
    assert (2, UNCLEAR) in rejected
    assert len(School.objects.all()) == 3
    assert report.added == 1


def test_similar_names_of_other_kinds_are_other_schools(administration, northfield):
    report = run_import(
        administration,
        HEADER,
        "0153,,X1,Lincoln High,1,Max",
        "0153,,X2,Northfield Elementary,2,Ali",
    )
    assert codes()[1] == ["0201", "0202", "x1", "x2"]
    assert [entry["name"] for entry in report.as_dict()["unknown_schools"]] == [
        "Lincoln High",
        "Northfield Elementary",
    ]


def test_two_names_for_one_code_create_one_school_and_are_reported(
    administration, northfield
):
    report = run_import(
        administration,
        HEADER,
        "0153,,301,Adams,1,Max",
        "0153,,301,Monroe,2,Ali",
        "0153,,301,Adams School,3,Zoe",
    )
    assert codes()[1] == ["0201", "0202", "301"]
    assert {school for _, school in schools_of_people()} == {"301"}
    [conflict] = report.as_dict()["conflicts"]
    assert (conflict["code"], conflict["names"]) == ("301", ["Adams", "Monroe"])


@pytest.mark.parametrize(
    "lines",
    [
        # Neither is known.
        ["0153,,301,Adams,1,Max", "0153,,302,ADAMS,2,Ali"],
        # The name is that of a known school, to which the file gives two codes.
        ["0153,,301,Lincoln Elem,1,Max", "0153,,302,Lincoln Elementary,2,Ali"],
    ],
)
def test_two_codes_for_one_name_create_no_school(administration, northfield, lines):
    report = run_import(administration, HEADER, *lines, partial=True)
    assert [(cell.row, cell.reason) for cell in report.rejections] == [
        (2, TWO_CODES),
        (3, TWO_CODES),
    ]
    assert codes()[1] == ["0201", "0202"]
    assert not Respondent.objects.exists()


def test_an_unknown_code_beside_the_known_one_of_its_name_is_rejected(
    administration, northfield
):
    report = run_import(
        administration,
        HEADER,
        "0153,,0202,Lincoln Elementary,1,Max",
        "0153,,999,Lincoln Elementary,2,Ali",
        partial=True,
    )
    assert [(cell.row, cell.reason) for cell in report.rejections] == [(3, TWO_CODES)]
    assert schools_of_people() == [("1", "0202")]


def test_people_of_unclear_places_are_not_withdrawn(administration, northfield):
    """Twice: with the school unclear, and with the district unclear."""
    known = ["0153,,0202,Lincoln Elementary,1,Max", "0153,,0201,Northfield High,3,Zoe"]
    run_import(administration, HEADER, *known, "0153,,0201,,2,Ali")
    District.objects.create(code="0154", name="Northfield USD")
    for unclear in (
        "0153,,999,Northfield High,2,Ali",
        "CA-1,Northfield USD,0201,,2,Ali",
    ):
        report = run_import(
            administration, HEADER, *known, unclear,
            partial=True, complete_for="districts",
        )  # fmt: skip
        assert (report.rejected, report.unchanged, report.withdrawn) == (1, 2, 0)


def test_people_are_not_withdrawn_if_all_rows_of_their_district_are_rejected(
    administration, northfield, staff
):
    """The district's code is unknown, and the name of rejected rows is not stored."""
    header = f"{HEADER},grade"
    known = "0153,,0201,,1,Max,7", "0153,,0201,,2,Ali,7"
    lakeside = "lakeside,,roosevelt,,1,Zoe,7"
    run_import(administration, header, *known, lakeside)
    rejected = "CA-77,Northfield USD,0201,,2,Ali,77"
    report = run_import(
        administration, header, lakeside, rejected, partial=True, complete_for="state"
    )
    assert (report.rejected, report.withdrawn) == (1, 1)
    withdrawn = Identity.objects.exclude(respondent__withdrawn_at=None)
    assert withdrawn.get().given_name == "Max"


def test_spellings_of_one_new_name_create_one_school(administration, northfield):
    run_import(
        administration,
        "district,school,student ID",
        "0153,Adams Elem.,1",
        "0153,ADAMS Elementary School,2",
        "0153,adams elementary,3",
    )
    assert len(School.objects.all()) == 3
    assert len({school for _, school in schools_of_people()}) == 1


def test_names_and_codes_of_other_schools_are_not_reported_to_a_coordinator(
    staff, administration, console_of
):
    staff.washington.name = "Washington Middle"
    staff.washington.save()
    upload = console_of(staff.chen).upload(
        administration,
        HEADER,
        "riverside,Riverside,lincoln,Lincoln Hall,1,Max",
        "riverside,Riverside,washington,W,2,Ali",
        "riverside,Riverside,w,Washington Middle,3,Zoe",
        "riverside,Riverside,nowhere,Nowhere,4,Noor",
    )
    assert [reason for _, _, reason in reasons(upload)] == [NOT_YOURS] * 3
    [renamed] = upload.report["renamed"]
    assert renamed["theirs"] == "Lincoln Hall"
    assert upload.report["taken_by_name"] == []
    # The questions repeat what the file says, and suggest the own school only.
    questions = upload.report.pop("school_questions")
    assert {pk for question in questions for pk in question["offered"]} == {
        staff.lincoln.pk
    }
    assert "Washington Middle" not in str(upload.report)


def test_only_declared_subgroups_are_kept_and_the_others_listed(administration):
    administration.subgroups = {"lunch": ["free", "paid"]}
    administration.save(update_fields=["subgroups"])
    report = run_import(
        administration,
        "district,school,student ID,Lunch,Shoe size,Team,Shoe size",
        "riverside,lincoln,1,free,38,red,39",
    )
    assert report.as_dict()["dropped"] == ["Shoe size", "Team", "Shoe size (2)"]
    person = Respondent.objects.get()
    assert person.attributes == {"lunch": "free"}


def test_long_names_that_begin_alike_get_different_codes():
    long = "x" * 80
    assert code_for_name(f"{long}1") != code_for_name(f"{long}2")
    assert len(code_for_name(f"{long}1")) == 64


class NoTables:
    """Stands for the temporary tables, which the creation of schools only fills."""

    def execute(self, sql):
        pass

    def copy_rows(self, table, rows):
        pass


def new_school(district, code, name):
    matches = SchoolMatches(rows=[(0, district.pk, -1)])
    matches.new_schools[-1] = School(code=code, name=name)
    matches.district_of_new[-1] = district.pk
    return matches


def test_a_place_that_has_become_unclear_is_not_created(northfield):
    matches = new_school(northfield, "adams", "Adams")
    for code in ("301", "302"):
        School.objects.create(district=northfield, code=code, name="Adams")
    with pytest.raises(PlacesChanged):
        create_new_schools(NoTables(), matches)
    assert School.objects.filter(name="Adams").count() == 2


@pytest.mark.skipif(connection.vendor != "postgresql", reason="needs two connections")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("code", "name"), [("adams", "Adams"), ("0301", "Adams School"), ("301", "Adams")]
)
def test_two_imports_at_once_create_a_school_once(northfield, monkeypatch, code, name):
    """Also with a code in one file only; without the lock it is created twice."""
    together = threading.Barrier(2)
    find_again = schools._find_again

    def slow_find_again(*args):
        result = find_again(*args)
        # Both have looked, unless one waits for the other.
        with suppress(threading.BrokenBarrierError):
            together.wait(0.5)
        return result

    monkeypatch.setattr(schools, "_find_again", slow_find_again)

    def create(matches):
        try:
            create_new_schools(NoTables(), matches)
            return matches.rows[0][2]
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(create, new_school(northfield, "adams", "Adams"))
        second = threads.submit(create, new_school(northfield, code, name))
        assert first.result() == second.result()
    assert School.objects.filter(district=northfield).count() == 3


def test_rows_of_a_closed_school_are_rejected_and_nobody_is_withdrawn(
    administration, northfield
):
    kim = MAX.replace("0201,Northfield High,0000202", "0202,Lincoln Elementary,0000203")
    run_import(administration, HEADER, MAX, kim)
    School.objects.filter(code="0201").update(closed_at=timezone.now())
    report = run_import(administration, HEADER, MAX, kim)
    assert report.rejected == 1 and CLOSED in str(report.as_dict())
    assert not Respondent.objects.exclude(withdrawn_at=None).exists()
    # Nobody comes into a closed district either, by a school that is new.
    District.objects.update(closed_at=timezone.now())
    new = MAX.replace("0201,Northfield High", "0209,New School")
    assert run_import(administration, HEADER, new).rejected == 1
    assert codes()[1] == ["0201", "0202"]
