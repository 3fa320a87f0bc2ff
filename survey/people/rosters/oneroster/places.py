"""Find the school and district of each org of a OneRoster store."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

# Deeper chains of parents are cycles.
MOST_PARENTS = 20
DISTRICT_KINDS = ("district", "local")


class Org(NamedTuple):
    sourced_id: str
    name: str
    # The code under which people know it.
    code: str
    kind: str
    parent: str

    @property
    def is_district(self) -> bool:
        return self.kind in DISTRICT_KINDS


class SchoolPlace(NamedTuple):
    district: str
    district_name: str
    school: str
    school_name: str


def read_orgs(db: sqlite3.Connection) -> dict[str, Org]:
    """Return the orgs that still exist. Even a state has few."""
    rows = db.execute(
        """
        SELECT sourcedId, name, CASE identifier WHEN '' THEN sourcedId
               ELSE identifier END, lower(type), parentSourcedId
        FROM orgs WHERE status = ''
        """
    )
    return {org[0]: Org(*org) for org in rows}


def load_places(db: sqlite3.Connection) -> dict[str, SchoolPlace]:
    """Load the school of each org into `org_school`; return the schools' places.

    A department belongs to the school above it. An org that belongs to no school
    has a blank one, and an unknown org no row.
    """
    orgs = read_orgs(db)
    districts = [org for org in orgs.values() if org.is_district]
    # Where all schools can only be in one district, they need not name it.
    only = districts[0] if len(districts) == 1 else None
    places: dict[str, SchoolPlace] = {}
    school_of: dict[str, str] = {
        org: "" for (org,) in db.execute("SELECT sourcedId FROM orgs")
    }
    for org in orgs.values():
        if org.kind == "school":
            district = _above(orgs, org, *DISTRICT_KINDS) or only
            places[org.sourced_id] = SchoolPlace(
                district.code if district else "",
                district.name if district else "",
                org.code,
                org.name,
            )
        if org.kind in ("school", "department"):
            school = _above(orgs, org, "school")
            school_of[org.sourced_id] = school.sourced_id if school else ""
    db.execute("DROP TABLE IF EXISTS temp.org_school")
    db.execute(
        "CREATE TEMP TABLE org_school (org TEXT PRIMARY KEY, school TEXT NOT NULL)"
        " WITHOUT ROWID"
    )
    db.executemany("INSERT INTO org_school VALUES (?, ?)", school_of.items())
    return places


def _above(orgs: Mapping[str, Org], org: Org, *kinds: str) -> Org | None:
    """Return the nearest org of these kinds in the chain of parents."""
    ancestor: Org | None = org
    for _ in range(MOST_PARENTS):
        if ancestor is None or ancestor.kind in kinds:
            return ancestor
        ancestor = orgs.get(ancestor.parent)
    return None
