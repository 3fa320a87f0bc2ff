"""Offer the parents' survey of the demo by open codes, and let some parents answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from accounts.models import School
from survey.fieldwork.administrations import open_administration
from survey.fieldwork.open_codes.codes import (
    code_of,
    create_open_code,
    publish_open_code,
)
from survey.fieldwork.open_codes.lookup import find_open_code
from survey.fieldwork.open_codes.start_forms import key_of
from survey.fieldwork.open_codes.starts import begin
from survey.fieldwork.school_counts.changes import supply_count
from survey.instrument.definitions.measures import measures_of
from survey.models import (
    Denominator,
    OpenCode,
    PublishedSurvey,
    Respondent,
    Role,
    SchoolCount,
    Wave,
)
from survey.people.access_codes import format_code
from survey.simulation.demo.answers import (
    MINIMUM_GROUP,
    DemoPerson,
    Scale,
    scales_of,
    seeded_random,
)
from survey.simulation.demo.history import start_time
from survey.simulation.demo.responses import answer_survey
from survey.simulation.demo.staff import SCHOOL
from survey.taking.devices import digest_of, new_device_id
from survey.taking.login import Login

PARENTS = "demo-parents"
# The school of the demo's coordinator also has a limited code.
LIMIT = 25
# The school that has not supplied the number of its students yet.
UNCOUNTED = "Harbor High School"
# Shares of the number of students.
BEGUN, FINISHED, EMPTY = 0.35, 0.25, 0.05
LANGUAGES = {"en": 6, "es": 3, "ar": 1}


@dataclass(frozen=True, slots=True)
class DemoOpenCode:
    """A code with which anybody can begin; `limit` is None without a limit."""

    school: str
    label: str
    limit: int | None
    code: str


def load_parents(
    *,
    published: PublishedSurvey,
    wave: Wave | None,
    opens_at: datetime,
    closes_at: datetime,
    until: datetime,
) -> None:
    """Give each school with students an open code, and let parents answer.

    All but one supply the number of their students.
    """
    administration = open_administration(
        name=PARENTS,
        published=published,
        role=Role.PARENT,
        opens_at=opens_at,
        closes_at=closes_at,
        wave=wave,
        denominator=Denominator.COUNT,
        # Nobody is on a roster.
        subgroups={},
        minimum_group=MINIMUM_GROUP,
    )
    students = Respondent.objects.filter(
        administration__wave=wave, administration__role=Role.STUDENT
    )
    scales = scales_of(measures_of(published.survey))
    grades: dict[int, list[int]] = {}
    for school_id, grade in students.order_by("pk").values_list("school", "grade"):
        grades.setdefault(school_id, []).append(int(grade))
    for school in School.objects.filter(pk__in=grades).order_by("pk"):
        code = create_open_code(
            administration=administration,
            school=school,
            by="load_demo",
            label="Poster and letter to families",
        )
        # The public page of the school links to it.
        publish_open_code(code=code, by="load_demo")
        answer_as_parents(
            code, grades[school.pk], scales=scales, opens_at=opens_at, until=until
        )
        if school.name != UNCOUNTED:
            supply_count(
                administration=administration,
                school=school,
                unit=SchoolCount.Unit.STUDENTS,
                count=len(grades[school.pk]),
                seen=None,
                by="load_demo",
            )
        if school.name == SCHOOL:
            create_open_code(
                administration=administration,
                school=school,
                by="load_demo",
                label="Parents' evening",
                limit=LIMIT,
            )


def answer_as_parents(
    code: OpenCode,
    grades: list[int],
    *,
    scales: Mapping[str, Scale],
    opens_at: datetime,
    until: datetime,
) -> None:
    """Let parents of some students finish, stop halfway, or give no answer."""
    begun = round(len(grades) * BEGUN)
    finishing = round(len(grades) * FINISHED)
    empty = round(len(grades) * EMPTY)
    for rank in range(begun):
        key = f"parent {rank} of {code.school.name}"
        draw = seeded_random("parent", key)
        [language] = draw.choices(list(LANGUAGES), list(LANGUAGES.values()))
        person = DemoPerson(
            key=key,
            school=code.school.name,
            role=Role.PARENT,
            grade=draw.choice(grades),
            language=language,
            wave=PARENTS,
        )
        started_at = start_time(person, opens_at=opens_at, until=until)
        login = begin_as_parent(code, language)
        if rank < begun - empty:
            answer_survey(
                login=login,
                person=person,
                scales=scales,
                started_at=started_at,
                finishing=rank < finishing,
            )
        else:
            started = Respondent.objects.filter(pk=login.respondent_id)
            started.update(started_at=started_at)


def begin_as_parent(code: OpenCode, language: str) -> Login:
    """Begin on a device of the parent's own, as the start page does."""
    known, candidates = find_open_code(code_of(code))
    device = digest_of(new_device_id())
    # Each device starts once.
    key = key_of(known, device, turn="")
    return begin(
        known,
        candidates,
        key=key,
        device=device,
        language=language,
    )


def demo_open_codes() -> list[DemoOpenCode]:
    """Return the codes of the school that has an unlimited and a limited one."""
    codes = OpenCode.objects.filter(
        administration__name=PARENTS, school__name=SCHOOL, revoked_at=None
    )
    return [
        DemoOpenCode(
            school=code.school.name,
            label=code.label,
            limit=code.limit,
            code=format_code(code_of(code)),
        )
        for code in codes.select_related("school").order_by("pk")
    ]
