"""List the schools of a file that are not known, with known ones of similar names."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from survey.models import RosterUpload
from survey.people.rosters.comparison import Comparison
from survey.people.rosters.layouts import NEW_SCHOOL, PlaceTexts
from survey.people.rosters.place_names import (
    MOST_COMPARED,
    is_near_name,
    is_same_name,
)
from survey.people.rosters.row_parser import RosterPlace
from survey.people.rosters.schools import SchoolMatches
from survey.people.rosters.scope import schools_elsewhere, schools_to_choose

MOST_SUGGESTED = 3


class SchoolQuestion(TypedDict):
    """A school as the file writes it, about which a person can decide."""

    key: str
    # As the file writes it; several spellings can mean one new school.
    places: list[RosterPlace]
    name: str
    code: str
    district: str
    people: int
    # Why the rows are rejected; blank for a school that the roster would add.
    reason: str
    # Primary keys of known schools with a similar name.
    near: list[int]
    # Those of other districts that the uploader may see, and not choose: the file was
    # uploaded for another place.
    elsewhere: list[int]
    # The near ones, and the few that the uploader may choose from.
    offered: list[int]


class _Candidate(NamedTuple):
    pk: int
    name: str
    code: str
    district_id: int


def school_questions(c: Comparison, matches: SchoolMatches) -> list[SchoolQuestion]:
    """Return the first schools that the roster would add, or whose rows it rejects.

    Without those that a person has confirmed as new. Two statements if there are any;
    none otherwise.
    """
    groups = _unconfirmed_groups(c, matches)
    if not groups:
        return []
    candidates, unavailable = (
        [
            _Candidate(*row)
            for row in schools.values_list("pk", "name", "code", "district_id")
        ]
        for schools in (schools_to_choose(c.scope), schools_elsewhere(c.scope))
    )
    questions = []
    for first, places, school in groups:
        texts = c.parser.places[first]
        question = SchoolQuestion(
            key=key_of_places(c.parser.places[place] for place in places),
            places=[c.parser.places[place] for place in places],
            name=texts.school_name or texts.school,
            code=texts.school,
            district=texts.district_name or texts.district,
            people=sum(matches.people.get(place, 0) for place in places),
            reason=matches.rejected.get(first, ""),
            near=[],
            elsewhere=[],
            offered=[],
        )
        district = matches.district_of_new.get(school, 0)
        if school:
            question["name"] = matches.new_schools[school].name
            question["code"] = matches.new_schools[school].code
        question["near"] = near_schools(candidates, question, district)
        if school and not question["near"]:
            question["elsewhere"] = near_schools(unavailable, question, district)
        offered = candidates if c.scope.is_single_schools else []
        question["offered"] = list(
            dict.fromkeys([*question["near"], *(school.pk for school in offered)])
        )[:MOST_SUGGESTED]
        questions.append(question)
    # Those that are answered with one tick come first.
    return sorted(
        questions, key=lambda question: not (question["near"] or question["elsewhere"])
    )


def _unconfirmed_groups(
    c: Comparison, matches: SchoolMatches
) -> list[tuple[int, list[int], int]]:
    """Return places that could be one school: the first, all, and the new school's key.

    The key is 0 where rows are rejected.
    """
    new: dict[int, list[int]] = defaultdict(list)
    for place, _district, school in matches.rows:
        if school < 0:
            new[school].append(place)
    # New ones first: with many rejected ones, none of them would be asked about, and
    # a misspelt school would be added.
    groups = [
        *((places[0], places, school) for school, places in new.items()),
        *((place, [place], 0) for place in sorted(matches.rejected)),
    ][:MOST_COMPARED]
    confirmed = {
        texts for texts, pk in c.table.layout.schools.items() if pk == NEW_SCHOOL
    }
    # After the first ones were cut off: otherwise each answer brings a new question.
    return [
        group
        for group in groups
        if not all(c.parser.places[place] in confirmed for place in group[1])
    ]


def must_be_answered(question: Mapping[str, Any]) -> bool:
    """Tell whether a roster would add a school that a known one may be instead.

    Nothing is applied before a person has said which: a misspelt school that was
    added takes its people with it.
    """
    # Reports of an earlier version name none elsewhere.
    similar = question["near"] or question.get("elsewhere")
    return bool(similar) and not question["reason"]


def unanswered(upload: RosterUpload) -> int:
    """Return how many questions about schools keep a roster from being applied."""
    if upload.state != RosterUpload.State.CHECKED or upload.scan_id:
        return 0
    return sum(map(must_be_answered, upload.report.get("school_questions", ())))


def key_of_places(places: Iterable[PlaceTexts]) -> str:
    """Return a key that stays the same while the same spellings mean one school."""
    texts = json.dumps(sorted(places)).encode()
    return hashlib.sha256(texts).hexdigest()[:16]


def near_schools(
    candidates: Sequence[_Candidate], question: SchoolQuestion, district: int
) -> list[int]:
    """Return the schools that a name probably means: of its own district, else any."""

    def has_same_code(school: _Candidate) -> bool:
        return school.code.casefold() == question["code"].casefold()

    def same(school: _Candidate) -> bool:
        return is_same_name(question["name"], school.name)

    def near(school: _Candidate) -> bool:
        return is_near_name(question["name"], school.name)

    within = [school for school in candidates if school.district_id == district]
    # Short numbers are codes in many districts.
    for pool, test in (
        (within, has_same_code),
        (within, same),
        (within, near),
        (candidates, same),
        (candidates, near),
    ):
        if matching := [school.pk for school in pool if test(school)]:
            return matching[:MOST_SUGGESTED]
    return []
