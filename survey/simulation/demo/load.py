"""Load the demo: four surveys, 17 schools of 3 districts, 519 people on rosters.

Three waves of three school years have closed, with three or four of five people
finished; in the fourth, which is open, two of five have finished so far, and parents
answer by open codes. One district has added two pages to those of its students. Ten are
elementary schools: so many have a benchmark of their own grade span.

Everything is created by the functions that the commands use, in one
transaction: an interrupted load leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path

from django.db import transaction
from django.utils import timezone
from django.utils.formats import date_format

from accounts.logo_upload import store_logo
from accounts.models import District, PlaceSettings, User
from accounts.place_settings import change_settings
from survey.fieldwork.administrations import open_administration, parse_subgroups
from survey.fieldwork.message_platforms.platforms import create_platform
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.xlsform import SurveyIsPublished, import_survey, read_xlsform
from survey.models import (
    Administration,
    Identity,
    MessagePlatform,
    PublishedSurvey,
    Role,
    Survey,
    Wave,
)
from survey.people.access_codes import code_of, format_code
from survey.people.rosters.apply import import_roster
from survey.people.rosters.file_reader import open_table
from survey.simulation.demo.answers import (
    MINIMUM_GROUP,
    DemoPerson,
    scales_of,
    seeded_random,
)
from survey.simulation.demo.emails import STATE, plan_teachers_emails
from survey.simulation.demo.feed import add_feed
from survey.simulation.demo.history import start_time
from survey.simulation.demo.parents import (
    PARENTS,
    DemoOpenCode,
    demo_open_codes,
    load_parents,
)
from survey.simulation.demo.places import (
    DISTRICT,
    PAGES_LIMIT,
    add_district_pages,
    place_schools,
)
from survey.simulation.demo.responses import answer_survey
from survey.simulation.demo.staff import ENGINEER, StaffLogin, staff_logins
from survey.taking.login import log_in_respondent

FOLDER = Path(__file__).parent
# Role -> name of its survey, of its roster, and of its administrations.
FILES = {Role.STUDENT: "students", Role.TEACHER: "teachers"}
# Those of its roster. The standard ones would be "not known" for everybody.
SUBGROUPS = {
    Role.STUDENT: (
        "gender: female, male, nonbinary",
        "race/ethnicity: American Indian or Alaska Native, Asian, Black or African"
        " American, Hispanic or Latino, White, Two or more races",
        "English learner: yes, no",
        "special education: yes, no",
        "lunch: free, reduced, paid",
    ),
    # Fewer than five teachers of a school share a department.
    Role.TEACHER: (),
}
STAFF_EMAIL = ENGINEER
# IDs of Maya, of a student who reads Spanish, and of Mr Ortiz. They never answer
# here, so that visitors can use their codes.
UNUSED = ("R40313", "72019", "T-1000")
OPENING_TIME, CLOSING_TIME = time(7), time(16)
# Even the slowest person has finished after this time.
LATEST_START = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class WavePlan:
    """Days count from now; shares are parts of all invited people."""

    prefix: str
    opens: int
    closes: int
    finished: float
    stopped: float

    @property
    def names(self) -> list[str]:
        return [f"{self.prefix}-{name}" for name in FILES.values()]


RUNNING = WavePlan("demo", opens=-9, closes=12, finished=0.4, stopped=0.1)
CLOSED = (
    WavePlan("demo-earlier", opens=-932, closes=-911, finished=0.75, stopped=0.05),
    WavePlan("demo-first", opens=-568, closes=-547, finished=0.75, stopped=0.05),
    WavePlan("demo-last", opens=-203, closes=-182, finished=0.8, stopped=0.05),
)


class DemoFileRefused(Exception):
    """A survey or roster of the demo has problems: correct the file."""


@dataclass(frozen=True, slots=True)
class DemoCard:
    """One person's access code, with name and school."""

    role: str
    name: str
    school: str
    language: str
    code: str


@dataclass(frozen=True, slots=True)
class Demo:
    """`staff_password` is shared by all staff; None if it is not known any more."""

    already_there: bool
    cards: list[DemoCard]
    staff_email: str
    staff_password: str | None
    # Besides the engineer: one for each role.
    staff: list[StaffLogin]
    # For parents, who have no cards.
    open_codes: list[DemoOpenCode]


def load_demo(*, feed_folder: str = "", feed_address: str = "") -> Demo:
    """Load what is missing; codes and password stay the same."""
    already_there = Administration.objects.filter(name__in=RUNNING.names).exists()
    if not already_there:
        with transaction.atomic():
            load_waves(timezone.now())
    if not Administration.objects.filter(name=PARENTS).exists():
        with transaction.atomic():
            load_parents_of_wave(timezone.now())
    staff, password = staff_logins()
    plan_teachers_emails()
    add_brand()
    if not MessagePlatform.objects.exists():
        # It can ask once a visitor has made an API key on its page.
        create_platform(name="Messages to families", district=None, by="load_demo")
    if feed_folder and feed_address:
        add_feed(RUNNING.names, Path(feed_folder), feed_address, by=STATE)
    return Demo(
        already_there=already_there,
        cards=unused_cards(),
        staff_email=STAFF_EMAIL,
        staff_password=password,
        staff=staff,
        open_codes=demo_open_codes(),
    )


def add_brand() -> None:
    """Give the state a name and a logo, unless somebody has set or removed one."""
    by = User.objects.filter(email=STATE).first()
    if by is not None and not PlaceSettings.objects.filter(school=None, district=None):
        logo = store_logo((FOLDER / "logo.png").read_bytes())
        change_settings(
            "change name and logo",
            place=None,
            values={"name": "Department of Education", "logo": logo},
            by=by,
        )


