"""Prepare the choice of known schools for those of a roster that are not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from accounts.models import School
from accounts.permissions import Capability, Permissions, Places
from survey.models import RosterUpload
from survey.people.rosters.layouts import NEW_SCHOOL, RosterLayout
from survey.people.rosters.school_choices import MOST_FOUND, may_choose_schools
from survey.people.rosters.school_questions import key_of_places, must_be_answered
from survey.people.rosters.scope import schools_to_choose, scope_of_upload

LONGEST_KEY = 18


@dataclass(frozen=True)
class SchoolOptions:
    """A question of the report with the schools that can answer it."""

    question: dict[str, Any]
    schools: Sequence[School]
    chosen: int | None = None
    searched: str = ""
    matches: int | None = None
    # Of other districts, as far as the viewer may see them.
    of_other_districts: Sequence[School] = ()

    @property
    def is_elsewhere(self) -> bool:
        """Tell whether the rows are probably those of another person's school."""
        return bool(self.question["reason"]) and not self.question["near"]

    @property
    def key(self) -> str:
        return str(self.question["key"])

    @property
    def must_be_answered(self) -> bool:
        return must_be_answered(self.question)

    @property
    def has_more(self) -> bool:
        return (self.matches or 0) > MOST_FOUND

    @property
    def has_code(self) -> bool:
        """Tell whether the code says more than the name."""
        code, name = self.question["code"], self.question["name"]
        return bool(code) and code != name.casefold()


def school_options(
    upload: RosterUpload,
    data: QueryDict | None = None,
    permissions: Permissions | None = None,
) -> list[SchoolOptions]:
    """Return the questions of a checked roster. One statement if there are any.

    Without `permissions`, schools of other districts are not named. With `data` of a
    form, those who sent it need them to choose schools that the questions do not offer.
    """
    if not may_choose_schools(upload):
        return []
    data = data or QueryDict()
    questions = upload.report.get("school_questions", ())
    chosen = {
        question["key"]: school_key(data.get(f"school-{question['key']}", ""))
        for question in questions
    }
    wanted = {pk for question in questions for pk in question["offered"]}
    # A key that was sent names no school outside the upload's places.
    sent = set(filter(None, chosen.values())) - wanted
    scope = scope_of_upload(upload, permissions) if sent and permissions else None
    if scope is not None:
        wanted |= set(
            schools_to_choose(scope).filter(pk__in=sent).values_list("pk", flat=True)
        )
    elsewhere = {pk for question in questions for pk in question.get("elsewhere", ())}
    schools = schools_by_key(wanted | elsewhere)
    places = permissions.places(Capability.MANAGE_ROSTERS) if permissions else Places()
    return [
        SchoolOptions(
            question,
            [
                schools[pk]
                for pk in dict.fromkeys([*question["offered"], chosen[question["key"]]])
                if pk in schools and pk in wanted
            ],
            chosen[question["key"]],
            of_other_districts=[
                schools[pk]
                for pk in question.get("elsewhere", ())
                if pk in schools and places.has_school(schools[pk])
            ],
        )
        for question in questions
    ]


def schools_by_key(wanted: Iterable[int]) -> dict[int, School]:
    return School.objects.select_related("district").in_bulk(sorted(wanted))


def school_key(text: str) -> int | None:
    is_key = text.isascii() and text.isdecimal() and len(text) <= LONGEST_KEY
    return int(text) if is_key else None


@dataclass(frozen=True)
class ChosenSchool:
    """A school as the file writes it, and the one that was chosen for it."""

    key: str
    name: str
    district: str
    # None if it was deleted since.
    school: School | None
    # A person has confirmed that it is none of the known ones.
    is_new: bool


def chosen_schools(upload: RosterUpload) -> list[ChosenSchool]:
    """Return the choices of one upload. One statement if there are any."""
    chosen = RosterLayout.from_dict(upload.layout).schools
    schools = schools_by_key(set(chosen.values()))
    return [
        ChosenSchool(
            key_of_places([texts]),
            school_name or code,
            district_name or district,
            schools.get(pk),
            pk == NEW_SCHOOL,
        )
        for texts, pk in sorted(chosen.items())
        for district, district_name, code, school_name in [texts]
    ]
