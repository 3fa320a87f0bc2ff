"""The console, the command and its JSON say the same about a roster file."""

from __future__ import annotations

import html
import io
import json

import pytest
from django.core.management import call_command

from survey.tests.rosters.roster_imports import ALI, HEADER, MAYA
from survey.tests.rosters.test_import_roster_command import command

LINES = [
    "Students of Riverside",
    "",
    f"{HEADER},status,locker",
    f"{MAYA},active,12",
    f"{ALI},withdrawn,13",
    f"{MAYA.replace('00123', '00125').replace(',7,', ',77,')},active,14",
    f"{MAYA.replace('student', 'teacher').replace('00123', 'T1')},active,15",
    f"{MAYA.replace('00123', '00126')},pre-registered,16",
]
SUMMARY = [
    "File: UTF-8, separated by commas (headers in row 3).",
    "Columns used: district (district), school (school), role (role), grade (grade),"
    " student ID (student or staff ID), given name (given name), family name (family"
    " name), e-mail (e-mail), birth date (birth date), language (language), status"
    " (status), lunch (subgroup).",
    "Columns not used, of which nothing is kept: locker (it is not one of this"
    " survey round's subgroups).",
    "5 rows below the headers: 1 read as people to invite, 1 rejected, 1 of people who"
    " have left, 1 of people who come later, 1 left out, of the role teacher.",
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("\n".join(LINES))
    return path


@pytest.mark.django_db
def test_console_command_and_json_say_the_same(administration, staff, console_of, path):
    upload = console_of(staff.dana).upload(administration, *LINES)
    assert upload.report["summary"] == SUMMARY
    page = console_of(staff.dana).get(f"/console/rosters/{upload.pk}/")
    assert "".join(f"<li>{html.escape(text)}</li>" for text in SUMMARY) in (
        page.content.decode().replace("&#39;", "&#x27;")
    )
    assert json.loads(command(path, "--partial", "--json"))["summary"] == SUMMARY
    assert "\n".join(SUMMARY) in command(path, "--partial")


def test_every_row_is_counted_once(administration, tmp_path):
    """A row that another one of the same person replaces is in the notes only."""
    path = tmp_path / "roster.csv"
    rows = [f"{MAYA},active", f"{MAYA},left", f"{ALI},left", f"{ALI},left"]
    path.write_text("\n".join([f"{HEADER},status", *rows]))
    summary = json.loads(command(path, "--partial", "--json"))["summary"]
    assert summary[-1] == (
        "4 rows below the headers: 1 read as people to invite, 1 of people who have"
        " left, 2 left out, as repeated or as the notes say."
    )


def test_rows_beside_a_rejected_one_are_not_called_repeated(administration, tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("\n".join([HEADER, MAYA, ALI.replace("00124", "-")]))
    out = io.StringIO()
    call = ["import_roster", str(path), "--administration", administration.name]
    with pytest.raises(SystemExit):
        call_command(*call, stdout=out)
    assert (
        "2 rows below the headers: 1 rejected, 1 not imported, because other rows were"
        " rejected." in out.getvalue()
    )


def test_notes_are_counted_where_several_cells_have_them(administration, tmp_path):
    path = tmp_path / "roster.csv"
    rows = [MAYA.replace("free", "x"), f"{ALI}y"]
    path.write_text("\n".join([HEADER, *rows]))
    administration.subgroups = {"lunch": ["free", "paid"]}
    administration.save(update_fields=["subgroups"])
    note = "  lunch has a value that is not declared: left blank"
    assert f"{note} (2)\n" in command(path)
    path.write_text("\n".join([HEADER, rows[0]]))
    assert f"{note}\n" in command(path)
