from __future__ import annotations

import io
import tracemalloc
import zipfile
import zlib

import pytest

from survey.people.rosters.oneroster.store import OneRosterInvalid, OneRosterStore
from survey.tests.rosters.oneroster.archives import (
    DEMOGRAPHICS,
    ORGS,
    ROLES_12,
    USERS,
    VERSION_11,
    VERSION_12,
    archive,
    people,
    person,
    replaced,
)
from survey.tests.rosters.oneroster.bad_archives import CORPUS, link, long_line, zip_of


@pytest.mark.parametrize("name", CORPUS)
def test_each_bad_archive_meets_its_verdict(store, name):
    bad = CORPUS[name]
    if bad.refusal:
        with pytest.raises(OneRosterInvalid) as refused:
            store.load_zip(bad.build())
        assert bad.refusal in str(refused.value)
        assert not people(store)
    else:
        report = store.load_zip(bad.build())
        assert any(note.startswith(bad.note) for note in report.notes) or not bad.note
        assert {pk for pk, _ in people(store)} == bad.people


@pytest.mark.parametrize("name", [name for name, bad in CORPUS.items() if bad.refusal])
def test_a_refused_archive_leaves_the_store_as_it_was(store, name):
    if name == "delta without a base":
        pytest.skip("the store has a base here")
    store.load_zip(archive(VERSION_11))
    before = store.path.read_bytes()
    with pytest.raises(OneRosterInvalid):
        store.load_zip(CORPUS[name].build())
    assert store.path.read_bytes() == before
    assert [path.name for path in store.path.parent.iterdir()] == ["store.sqlite3"]


