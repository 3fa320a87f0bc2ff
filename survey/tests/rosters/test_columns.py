"""Headers of real systems, and what each column becomes."""

from __future__ import annotations

import unicodedata

import pytest

from survey.fieldwork.administrations import default_subgroups
from survey.people.opt_outs.list_file import LIST_HEADER
from survey.people.rosters import columns as roster_columns
from survey.people.rosters.columns import (
    MOST_READ_OF_A_HEADER,
    NOT_DECLARED,
    best_header,
    columns_of,
)
from survey.people.schools.columns import SCHOOL_HEADER


@pytest.fixture
def read(monkeypatch) -> list[int]:
    """Return the lengths of the texts that are cleaned."""
    roster_columns._clean_cut_header.cache_clear()
    lengths = []
    normalize = unicodedata.normalize

    def counting(form: str, text: str) -> str:
        lengths.append(len(text))
        return normalize(form, text)

    monkeypatch.setattr(unicodedata, "normalize", counting)
    return lengths


def test_only_the_beginning_of_a_long_cell_is_read_as_a_header(read):
    titles = ["x" * 131_072] * 300
    header = best_header([(1, titles), (2, ["district", *titles])])
    assert header is not None
    assert (header.row, list(header.fields)) == (2, ["district"])
    assert max(read) == MOST_READ_OF_A_HEADER


def test_a_text_to_which_many_cells_refer_is_cleaned_once(read):
    """Each of these letters becomes eighteen, which takes a while to find out."""
    titles = ["\ufdfa" * 131_072] * 300
    assert best_header((row, titles) for row in range(1, 21)) is None
    assert read == [MOST_READ_OF_A_HEADER]
    assert len(roster_columns.clean_header(titles[0])) == MOST_READ_OF_A_HEADER


def test_headers_of_real_systems_are_recognised():
    columns = columns_of(
        ["LEA Code", "School_Name", "School ID", "Grade Level", "State Student ID"]
        + ["First Name", "LAST NAME", "E-Mail", "DOB", "Lunch Status", ""]
        + [
            "password",
            "metadata.x",
            "Home Phone",
            "Parent Email",
            "Brith Date",
            "",
            "Lunch Status",
        ]
    )
    assert {name: columns.heading(name) for name in columns.fields} == {
        "district": "LEA Code",
        "school": "School ID",
        "school_name": "School_Name",
        "grade": "Grade Level",
        "external_id": "State Student ID",
        "given_name": "First Name",
        "family_name": "LAST NAME",
        "email": "E-Mail",
        "birth_date": "DOB",
    }
    assert list(columns.attributes) == ["Lunch Status"]
    assert columns.ignored["password"] == "passwords are never kept"
    assert set(columns.ignored) == {
        "password", "metadata.x", "Home Phone", "Parent Email",
        "Brith Date", "Lunch Status (2)",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("header", "field"),
    [("First Name [Required]", "given_name"), ("Grade*", "grade"),
     ("Date of Birth (MM/DD/YYYY)", "birth_date"), ("* Last Name:", "family_name"),
     ("Stu Home Lang", "language"), ("Home Language", "language"),
     ("Last, First", "name"), ("Last Name, First Name MI", "name"),
     ("Student Name (Last, First)", "name"), ("Pupil: Forename", "given_name"),
     ("STUDENT.GRADE LEVEL", "grade"), ("Enrolled?", "status"),
     ("Fecha de nacimiento", "birth_date"), ("Correo electrónico", "email"),
     ("School (Name)", "school_name"), ("Student ID #", "external_id"),
     ("Grade <numeric>", "grade"), ("E-mail (school)", "email"),
     ("Exit Date [READ ONLY]", "exit_date"), ("Student's Last Name", "family_name"),
     ("Status (2)", "status"), ("Birth Dt.", "birth_date"),
     ("3. Last Name", "family_name"), ("12) School", "school")],
)  # fmt: skip
def test_a_header_is_recognised_without_remarks_and_prefixes(header, field):
    columns = columns_of([header])
    assert columns.fields[field] == 0
    assert not columns.guessed


