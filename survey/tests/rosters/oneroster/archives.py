"""Build OneRoster ZIPs for tests."""

from __future__ import annotations

import io
import zipfile
from datetime import date

from survey.people.rosters.oneroster.store import RowOptions

TODAY = date(2026, 11, 2)
ROLES = ("student", "teacher", "parent")

ORGS = """\
sourcedId,status,dateLastModified,name,type,identifier,parentSourcedId
o-district,,,Riverside,district,0601,
o-lincoln,,,Lincoln,school,L1,o-district
o-roosevelt,,,Roosevelt,school,,o-district
"""
USERS = """\
sourcedId,status,dateLastModified,enabledUser,orgSourcedIds,role,username,userIds,\
givenName,familyName,middleName,identifier,email,sms,phone,agentSourcedIds,grades,\
password
u-maya,,,true,o-lincoln,student,maya,{SIS:900},Maya,Lopez,,00123,maya@x.org,,,u-ana,07,
u-ana,,,true,o-district,parent,ana,,Ana,Lopez,,P1,ana@x.org,,,u-maya,,hunter2
u-ortiz,,,true,"o-lincoln,o-roosevelt",teacher,ortiz,,Luis,Ortiz,,T1,o@x.org,,,,,
"""
USERS_12 = """\
sourcedId,enabledUser,username,userIds,givenName,familyName,identifier,email,\
agentSourcedIds,grades,preferredGivenName,preferredFamilyName,primaryOrgSourcedId
u-maya,true,maya,{SIS:900},Maya,Lopez,00123,maya@x.org,u-ana,07,May,,
u-ana,true,ana,,Ana,Lopez,P1,ana@x.org,,,,,
u-ortiz,true,ortiz,,Luis,Ortiz,T1,o@x.org,,,,,
"""
ROLES_12 = """\
sourcedId,userSourcedId,roleType,role,beginDate,endDate,orgSourcedId
r1,u-maya,primary,student,,,o-lincoln
r2,u-ana,primary,guardian,,,o-district
r3,u-ortiz,primary,teacher,,,o-roosevelt
r4,u-ortiz,secondary,administrator,,,o-lincoln
r5,u-ortiz,secondary,parent,,,o-lincoln
"""
SESSIONS = """\
sourcedId,title,type,startDate,endDate,schoolYear
t-now,Fall,term,2026-08-20,2027-01-15,2027
t-old,Last year,schoolYear,2025-08-20,2026-06-15,2026
t-next,Spring,term,2027-01-16,2027-06-15,2027
"""
CLASSES = """\
sourcedId,title,classCode,courseSourcedId,classType,schoolSourcedId,termSourcedIds
c-home,7B,7B-1,k1,homeroom,o-lincoln,t-now
c-old,6B,6B-1,k1,homeroom,o-lincoln,t-old
c-math,Math,M-1,k1,scheduled,o-roosevelt,t-now
"""
ENROLLMENTS = """\
sourcedId,classSourcedId,schoolSourcedId,userSourcedId,role,beginDate,endDate
e1,c-home,o-lincoln,u-maya,student,,
e2,c-old,o-lincoln,u-maya,student,2025-08-20,2026-06-15
e3,c-math,o-roosevelt,u-ortiz,teacher,,
"""
DEMOGRAPHICS = """\
sourcedId,birthDate,sex,americanIndianOrAlaskaNative,asian,hispanicOrLatinoEthnicity
u-maya,2014-03-04,female,false,TRUE,true
"""
VERSION_11 = {"orgs": ORGS, "users": USERS}
VERSION_12 = {"orgs": ORGS, "users": USERS_12, "roles": ROLES_12}
CLASS_FILES = {
    "academicSessions": SESSIONS,
    "classes": CLASSES,
    "enrollments": ENROLLMENTS,
}


def manifest(modes, version="1.1"):
    lines = [
        "propertyName,value",
        "manifest.version,1.0",
        f"oneroster.version,{version}",
    ]
    return "\n".join([*lines, *(f"file.{name},{mode}" for name, mode in modes.items())])


def archive(files, mode="bulk", *, modes=None, entries=None, folder="", version="1.1"):
    """Return a ZIP of collections and of further entries, with its manifest.

    `modes` replaces what the manifest says.
    """
    modes = dict.fromkeys(files, mode) if modes is None else modes
    contents = {f"{folder}{name}.csv": text for name, text in files.items()}
    contents = {f"{folder}manifest.csv": manifest(modes, version)} | contents
    contents |= entries or {}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        for name, text in contents.items():
            if text is not None:
                written.writestr(name, text)
    file.seek(0)
    return file


def people(store, identity="sourcedId", roles=ROLES, **options):
    """Return the flat rows as dictionaries by ID and role."""
    options = RowOptions(identity, **options)
    header = store.header(options)
    rows = store.rows(roles=roles, options=options, today=TODAY)
    dicts = [dict(zip(header, row, strict=True)) for row in rows]
    by_person = {(row["Person ID"], row["Role"]): row for row in dicts}
    assert len(by_person) == len(dicts), "a person has two rows in one role"
    return by_person


def person(store, pk, role="student", identity="sourcedId"):
    return people(store, identity)[pk, role]


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text
