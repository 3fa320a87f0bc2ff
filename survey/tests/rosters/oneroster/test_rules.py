"""The rules of OneRoster about who is invited where, one test each."""

from __future__ import annotations

import pytest

from survey.people.rosters.oneroster.people import user_ids_by_kind
from survey.people.rosters.oneroster.store import OneRosterInvalid
from survey.tests.rosters.oneroster.archives import (
    CLASS_FILES,
    CLASSES,
    DEMOGRAPHICS,
    ENROLLMENTS,
    ORGS,
    ROLES_12,
    SESSIONS,
    USERS,
    USERS_12,
    VERSION_11,
    VERSION_12,
    archive,
    people,
    person,
    replaced,
)


def test_a_district_of_version_1_1_becomes_one_row_per_person(store):
    files = VERSION_11 | CLASS_FILES | {"demographics": DEMOGRAPHICS}
    report = store.load_zip(archive(files))
    assert report.version == "1.1" and not report.is_delta
    assert report.rows == {
        "orgs": 3,
        "users": 3,
        "academicSessions": 3,
        "classes": 3,
        "enrollments": 3,
        "demographics": 1,
    }
    rows = people(store)
    assert rows.keys() == {
        ("u-maya", "student"),
        ("u-ana", "parent"),
        ("u-ortiz", "teacher"),
    }
    maya = {name: cell for name, cell in rows["u-maya", "student"].items() if cell}
    assert maya == {
        "District code": "0601",
        "District name": "Riverside",
        "School code": "L1",
        "School name": "Lincoln",
        "Role": "student",
        "Person ID": "u-maya",
        "Given name": "Maya",
        "Family name": "Lopez",
        "E-mail": "maya@x.org",
        "Grade": "07",
        "Class": "7B",
        "Birth date": "2014-03-04",
        "Status": "active",
        "sex": "female",
        "americanIndianOrAlaskaNative": "false",
        "asian": "true",
        "hispanicOrLatinoEthnicity": "true",
    }


def test_a_district_of_version_1_2_has_roles_and_preferred_names(store):
    store.load_zip(archive(VERSION_12, version="1.2"))
    rows = people(store)
    assert rows.keys() == {
        ("u-maya", "student"),
        ("u-ana", "parent"),
        ("u-ortiz", "teacher"),
        ("u-ortiz", "parent"),
    }
    assert rows["u-maya", "student"]["Given name"] == "May"
    # A teacher there and an administrator here is invited once, there.
    assert rows["u-ortiz", "teacher"]["School name"] == "Roosevelt"


@pytest.mark.parametrize("status", ["tobedeleted", "inactive", "ToBeDeleted"])
def test_inactive_means_to_be_deleted(store, status):
    users = replaced(USERS, ("u-maya,,", f"u-maya,{status},"))
    store.load_zip(archive(VERSION_11 | {"users": users}))
    assert person(store, "u-maya")["Status"] == "left"
    assert person(store, "u-ortiz", "teacher")["Status"] == "active"


def test_other_statuses_are_refused_and_never_taken_for_active(store):
    users = replaced(USERS, ("u-ana,,", "u-ana,withdrawn,"))
    with pytest.raises(OneRosterInvalid) as refused:
        store.load_zip(archive(VERSION_11 | {"users": users}))
    assert str(refused.value) == (
        "users.csv, line 3, column status: 'withdrawn' must be active, tobedeleted"
        " (inactive) or empty."
    )
    assert not people(store)


def test_people_missing_from_a_bulk_file_have_left(store):
    store.load_zip(archive(VERSION_11))
    users = "\n".join(line for line in USERS.splitlines() if "u-ana,," not in line)
    store.load_zip(archive(VERSION_11 | {"users": users}))
    assert people(store).keys() == {("u-maya", "student"), ("u-ortiz", "teacher")}


def test_a_delta_changes_adds_and_removes_only_whom_it_names(store):
    store.load_zip(archive(VERSION_11))
    [header, maya, *_] = USERS.splitlines()
    changed = maya.replace("u-maya,,", "u-maya,active,").replace(",07,", ",08,")
    new = changed.replace("u-maya", "u-noor").replace("Maya", "Noor")
    deleted = "u-ortiz,tobedeleted" + "," * 16
    report = store.load_zip(
        archive({"users": "\n".join([header, changed, new, deleted])}, "delta")
    )
    assert report.is_delta
    rows = people(store)
    assert len(rows) == 4
    assert rows["u-maya", "student"]["Grade"] == "08"
    assert rows["u-noor", "student"]["Status"] == "active"
    assert rows["u-ana", "parent"]["Status"] == "active"
    # The row of a deleted person may be blank; the name stays known.
    ortiz = rows["u-ortiz", "teacher"]
    assert (ortiz["Status"], ortiz["Family name"]) == ("left", "Ortiz")


