"""ZIPs as real systems, careless exports and attackers make them.

Each has the verdict that is expected of it: `OneRosterInvalid` with these words,
or a note in the report. `docs/guides/oneroster-input.md` lists them.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field

from survey.tests.rosters.oneroster.archives import (
    CLASS_FILES,
    DEMOGRAPHICS,
    ORGS,
    ROLES_12,
    SESSIONS,
    USERS,
    USERS_12,
    VERSION_11,
    archive,
    replaced,
)


@dataclass(frozen=True)
class BadArchive:
    build: Callable[[], io.BytesIO]
    # What OneRosterInvalid says; empty if the ZIP is accepted.
    refusal: str = ""
    # A note of the report, where it is accepted.
    note: str = ""
    # IDs of the people that result from it.
    people: frozenset[str] = field(
        default_factory=lambda: frozenset(("u-maya", "u-ana", "u-ortiz"))
    )


def _with(**changed):
    return lambda: archive(VERSION_11 | changed)


def _users(*pairs):
    return lambda: archive(VERSION_11 | {"users": replaced(USERS, *pairs)})


def zip_of(*entries):
    """Return a ZIP of names and contents; names may repeat."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in entries:
            written.writestr(name, content)
    file.seek(0)
    return file


def link():
    entry = zipfile.ZipInfo("users.csv")
    entry.create_system = 3
    entry.external_attr = 0o120777 << 16
    return zip_of((entry, "/etc/passwd"))


def encrypted():
    content = bytearray(archive(VERSION_11).getvalue())
    # The flag of each entry, in front of it and in the directory.
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = 0
        while (place := content.find(signature, start)) >= 0:
            content[place + offset] |= 1
            start = place + 4
    return io.BytesIO(bytes(content))


