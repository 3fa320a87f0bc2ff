"""Decide in SQL who is one person, in which role, and in which school.

Each function fills a temporary table for the next ones. Only names that this
package defines get into the texts of statements.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from survey.models import Role
from survey.people.rosters.oneroster.schema import ROLE_OF

_USER_ID = re.compile(r"\{\s*([^:{}]*?)\s*:\s*([^{}]*?)\s*\}")
# A comma-separated list as JSON, for json_each.
_AS_JSON = (
    "'[\"' || replace(replace(replace({0}, '\\', '\\\\'), '\"', '\\\"'), ',', '\",\"')"
    " || '\"]'"
)


def user_ids_by_kind(user_ids: str) -> dict[str, str]:
    """Return the IDs of "{type:id},{type:id}", which some servers write as JSON."""
    if '"' in user_ids:
        pairs = []
        with suppress(ValueError, RecursionError):
            pairs = [*_pairs(json.loads(f"[{user_ids}]"))]
    else:
        pairs = _USER_ID.findall(user_ids)
    # The first of several IDs of a type.
    return {kind: value for kind, value in reversed(pairs) if kind and value}


def _pairs(parsed: object) -> Iterator[tuple[str, str]]:
    """Yield type and ID of {"type": …, "identifier": …} and of {type: ID}."""
    if isinstance(parsed, list):
        for part in parsed:
            yield from _pairs(part)
    elif isinstance(parsed, dict):
        fields = {name.strip().casefold(): value for name, value in parsed.items()}
        if fields.keys() & {"type", "identifier"}:
            parsed = {fields.get("type"): fields.get("identifier")}
        for kind, value in parsed.items():
            if kind and isinstance(value, str | int) and str(value).strip():
                yield str(kind).strip(), str(value).strip()


def user_id(user_ids: str, kind: str) -> str:
    """Return the ID of a type, blank without one."""
    wanted = kind.casefold()
    pairs = user_ids_by_kind(user_ids).items()
    return next((value for written, value in pairs if written.casefold() == wanted), "")


def identity_of(identity: str, sourced_id: str, identifier: str, user_ids: str) -> str:
    """Return the ID of a user that identifies the person."""
    if identity == "sourcedId":
        return sourced_id
    if identity == "identifier":
        return identifier
    return user_id(user_ids, identity.removeprefix("userIds:"))


def _create(db: sqlite3.Connection, table: str, columns: str) -> None:
    db.execute(f"DROP TABLE IF EXISTS temp.{table}")
    # Tables with a key are stored in its order.
    options = "WITHOUT ROWID" if "PRIMARY KEY" in columns else ""
    db.execute(f"CREATE TEMP TABLE {table} ({columns}) {options}")


def find_people(db: sqlite3.Connection, identity: str) -> None:
    """Fill `person`: the identity of each user.

    A user without the ID is a person of their own, with an identity that begins
    with a NUL character.
    """
    if not re.fullmatch(r"sourcedId|identifier|userIds:.+", identity):
        raise ValueError(f"unknown identity {identity!r}")
    _create(
        db,
        "person",
        "user TEXT PRIMARY KEY, identity TEXT, is_deleted INT",
    )
    find = partial(identity_of, identity)
    db.create_function("identity_of", 3, find, deterministic=True)
    value = (
        identity
        if identity in ("sourcedId", "identifier")
        else "identity_of(sourcedId, identifier, userIds)"
    )
    db.execute(
        f"""
        INSERT INTO person
        SELECT sourcedId, coalesce(nullif({value}, ''), char(0) || sourcedId),
               status <> ''
        FROM users ORDER BY sourcedId
        """  # noqa: S608
    )


def find_assignments(db: sqlite3.Connection, today: str) -> None:
    """Fill `assignment`: the roles of each person, with the school of each role."""
    _create(db, "role_kind", "word TEXT PRIMARY KEY, kind TEXT")
    db.executemany("INSERT INTO role_kind VALUES (?, ?)", ROLE_OF.items())
    _create(
        db,
        "assignment",
        "identity TEXT, kind TEXT, user TEXT, org TEXT, school TEXT,"
        " is_unknown_org INT, is_left INT, is_primary_org INT, is_secondary INT,"
        " is_future INT, position INT",
    )
    # roles.csv of version 1.2.
    db.execute(
        """
        INSERT INTO assignment
        SELECT p.identity, k.kind, p.user, r.orgSourcedId, coalesce(s.school, ''),
               s.org IS NULL,
               p.is_deleted OR r.status <> ''
               OR (r.endDate <> '' AND r.endDate <= :today),
               0, lower(r.roleType) <> 'primary', r.beginDate > :today, 0
        FROM roles AS r
        JOIN role_kind AS k ON k.word = lower(r.role)
        JOIN person AS p ON p.user = r.userSourcedId
        LEFT JOIN org_school AS s ON s.org = r.orgSourcedId
        """,
        {"today": today},
    )
    _create(db, "has_roles", "user TEXT PRIMARY KEY")
    db.execute("INSERT INTO has_roles SELECT DISTINCT userSourcedId FROM roles")
    # users.csv of version 1.1: one org, or a list of them.
    of_user = """
        SELECT p.identity, k.kind, p.user, {org}, coalesce(s.school, ''),
               s.org IS NULL AND {org} <> '', p.is_deleted, 0, 1, 0, {position}
        FROM users AS u {each}
        JOIN role_kind AS k ON k.word = lower(u.role)
        JOIN person AS p ON p.user = u.sourcedId
        LEFT JOIN org_school AS s ON s.org = {org}
        WHERE instr(u.orgSourcedIds, ',') {several} 0
          AND u.sourcedId NOT IN (SELECT user FROM has_roles)
        """
    single = of_user.format(org="u.orgSourcedIds", each="", position="0", several="=")
    several = of_user.format(
        org="trim(o.value)",
        each=f"CROSS JOIN json_each({_AS_JSON.format('u.orgSourcedIds')}) AS o",
        position="o.key",
        several=">",
    )
    for statement in (single, several):
        db.execute(f"INSERT INTO assignment {statement}")  # noqa: S608
    db.execute(
        """
        INSERT INTO assignment
        SELECT DISTINCT a.identity, a.kind, a.user, u.primaryOrgSourcedId, s.school,
               0, 0, 1, 0, 0, 0
        FROM users AS u
        CROSS JOIN assignment AS a ON a.user = u.sourcedId AND NOT a.is_left
        JOIN org_school AS s ON s.org = u.primaryOrgSourcedId AND s.school <> ''
        WHERE u.primaryOrgSourcedId <> ''
        """
    )


def find_enrolled_schools(db: sqlite3.Connection, today: str) -> None:
    """Fill `enrolled` for people whose roles do not name one school."""
    _create(
        db,
        "enrolled",
        "identity TEXT, kind TEXT, school TEXT, number INT,"
        " PRIMARY KEY (identity, kind, school)",
    )
    _create(
        db,
        "undecided",
        "identity TEXT, kind TEXT, PRIMARY KEY (identity, kind)",
    )
    db.execute(
        """
        INSERT INTO undecided
        SELECT identity, kind FROM assignment WHERE NOT is_left
        GROUP BY identity, kind HAVING min(school) <> max(school) OR max(school) = ''
        """
    )
    if not db.execute("SELECT 1 FROM undecided LIMIT 1").fetchone():
        return
    db.execute(
        """
        INSERT INTO enrolled
        SELECT p.identity, k.kind, s.school, count(*)
        FROM enrollments AS e
        CROSS JOIN role_kind AS k ON k.word = lower(e.role)
        CROSS JOIN person AS p ON p.user = e.userSourcedId AND NOT p.is_deleted
        CROSS JOIN undecided AS n ON n.identity = p.identity AND n.kind = k.kind
        LEFT JOIN classes AS c ON c.sourcedId = e.classSourcedId
        JOIN org_school AS s
          ON s.org = coalesce(nullif(e.schoolSourcedId, ''), c.schoolSourcedId)
         AND s.school <> ''
        WHERE e.status = '' AND e.beginDate <= :today
          AND (e.endDate = '' OR e.endDate > :today)
          AND e.classSourcedId NOT IN (SELECT class FROM ended_class)
        GROUP BY p.identity, k.kind, s.school
        """,
        {"today": today},
    )
    _add_schools(db, Role.STUDENT, Role.TEACHER)


def find_schools_of_children(db: sqlite3.Connection) -> None:
    """Add the schools and languages of children, whichever side names the other."""
    _create(
        db,
        "child",
        "parent TEXT, child TEXT, school TEXT, language TEXT,"
        " PRIMARY KEY (parent, child)",
    )
    pairs = f"json_each({_AS_JSON.format('u.agentSourcedIds')}) AS a"  # noqa: S608
    for parent, child in (
        ("trim(a.value)", "u.sourcedId"),
        ("u.sourcedId", "trim(a.value)"),
    ):
        db.execute(
            f"""
            INSERT OR IGNORE INTO child
            SELECT p.identity, c.identity, c.school, s.language
            FROM users AS u CROSS JOIN {pairs}
            CROSS JOIN person AS p ON p.user = {parent}
            CROSS JOIN person AS q ON q.user = {child}
            CROSS JOIN chosen AS c ON c.identity = q.identity
                   AND c.kind = '{Role.STUDENT}' AND NOT c.is_left AND c.school <> ''
            JOIN users AS s ON s.sourcedId = c.user
            WHERE u.agentSourcedIds <> '' AND u.status = ''
            """  # noqa: S608
        )
    db.execute(
        "UPDATE assignment SET is_primary_org = 0, is_secondary = 1 WHERE kind = ?",
        [Role.PARENT],
    )
    db.execute("DELETE FROM enrolled WHERE kind = ?", [Role.PARENT])
    db.execute(
        "INSERT INTO enrolled SELECT parent, ?, school, count(*) FROM child"
        " GROUP BY parent, school",
        [Role.PARENT],
    )
    _add_schools(db, Role.PARENT)
    db.execute(
        "INSERT INTO child_language SELECT parent, min(language) FROM child"
        " WHERE language <> '' GROUP BY parent"
    )


def _add_schools(db: sqlite3.Connection, *kinds: str) -> None:
    """Offer the schools in `enrolled` to people who have an active role."""
    some = ", ".join(f"'{kind}'" for kind in kinds)
    db.execute("CREATE INDEX IF NOT EXISTS temp.of_person ON assignment (identity)")
    db.execute(
        f"""
        INSERT INTO assignment
        SELECT a.identity, a.kind, min(a.user), '', n.school, 0, 0, 0, 1, 0, 1000
        FROM enrolled AS n
        CROSS JOIN assignment AS a ON a.identity = n.identity AND a.kind = n.kind
             AND NOT a.is_left
        WHERE n.kind IN ({some})
        GROUP BY a.identity, a.kind, n.school
        """  # noqa: S608
    )


def choose_schools(db: sqlite3.Connection, *kinds: str) -> None:
    """Fill `chosen`: one user and school for each person and role.

    An active role wins over one that has ended, then the person's primary org, the
    primary role, the school of most enrolments, and the first org that is listed.
    """
    if Role.STUDENT in kinds:
        _create(
            db,
            "chosen",
            "identity TEXT, kind TEXT, user TEXT, org TEXT, school TEXT,"
            " is_unknown_org INT, is_left INT, PRIMARY KEY (identity, kind)",
        )
        _create(db, "child_language", "identity TEXT PRIMARY KEY, language TEXT")
    some = ", ".join(f"'{kind}'" for kind in kinds)
    db.execute(
        f"""
        INSERT INTO chosen
        SELECT identity, kind, user, org, school, is_unknown_org, is_left FROM (
            SELECT a.*, row_number() OVER (
                PARTITION BY a.identity, a.kind
                ORDER BY a.is_left, a.school = '', -a.is_primary_org, a.is_secondary,
                         a.is_future, -coalesce(n.number, 0), a.position,
                         -a.is_unknown_org, a.school, a.user) AS rank
            FROM assignment AS a
            LEFT JOIN enrolled AS n ON n.identity = a.identity AND n.kind = a.kind
                                   AND n.school = a.school
            WHERE a.kind IN ({some}))
        WHERE rank = 1
        """  # noqa: S608
    )


def find_homerooms(db: sqlite3.Connection, today: str) -> None:
    """Fill `homeroom`: a student's homeroom in each school, the current one first."""
    _create(
        db,
        "homeroom",
        "user TEXT, school TEXT, title TEXT, state INT, PRIMARY KEY (user, school)",
    )
    if not db.execute("SELECT 1 FROM homeroom_class LIMIT 1").fetchone():
        return
    db.execute(
        """
        INSERT INTO homeroom
        SELECT e.userSourcedId, s.school, h.title, h.state
        FROM enrollments AS e
        CROSS JOIN homeroom_class AS h ON h.class = e.classSourcedId
        JOIN org_school AS s
          ON s.org = coalesce(nullif(h.school, ''), e.schoolSourcedId)
        WHERE e.status = '' AND lower(e.role) = 'student' AND e.beginDate <= :today
          AND (e.endDate = '' OR e.endDate > :today)
        ON CONFLICT DO UPDATE SET title = excluded.title, state = excluded.state
        WHERE (excluded.state, excluded.title) < (state, title)
        """,
        {"today": today},
    )