def test_absent_says_nothing(store):
    store.load_zip(archive(VERSION_11 | CLASS_FILES))
    modes = {"orgs": "absent", "users": "bulk", "enrollments": "absent"}
    store.load_zip(archive({"users": USERS}, modes=modes))
    maya = person(store, "u-maya")
    assert (maya["School name"], maya["Class"]) == ("Lincoln", "7B")


def test_people_with_a_disabled_account_stay_eligible(store):
    users = replaced(USERS, ("u-maya,,,true", "u-maya,,,false"))
    store.load_zip(archive(VERSION_11 | {"users": users}))
    assert person(store, "u-maya")["Status"] == "active"


def test_current_enrolments_choose_among_several_schools(store):
    store.load_zip(archive(VERSION_11))
    assert person(store, "u-ortiz", "teacher")["School name"] == "Lincoln"
    store.load_zip(archive(VERSION_11 | CLASS_FILES))
    assert person(store, "u-ortiz", "teacher")["School name"] == "Roosevelt"
    ended = replaced(ENROLLMENTS, ("u-ortiz,teacher,,", "u-ortiz,teacher,,2026-11-01"))
    store.load_zip(archive(VERSION_11 | CLASS_FILES | {"enrollments": ended}))
    assert person(store, "u-ortiz", "teacher")["School name"] == "Lincoln"


def test_the_primary_org_wins_over_the_primary_role(store):
    assert "r1,u-maya,primary,student,,,o-lincoln" in ROLES_12
    users = replaced(USERS_12, ("u-ana,07,May,,", "u-ana,07,May,,o-roosevelt"))
    store.load_zip(archive(VERSION_12 | {"users": users}))
    assert person(store, "u-maya")["School name"] == "Roosevelt"


def test_a_system_may_go_back_to_version_1_1(store):
    store.load_zip(archive(VERSION_12, version="1.2"))
    assert person(store, "u-ortiz", "teacher")["School name"] == "Roosevelt"
    store.load_zip(archive(VERSION_11))
    assert person(store, "u-ortiz", "teacher")["School name"] == "Lincoln"


def test_a_role_that_has_ended_says_that_the_person_has_left(store):
    roles = replaced(ROLES_12, ("student,,,", "student,2025-08-20,2026-11-02,"))
    store.load_zip(archive(VERSION_12 | {"roles": roles}))
    assert person(store, "u-maya")["Status"] == "left"
    renewed = roles + "r9,u-maya,secondary,student,2026-08-20,,o-roosevelt\n"
    store.load_zip(archive(VERSION_12 | {"roles": renewed}))
    maya = person(store, "u-maya")
    assert (maya["Status"], maya["School name"]) == ("active", "Roosevelt")


def test_enrolling_again_is_a_second_row(store):
    enrollments = replaced(
        ENROLLMENTS, ("e1,", "e0,c-home,o-lincoln,u-maya,student,,2026-09-01\ne1,")
    )
    store.load_zip(archive(VERSION_11 | CLASS_FILES | {"enrollments": enrollments}))
    assert person(store, "u-maya")["Class"] == "7B"


def test_only_homerooms_give_a_class(store):
    classes = replaced(
        CLASSES, ("k1,homeroom,o-lincoln,t-now", "k1,scheduled,o-lincoln,t-now")
    )
    store.load_zip(archive(VERSION_11 | CLASS_FILES | {"classes": classes}))
    assert person(store, "u-maya")["Class"] == ""


def test_ended_terms_only_drop_classes(store):
    sessions = replaced(SESSIONS, ("2027-01-15", "2026-11-01"))
    store.load_zip(archive(VERSION_11 | CLASS_FILES | {"academicSessions": sessions}))
    maya = person(store, "u-maya")
    assert (maya["Class"], maya["Status"]) == ("", "active")


def test_homerooms_of_one_name_are_told_apart_by_their_code(store):
    classes = replaced(CLASSES, (",7B,7B-1,", ",Homeroom,7B,"))
    classes += "c-x,Homeroom,7C,k1,homeroom,o-lincoln,t-now\n"
    store.load_zip(archive(VERSION_11 | CLASS_FILES | {"classes": classes}))
    assert person(store, "u-maya")["Class"] == "Homeroom 7B"


