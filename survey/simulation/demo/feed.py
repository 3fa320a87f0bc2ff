"""A feed of the demo: OneRoster ZIPs of one district, and the feed that reads them.

`provisioning/demo` serves the folder with the files on loopback.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from accounts.models import District, School, User
from survey.models import Administration, Identity, RosterFeed
from survey.people.rosters.feeds.feeds import create_feed
from survey.simulation.demo.staff import DISTRICT, SCHOOL

NAME = "Demonstration system"


class RosterPerson(NamedTuple):
    identifier: str
    role: str
    given_name: str
    family_name: str
    email: str
    grade: str
    classroom: str
    birth_date: str
    language: str = "en"


# The second file lacks a school, so its scan is held.
WHOLE, WITHOUT_A_SCHOOL = "riverside.zip", "riverside-without-a-school.zip"
NEWCOMER = RosterPerson(
    "R49999", "student", "Nadia", "Newcomer", "", "07", "7B", "2014-05-04"
)
HEADERS = {
    "manifest": "propertyName,value",
    "orgs": "sourcedId,status,dateLastModified,name,type,identifier,parentSourcedId",
    "users": "sourcedId,status,dateLastModified,enabledUser,orgSourcedIds,role,"
    "username,userIds,givenName,familyName,middleName,identifier,email,sms,phone,"
    "agentSourcedIds,grades,password,preferredLanguage",
    "classes": "sourcedId,status,dateLastModified,title,grades,courseSourcedId,"
    "classCode,classType,location,schoolSourcedId,termSourcedIds",
    "enrollments": "sourcedId,status,dateLastModified,classSourcedId,schoolSourcedId,"
    "userSourcedId,role",
    "demographics": "sourcedId,status,dateLastModified,birthDate",
}


def add_feed(names: Iterable[str], folder: Path, address: str, by: str) -> None:
    """Write the files into `folder`, and add the feed that reads them at `address`.

    An existing feed gets the address, whose port may be another one today. Does
    nothing where feeds may not connect to loopback.
    """
    district = District.objects.filter(name=DISTRICT).first()
    owner = User.objects.filter(email=by).first()
    if district is None or owner is None or not settings.FEED_NETWORKS:
        return
    administrations = Administration.objects.filter(name__in=names)
    if not (folder / WHOLE).exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_files(folder, district, administrations)
    feeds = RosterFeed.objects.filter(district=district, name=NAME)
    feed = feeds.first()
    if feed is None:
        create_feed(
            district=district,
            kind="zip",
            name=NAME,
            address=f"{address}/{WHOLE}",
            identity="identifier",
            administrations=administrations,
            by=owner,
        )
    else:
        file = feed.address.rpartition("/")[2]
        feeds.update(address=f"{address}/{file}")


def write_files(
    folder: Path, district: District, administrations: Iterable[Administration]
) -> None:
    """Write the district's people and a new one, with all schools and without one."""
    schools = list(district.schools.order_by("name"))
    people = list(
        Identity.objects.filter(
            administration__in=administrations,
            district=district,
            respondent__withdrawn_at=None,
        )
        .select_related("respondent__school", "administration")
        .order_by("external_id")
    )
    for name, included in ((WHOLE, schools), (WITHOUT_A_SCHOOL, schools[1:])):
        content = archive(district, included, people)
        # Written whole: the server may be reading the folder already.
        (folder / f"{name}.part").write_bytes(content)
        (folder / f"{name}.part").rename(folder / name)


def archive(
    district: District, schools: Sequence[School], people: Iterable[Identity]
) -> bytes:
    ids = {school.pk: f"S{school.pk}" for school in schools}
    orgs: list[list[str]] = [
        ["D", "", "", district.name, "district", district.code, ""]
    ]
    orgs += [
        [ids[school.pk], "", "", school.name, "school", school.code, "D"]
        for school in schools
    ]
    enrolled = [
        (ids[identity.respondent.school_id], person_of(identity))
        for identity in people
        if identity.respondent.school_id in ids
    ]
    [middle_school] = [school for school in schools if school.name == SCHOOL]
    enrolled.append((ids[middle_school.pk], NEWCOMER))
    users = [
        [f"U{user.identifier}", "", "", "true", org, user.role, user.identifier, ""]
        + [user.given_name, user.family_name, "", user.identifier, user.email]
        + ["", "", "", user.grade, "", user.language]
        for org, user in enrolled
    ]
    in_class = [(org, user) for org, user in enrolled if user.classroom]
    classes = [
        [f"C{org}-{room}", "", "", room, "", "", "", "homeroom", "", org, "T"]
        for org, room in sorted({(org, user.classroom) for org, user in in_class})
    ]
    enrollments = [
        [f"E{user.identifier}", "", "", f"C{org}-{user.classroom}", org]
        + [f"U{user.identifier}", "student"]
        for org, user in in_class
    ]
    demographics = [
        [f"U{user.identifier}", "", "", user.birth_date]
        for _, user in enrolled
        if user.birth_date
    ]
    tables = {
        "orgs": orgs,
        "users": users,
        "classes": classes,
        "enrollments": enrollments,
        "demographics": demographics,
    }
    manifest = [["manifest.version", "1.0"], ["oneroster.version", "1.1"]]
    manifest += [[f"file.{name}", "bulk"] for name in tables]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, lines in {"manifest": manifest, **tables}.items():
            text = io.StringIO(newline="")
            csv.writer(text).writerows([HEADERS[name].split(","), *lines])
            out.writestr(f"{name}.csv", text.getvalue())
    return file.getvalue()


def person_of(identity: Identity) -> RosterPerson:
    respondent = identity.respondent
    return RosterPerson(
        identity.external_id,
        identity.administration.role,
        identity.given_name,
        identity.family_name,
        identity.email,
        respondent.grade,
        respondent.classroom,
        identity.birth_date.isoformat() if identity.birth_date else "",
        respondent.language,
    )
