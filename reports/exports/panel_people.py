"""Find out which respondents of several administrations are one person.

A person is known by the ID in their district, in administrations for the same role.
IDs of records that were joined by hand count as one (see `survey/merging/README.md`).
From the primary: the database role for reports cannot read identities.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections
from django.utils.translation import gettext as _

from reports.exports.selection import Selection
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
            "People take part in %(title)s (%(name)s) with open codes and"
            " without IDs, so nobody can be found in another wave."
        ) % {"title": administration.title, "name": administration.name}
    if not administration.joins_waves:
        return _(
            "The people of %(title)s (%(name)s) have been promised that"
            " their answers are not joined with those of other waves."
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
    found: dict[PersonId, PersonId] = {}
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
        first, *others = sorted({found.get(one, one) for one in pair})
        for known, stands in list(found.items()):
            if stands in others:
                found[known] = first
        found |= dict.fromkeys((*pair, *others, first), first)
    return found


def person_ids(
    respondents: Sequence[int],
    administrations: Mapping[int, Administration],
    joined: JoinedIds,
) -> dict[int, PersonId]:
    """Return the ID of each respondent who has one.

    1 statement, and 1 more if any of them has several IDs.
    """
    rows = Identity.objects.using(DEFAULT_DB_ALIAS).filter(respondent__in=respondents)
    found = {
        respondent: (
            administration,
            PersonId(administrations[administration].role, district, external_id),
        )
        for respondent, administration, district, external_id in rows.values_list(
            "respondent", "administration", "district", "external_id"
        )
    }
    several = {row for row in found.values() if row[1] in joined}
    twice = _listed_twice(several, joined) if several else frozenset()
    return {
        respondent: own if (key, own) in twice else joined.get(own, own)
        for respondent, (key, own) in found.items()
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
    wanted = {(key, other) for key, own in people for other in ids_of[joined[own]]}
    rows = Identity.objects.using(DEFAULT_DB_ALIAS).filter(
        administration__in={key for key, _ in wanted},
        district__in={one.district for _, one in wanted},
        external_id__in={one.external_id for _, one in wanted},
    )
    listed: dict[tuple[int, PersonId], list[tuple[int, PersonId]]] = defaultdict(list)
    by_place = {(key, one.district, one.external_id): one for key, one in wanted}
    for key, district, external_id in rows.values_list(
        "administration", "district", "external_id"
    ):
        if one := by_place.get((key, district, external_id)):
            listed[key, joined[one]].append((key, one))
    return {row for rows in listed.values() if len(rows) > 1 for row in rows}


def count_people_in_several(selection: Selection) -> int:
    """Return how many people are in several of the administrations. 1 statement.

    With the role of the console, which may not read responses.

    Without those whose records were joined by hand: there may be some more.
    """
    selection = replace(selection, reads_responses=False)
    roles = sorted({one.role for one in selection.administrations})
    people = " UNION ALL ".join(
        IDS.format(
            role=roles.index(one.role),
            people=selection.people(one, DEFAULT_DB_ALIAS),
        )
        for one in selection.administrations
    )
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(COUNT_SEVERAL.format(people=people))
        return int(cursor.fetchone()[0])
