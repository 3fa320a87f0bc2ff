"""OneRoster ZIPs that people upload go the way of every roster file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from accounts.models import District, School
from survey.instrument.spreadsheets.workbook_guard import ROSTER, unpacked_size
from survey.models import Identity, Respondent, Role
from survey.people.rosters.apply import import_roster
from survey.people.rosters.file_reader import RosterUnreadable, open_table
from survey.people.rosters.layouts import KnownPlace, RosterLayout
from survey.tests.rosters.oneroster.archives import (
    CLASS_FILES,
    DEMOGRAPHICS,
    ORGS,
    USERS,
    VERSION_11,
    archive,
    replaced,
)
from survey.tests.rosters.oneroster.bad_archives import CORPUS
from survey.tests.rosters.test_import_roster_command import command

RIVERSIDE = KnownPlace("riverside", "Riverside")
NOOR = "u-noor,,,true,o-lincoln,student,noor,,Noor,Haddad,,00124,,,,,08,\n"
FILES = VERSION_11 | CLASS_FILES | {"demographics": DEMOGRAPHICS}
TWO_STUDENTS = FILES | {"users": USERS + NOOR}


def run_import(administration, file, *, layout=None, known=RIVERSIDE, **options):
    with open_table(file, layout, known, role=administration.role) as table:
        return import_roster(administration=administration, table=table, **options)


def active():
    return set(
        Identity.objects.filter(respondent__withdrawn_at=None).values_list(
            "external_id", flat=True
        )
    )


@pytest.mark.sqlite
def test_a_zip_invites_the_people_of_the_administrations_role(administration, lincoln):
    report = run_import(administration, archive(TWO_STUDENTS))

    assert (report.added, report.rejected) == (2, 0)
    assert report.description == "OneRoster 1.1, complete"
    assert any("passwords are never kept" in note for note in report.notes)
    maya = Identity.objects.select_related("respondent").get(given_name="Maya")
    # Lincoln's code there is another one; its name is unique.
    assert maya.respondent.school == lincoln
    assert (maya.external_id, maya.birth_date.isoformat()) == ("u-maya", "2014-03-04")
    assert (maya.respondent.grade, maya.respondent.classroom) == ("07", "7B")
    assert not report.districts_created


@pytest.mark.parametrize(("role", "pk"), [("teacher", "u-ortiz"), ("parent", "u-ana")])
def test_one_zip_serves_administrations_of_every_role(
    administration, lincoln, role, pk
):
    administration.role = Role(role)
    administration.save(update_fields=["role"])
    run_import(administration, archive(VERSION_11))
    assert active() == {pk}


@pytest.mark.sqlite
def test_deleted_people_are_withdrawn_and_not_invited(administration, lincoln):
    run_import(administration, archive(TWO_STUDENTS))
    users = replaced(USERS + NOOR, ("u-noor,,", "u-noor,tobedeleted,"))
    gone = "u-gone,tobedeleted,,true,o-lincoln,student,g,,Gone,Long,,9,,,,,08,\n"
    run_import(administration, archive(FILES | {"users": users + gone}))
    assert active() == {"u-maya"}
    assert Respondent.objects.count() == 2


@pytest.mark.sqlite
def test_a_delta_withdraws_nobody_that_it_does_not_name(administration, lincoln):
    run_import(administration, archive(TWO_STUDENTS))
    grade = replaced(NOOR, (",08,", ",09,"))
    delta = {"orgs": VERSION_11["orgs"], "users": USERS.splitlines()[0] + "\n" + grade}
    options = {"complete_for": "districts"}
    report = run_import(administration, archive(delta, "delta"), **options)
    assert (report.changed, report.withdrawn) == (1, 0)
    assert active() == {"u-maya", "u-noor"}
    # The same people in a complete file: somebody is missing.
    report = run_import(administration, archive(delta), **options)
    assert report.withdrawn == 1


def test_a_delta_without_orgs_finds_schools_by_their_code(administration, lincoln):
    delta = {"users": USERS + replaced(NOOR, ("o-lincoln", "o-other"))}
    report = run_import(administration, archive(delta, "delta"), partial=True)
    # No school has the code, and none is created for it.
    assert (report.added, report.rejected) == (0, 2)
    assert not report.schools_created
    School.objects.filter(pk=lincoln.pk).update(code="o-lincoln")
    report = run_import(administration, archive(delta, "delta"), partial=True)
    assert (report.added, report.rejected) == (1, 1)
    assert active() == {"u-maya"}


def test_a_layout_chooses_which_id_identifies_people(administration, lincoln):
    with open_table(archive(TWO_STUDENTS), None, RIVERSIDE, role="student") as table:
        header, layout = table.columns.header, table.layout
    assert {"sourcedId", "identifier", "userIds:SIS"} <= set(header)
    chosen = RosterLayout(
        fields={**layout.fields, "external_id": "identifier"}, values=layout.values
    )
    run_import(administration, archive(TWO_STUDENTS), layout=chosen)
    assert active() == {"00123", "00124"}


def test_the_store_of_an_upload_is_private_and_deleted(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_table(archive(FILES), None, RIVERSIDE, role="student") as table:
        [folder] = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert len(list(table.rows)) == len(list(table.rows)) == 3
    assert not list(tmp_path.iterdir())
    with pytest.raises(RosterUnreadable), open_table(CORPUS["link"].build()):
        pass
    assert not list(tmp_path.iterdir())


def test_the_command_imports_a_zip(administration, lincoln, tmp_path):
    path = Path(tmp_path) / "export.zip"
    path.write_bytes(archive(TWO_STUDENTS).getvalue())
    assert "2 added, 0 changed" in command(path)
    assert active() == {"u-maya", "u-noor"}


@pytest.mark.parametrize(
    "name", [name for name, bad in CORPUS.items() if "ZIP" in bad.refusal]
)
def test_bad_archives_are_refused_with_a_reason(name):
    if name in ("no manifest", "not a ZIP", "half a ZIP"):
        pytest.skip("accepted by hand, or no ZIP at all")
    with pytest.raises(RosterUnreadable) as refused, open_table(CORPUS[name].build()):
        pass
    assert CORPUS[name].refusal in str(refused.value)


def test_a_coordinator_uploads_a_zip_in_the_console(administration, staff, console_of):
    district = staff.lincoln.district
    School.objects.create(district=district, code="r", name="Roosevelt")
    console = console_of(staff.chen)
    roosevelt = replaced(NOOR, ("o-lincoln", "o-roosevelt"))
    content = archive(FILES | {"users": USERS + roosevelt}).getvalue()
    upload = console.upload(administration, content=content, name="export.zip")
    # People of another school are not hers.
    assert (upload.state, upload.report["added"]) == ("checked", 1)
    assert upload.rejected == 1
    console.confirm(upload)
    assert upload.state == "applied"
    assert active() == {"u-maya"}


@pytest.mark.parametrize(
    "written",
    [
        "Lakeshore,district,77",
        "Lakeshore Unified School District,district,77",
        ",district,0602",
    ],
)
def test_the_zip_of_another_district_is_refused(administration, written):
    District.objects.create(code="0602", name="Lakeshore USD")
    file = archive(FILES | {"orgs": ORGS.replace("Riverside,district,0601", written)})
    with pytest.raises(RosterUnreadable, match=r"not of Riverside \(riverside\)"):
        run_import(administration, file)
    assert not active()


@pytest.mark.parametrize(
    "written", ["River Schools,district,0601", "Riverside,district,1"]
)
def test_a_district_may_have_another_code_or_name_in_its_own_system(
    administration, written
):
    District.objects.create(code="1", name="Lakeshore USD")
    file = archive(FILES | {"orgs": ORGS.replace("Riverside,district,0601", written)})
    assert run_import(administration, file).added == 1


def test_a_large_zip_is_left_to_a_worker():
    small, large = (
        archive(VERSION_11),
        archive(VERSION_11, entries={"notes.txt": "note " * 300_000}),
    )
    assert 0 < unpacked_size(small, ROSTER) < 2000
    assert unpacked_size(large, ROSTER) > 10**6


@pytest.mark.sqlite
def test_what_a_zip_says_nothing_about_stays(administration):
    run_import(administration, archive(TWO_STUDENTS))
    Respondent.objects.update(language="es")
    bare = VERSION_11 | {"users": USERS + NOOR}

    report = run_import(administration, archive(bare))

    assert (report.added, report.changed, report.unchanged) == (0, 0, 2)
    maya = Identity.objects.select_related("respondent").get(given_name="Maya")
    assert maya.birth_date.isoformat() == "2014-03-04"
    assert (maya.respondent.classroom, maya.respondent.language) == ("7B", "es")
