"""Find the district of a row that lacks it, by the row's school."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import District, School
from survey.people.rosters.place_names import (
    MOST_COMPARED,
    PlaceDirectory,
    is_same_name,
    name_keys,
)
from survey.people.rosters.place_resolution import WrittenPlace
from survey.people.rosters.scope import RosterScope, schools_to_choose

SEVERAL_SCHOOLS = gettext_noop(
    "is blank, and there are several schools of this name: give the district"
)
ONLY_CODE = gettext_noop(
    "is blank, and schools of other districts may have this code too: give the"
    " district, or the name of the school"
)
NO_SCHOOL = gettext_noop(
    "is blank, and no school that you can upload for has this name or code"
)


class DistrictNotFound(Exception):
    """The school does not tell the district; says why, after the column's name."""


class DistrictsOfSchools:
    """The districts of the schools in which a roster may put people.

    Codes are unique within a district only, so a school is found by its name. Closed
    schools and those that are not offered count as other schools of that name: rows
    may mean them.
    """

    def __init__(self, scope: RosterScope) -> None:
        self._scope = scope
        self._answers: dict[tuple[str, str], tuple[str, str] | str] = {}
        self._compared = 0

    @cached_property
    def _schools(self) -> tuple[PlaceDirectory, dict[int, tuple[str, str]]]:
        """Read the schools once, when the first row needs them. 2 statements.

        All schools of the upload's places, and the districts of those that people may
        be put into.
        """
        places = self._scope.places
        schools = School.objects.all()
        if not places.state:
            schools = schools.filter(
                Q(district__in=places.districts) | Q(pk__in=places.schools)
            )
        directory = PlaceDirectory(
            schools.order_by("name", "pk").values_list("pk", "code", "name")
        )
        rows = schools_to_choose(self._scope).values_list(
            "pk", "district__code", "district__name"
        )
        return directory, {pk: (code, name) for pk, code, name in rows}

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

    def tell_all(
        self, schools: Collection[tuple[str, str]], unused: Collection[str]
    ) -> bool:
        """Tell whether each code and name of a school has one district.

        Not if a cell of an unused column is the code or name of a district: that
        column could be the district, and another one than the known school's.
        3 statements.
        """
        places = District.objects.values_list("code", "name")
        districts = {name_keys(text).exact for place in places for text in place}
        if not schools or districts & {name_keys(cell).exact for cell in unused}:
            return False
        try:
            for school, name in schools:
                self.find(school.casefold(), name)
        except DistrictNotFound:
            return False
        return True

    def _look_up(self, school: str, school_name: str) -> tuple[str, str] | str:
        directory, district_of = self._schools
        if not district_of:
            return _("is missing")
        keys = directory.find(*WrittenPlace.of(school, school_name)).keys
        if len(keys) > 1:
            return _(SEVERAL_SCHOOLS)
        if keys and keys[0] in district_of:
            is_named = is_same_name(school_name, directory.name_of[keys[0]])
            if not is_named and len(set(district_of.values())) > 1:
                return _(ONLY_CODE)
            return district_of[keys[0]]
        if keys:
            return _(NO_SCHOOL)
        near: list[str] = []
        if self._compared < MOST_COMPARED:
            self._compared += 1
            near = directory.near_names(school_name or school)
        if not near:
            return _(NO_SCHOOL)
        return _(NO_SCHOOL) + _(". Did you mean the school %(near)s?") % {
            "near": near[0]
        }