def test_demographic_flags_are_the_words_true_and_false(store):
    demographics = replaced(DEMOGRAPHICS, ("false,TRUE,true", "Y,1,true"))
    files = VERSION_11 | {"demographics": demographics}
    report = store.load_zip(archive(files))
    maya = person(store, "u-maya")
    assert maya["asian"] == maya["americanIndianOrAlaskaNative"] == ""
    assert maya["hispanicOrLatinoEthnicity"] == "true"
    assert (
        "demographics.csv: asian: values other than true and false were left blank (1)"
        in report.notes
    )


def test_columns_of_vendors_are_ignored_by_name(store):
    users = replaced(
        USERS, ("sourcedId,status", "ext:bus,metadata.lunch,sourcedId,status")
    )
    users = users.replace("\nu-", "\nx,free,u-")
    report = store.load_zip(archive(VERSION_11 | {"users": users}))
    assert person(store, "u-maya")["Grade"] == "07"
    assert {
        "users.csv: column 'ext:bus' was ignored: a vendor's own column",
        "users.csv: column 'metadata.lunch' was ignored: a vendor's own column",
    } <= set(report.notes)


def test_missing_columns_are_named(store):
    users = replaced(USERS, ("familyName", "nothing"), ("givenName", "else"))
    with pytest.raises(OneRosterInvalid, match="no column givenName, familyName"):
        store.load_zip(archive(VERSION_11 | {"users": users}))


def test_passwords_are_never_kept(store, tmp_path):
    assert "hunter2" in USERS
    report = store.load_zip(archive(VERSION_11))
    assert any("passwords are never kept" in note for note in report.notes)
    assert b"hunter2" not in store.path.read_bytes()
    store.put("users", [{"sourcedId": "x", "password": "hunter2"}], replace=False)
    assert b"hunter2" not in store.path.read_bytes()


def test_a_parent_has_one_row_with_the_school_of_the_children(store):
    # Listed on both sides, and at the district.
    store.load_zip(archive(VERSION_11))
    assert person(store, "u-ana", "parent")["School name"] == "Lincoln"
    brother = (
        "u-leo,,,true,o-roosevelt,student,leo,,Leo,Lopez,,00124,,,,u-ana,05,\n"
        "u-eva,,,true,o-roosevelt,student,eva,,Eva,Lopez,,00125,,,,u-ana,04,\n"
    )
    store.load_zip(archive(VERSION_11 | {"users": USERS + brother}))
    assert person(store, "u-ana", "parent")["School name"] == "Roosevelt"
    left = replaced(brother, ("u-leo,,", "u-leo,tobedeleted,"))
    left = replaced(left, ("u-eva,,", "u-eva,tobedeleted,"))
    listed = replaced(USERS, (",,u-maya,,", ',,"u-maya,u-leo,u-eva",,'))
    store.load_zip(archive(VERSION_11 | {"users": listed + left}))
    assert person(store, "u-ana", "parent")["School name"] == "Lincoln"


def test_parents_get_the_language_of_their_children(store):
    users = replaced(
        USERS,
        ("agentSourcedIds,grades,password", "agentSourcedIds,grades,Home Language"),
    )
    users = replaced(users, ("u-ana,07,", "u-ana,07,es"), (",hunter2", ","))
    store.load_zip(archive(VERSION_11 | {"users": users}))
    assert person(store, "u-ana", "parent")["Language"] == "es"


def test_parents_that_are_not_in_the_file_are_left_alone(store):
    users = "\n".join(line for line in USERS.splitlines() if "u-ana,," not in line)
    store.load_zip(archive(VERSION_11 | {"users": users}))
    assert people(store).keys() == {("u-maya", "student"), ("u-ortiz", "teacher")}


@pytest.mark.parametrize(
    ("identity", "pk"),
    [("sourcedId", "u-maya"), ("identifier", "00123"), ("userIds:sis", "900")],
)
def test_a_feed_chooses_which_id_identifies_a_person(store, identity, pk):
    store.load_zip(archive(VERSION_11))
    assert people(store, identity)[pk, "student"]["Given name"] == "Maya"


def test_users_with_one_id_are_one_person(store):
    """Some systems issue a new sourcedId in each school."""
    second = (
        "u-maya2,,,true,o-roosevelt,student,maya2,{SIS:900},Maya,Lopez,,00123,,,,,07,\n"
    )
    users = replaced(USERS, ("u-maya,,", "u-maya,tobedeleted,")) + second
    store.load_zip(archive(VERSION_11 | {"users": users}))
    maya = person(store, "00123", identity="identifier")
    assert (maya["School name"], maya["Status"]) == ("Roosevelt", "active")
    assert len(people(store, "sourcedId", ["student"])) == 2