def load_waves(now: datetime) -> None:
    published = {
        role: publish_workbook(FOLDER / f"{name}.xlsx") for role, name in FILES.items()
    }
    for plan in (*CLOSED, RUNNING):
        opens_at = day_at(now, plan.opens, OPENING_TIME)
        closes_at = day_at(now, plan.closes, CLOSING_TIME)
        month = date_format(timezone.localtime(opens_at), "F Y")
        wave, _ = Wave.objects.get_or_create(
            name=f"Demonstration, {month}", district=None
        )
        for role, name in FILES.items():
            administration = open_administration(
                name=f"{plan.prefix}-{name}",
                published=published[role],
                role=role,
                opens_at=opens_at,
                # A closed one is open for now: otherwise it takes no answers.
                closes_at=max(closes_at, now + timedelta(days=1)),
                wave=wave,
                # It is never shown which teachers have finished.
                coordinators_see_finished=role == Role.STUDENT,
                subgroups=parse_subgroups(SUBGROUPS[role]),
                # So that visitors can try a panel export.
                joins_waves=True,
                minimum_group=MINIMUM_GROUP,
                district_pages_limit=PAGES_LIMIT * (plan is RUNNING),
            )
            path = FOLDER / f"{name}.csv"
            with path.open("rb") as file, open_table(file) as table:
                report = import_roster(administration=administration, table=table)
            if not report.imported:
                raise DemoFileRefused(f"{path.name}: {report.rejections}")
        make_up_responses(plan, opens_at, min(closes_at, now - LATEST_START))
        administrations = Administration.objects.filter(name__in=plan.names)
        administrations.update(closes_at=closes_at)
    schools = place_schools(FOLDER / "schools.csv")
    if not schools.imported:
        raise DemoFileRefused(f"schools.csv: {schools.rejections}")
    district = District.objects.get(name=DISTRICT)
    pages = publish_workbook(FOLDER / "riverside.xlsx", district)
    add_district_pages(Administration.objects.get(name=RUNNING.names[0]), pages)


def day_at(now: datetime, days: int, at: time) -> datetime:
    day = timezone.localtime(now).date() + timedelta(days=days)
    return datetime.combine(day, at, tzinfo=timezone.get_current_timezone())


def load_parents_of_wave(now: datetime) -> None:
    """Add the parents to the open wave, also to that of an older demo."""
    students = Administration.objects.filter(name__in=RUNNING.names).earliest("pk")
    load_parents(
        published=publish_workbook(FOLDER / "parents.xlsx"),
        wave=students.wave,
        opens_at=students.opens_at,
        closes_at=max(students.closes_at, now + timedelta(days=1)),
        until=now - LATEST_START,
    )


def publish_workbook(
    workbook: Path, district: District | None = None
) -> PublishedSurvey:
    """Import and publish a survey of the demo. Raises DemoFileRefused."""
    reading = read_xlsform(workbook)
    if reading.draft is None:
        raise DemoFileRefused(f"{workbook.name}: {reading.problems}")
    try:
        survey = import_survey(
            draft=reading.draft,
            source_name=workbook.name,
            source=reading.source,
            district=district,
        )
    except SurveyIsPublished:
        # It was published by hand before the demo was loaded.
        survey = Survey.objects.get(
            name=reading.draft.name, version=reading.draft.version, district=district
        )
    return publish_survey(survey=survey)


def make_up_responses(plan: WavePlan, opens_at: datetime, until: datetime) -> None:
    """Let some people finish and some stop halfway; the others never start."""
    people = list(invited_identities(plan))
    administrations = Administration.objects.filter(name__in=plan.names)
    scales = {
        administration.pk: scales_of(measures_of(administration.published.survey))
        for administration in administrations.select_related("published__survey")
    }
    finishing = round(len(people) * plan.finished)
    drawn = seeded_random("who takes part", plan.prefix).sample(
        [identity for identity in people if identity.external_id not in UNUSED],
        finishing + round(len(people) * plan.stopped),
    )
    for rank, identity in enumerate(drawn):
        respondent = identity.respondent
        person = DemoPerson(
            key=identity.external_id,
            school=respondent.school.name,
            role=respondent.administration.role,
            grade=int(respondent.grade) if respondent.grade else None,
            language=respondent.language,
            wave=plan.prefix,
        )
        answer_survey(
            login=log_in_respondent(code_of(respondent)),
            person=person,
            scales=scales[respondent.administration_id],
            started_at=start_time(person, opens_at=opens_at, until=until),
            finishing=rank < finishing,
        )


def invited_identities(plan: WavePlan) -> Iterator[Identity]:
    # In the order of their IDs, so that the draw is the same everywhere.
    return (
        Identity.objects.filter(administration__name__in=plan.names)
        .select_related("respondent__administration", "respondent__school")
        .order_by("district__code", "external_id")
        .iterator()
    )


def unused_cards() -> list[DemoCard]:
    cards = {}
    for identity in invited_identities(RUNNING):
        if identity.external_id in UNUSED:
            respondent = identity.respondent
            cards[identity.external_id] = DemoCard(
                role=respondent.administration.role,
                name=f"{identity.given_name} {identity.family_name}",
                school=respondent.school.name,
                language=respondent.language,
                code=format_code(code_of(respondent)),
            )
    return [cards[external_id] for external_id in UNUSED if external_id in cards]
