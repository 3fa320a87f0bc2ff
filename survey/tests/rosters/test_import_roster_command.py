"""Import rosters with `manage.py import_roster`."""

from __future__ import annotations

import csv
import io
import json
import stat

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry
from survey.management.commands import import_roster
from survey.models import Respondent
from survey.tests.rosters.roster_imports import (
    ALI,
    HEADER,
    MAYA,
    many_rows,
    run_import,
)


@pytest.fixture
def roster(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("\n".join([HEADER, MAYA, ALI.replace(",8,", ",=88,")]))
    return path


def command(roster, *args):
    out = io.StringIO()
    call_command(
        "import_roster",
        str(roster),
        "--administration",
        "students-2027",
        *args,
        stdout=out,
    )
    return out.getvalue()


def test_the_command_prints_figures_and_speed(administration, roster):
    out = command(roster, "--partial")
    assert "1 added, 0 changed, 0 unchanged, 1 rejected" in out
    assert "row 3, grade: '=88' is not a grade" in out
    assert "new schools (1): lincoln" in out
    assert "rows/s" in out and "MB at most" in out
    [entry] = AuditEntry.objects.filter(action="import roster")
    assert (entry.by, entry.subject) == ("import_roster", "students-2027")
    assert (entry.after["added"], entry.after["rejected"]) == (1, 1)


def test_the_command_withdraws_missing_people_with_complete_for(administration, roster):
    run_import(administration, HEADER, MAYA, ALI)
    roster.write_text(f"{HEADER}\n{ALI}")
    assert "withdrawn" not in command(roster)
    complete = "--complete-for", "schools"
    for wrong in ((), ("--confirm-withdrawn", "2")):
        with pytest.raises(CommandError, match="1 person would be withdrawn.*wn 1"):
            command(roster, *complete, *wrong)
        assert not Respondent.objects.exclude(withdrawn_at=None).exists()
    assert "1 withdrawn" in command(roster, *complete, "--confirm-withdrawn", "1")
    assert Respondent.objects.exclude(withdrawn_at=None).count() == 1


def test_the_command_withdraws_a_few_people_without_a_confirmation(
    administration, roster
):
    run_import(administration, HEADER, *many_rows(11))
    roster.write_text("\n".join([HEADER, *many_rows(10)]))
    assert "1 withdrawn" in command(roster, "--complete-for", "schools")


def test_people_whose_rows_lie_in_another_cell_would_be_withdrawn(
    administration, roster, monkeypatch
):
    """A file that lacks rows looks like a school that people have left."""
    run_import(administration, HEADER, MAYA, ALI)
    roster.write_text(f"{HEADER}\n{ALI}")
    monkeypatch.setattr(import_roster, "withdraws_many", lambda schools: False)
    command(roster, "--complete-for", "schools")
    assert Respondent.objects.exclude(withdrawn_at=None).count() == 1


def test_the_command_exits_with_1_if_nothing_was_imported(
    administration, roster, tmp_path
):
    rejects = tmp_path / "rejects.csv"
    with pytest.raises(SystemExit) as end:
        command(roster, "--rejects", str(rejects))
    assert end.value.code == 1
    assert not Respondent.objects.exists()
    assert stat.S_IMODE(rejects.stat().st_mode) == 0o600
    with rejects.open(encoding="utf-8-sig") as file:
        assert [line["grade"] for line in csv.DictReader(file)] == ["'=88"]


def test_the_command_prints_json(administration, roster):
    report = json.loads(command(roster, "--partial", "--json"))
    assert (report["added"], report["rejected"]) == (1, 1)
    assert report["columns"]["external_id"] == "student ID"
    assert report["attributes"] == ["lunch"]
    assert report["rejections"][0]["row"] == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["missing.csv", "--administration", "students-2027"],
            "missing.csv: No such file",
        ),
        ([".", "--administration", "students-2027"], "Is a directory"),
        (["manage.py", "--administration", "students-2027"], "names the columns"),
        (["manage.py", "--administration", "x"], "No administration is named x"),
    ],
)
def test_a_wrong_argument_is_reported_in_one_line(administration, args, message):
    with pytest.raises(CommandError, match=message):
        call_command("import_roster", *args)


