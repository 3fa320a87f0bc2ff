"""Spell the rows of OneRoster files as the objects of the REST API."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping
from typing import BinaryIO

from survey.simulation.oneroster_server import COLLECTIONS, Json

REFERENCES = {
    "parentSourcedId": ("parent", "org"),
    "schoolSourcedId": ("school", "org"),
    "courseSourcedId": ("course", "course"),
    "classSourcedId": ("class", "class"),
    "userSourcedId": ("user", "user"),
    "orgSourcedId": ("org", "org"),
    "primaryOrgSourcedId": ("primaryOrg", "org"),
}
LISTS = {
    "orgSourcedIds": ("orgs", "org"),
    "agentSourcedIds": ("agents", "user"),
    "termSourcedIds": ("terms", "academicSession"),
}


def read_archive(file: BinaryIO) -> dict[str, list[Json]]:
    """Return the objects of a OneRoster ZIP as the REST API spells them."""
    with zipfile.ZipFile(file) as archive:
        rows = {
            name: list(
                csv.DictReader(io.StringIO(archive.read(path).decode("utf-8-sig")))
            )
            for name in (*COLLECTIONS, "roles")
            if (path := f"{name}.csv") in archive.namelist()
        }
    lists = {name: [as_json(row) for row in rows.get(name, [])] for name in COLLECTIONS}
    if "roles" in rows:
        of_user: dict[str, list[Json]] = {}
        for row in rows["roles"]:
            role = as_json(row)
            of_user.setdefault(role.pop("user")["sourcedId"], []).append(role)
        for user in lists["users"]:
            user["roles"] = of_user.get(user["sourcedId"], [])
    return lists


def as_json(row: Mapping[str, str]) -> Json:
    result: Json = {}
    for name, value in row.items():
        if name in REFERENCES:
            new, kind = REFERENCES[name]
            if value:
                result[new] = reference(value, kind)
        elif name in LISTS:
            new, kind = LISTS[name]
            result[new] = [reference(part, kind) for part in value.split(",") if part]
        elif name == "userIds":
            pairs = [id_.strip("{} ").partition(":") for id_ in value.split(",") if id_]
            result[name] = [{"type": kind, "identifier": of} for kind, _, of in pairs]
        elif name == "grades":
            result[name] = [part for part in value.split(",") if part]
        else:
            result[name] = value
    result["status"] = result.get("status") or "active"
    return result


def reference(sourced_id: str, kind: str) -> Json:
    return {
        "href": f"https://sis.example.org/{kind}s/{sourced_id}",
        "sourcedId": sourced_id,
        "type": kind,
    }
