"""Show similar known names beside a new school, which may be a misspelling."""

from __future__ import annotations

import pytest

from accounts.models import District, School
from accounts.permissions import Places
from survey.people.rosters import diff, schools
from survey.people.rosters.place_names import is_near_name
from survey.people.rosters.scope import NOT_YOURS, RosterScope
from survey.tests.rosters.roster_imports import run_import

HEADER = "district code,district name,school code,school name,student ID,given name"


@pytest.fixture
def northfield(db):
    district = District.objects.create(code="0153", name="Northfield USD")
    for code, name in (("0201", "Northfield High"), ("0202", "Lincoln Elementary")):
        School.objects.create(district=district, code=code, name=name)
    return district


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("Lincon", "Lincoln"),
        ("Licnoln", "Lincoln"),
        ("Lincon Elementary", "Lincoln"),
        ("Lincoln Elementry", "Lincoln Elementary"),
        ("Lincon", "Lincoln Middle School"),
        ("Abraham Lincoln", "Lincoln, Abraham"),
        ("Garza Middle", "García Middle"),
    ],
)
def test_one_or_two_letters_or_another_order_are_near(written, known):
    assert is_near_name(written, known)
    assert is_near_name(known, written)


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("Lincon High", "Lincoln Middle"),
        ("Northwood Elementary", "Northview Elementary"),
        ("School 12", "School 13"),
        ("Lincoln East", "Lincoln West"),
        ("Adams", "Monroe"),
        ("Oak", "Ash"),
        ("High School", "Middle School"),
    ],
)
def test_other_names_are_not_near(written, known):
    assert not is_near_name(written, known)
    assert not is_near_name(known, written)


def test_a_new_school_is_shown_with_similar_ones_of_its_district(
    administration, northfield, lincoln
):
    report = run_import(
        administration,
        HEADER,
        "0153,,X1,Lincon Elementary,1,Max",
        "0153,,X2,Roosevelt,2,Ali",
        "CA-9,Newtown,X3,Lincoln,3,Zoe",
    )
    # Schools of other districts are not compared.
    assert [(entry["name"], entry["near"]) for entry in report.unknown_schools] == [
        ("Lincoln", []),
        ("Lincon Elementary", ["Lincoln Elementary"]),
        ("Roosevelt", []),
    ]
    # Nothing is matched silently.
    assert School.objects.get(code="x1").name == "Lincon Elementary"


def test_only_the_new_schools_that_are_shown_are_compared(
    administration, northfield, monkeypatch
):
    monkeypatch.setattr(diff, "MOST_COMPARED", 1)
    report = run_import(
        administration,
        HEADER,
        "0153,,X1,Lincon Elementary,1,Max",
        "0153,,X2,Northfeld High,2,Ali",
    )
    assert ["near" in entry for entry in report.unknown_schools] == [True, False]


def test_a_new_district_is_shown_with_similar_ones(administration, northfield):
    rows = (
        "X1,Northfeld USD,0201,Northfield High,1,Max",
        "X2,Newtown,X3,Lincoln,2,Zoe",
    )
    report = run_import(administration, HEADER, *rows)
    assert report.places.unknown_districts == [
        {"code": "x1", "name": "Northfeld USD", "near": ["Northfield USD"]},
        {"code": "x2", "name": "Newtown", "near": []},
    ]
    # Nothing is matched silently, and the next roster finds them by their codes.
    assert District.objects.get(code="x1").name == "Northfeld USD"
    assert run_import(administration, HEADER, *rows).places.unknown_districts == []


def test_only_the_first_new_districts_are_compared(
    administration, northfield, monkeypatch
):
    monkeypatch.setattr(schools, "MOST_COMPARED", 1)
    report = run_import(
        administration,
        HEADER,
        "X1,Northfeld USD,0201,Northfield High,1,Max",
        "X2,Nortfield USD,0201,Northfield High,2,Zoe",
    )
    unknown = report.places.unknown_districts
    assert ["near" in entry for entry in unknown] == [True, False]


def test_a_district_is_asked_whether_it_meant_itself(administration, northfield):
    """The question is the same whether another district has that name or not."""
    rows = [
        "X1,Northfeld USD,0201,Northfield High,1,Max",
        "X2,Newtown,X3,Lincoln,2,Zoe",
    ]
    northfields = RosterScope(Places(districts=frozenset({northfield.pk})))
    school = northfield.schools.first().pk
    single = RosterScope(Places(schools=frozenset({school})))
    asked = f"{NOT_YOURS}. Did you mean the district Northfield USD?"

    def reasons(scope):
        report = run_import(administration, HEADER, *rows, scope=scope)
        return [cell.reason for cell in report.rejections]

    assert reasons(northfields) == [asked, NOT_YOURS]
    # Who does not see the district is asked nothing.
    assert reasons(single) == [NOT_YOURS, NOT_YOURS]
    District.objects.create(code="X1", name="Northfeld USD")
    assert reasons(northfields) == [asked, NOT_YOURS]