def test_a_person_without_the_chosen_id_has_a_blank_one(store):
    users = replaced(USERS, (",00123,", ",,"))
    store.load_zip(archive(VERSION_11 | {"users": users}))
    assert people(store, "identifier")["", "student"]["Given name"] == "Maya"


def test_the_id_of_earlier_rosters_is_given_on_demand(store):
    store.load_zip(archive(VERSION_11))
    rows = people(store, "identifier", previous_identity="sourcedId")
    assert rows["00123", "student"]["Previous ID"] == "u-maya"


def test_staff_of_the_district_office_are_left_out(store):
    office = "u-boss,,,true,o-district,administrator,boss,,A,Boss,,B1,,,,,,\n"
    principal = "u-head,,,true,o-lincoln,administrator,head,,A,Head,,B2,,,,,,\n"
    it = "u-it,,,true,o-lincoln,systemAdministrator,it,,I,T,,B3,,,,,,\n"
    store.load_zip(archive(VERSION_11 | {"users": USERS + office + principal + it}))
    ids = {pk for pk, _ in people(store)}
    assert ids == {"u-maya", "u-ana", "u-ortiz", "u-head"}
    notes: list[str] = []
    assert list(store.rows(roles=["teacher"], notes=notes))
    assert notes == ["1 person of a district or department without a school: left out"]


def test_departments_belong_to_the_school_above_them(store):
    orgs = ORGS + "o-math,,,Mathematics,department,,o-roosevelt\n"
    users = replaced(USERS, ("true,o-lincoln,student", "true,o-math,student"))
    store.load_zip(archive(VERSION_11 | {"orgs": orgs, "users": users}))
    maya = person(store, "u-maya")
    # Without an identifier, the sourcedId is the code.
    assert (maya["School code"], maya["District code"]) == ("o-roosevelt", "0601")


def test_only_the_asked_roles_are_given(store):
    store.load_zip(archive(VERSION_11))
    assert people(store, roles=["teacher"]).keys() == {("u-ortiz", "teacher")}
    assert people(store, roles=["parent"])["u-ana", "parent"]["School code"] == "L1"


def test_a_known_district_replaces_the_only_one_of_the_file(store):
    store.load_zip(archive(VERSION_11))
    known = ("riverside", "Riverside USD")
    rows = people(store, district=known).values()
    assert {(row["District code"], row["District name"]) for row in rows} == {known}
    # A file of several districts says which one each school is in.
    store.load_zip(archive({"orgs": f"{ORGS}o-2,,,Lakeshore,district,0602,\n"}))
    rows = people(store, district=known).values()
    assert {row["District code"] for row in rows} == {"0601"}
    # Without any in the file, it is the district of all.
    orgs = "\n".join(row for row in ORGS.splitlines() if ",district," not in row)
    store.load_zip(archive({"orgs": orgs}))
    assert person(store, "u-maya").get("District code") is None
    rows = people(store, district=known)["u-maya", "student"]
    assert (rows["District code"], rows["School code"]) == ("riverside", "L1")


@pytest.mark.parametrize(
    "user_ids",
    [
        '{"type":"stateID","identifier":"9001"}',
        '[{"type": "stateID", "identifier": 9001}]',
        '{"identifier":"9001","type":"stateID"},{"type":"LDAP","identifier":"x,y"}',
        '[{"type":"LDAP","identifier":"x"},{"type":"stateID","identifier":"9001"}]',
        '{"stateID":"9001"}',
        "{LDAP:12},{stateID:9001},{stateID:9002}",
    ],
)
def test_ids_are_read_in_json_too(store, user_ids):
    quoted = '"{}"'.format(user_ids.replace('"', '""'))
    users = replaced(USERS, ("{SIS:900}", quoted))
    store.load_zip(archive(VERSION_11 | {"users": users}))
    assert ("9001", "student") in people(store, "userIds:stateID")
    assert store.identifier_samples()["userIds:stateID"] == ["9001"]


@pytest.mark.parametrize(
    "user_ids", ['{"type":', '"', "[[" * 400, '{"a":null}', "null"]
)
def test_ids_that_are_no_json_are_nobodys(user_ids):
    assert user_ids_by_kind(user_ids + '"') == {}


def test_demographics_of_version_1_0_name_the_user(store):
    demographics = replaced(DEMOGRAPHICS, ("sourcedId,birth", "userSourcedId,birth"))
    store.load_zip(archive(VERSION_11 | {"demographics": demographics}))
    assert person(store, "u-maya")["Birth date"] == "2014-03-04"
