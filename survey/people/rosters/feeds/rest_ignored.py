"""Collect the names of what a OneRoster server sends and nothing reads.

Names only, never values, which may say anything about a person.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.people.rosters.oneroster import schema

# More than a person reads; a server may invent a name for each object.
MOST_NAMES = 80
# Other names may be values, as in an object with a field for each person.
USUAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,59}")
UNUSUAL = gettext_noop("with an unusual name")
EXTENSIONS = "metadata"
# Fields of the standard that CSV files lack, or call otherwise.
_JSON_FIELDS = {
    "orgs": "parent children",
    "academicSessions": "parent children",
    "users": "orgs agents primaryOrg roles userProfiles resources grade"
    " preferredFirstName preferredLastName",
    "roles": "user org userProfile",
    "classes": "school course terms resources",
    "enrollments": "user class school",
}
_KNOWN = {
    name: {
        *collection.columns,
        *collection.unused,
        *_JSON_FIELDS.get(name, "").split(),
        EXTENSIONS,
    }
    - {"password"}
    for name, collection in schema.COLLECTIONS.items()
}
_KNOWN_IN_ANY_CASE = {
    name: {field.casefold() for field in fields} for name, fields in _KNOWN.items()
}


class IgnoredNames:
    """The ignored fields of a download, and the endpoints that were not offered."""

    def __init__(self) -> None:
        # Collection and field.
        self._fields: set[tuple[str, str]] = set()
        self._has_more = False
        self._missing: dict[str, None] = {}

    def look_at(self, collection: str, item: Mapping[str, Any]) -> None:
        """Collect the fields of an object that are not read."""
        # Millions of objects have none that is unknown.
        for name in item.keys() - _KNOWN[collection]:
            if name.casefold() not in _KNOWN_IN_ANY_CASE[collection]:
                self._add(collection, name)
        if isinstance(extensions := item.get(EXTENSIONS), dict):
            for name in extensions:
                self._add(collection, f"{EXTENSIONS}.{name}")
        if collection == "users" and isinstance(roles := item.get("roles"), list):
            for role in roles:
                if isinstance(role, dict):
                    self.look_at("roles", role)

    def _add(self, collection: str, name: str) -> None:
        if (collection, name) in self._fields:
            return
        field = (collection, name if USUAL_NAME.fullmatch(name) else UNUSUAL)
        if len(self._fields) < MOST_NAMES:
            self._fields.add(field)
        elif field not in self._fields:
            self._has_more = True

    def add_missing(self, endpoint: str) -> None:
        """Collect an endpoint that the server does not offer to this client."""
        self._missing[endpoint] = None

    def notes(self) -> list[str]:
        notes = [
            _("%(endpoint)s: not read, because the server does not offer it")
            % {"endpoint": endpoint}
            for endpoint in self._missing
        ]
        notes += [_note(*field) for field in sorted(self._fields)]
        if self._has_more:
            notes.append(
                _("more than %(most_names)s fields were ignored")
                % {"most_names": MOST_NAMES}
            )
        return notes


def _note(collection: str, name: str) -> str:
    if name == UNUSUAL:
        return _("%(collection)s: fields %(unusual)s were ignored") % {
            "collection": collection,
            "unusual": _(UNUSUAL),
        }
    if "password" in name.casefold():
        reason = _("passwords are never kept")
    elif name.startswith(f"{EXTENSIONS}."):
        reason = _("a vendor's own field")
    else:
        reason = _("it is no field of OneRoster")
    return _("%(collection)s: field '%(name)s' was ignored: %(reason)s") % {
        "collection": collection,
        "name": name,
        "reason": reason,
    }
