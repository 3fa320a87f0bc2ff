"""The demonstration: two surveys, five schools, 200 people, two waves.

One wave is over, with four of five people finished; in the other, which is
open, two of five have finished so far.

Everything comes in by the functions that the commands use, in one
transaction: a load that was interrupted left nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction
from django.utils import timezone
from django.utils.formats import date_format

from survey.access_codes import code_of, format_code
from survey.administrations import open_administration
from survey.definitions.publishing import publish_survey
from survey.models import (
    Administration,
    Identity,
    PublishedSurvey,
    Role,
    Survey,
    Wave,
)
from survey.rosters.apply import import_roster
from survey.rosters.file_reader import open_table
from survey.simulation.demo.answers import Person, dice
from survey.simulation.demo.history import began_at
from survey.simulation.demo.responses import take
from survey.simulation.demo.staff import ENGINEER, Login, staff_logins
from survey.xlsform import SurveyIsPublished, import_survey, read_xlsform

FOLDER = Path(__file__).parent
# Role -> file name of its survey and its roster; administrations are named alike.
FILES = {Role.STUDENT: "students", Role.TEACHER: "teachers"}
STAFF_EMAIL = ENGINEER
# By ID of their district: Maya, a student who reads Spanish, and Mr Ortiz.
# They never answer here, so that their codes are still to be used.
TO_TRY = ("R40313", "72019", "T-1000")
# Long enough ago to be finished, however slowly.
LATEST_START = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class WavePlan:
    """Days are counted from now; shares are of all who are invited."""

    prefix: str
    opens: int
    closes: int
    finished: float
    stopped: float


RUNNING = WavePlan("demo", opens=-9, closes=12, finished=0.4, stopped=0.1)
CLOSED = WavePlan("demo-last", opens=-203, closes=-182, finished=0.8, stopped=0.05)


class Unloadable(Exception):
    """A file of the demonstration was refused: mend the file."""


@dataclass(frozen=True, slots=True)
class Card:
    """One person's access code, and for whom it is."""

    role: str
    name: str
    school: str
    language: str
    code: str


@dataclass(frozen=True, slots=True)
class Demo:
    """`staff_password` is everybody's; None where it was never written down."""

    already_there: bool
    cards: list[Card]
    staff_email: str
    staff_password: str | None
    # Beside the engineer: one of each role.
    staff: list[Login]


def load_demo() -> Demo:
    """Load what is not there yet; the same codes and password every time."""
    already_there = Administration.objects.filter(name__in=_names()).exists()
    if not already_there:
        with transaction.atomic():
            _load(timezone.now())
    staff, password = staff_logins()
    return Demo(
        already_there=already_there,
        cards=_cards(),
        staff_email=STAFF_EMAIL,
        staff_password=password,
        staff=staff,
    )


def _names(plan: WavePlan = RUNNING) -> list[str]:
    return [f"{plan.prefix}-{name}" for name in FILES.values()]


def _load(now: datetime) -> None:
    for plan in (CLOSED, RUNNING):
        _load_wave(plan, now)


def _load_wave(plan: WavePlan, now: datetime) -> None:
    opens_at, closes_at = (now + timedelta(days=n) for n in (plan.opens, plan.closes))
    wave, _ = Wave.objects.get_or_create(name=_wave_name(opens_at), district=None)
    for role, name in FILES.items():
        administration = open_administration(
            name=f"{plan.prefix}-{name}",
            published=publish_workbook(FOLDER / f"{name}.xlsx"),
            role=role,
            opens_at=opens_at,
            # One that is over as well: nobody could answer it any more.
            closes_at=max(closes_at, now + timedelta(days=1)),
            wave=wave,
            # Of teachers, nobody ever sees who.
            coordinators_see_finished=role == Role.STUDENT,
        )
        _invite(administration, FOLDER / f"{name}.csv")
    _answer(plan, opens_at, min(closes_at, now - LATEST_START))
    administrations = Administration.objects.filter(name__in=_names(plan))
    administrations.update(closes_at=closes_at)


def _wave_name(opens_at: datetime) -> str:
    """Such as "Demonstration, October 2026"."""
    return f"Demonstration, {date_format(timezone.localtime(opens_at), 'F Y')}"


def publish_workbook(workbook: Path) -> PublishedSurvey:
    """Import and publish a survey of the demonstration; Unloadable if refused."""
    reading = read_xlsform(workbook)
    if reading.draft is None:
        raise Unloadable(f"{workbook.name}: {reading.problems}")
    try:
        survey = import_survey(
            draft=reading.draft, source_name=workbook.name, source=reading.source
        )
    except SurveyIsPublished:
        # By hand, before the demonstration was loaded.
        survey = Survey.objects.get(
            name=reading.draft.name, version=reading.draft.version, district=None
        )
    return publish_survey(survey=survey)


def _invite(administration: Administration, roster: Path) -> None:
    with roster.open("rb") as file, open_table(file) as table:
        report = import_roster(administration=administration, table=table)
    if not report.imported:
        raise Unloadable(f"{roster.name}: {report.rejections}")


def _answer(plan: WavePlan, opens_at: datetime, until: datetime) -> None:
    """Some finish, some stop halfway, and the rest never began."""
    people = list(_people(plan))
    finishing = round(len(people) * plan.finished)
    drawn = dice("who takes part", plan.prefix).sample(
        [one for one in people if one.external_id not in TO_TRY],
        finishing + round(len(people) * plan.stopped),
    )
    for rank, identity in enumerate(drawn):
        person = _person(identity)
        take(
            respondent=identity.respondent,
            person=person,
            started_at=began_at(person, opens_at=opens_at, until=until),
            finishing=rank < finishing,
        )


def _people(plan: WavePlan = RUNNING) -> Iterator[Identity]:
    # In the order of their IDs, for the draw to fall the same everywhere.
    return (
        Identity.objects.filter(administration__name__in=_names(plan))
        .select_related("respondent__administration", "respondent__school")
        .order_by("district__code", "external_id")
        .iterator()
    )


def _person(identity: Identity) -> Person:
    respondent = identity.respondent
    return Person(
        key=identity.external_id,
        school=respondent.school.name,
        role=respondent.administration.role,
        grade=int(respondent.grade) if respondent.grade else None,
        language=respondent.language,
    )


def _cards() -> list[Card]:
    found = {
        identity.external_id: identity
        for identity in _people()
        if identity.external_id in TO_TRY
    }
    return [_card(found[one]) for one in TO_TRY if one in found]


def _card(identity: Identity) -> Card:
    respondent = identity.respondent
    return Card(
        role=respondent.administration.role,
        name=f"{identity.given_name} {identity.family_name}",
        school=respondent.school.name,
        language=respondent.language,
        code=format_code(code_of(respondent)),
    )