def test_a_long_line_is_never_in_memory(store):
    file = long_line(100 * 10**6)
    tracemalloc.start()
    with pytest.raises(OneRosterInvalid):
        store.load_zip(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 10**6


def test_a_size_that_lies_is_damage(store):
    """A bomb may declare little: what is unpacked is counted too."""
    content = archive(VERSION_11 | {"users": USERS + "x" * 10_000}).getvalue()
    lying = content
    with zipfile.ZipFile(io.BytesIO(content)) as read:
        entry = read.getinfo("users.csv")
    for size in (entry.file_size.to_bytes(4, "little"),):
        lying = lying.replace(size, (1000).to_bytes(4, "little"))
    assert lying != content
    with pytest.raises(OneRosterInvalid):
        store.load_zip(io.BytesIO(lying))


def test_damaged_data_is_refused(store):
    content = bytearray(archive(VERSION_11).getvalue())
    start = content.find(b"users.csv") + len("users.csv")
    content[start + 20 : start + 60] = b"\xff" * 40
    with pytest.raises(OneRosterInvalid, match="damaged"):
        store.load_zip(io.BytesIO(bytes(content)))


def test_errors_of_zlib_would_otherwise_reach_the_caller():
    with pytest.raises(zlib.error):
        zlib.decompress(b"\xff" * 40)
    # A link is a file of its target's name for those who do not look.
    with zipfile.ZipFile(link()) as read:
        assert read.read("users.csv") == b"/etc/passwd"


def _changed(*pairs, **files):
    """Return the district of version 1.1 with some texts replaced in all files."""
    changed = VERSION_11 | files
    for old, new in pairs:
        changed = {name: text.replace(old, new) for name, text in changed.items()}
    return archive(changed)


REAL = {
    "folder": lambda: archive(VERSION_11, folder="OneRoster export/"),
    "macOS": lambda: archive(
        VERSION_11, entries={"__MACOSX/._users.csv": "x", "._orgs.csv": ""}
    ),
    "upper case": lambda: zip_of(
        ("MANIFEST.CSV", "propertyName,value\nfile.ORGS,Bulk\nFILE.users,BULK\n"),
        ("Orgs.csv", ORGS),
        ("USERS.CSV", USERS),
    ),
    "backslashes": lambda: zip_of(
        ("data\\manifest.csv", "file.orgs,bulk\nfile.users,bulk\n"),
        ("data\\orgs.csv", ORGS),
        ("data\\users.csv", USERS),
    ),
    "CRLF and BOM": lambda: _changed(
        ("\n", "\r\n"), ("sourcedId,s", "\ufeffsourcedId,s")
    ),
    "empty trailing columns": lambda: _changed(("\n", ",,\n")),
    "commas after each row": lambda: _changed((",\nu", ",,\nu"), ("2\n", "2,\n")),
    "blank rows": lambda: _changed(users=USERS + "\n\n,,,,\n"),
    "grade for grades": lambda: _changed(("grades", "Grade")),
    "misspelt headers": lambda: _changed(
        ("sourcedId,s", "SourceID,s"), ("familyName", "famliyName")
    ),
    "wrong-case values": lambda: _changed(
        ("student", "Student"), (",school,", ",School,")
    ),
    "spaces around values": lambda: _changed((",student,", ", student ,")),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_tolerantly(store, name):
    store.load_zip(REAL[name]())
    maya = person(store, "u-maya")
    assert (maya["School name"], maya["Grade"], maya["Family name"]) == (
        "Lincoln",
        "07",
        "Lopez",
    )
    assert len(people(store)) == 3


def test_columns_may_have_any_order(store):
    rows = [line.split(",") for line in USERS.splitlines() if '"' not in line]
    turned = "\n".join(",".join(reversed(cells)) for cells in rows)
    store.load_zip(archive(VERSION_11 | {"users": turned}))
    assert person(store, "u-maya")["E-mail"] == "maya@x.org"


def test_dates_that_are_not_certain_are_left_blank(store):
    from survey.people.rosters.oneroster.loading import iso_date

    assert iso_date("2026-08-31T00:00:00.000Z") == "2026-08-31"
    assert iso_date("8/31/2026") == "2026-08-31"
    assert iso_date("20260831") == "2026-08-31"
    for certain in ("31/8/2026", "31.8.2026", "31-08-2026", "8/31/26", "31-Aug-2026"):
        assert iso_date(certain) == "2026-08-31"
    for unclear in ("3/4/2026", "2026-13-01", "13/13/2026", "next year", "n/a"):
        assert iso_date(unclear) == ""
    assert iso_date("3/4/2026", day_first=True) == "2026-04-03"
    assert iso_date("3/4/2026", day_first=False) == "2026-03-04"
    assert iso_date("6/15/27") == "2027-06-15"


@pytest.mark.parametrize(
    ("certain", "is_there"), [("15/06/2027", True), ("06/15/2027", False)]
)
def test_a_date_that_is_certain_decides_for_the_others(store, certain, is_there):
    """4/10/2026 was in April or is in October, and TODAY is in November."""
    users = "sourcedId,givenName,familyName\nu1,Zia,One\nu2,Zed,Two\n"
    roles = (
        "sourcedId,userSourcedId,role,beginDate,endDate,orgSourcedId\n"
        f"r1,u1,student,,{certain},o-lincoln\n"
        "r2,u2,student,,4/12/2026,o-lincoln\n"
    )
    store.load_zip(
        archive({"orgs": ORGS, "users": users, "roles": roles}, version="1.2")
    )
    assert person(store, "u1")["Status"] == "active"
    status = person(store, "u2")["Status"]
    assert status == ("active" if is_there else "left")


def test_dates_of_both_orders_decide_nothing(store):
    roles = replaced(
        ROLES_12,
        ("student,,", "student,15/08/2026,06/15/2026"),
        ("guardian,,", "guardian,3/4/2026,"),
    )
    report = store.load_zip(archive(VERSION_12 | {"roles": roles}, version="1.2"))
    assert person(store, "u-maya")["Status"] == "left"
    assert "roles.csv: beginDate" in " ".join(report.notes)


def test_by_hand_a_missing_manifest_is_accepted_and_reported(store):
    file = zip_of(("orgs.csv", ORGS), ("users.csv", USERS))
    report = store.load_zip(file, by_hand=True)
    assert "manifest.csv is missing: the files are read as complete" in report.notes
    assert len(people(store)) == 3


def test_by_hand_a_delta_needs_no_base(store):
    users = replaced(USERS, ("u-ortiz,,", "u-ortiz,tobedeleted,"))
    report = store.load_zip(archive({"users": users}, "delta"), by_hand=True)
    assert report.is_delta
    # A school is looked up by the only code that the file has for it.
    rows = people(store, school_codes={"o-lincoln"})
    assert rows["u-maya", "student"]["School code"] == "o-lincoln"
    assert people(store)["u-maya", "student"]["School code"] == ""
    ortiz = rows["u-ortiz", "teacher"]
    assert (ortiz["Status"], ortiz["School code"]) == ("left", "o-lincoln")
    ortiz = people(store)["u-ortiz", "teacher"]
    assert (ortiz["Status"], ortiz["School code"]) == ("left", "unknown")


def test_a_person_deleted_without_a_role_has_left_every_role(store):
    header = "sourcedId,status,orgSourcedIds,role,givenName,familyName"
    users = f"{header}\nu-x,tobedeleted,,,,\n"
    store.load_zip(archive({"users": users}, "delta"), by_hand=True)
    assert people(store)["u-x", ""]["Status"] == "left"


def test_a_school_of_no_district_stays_without_one_where_there_are_several(store):
    bad = CORPUS["school of no district among several"]
    store.load_zip(bad.build())
    assert person(store, "u-maya")["District code"] == "0601"
    users = replaced(USERS, ("true,o-lincoln,student", "true,o-orphan,student"))
    store.load_zip(archive({"users": users}))
    assert person(store, "u-maya")["District code"] == ""


def test_a_school_that_does_not_exist_is_left_blank(store):
    """The row is then rejected by name; a code would create a school."""
    users = replaced(USERS, ("true,o-lincoln,student", "true,o-gone,student"))
    store.load_zip(archive(VERSION_11 | {"users": users}))
    maya = person(store, "u-maya")
    assert (maya["School code"], maya["Status"]) == ("", "active")


def test_demographics_without_users_invite_nobody(store):
    store.load_zip(archive({"demographics": DEMOGRAPHICS}))
    assert not people(store)


def test_the_store_is_readable_by_its_owner_only(tmp_path):
    store = OneRosterStore(tmp_path / "store.sqlite3")
    store.load_zip(archive(VERSION_11))
    assert store.path.stat().st_mode & 0o777 == 0o600


def test_objects_put_together_are_stored_together_or_not_at_all(store):
    org = {"sourcedId": "o", "name": "Lincoln", "type": "school"}
    user = {"sourcedId": "u", "role": "student", "orgSourcedIds": "o"}
    with pytest.raises(OneRosterInvalid, match="status 'gone'"), store.changes():
        assert store.put("orgs", [org], replace=True) == []
        store.put("users", [user | {"status": "gone"}], replace=True)
    assert not people(store)
    with store.changes():
        store.put("orgs", [org], replace=True)
        store.put("users", [user], replace=True)
    assert person(store, "u")["School name"] == "Lincoln"
    store.put("users", [user | {"grades": "05"}], replace=False)
    assert person(store, "u")["Grade"] == "05"
    with pytest.raises(OneRosterInvalid, match="'u': stands in two rows"):
        store.put("users", [user, user | {"grades": "06"}], replace=True)
    assert store.put("courses", [{"sourcedId": "c"}], replace=True) == []
