"""Only declared subgroups are stored next to answers."""

from __future__ import annotations

import pytest

from survey.models import Respondent
from survey.people.rosters import row_parser
from survey.people.rosters.columns import NOT_DECLARED
from survey.people.rosters.file_reader import RosterUnreadable
from survey.tests.rosters.roster_imports import run_import

pytestmark = pytest.mark.django_db

HEADER = "district,school,student ID,grade,lunch,Pupil,Apodo,Teléfono,Seat"
MAYA = "Riverside,Lincoln,1,7,Free,Maya Lopez,Maya,555-0100,A-17"


def declare(administration, **subgroups):
    administration.subgroups = subgroups
    administration.save(update_fields=["subgroups"])


def test_columns_with_names_are_left_out_and_listed(administration):
    report = run_import(administration, HEADER, MAYA)
    assert report.imported
    assert Respondent.objects.get().attributes == {"lunch": "free"}
    assert report.columns.ignored == dict.fromkeys(
        ["Pupil", "Apodo", "Teléfono", "Seat"], NOT_DECLARED
    )


def test_names_would_be_stored_if_their_column_were_declared(administration):
    declare(administration, Pupil=["Maya Lopez"])
    run_import(administration, HEADER, MAYA)
    assert Respondent.objects.get().attributes == {"Pupil": "Maya Lopez"}


def test_undeclared_values_are_left_out_and_counted_without_the_value(administration):
    declare(administration, House=["Red", "Blue"])
    report = run_import(
        administration,
        "district,school,student ID,grade,House",
        "Riverside,Lincoln,1,7,RED",
        "Riverside,Lincoln,2,7,Maya Lopez",
        "Riverside,Lincoln,3,7,",
    )
    attributes = Respondent.objects.order_by("pk").values_list("attributes", flat=True)
    assert list(attributes) == [{"House": "Red"}, {}, {}]
    assert report.notes == {"House has a value that is not declared: left blank": 1}


def rows_with(values):
    header = "district,school,student ID,grade,House"
    return [header, *(f"Riverside,Lincoln,{n},7,{v}" for n, v in enumerate(values))]


def test_a_nearly_unique_subgroup_refuses_the_file(administration, monkeypatch):
    names = [f"name {n}" for n in range(12)]
    declare(administration, House=names)
    with pytest.raises(RosterUnreadable, match="'House' is a subgroup, but most"):
        run_import(administration, *rows_with(names))
    assert not Respondent.objects.exists()
    # Each value has two people or more.
    assert run_import(administration, *rows_with(names * 2)).imported
    Respondent.objects.all().delete()
    monkeypatch.setattr(row_parser, "MANY_VALUES", 10**9)
    report = run_import(administration, *rows_with(names))
    assert report.added == 12
