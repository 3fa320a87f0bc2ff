"""Compare the people of districts with the files that their feeds were given."""

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# The generator's roles, and the administration's role that takes them in.
ROLES = {"student": "student", "teacher": "teacher", "administrator": "teacher"}


class Person(NamedTuple):
    name: str
    email: str
    is_withdrawn: bool = False


def people_of(archive: Path) -> dict[tuple[str, str], Person]:
    """Return the students and teachers of a file, by role and ID.

    Reads the generator's file without the product's reader.
    """
    found = {}
    with zipfile.ZipFile(archive) as zipped, zipped.open("users.csv") as binary:
        for row in csv.DictReader(io.TextIOWrapper(binary, "utf-8", newline="")):
            if role := ROLES.get(row["role"]):
                name = f"{row['givenName']} {row['familyName']}"
                found[role, row["sourcedId"]] = Person(name, row["email"])
    return found


def compare_people(
    truth: Mapping[tuple[str, str], Person],
    stored: Sequence[tuple[tuple[str, str], Person]],
) -> Counter[str]:
    """Count the differences of one district; all have to be zero.

    A person who was added under another ID exists twice by name.
    """
    counts: Counter[str] = Counter()
    invited = [(key, person) for key, person in stored if not person.is_withdrawn]
    names = Counter((key[0], person.name) for key, person in invited)
    names -= Counter((key[0], person.name) for key, person in truth.items())
    counts["duplicates"] = names.total()
    known, active = {key for key, _ in stored}, dict(invited)
    for key, person in truth.items():
        if key not in active:
            counts["wrong_withdrawals" if key in known else "missing"] += 1
        elif active[key].email != person.email:
            counts["outdated"] += 1
    return counts