def test_a_generated_roster_is_imported_completely(administration, tmp_path):
    out = io.StringIO()
    call_command("make_roster", "--rows", "600", stdout=out)
    path = tmp_path / "made.csv"
    path.write_text(out.getvalue(), newline="")
    report = json.loads(command(path, "--json"))
    assert (report["added"], report["rejected"]) == (600, 0)
    assert len(report["schools_created"]) == 2


def export(tmp_path, *lines):
    path = tmp_path / "export.csv"
    path.write_text("\n".join(lines))
    return path


def test_the_command_reads_an_export_with_the_place_named(
    administration, lincoln, tmp_path
):
    path = export(tmp_path, "Student_Number,LastFirst,Enroll_Status", '7,"Diaz, Ali",0')
    with pytest.raises(CommandError, match="No column for: district, school.*--school"):
        command(path)
    with pytest.raises(CommandError, match="No district has the code nowhere"):
        command(path, "--district", "nowhere")
    assert "1 added" in command(path, "--district", "riverside", "--school", "lincoln")
    assert Respondent.objects.get().school == lincoln


def test_the_command_asks_for_the_id_column_by_name(administration, lincoln, tmp_path):
    path = export(tmp_path, "sourcedId,Student Number,given name", "s1,7,Ali")
    place = ("--school", "lincoln")
    with pytest.raises(CommandError, match="'Student Number', 'sourcedId'.*--column"):
        command(path, *place)
    with pytest.raises(CommandError, match="The file has no column 'Nummer'"):
        command(path, *place, "--column", "external_id=Nummer")
    assert "1 added" in command(path, *place, "--column", "external_id=sourcedId")
    assert Respondent.objects.get().identity.external_id == "s1"


def test_the_command_takes_the_second_of_two_columns(administration, lincoln, tmp_path):
    path = export(
        tmp_path, "First Name,Student ID,First Name,Status,Status", "Pat,1,Kit,A,W"
    )
    place = "--school", "lincoln"
    with pytest.raises(
        CommandError, match=r"given name: 'First Name', 'First Name \(2\)'.*status"
    ):
        command(path, *place)
    names = "--column", "given_name=First Name (2)"
    with pytest.raises(CommandError, match=r"the status: 'Status', 'Status \(2\)'"):
        command(path, *place, *names)
    command(path, *place, *names, "--column", "status=Status")
    assert Respondent.objects.get().identity.given_name == "Kit"


def test_the_command_asks_how_dates_are_written(administration, lincoln, tmp_path):
    path = export(tmp_path, "student id,dob", "7,3/4/2014")
    for column in ((), ("--column", "birth_date=dob")):
        with pytest.raises(CommandError, match=r"Dates such as 3/4/2015"):
            command(path, "--school", "lincoln", *column)
    command(path, "--school", "lincoln", "--dates", "day-first")
    assert str(Respondent.objects.get().identity.birth_date) == "2014-04-03"


def test_the_command_takes_a_preset_by_name(administration, lincoln, tmp_path):
    path = export(tmp_path, "sourcedId,identifier,givenName", "s1,7,Ali")
    command(path, "--school", "lincoln", "--preset", "oneroster-users")
    assert Respondent.objects.get().identity.external_id == "s1"


def test_a_named_preset_says_which_column_it_misses(administration, lincoln, tmp_path):
    path = export(
        tmp_path, "Student Key,Stu First Name,Entity", "K100,Ali,lincoln", "K101,Bo,l"
    )
    place = "--district", "riverside"
    with pytest.raises(CommandError) as error:
        command(path, *place, "--preset", "skyward")
    message = str(error.value)
    assert "no column 'Other ID', as a Skyward data mining report has" in message
    assert "It is not certain that 'Student Key' is the student or staff ID" in message
    assert "Several" not in message and "choose a --preset" not in message


def test_the_report_says_what_columns_were_read_as(administration, lincoln, tmp_path):
    """The ID of a student is not what a column of names is read as."""
    path = export(tmp_path, "Key,Studnt Nme,Grdae Level", "7,Ali Diaz,8")
    out = command(
        path,
        *("--school", "lincoln", "--column", "external_id=Key"),
        *("--column", "name=Studnt Nme"),
    )
    assert "Studnt Nme (full name), Grdae Level (grade)." in out


def test_a_note_that_counts_is_not_counted_again(administration, lincoln, tmp_path):
    path = export(tmp_path, "student id,first name", "student id,first name", "7,-")
    out = command(path, "--school", "lincoln")
    assert "  Row that repeats the header: left out\n" in out
    assert "(1)" not in out
