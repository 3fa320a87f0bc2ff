"""Find the district of a row that leaves it blank, by the row's school."""

from __future__ import annotations

from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.people.rosters.place_names import PlaceDirectory
from survey.people.rosters.place_resolution import WrittenPlace
from survey.people.rosters.scope import RosterScope, schools_to_choose

# So many unknown names are compared with all schools.
MOST_COMPARED = 50
SEVERAL_SCHOOLS = gettext_noop(
    "is blank, and there are several schools of this name: give the district"
)
NO_SCHOOL = gettext_noop(
    "is blank, and no school that you can upload for has this name or code"
)


class DistrictNotFound(Exception):
    """The school does not tell the district; says why, after the column's name."""


class DistrictsOfSchools:
    """The districts of the schools in which a roster may put people."""

    def __init__(self, scope: RosterScope) -> None:
        self._scope = scope
        self._answers: dict[tuple[str, str], tuple[str, str] | str] = {}
        self._compared = 0

    @cached_property
    def _schools(self) -> tuple[PlaceDirectory, dict[int, tuple[str, str]]]:
        """Read the schools once, when the first row needs them. 1 statement."""
        rows = list(
            schools_to_choose(self._scope).values_list(
                "pk", "code", "name", "district__code", "district__name"
            )
        )
        directory = PlaceDirectory((pk, code, name) for pk, code, name, _, _ in rows)
        return directory, {pk: (code, name) for pk, _, _, code, name in rows}

    def find(self, school: str, school_name: str) -> tuple[str, str]:
        """Return the code and name of the only district with such a school.

        Raises DistrictNotFound.
        """
        key = school, school_name
        if key not in self._answers:
            self._answers[key] = self._look_up(school, school_name)
        answer = self._answers[key]
        if isinstance(answer, str):
            raise DistrictNotFound(answer)
        return answer

    def _look_up(self, school: str, school_name: str) -> tuple[str, str] | str:
        directory, district_of = self._schools
        if not district_of:
            return _("is missing")
        keys = directory.find(*WrittenPlace.of(school, school_name)).keys
        if len(keys) == 1:
            return district_of[keys[0]]
        if keys:
            return _(SEVERAL_SCHOOLS)
        near: list[str] = []
        if self._compared < MOST_COMPARED:
            self._compared += 1
            near = directory.near_names(school_name or school)
        if not near:
            return _(NO_SCHOOL)
        return _(NO_SCHOOL) + _(". Did you mean the school %(near)s?") % {
            "near": near[0]
        }