@pytest.mark.parametrize(
    "header",
    ["E-mail (parent)", "First Name [Guardian]", "Phone (status)", "[Required]",
     "Emergency contact", "Home Room Teacher (name)", "Graduation Year", "(status"],
)  # fmt: skip
def test_a_remark_about_somebody_else_stays(header):
    """Without it, a parent would get the code of the child."""
    assert not {"email", "given_name", "grade"} & columns_of([header]).fields.keys()


@pytest.mark.parametrize(
    "header", ["Student District ID", "Stu School Number", "New Primary Email"]
)
def test_a_header_with_a_word_more_means_something_else(header):
    assert not columns_of([header]).fields


def test_a_misspelling_is_reported_only_for_what_the_column_is_read_as():
    assert columns_of(["Studnt ID"]).guessed == {"Studnt ID": "external_id"}
    columns = columns_of(["Studnt ID", "Key"], fields={"name": "Studnt ID"})
    assert (columns.fields, columns.guessed) == ({"name": 0}, {})


def test_headers_that_repeat_are_numbered():
    header = columns_of(["Name", "", "Name", "Name (2)", "Name", ""]).header
    assert header == ["Name", "", "Name (2)", "Name (2) (2)", "Name (3)", ""]


def test_very_many_equal_headers_are_numbered_at_once():
    header = columns_of(["x"] * 20_000).header
    assert header[-1] == "x (20000)"
    assert len({*header}) == 20_000


def test_a_declared_subgroup_is_kept_if_its_column_is_also_a_field():
    columns = columns_of(["student id", "Home Language"])
    chosen = columns.with_subgroups(["home language"])
    assert chosen.fields["language"] == chosen.attributes["home language"] == 1


@pytest.mark.parametrize(
    ("header", "field"),
    [("Distrct", "district"), ("Schol Name", "school_name"), ("Langauge", "language"),
     ("Given Nmae", "given_name"), ("Birth Daet", "birth_date")],
)  # fmt: skip
def test_misspelt_header_is_recognised_and_reported(header, field):
    columns = columns_of([header])
    assert columns.fields == {field: 0} | (
        {"school": 0} if field == "school_name" else {}
    )
    assert columns.guessed == {header: field}


@pytest.mark.parametrize(
    "header",
    ["Full Name 2", "Middle Name", "Mother", "SSN", "Street Address", "Lunch Number",
     "Homeroom Teacher Name", "Username", "Parent Phone", "Guardian", "Birth City"],
)  # fmt: skip
def test_identifying_column_never_becomes_a_subgroup(header):
    columns = columns_of(["district", "school", "student id", header])
    assert not columns.attributes
    assert header in columns.ignored


def test_only_declared_columns_are_kept_by_their_declared_names():
    columns = columns_of(["student id", "Pupil", "LUNCH", "lunch ", "Seat"])
    chosen = columns.with_subgroups(["lunch", "race"])
    assert chosen.attributes == {"lunch": 2}
    assert chosen.ignored == {
        "Pupil": NOT_DECLARED,
        "lunch": "another column holds the same",
        "Seat": NOT_DECLARED,
    }


@pytest.mark.parametrize("name", default_subgroups())
def test_standard_subgroup_is_recognised_in_a_header(name):
    header = columns_of(["district", "school", "student id", name])
    assert header.with_subgroups(default_subgroups()).attributes == {name: 3}


@pytest.mark.parametrize(
    ("find_header", "header", "field"),
    [(LIST_HEADER, "Student ID [Required]", "external_id"),
     (SCHOOL_HEADER, "Name (official)", "name")],
)  # fmt: skip
def test_headers_of_other_lists_are_read_without_remarks(find_header, header, field):
    assert find_header([(1, ["x", header])]).fields == {field: 1}
