"""Decide which schools are added up for readers who may not see each of them.

It is decided with a release, and not while rates change: a school that reaches its
threshold a week later would be the sum of then minus that of today. In later releases,
the schools of a district enter its sum or leave it together, so many that a coordinator
who knows one of them cannot tell the others apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from reports.models import CountedSchool, GroupResults
from reports.rates.visible_rates import schools_with_reports
from reports.releases.changes import LastRollUp, Recount
from reports.releases.frozen_people import unpacked
from reports.releases.levels import LEVELS
from survey.models import Administration

# Schools of a district that enter or leave its sum in one release; and of two other
# districts each, to leave together with fewer schools of a whole district.
FEWEST_TOGETHER, FEWEST_ELSEWHERE = 3, 2
# School -> district.
Districts = Mapping[int, int]


def summed_schools(administration: Administration) -> dict[int, int]:
    """Return the schools that are added up, with their districts. 1 statement.

    Until the release, they are the schools with a report.
    """
    roll_up = getattr(administration, "results_roll_up", None)
    if roll_up is None or roll_up.released_at is None:
        rates = schools_with_reports(administration)
        return dict(rates.values_list("school_id", "district_id"))
    rows = CountedSchool.objects.filter(administration=administration, is_summed=True)
    return dict(rows.values_list("school_id", "district_id"))


def staying_schools(
    administration: Administration, last: LastRollUp | None, recount: Recount
) -> tuple[Districts, set[int]] | None:
    """Return the schools added up in the release before, and the merged ones of them.

    Merged are those whose people are all in others of these schools now. None before
    the first release. At most 2 statements, before `recount` is stored.
    """
    if last is None or last.released_at is None:
        return None
    rows = CountedSchool.objects.filter(administration=administration, is_summed=True)
    earlier = dict(rows.values_list("school_id", "district_id"))
    gone = (recount.schools - recount.signatures.keys()) & earlier.keys()
    merged = set()
    for school, people in rows.filter(school_id__in=gone).values_list(
        "school_id", "people"
    ):
        ids = unpacked(people, school, None).ids
        has_moved = np.isin(recount.people.ids, ids)
        places = set(recount.people.schools[has_moved].tolist())
        if has_moved.sum() == len(ids) and places <= earlier.keys() - gone:
            merged.add(school)
    return earlier, merged


def decide_summed_schools(
    administration: Administration, before: tuple[Districts, set[int]] | None
) -> None:
    """Store which schools are added up. `before` is as from `staying_schools`.

    When it is decided what is hidden. 5 statements.
    """
    rows = CountedSchool.objects.filter(administration=administration)
    district_of = dict(rows.values_list("school_id", "district_id"))
    shown = GroupResults.objects.filter(
        administration=administration,
        level=LEVELS.SCHOOL,
        attribute="",
        is_hidden=False,
    )
    people = dict(shown.values_list("place_id", "people"))
    with_report = schools_with_reports(administration).values_list("school", flat=True)
    reached = people.keys() & set(with_report)
    members = reached
    if before is not None:
        visible = {school: district_of[school] for school in people}
        members = next_schools(*before, visible, reached, people)
    rows.filter(is_summed=True).exclude(school_id__in=members).update(is_summed=False)
    rows.filter(is_summed=False, school_id__in=members).update(is_summed=True)


def next_schools(
    earlier: Districts,
    merged: set[int],
    visible: Districts,
    reached: set[int],
    people: Mapping[int, int],
) -> set[int]:
    """Return which schools are added up in a release that follows another one.

    `visible` are the schools whose figures are shown now, `reached` those of them with
    a report. The smallest schools leave together with others.
    """
    members = {
        school
        for school, district in earlier.items()
        if visible.get(school) == district
    }
    left = Counter(earlier[school] for school in earlier.keys() - members - merged)
    staying: defaultdict[int, list[int]] = defaultdict(list)
    for school in sorted(members, key=lambda school: (people[school], school)):
        staying[visible[school]].append(school)
    joining: defaultdict[int, set[int]] = defaultdict(set)
    for school in reached - members:
        joining[visible[school]].add(school)
    for together in joining.values():
        if len(together) >= FEWEST_TOGETHER:
            members |= together
    for district, number in left.items():
        missing = max(FEWEST_TOGETHER - number, 0)
        leaving = staying[district][:missing]
        if len(leaving) < missing:
            largest = sorted(
                staying.keys() - {district}, key=lambda key: (-len(staying[key]), key)
            )
            for key in largest[:2]:
                leaving += staying[key][:FEWEST_ELSEWHERE]
        members -= set(leaving)
    return members
