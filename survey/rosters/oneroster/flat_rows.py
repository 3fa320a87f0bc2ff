"""Turn OneRoster data into flat roster rows: one per person and role."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator

from survey.models import Role
from survey.rosters.oneroster.people import (
    choose_schools,
    find_assignments,
    find_enrolled_schools,
    find_homerooms,
    find_people,
    find_schools_of_children,
    identity_of,
)
from survey.rosters.oneroster.places import SchoolPlace, load_places, read_orgs
from survey.rosters.oneroster.schema import DEMOGRAPHICS
from survey.rosters.oneroster.terms import load_classes

_DISTRICT = ("District", "District name")
_COLUMNS = (
    "School",
    "School name",
    "Role",
    "Person ID",
    "Given name",
    "Family name",
    "E-mail",
    "Grade",
    "Class",
    "Birth date",
    "Language",
    "Status",
)
_PREVIOUS_ID = "Previous ID"
_NO_PLACE = SchoolPlace("", "", "", "")


def header(db: sqlite3.Connection, previous_identity: str) -> list[str]:
    return [
        *(_DISTRICT if _has_district(db) else ()),
        *_COLUMNS,
        *((_PREVIOUS_ID,) if previous_identity else ()),
        *(DEMOGRAPHICS if _has_demographics(db) else ()),
    ]


def _has_district(db: sqlite3.Connection) -> bool:
    return any(org.is_district for org in read_orgs(db).values())


def _has_demographics(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT 1 FROM demographics LIMIT 1").fetchone())


def rows(
    db: sqlite3.Connection,
    *,
    roles: Collection[str],
    identity: str,
    previous_identity: str,
    today: str,
) -> Iterator[list[str]]:
    places = load_places(db)
    load_classes(db, today)
    find_people(db, identity)
    find_assignments(db, today)
    find_enrolled_schools(db, today)
    choose_schools(db, Role.STUDENT, Role.TEACHER)
    if Role.PARENT in roles:
        find_schools_of_children(db)
        choose_schools(db, Role.PARENT)
    find_homerooms(db, today)

    has_district, has_demographics = _has_district(db), _has_demographics(db)
    has_orgs = "orgs" in {name for (name,) in db.execute("SELECT name FROM loaded")}
    for found in _people(db):
        (key, kind, school, org, is_unknown_org, is_left, *person) = found
        (given, family, email, grades, room, birth, language, ids, *flags) = person
        if kind and kind not in roles:
            continue
        place = places.get(school, _NO_PLACE)
        if is_unknown_org and not has_orgs:
            # Perhaps the school is known under this code.
            place = SchoolPlace("", "", org, "")
        elif not (school or is_unknown_org or is_left) and kind != Role.STUDENT:
            # The staff of a district's office belong to no school.
            continue
        row = [place.district, place.district_name] if has_district else []
        row += [
            place.school,
            place.school_name,
            kind,
            "" if key.startswith("\x00") else key,
            given,
            family,
            email,
            grades.partition(",")[0] if kind == Role.STUDENT else "",
            room or "",
            birth or "",
            language or "",
            "left" if is_left else "active",
        ]
        if previous_identity:
            row.append(identity_of(previous_identity, *ids.split("\x00")))
        if has_demographics:
            row += [flag or "" for flag in flags]
        yield row


def _people(db: sqlite3.Connection) -> Iterator[tuple[str, ...]]:
    """Yield chosen people, and then deleted ones of whom no role is known."""
    of_user = """
        CASE u.preferredGivenName WHEN '' THEN u.givenName
             ELSE u.preferredGivenName END,
        CASE u.preferredFamilyName WHEN '' THEN u.familyName
             ELSE u.preferredFamilyName END,
        u.email, u.grades"""
    ids = "u.sourcedId || char(0) || u.identifier || char(0) || u.userIds"
    demographics = ", ".join(f"d.{name}" for name in DEMOGRAPHICS)
    yield from db.execute(
        f"""
        SELECT c.identity, c.kind, c.school, c.org, c.is_unknown_org, c.is_left,
               {of_user}, h.title, d.birthDate,
               CASE u.language WHEN '' THEN l.language ELSE u.language END,
               {ids}, {demographics}
        FROM chosen AS c
        JOIN users AS u ON u.sourcedId = c.user
        LEFT JOIN demographics AS d ON d.sourcedId = c.user AND d.status = ''
        LEFT JOIN homeroom AS h ON h.user = c.user AND h.school = c.school
                               AND c.kind = '{Role.STUDENT}'
        LEFT JOIN child_language AS l ON l.identity = c.identity
                                     AND c.kind = '{Role.PARENT}'
        ORDER BY c.identity, c.kind
        """  # noqa: S608
    )
    blanks = ", ".join(["''"] * len(DEMOGRAPHICS))
    yield from db.execute(
        f"""
        SELECT p.identity, '', '', '', 0, 1, {of_user}, '', '', '', {ids}, {blanks}
        FROM person AS p JOIN users AS u ON u.sourcedId = p.user
        WHERE p.is_deleted
          AND p.user NOT IN (SELECT user FROM assignment)
          AND u.role = ''
        ORDER BY p.identity
        """  # noqa: S608
    )
