"""Turn OneRoster data into flat roster rows: one per person and role."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import itemgetter

from django.utils.translation import ngettext

from survey.models import Role
from survey.people.rosters.oneroster.people import (
    choose_schools,
    find_assignments,
    find_enrolled_schools,
    find_homerooms,
    find_people,
    find_schools_of_children,
    identity_of,
    user_ids_by_kind,
)
from survey.people.rosters.oneroster.places import SchoolPlace, load_places, read_orgs
from survey.people.rosters.oneroster.schema import DEMOGRAPHICS
from survey.people.rosters.oneroster.terms import load_classes

_DISTRICT = ("District code", "District name")
_SCHOOL = ("School code", "School name", "Role")
_PERSON = (
    "Given name",
    "Family name",
    "E-mail",
    "Grade",
    "Class",
    "Birth date",
    "Language",
    "Status",
)
# Column -> query that finds a value of it. Without any, the source says nothing about
# the column, and a column of blanks would delete what is known from elsewhere.
_STATED = {
    "E-mail": "SELECT 1 FROM users WHERE email <> ''",
    "Grade": "SELECT 1 FROM users WHERE grades <> ''",
    "Class": """
        SELECT 1 FROM classes WHERE lower(classType) = 'homeroom' AND status = ''
        """,
    "Birth date": "SELECT 1 FROM demographics WHERE birthDate <> ''",
    "Language": "SELECT 1 FROM users WHERE language <> ''",
}
_NO_PLACE = SchoolPlace("", "", "", "")
# Of people who have left. They are withdrawn wherever they are.
_ANY_SCHOOL = SchoolPlace("", "", "unknown", "")
# Users that are looked at for types of `userIds`.
_SAMPLE = 1000


@dataclass(frozen=True)
class RowOptions:
    # "sourcedId", "identifier" or "userIds:TYPE".
    identity: str = "sourcedId"
    # The ID under which earlier rosters listed people; blank for none.
    previous_identity: str = ""
    # Show every kind of ID under its own name, so that a person can choose.
    all_ids: bool = False
    # Code and name of the district of all rows, where the store has at most one:
    # the district's own system may have another code for it.
    district: tuple[str, str] | None = None
    # Codes of schools, in lower case, that an org may have which the store lacks.
    # With other codes schools would be created.
    school_codes: AbstractSet[str] = frozenset()


@dataclass(frozen=True)
class RowFormat:
    """The columns of the rows: which ones depends on what the store has."""

    has_district: bool
    # In place of what the store has.
    district: tuple[str, str] | None
    has_demographics: bool
    # Header -> identity.
    ids: Mapping[str, str]
    # Those of `_PERSON` that the store says anything about.
    person: tuple[str, ...]

    @property
    def header(self) -> list[str]:
        return [
            *(_DISTRICT if self.has_district else ()),
            *_SCHOOL,
            *self.ids,
            *self.person,
            *(DEMOGRAPHICS if self.has_demographics else ()),
        ]


def row_format(db: sqlite3.Connection, options: RowOptions) -> RowFormat:
    districts = sum(org.is_district for org in read_orgs(db).values())
    has_demographics = db.execute("SELECT 1 FROM demographics LIMIT 1").fetchone()
    if options.all_ids:
        ids = {name: name for name in _kinds_of_ids(db)}
    else:
        ids = {"Person ID": options.identity}
    if options.previous_identity:
        ids["Previous ID"] = options.previous_identity
    district = options.district if districts <= 1 else None
    has_district = bool(districts or district)
    person = tuple(
        name
        for name in _PERSON
        if name not in _STATED or db.execute(f"{_STATED[name]} LIMIT 1").fetchone()
    )
    return RowFormat(has_district, district, bool(has_demographics), ids, person)


def _kinds_of_ids(db: sqlite3.Connection) -> Iterator[str]:
    yield "sourcedId"
    if db.execute("SELECT 1 FROM users WHERE identifier <> '' LIMIT 1").fetchone():
        yield "identifier"
    ids_of_users = db.execute(
        "SELECT userIds FROM users WHERE userIds <> '' LIMIT ?", [_SAMPLE]
    )
    kinds = {kind for (ids,) in ids_of_users for kind in user_ids_by_kind(ids)}
    yield from (f"userIds:{kind}" for kind in sorted(kinds))


def rows(
    db: sqlite3.Connection,
    options: RowOptions,
    *,
    roles: Collection[str],
    today: str,
    notes: list[str] | None = None,
) -> Iterator[list[str]]:
    """Yield the rows; at the end, add to `notes` who was left out."""
    places = load_places(db)
    _find_schools_of_people(db, options, roles, today)
    columns = row_format(db, options)
    of_person = itemgetter(*(_PERSON.index(name) for name in columns.person))
    of_no_school = 0
    for person in _people(db):
        (kind, school, org, is_unknown_org, is_left, grades, *user) = person
        (given, family, email, room, birth, language, *cells) = user
        if kind and kind not in roles:
            continue
        place = places.get(school, _NO_PLACE)
        if is_unknown_org and org.casefold() in options.school_codes:
            place = SchoolPlace("", "", org, "")
        elif is_left and not school:
            place = _ANY_SCHOOL
        elif not (school or is_unknown_org) and kind != Role.STUDENT:
            # The staff of a district's office belong to no school.
            of_no_school += not is_left
            continue
        yield [
            *(columns.district or place[:2] if columns.has_district else ()),
            *place[2:],
            kind,
            *(identity_of(identity, *cells[:3]) for identity in columns.ids.values()),
            *of_person(
                (
                    given,
                    family,
                    email,
                    grades.partition(",")[0] if kind == Role.STUDENT else "",
                    room or "",
                    birth or "",
                    language or "",
                    "left" if is_left else "active",
                )
            ),
            *((cell or "" for cell in cells[3:]) if columns.has_demographics else ()),
        ]
    if of_no_school and notes is not None:
        notes.append(
            ngettext(
                "%(people)s person of a district or department without a school:"
                " left out",
                "%(people)s people of districts or departments without a school:"
                " left out",
                of_no_school,
            )
            % {"people": f"{of_no_school:,}"}
        )


def _find_schools_of_people(
    db: sqlite3.Connection, options: RowOptions, roles: Collection[str], today: str
) -> None:
    """Write into the database what `_people` reads: one school of each person."""
    load_classes(db, today)
    find_people(db, options.identity)
    find_assignments(db, today)
    find_enrolled_schools(db, today)
    choose_schools(db, Role.STUDENT, Role.TEACHER)
    if Role.PARENT in roles:
        find_schools_of_children(db)
        choose_schools(db, Role.PARENT)
    find_homerooms(db, today)


def _people(db: sqlite3.Connection) -> Iterator[tuple[str, ...]]:
    """Yield chosen people, and then deleted ones of whom no role is known."""
    of_user = """
        CASE u.preferredGivenName WHEN '' THEN u.givenName
             ELSE u.preferredGivenName END,
        CASE u.preferredFamilyName WHEN '' THEN u.familyName
             ELSE u.preferredFamilyName END,
        u.email"""
    ids = "u.sourcedId, u.identifier, u.userIds"
    demographics = ", ".join(f"d.{name}" for name in DEMOGRAPHICS)
    yield from db.execute(
        f"""
        SELECT c.kind, c.school, c.org, c.is_unknown_org, c.is_left, u.grades,
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
        SELECT '', '', '', 0, 1, '', {of_user}, '', '', '', {ids}, {blanks}
        FROM person AS p JOIN users AS u ON u.sourcedId = p.user
        WHERE p.is_deleted
          AND p.user NOT IN (SELECT user FROM assignment)
          AND u.role = ''
        ORDER BY p.identity
        """  # noqa: S608
    )