def long_line(size=300 * 10**6):
    """Return a ZIP with `size` bytes in one line, packed piece by piece."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
        for name, text in (
            ("manifest.csv", "propertyName,value\nfile.users,bulk\n"),
            # Beside it, so that the ratio of the whole ZIP is no reason.
            ("photo.bin", None),
        ):
            with written.open(name, "w") as entry:
                if text is None:
                    noise = _noise(2**20)
                    for _ in range(3):
                        entry.write(noise)
                else:
                    entry.write(text.encode())
        with written.open("users.csv", "w", force_zip64=True) as entry:
            entry.write(USERS.encode() + b"u-x")
            for _ in range(size // 2**20):
                entry.write(b"0123456789abcdef" * 2**16)
    file.seek(0)
    return file


def _noise(size):
    import random

    return random.Random(1).randbytes(size)


def bomb():
    return zip_of(("manifest.csv", "file.users,bulk"), ("users.csv", "0" * 2**27))


CYCLE = replaced(
    ORGS,
    (
        "o-district,,,Riverside,district,0601,",
        "o-district,,,Riverside,district,0601,o-lincoln",
    ),
)
TWO_DISTRICTS = (
    ORGS + "o-other,,,Lakeshore,district,0602,\no-orphan,,,Orphan,school,,\n"
)

CORPUS = {
    # The manifest.
    "no manifest": BadArchive(
        lambda: zip_of(("orgs.csv", ORGS), ("users.csv", USERS)),
        refusal="The ZIP has no manifest.csv",
    ),
    "file of the manifest is missing": BadArchive(
        lambda: archive({"orgs": ORGS}, modes={"orgs": "bulk", "users": "bulk"}),
        refusal="manifest.csv says that users.csv is bulk, but the ZIP has no",
    ),
    "file that the manifest does not name": BadArchive(
        lambda: archive(
            VERSION_11 | {"demographics": DEMOGRAPHICS},
            modes={"orgs": "bulk", "users": "bulk"},
        ),
        note="demographics.csv was ignored: manifest.csv does not name it",
    ),
    "file that the manifest calls absent": BadArchive(
        lambda: archive(
            VERSION_11 | {"demographics": DEMOGRAPHICS},
            modes={"orgs": "bulk", "users": "bulk", "demographics": "absent"},
        ),
        note="demographics.csv was ignored: manifest.csv says that it is absent",
    ),
    "unknown mode": BadArchive(
        lambda: archive(VERSION_11, "full"), refusal="file.orgs: 'full' must be bulk"
    ),
    "manifest without properties": BadArchive(
        lambda: zip_of(("manifest.csv", "a,b\n"), ("users.csv", USERS)),
        refusal="manifest.csv, line 1: no properties",
    ),
    "delta without a base": BadArchive(
        lambda: archive(VERSION_11, "delta"),
        refusal="orgs.csv is a delta, but no complete orgs.csv was loaded before",
    ),
    "1.2 headers under a 1.1 manifest": BadArchive(
        lambda: archive(
            {"orgs": ORGS, "users": USERS_12, "roles": ROLES_12},
            modes={"orgs": "bulk", "users": "bulk"},
        ),
        note="roles.csv is read like users.csv, which has no roles",
    ),
    "1.2 users without roles": BadArchive(
        lambda: archive({"orgs": ORGS, "users": USERS_12}, version="1.2"),
        refusal="users.csv, line 1: no column role, orgSourcedIds, and the ZIP has no",
    ),
    # What people and orgs refer to.
    "cyclic agents": BadArchive(
        _users((",,u-maya,,hunter2", ',,"u-maya,u-ana",,hunter2')),
    ),
    "agents that do not exist": BadArchive(_users((",,,u-ana,07,", ",,,u-nobody,07,"))),
    "cyclic parents of orgs": BadArchive(_with(orgs=CYCLE)),
    "schools that are each other's parent": BadArchive(
        _with(
            orgs=replaced(
                ORGS,
                ("L1,o-district", "L1,o-roosevelt"),
                (",school,,o-district", ",school,,o-lincoln"),
            )
        )
    ),
    "orgs without a district": BadArchive(
        _with(orgs="\n".join(row for row in ORGS.splitlines() if "0601" not in row)),
        # Her parent's only org does not exist, but her own school does.
    ),
    "school of no district among several": BadArchive(_with(orgs=TWO_DISTRICTS)),
    "unknown type of org": BadArchive(
        _with(orgs=replaced(ORGS, ("Lincoln,school", "Lincoln,campus"))),
        refusal="orgs.csv, line 3, column type: 'campus' must be department, school",
    ),
    "demographics without users": BadArchive(
        lambda: archive(
            VERSION_11 | {"demographics": DEMOGRAPHICS + "u-nobody,2014-01-01,,,,\n"}
        ),
    ),
    "demographics alone": BadArchive(
        lambda: archive({"demographics": DEMOGRAPHICS}), people=frozenset()
    ),
    "term that ends before it begins": BadArchive(
        lambda: archive(
            VERSION_11
            | CLASS_FILES
            | {"academicSessions": replaced(SESSIONS, ("2026-08-20", "2027-08-20"))}
        ),
        note="academicSessions.csv: 1 terms end before they begin",
    ),
    "identical rows": BadArchive(_with(users=USERS + USERS.splitlines()[1] + "\n")),
    "contradicting rows": BadArchive(
        _with(users=USERS + replaced(USERS.splitlines()[1], (",07,", ",08,")) + "\n"),
        refusal="users.csv, line 5, column sourcedId: 'u-maya' stands in two rows that",
    ),
    "row without a sourcedId": BadArchive(
        _users(("u-ana,,,true", ",,,true")),
        refusal="users.csv, line 3, column sourcedId: is missing",
    ),
    "comma that is not quoted": BadArchive(
        _users(("Luis,Ortiz", "Luis,Ortiz, Jr.")),
        refusal="users.csv, line 4: more cells than the header has",
    ),
    "quotation mark that is never closed": BadArchive(
        _users(("Luis,Ortiz", 'Luis,"Ortiz')),
        refusal="users.csv, line 4: a quotation mark is never closed",
    ),
    "two quotation marks with people between them": BadArchive(
        _users(("maya,{SIS:900},", 'maya,{SIS:900},"'), ("ana,,Ana", 'ana,,"Ana')),
        refusal="users.csv, line 2: a quotation mark is never closed, so that rows",
    ),
    "two quotation marks that look like a long cell": BadArchive(
        _users(("maya,{SIS:900},", 'maya,{SIS:900},"'), (",Ana,", ',Ana",')),
        refusal="users.csv, line 2: a quotation mark is never closed, so that rows",
    ),
    "wrong byte in a file of UTF-8": BadArchive(
        _with(
            users=USERS.replace("Maya", "Zoë")
            .encode()
            .replace(b"Luis", "José".encode("latin-1"))
        ),
        refusal="users.csv: Line 4 has letters that are not UTF-8",
    ),
    # How files are written.
    "UTF-16": BadArchive(
        _with(users=USERS.encode("utf-16")),
        note="users.csv: the file is UTF-16 instead of UTF-8",
    ),
    "UTF-16 without its mark": BadArchive(
        _with(users=USERS.encode("utf-16-le")),
        refusal="users.csv, line 1: contains NUL characters",
    ),
    "Windows-1252": BadArchive(
        _with(users=USERS.replace("Maya", "Zoë").encode("cp1252")),
        note="users.csv: the file is Windows-1252 instead of UTF-8",
    ),
    "semicolons": BadArchive(
        _with(
            users=USERS.replace('"o-lincoln,o-roosevelt"', "o-lincoln").replace(
                ",", ";"
            )
        ),
        note="users.csv: the cells are separated by semicolons",
    ),
    "300 MB in one line": BadArchive(
        long_line, refusal="users.csv, line 5: the line is longer than 500,000"
    ),
    "header only": BadArchive(_with(users=USERS.splitlines()[0]), people=frozenset()),
    "empty file": BadArchive(_with(users=""), refusal="users.csv, line 1: no column"),
    # Archives.
    "ZIP in a ZIP": BadArchive(
        lambda: zip_of(("export.zip", archive(VERSION_11).getvalue())),
        refusal="The ZIP contains another ZIP ('export.zip')",
    ),
    "nothing of OneRoster": BadArchive(
        lambda: zip_of(("readme.csv", "a,b")), refusal="none of the files of OneRoster"
    ),
    "not a ZIP": BadArchive(
        lambda: io.BytesIO(USERS.encode()), refusal="The ZIP is damaged"
    ),
    "half a ZIP": BadArchive(
        lambda: io.BytesIO(archive(VERSION_11).getvalue()[:-200]),
        refusal="The ZIP is damaged",
    ),
    "encrypted": BadArchive(encrypted, refusal="The ZIP is encrypted"),
    "bomb": BadArchive(bomb, refusal="unpacks to more than 200 times its size"),
    "many files": BadArchive(
        lambda: zip_of(*((f"{number}.csv", "") for number in range(501))),
        refusal="The ZIP has more than 500 files",
    ),
    "path outside": BadArchive(
        lambda: zip_of(("../users.csv", USERS)), refusal="has a forbidden name"
    ),
    "absolute path": BadArchive(
        lambda: zip_of(("/etc/users.csv", USERS)), refusal="has a forbidden name"
    ),
    "link": BadArchive(link, refusal="The ZIP's file 'users.csv' is a link"),
    "users twice": BadArchive(
        lambda: archive(VERSION_11, entries={"old/users.csv": USERS}),
        refusal="contains users.csv twice: 'users.csv' and 'old/users.csv'",
    ),
}
