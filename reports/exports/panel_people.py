"""Find out which respondents of several administrations are one person.

A person is known by the ID in their district, in administrations for the same role.
IDs of records that were joined by hand count as one
(see `survey/people/merging/README.md`).
From the primary: the database role for reports cannot read identities.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections
from django.utils.translation import gettext as _

from reports.answers.selection import Selection
from survey.models import Administration, Denominator, Identity, RecordJoin

IDS = """SELECT {role} AS role, i.district_id, i.external_id
FROM survey_respondent r JOIN survey_identity i ON i.respondent_id = r.id
WHERE {people}"""
COUNT_SEVERAL = """SELECT count(*) FROM (
    SELECT 1 FROM ({people}) p
    GROUP BY role, district_id, external_id HAVING count(*) > 1
) several"""


class PersonId(NamedTuple):
    role: str
    district: int
    external_id: str

    def as_bytes(self) -> bytes:
        return f"{self.role} {self.district} {self.external_id}".encode()


# Every ID of people who have several -> the ID that stands for all of them.
JoinedIds = Mapping[PersonId, PersonId]


def refusal(administration: Administration) -> str:
    """Return why people of an administration cannot be in a panel, or a blank."""
    if administration.denominator == Denominator.COUNT:
        return _(
            "People take part in %(title)s (%(name)s) with school links and"
            " without IDs, so nobody can be found in another season."
        ) % {"title": administration.title, "name": administration.name}
    if not administration.joins_waves:
        return _(
            "The people of %(title)s (%(name)s) have been promised that"
            " their answers are not joined with those of other seasons."
        ) % {"title": administration.title, "name": administration.name}
    return ""


def joined_ids(roles: Collection[str]) -> dict[PersonId, PersonId]:
    """Return the IDs of records that were joined, in any administration. 1 statement.

    Those of administrations that are not in the file count as well, so that a person
    has the same ID in all files of a project.
    """
    joins = RecordJoin.objects.using(DEFAULT_DB_ALIAS).filter(
        state=RecordJoin.State.JOINED,
        administration__role__in=roles,
        # The names may have been destroyed since.
        kept__identity__isnull=False,
    )
    joined: dict[PersonId, PersonId] = {}
    for role, district, external_id, kept_district, kept_id in joins.values_list(
        "administration__role",
        "district",
        "external_id",
        "kept__identity__district",
        "kept__identity__external_id",
    ):
        pair = (
            PersonId(role, district, external_id),
            PersonId(role, kept_district, kept_id),
        )
        # The smallest one stands for all, whichever record stayed.
        first, *rest = sorted({joined.get(person, person) for person in pair})
        for known, stands in list(joined.items()):
            if stands in rest:
                joined[known] = first
        joined |= dict.fromkeys((*pair, *rest, first), first)
    return joined


def person_ids(
    respondents: Sequence[int],
    administrations: Mapping[int, Administration],
    joined: JoinedIds,
) -> dict[int, PersonId]:
    """Return the ID of each respondent who has one.

    1 statement, and 1 more if any of them has several IDs.
    """
    rows = Identity.objects.using(DEFAULT_DB_ALIAS).filter(respondent__in=respondents)
    ids = {
        respondent: (
            administration,
            PersonId(administrations[administration].role, district, external_id),
        )
        for respondent, administration, district, external_id in rows.values_list(
            "respondent", "administration", "district", "external_id"
        )
    }
    several = {row for row in ids.values() if row[1] in joined}
    twice = _listed_twice(several, joined) if several else frozenset()
    return {
        respondent: person if (key, person) in twice else joined.get(person, person)
        for respondent, (key, person) in ids.items()
    }


def _listed_twice(
    people: Iterable[tuple[int, PersonId]], joined: JoinedIds
) -> Collection[tuple[int, PersonId]]:
    """Return who is in an administration under several of their IDs. 1 statement.

    These records were not joined there, and each of them may have answers.
    """
    ids_of: dict[PersonId, list[PersonId]] = defaultdict(list)
    for known, stands in joined.items():
        ids_of[stands].append(known)
    wanted = {
        (key, alias) for key, person in people for alias in ids_of[joined[person]]
    }
    rows = Identity.objects.using(DEFAULT_DB_ALIAS).filter(
        administration__in={key for key, _ in wanted},
        district__in={person.district for _, person in wanted},
        external_id__in={person.external_id for _, person in wanted},
    )
    listed: dict[tuple[int, PersonId], list[tuple[int, PersonId]]] = defaultdict(list)
    by_place = {
        (key, person.district, person.external_id): person for key, person in wanted
    }
    for key, district, external_id in rows.values_list(
        "administration", "district", "external_id"
    ):
        if person := by_place.get((key, district, external_id)):
            listed[key, joined[person]].append((key, person))
    return {row for rows in listed.values() if len(rows) > 1 for row in rows}


def count_people_in_several(selection: Selection) -> int:
    """Return how many people are in several of the administrations. 1 statement.

    With the role of the console, which may not read responses.

    Without those whose records were joined by hand: there may be some more.
    """
    selection = replace(selection, reads_responses=False)
    roles = sorted(
        {administration.role for administration in selection.administrations}
    )
    people = " UNION ALL ".join(
        IDS.format(
            role=roles.index(administration.role),
            people=selection.people(administration, DEFAULT_DB_ALIAS),
        )
        for administration in selection.administrations
    )
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(COUNT_SEVERAL.format(people=people))
        return int(cursor.fetchone()[0])
