"""Bring one district's people by a flat file, a ZIP and a REST server, in any order."""

from __future__ import annotations

import io

import pytest

from survey.models import Identity, RosterUpload
from survey.people.rosters.feeds.feeds import create_feed, remove_feed
from survey.people.rosters.feeds.roster_stages import CHANGES
from survey.simulation.oneroster_server import District, serve
from survey.tests.rosters.feeds.feed_scans import USER_COLUMNS, scan
from survey.tests.rosters.feeds.oneroster_objects import read_archive
from survey.tests.rosters.oneroster.archives import archive

pytestmark = pytest.mark.django_db(transaction=True)

STUDENTS = [(n, ("lincoln", "washington")[n % 2]) for n in range(20)]
ORGS = """\
sourcedId,status,dateLastModified,name,type,identifier,parentSourcedId
d,,,Riverside,district,riverside,
lincoln,,,Lincoln,school,lincoln,d
washington,,,Washington,school,washington,d
"""
USERS = [
    USER_COLUMNS,
    *(
        f"u-{n},,,true,{school},student,ann{n},,Ann{n},Lopez{n},,{n:05},,,,,07,"
        for n, school in STUDENTS
    ),
    # People of other roles, who are not invited.
    "u-t,,,true,lincoln,teacher,ortiz,,Luis,Ortiz,,T1,,,,,,",
    "u-p,,,true,lincoln,parent,ana,,Ana,Lopez,,P1,,,,u-0,,",
]
BIRTH_DATES = [
    "sourcedId,birthDate",
    *(f"u-{n},2014-03-{n + 1:02}" for n, _ in STUDENTS),
]
POWERSCHOOL = [
    "Student_Number,First_Name,Last_Name,Grade_Level,SchoolID,Enroll_Status,DOB",
    *(
        f"{n:05},Ann{n},Lopez{n},7,{school},0,03/{n + 1:02}/2014"
        for n, school in STUDENTS
    ),
]


@pytest.fixture
def bring(staff, administration, console_of):
    """Return a function that brings the people from one source, and its figures."""

    def bring(source, flat_file, identity, files):
        content = archive(
            {name: "\n".join(lines) + "\n" for name, lines in files.items()}
        ).getvalue()
        if source == "flat":
            console_of(staff.dana).apply(
                administration, *flat_file, complete_for="districts"
            )
            return RosterUpload.objects.latest("pk").report
        district = District(
            read_archive(io.BytesIO(content)), content, authorization="bearer"
        )
        with serve({"north": district}) as server:
            is_zip = source == "zip"
            feed = create_feed(
                district=staff.riverside,
                kind=source,
                name=source,
                address=server.archive_address() if is_zip else server.address(),
                credentials={"token": "token"},
                options={} if is_zip else {"authorization": "bearer"},
                identity=identity,
                administrations=[administration],
                by=staff.dana,
            )
            ended = scan(feed)
        # One feed at a time may bring the people of a district.
        remove_feed(feed, by=staff.dana)
        assert ended.state == "applied", ended.message
        return ended.uploads.get().report

    return bring


def everybody():
    return list(
        Identity.objects.order_by("external_id").values_list(
            "respondent",
            "external_id",
            "given_name",
            "family_name",
            "birth_date",
            "respondent__school__code",
            "respondent__grade",
            "respondent__issue",
            "respondent__withdrawn_at",
        )
    )


FILES = {"orgs": ORGS.splitlines(), "users": USERS}
# The flat file, what identifies people in all three, and the files of the ZIP.
EXPORTS = {
    "powerschool": (POWERSCHOOL, "identifier", {**FILES, "demographics": BIRTH_DATES}),
    "oneroster": (USERS, "sourcedId", FILES),
}


# Each order with one of the exports, and each source first with both.
ORDERS = [
    ("powerschool", "flat zip rest"),
    ("powerschool", "zip rest flat"),
    ("powerschool", "rest flat zip"),
    ("oneroster", "flat rest zip"),
    ("oneroster", "rest zip flat"),
    ("oneroster", "zip flat rest"),
]


@pytest.mark.parametrize(("export", "order"), ORDERS)
def test_the_same_people_come_from_every_source_in_every_order(bring, export, order):
    export = EXPORTS[export]
    first, *later = order.split()
    report = bring(first, *export)
    assert (report["added"], report["rejected"]) == (20, 0)
    before = everybody()
    assert len(before) == 20
    for source in later:
        report = bring(source, *export)
        assert {name: report[name] for name in CHANGES} == dict.fromkeys(CHANGES, 0)
        assert (report["unchanged"], report["rejected"]) == (20, 0)
        # The same respondents, with their access codes.
        assert everybody() == before


@pytest.mark.parametrize("source", ["zip", "rest"])
def test_the_same_people_under_another_id_are_refused(bring, source):
    """They would all be doubled: a feed has to name the ID of earlier rosters."""
    flat_file, identity, files = EXPORTS["powerschool"]
    bring("flat", flat_file, identity, files)
    before = everybody()
    with pytest.raises(AssertionError, match="20 of 20 people"):
        bring(source, flat_file, "sourcedId", files)
    assert everybody() == before
