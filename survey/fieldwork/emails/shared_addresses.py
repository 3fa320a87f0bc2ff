"""Find people who share an e-mail address, so that their e-mails say for whom they are.

Siblings often have the address of their parents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from django.db.models.functions import Lower

from survey.models import Respondent


class SharedAddress(NamedTuple):
    """A person's place among the people of an administration with one address."""

    respondent: Respondent
    number: int
    total: int


def find_shared_addresses(
    administration_id: int, addresses: Iterable[str]
) -> dict[int, SharedAddress]:
    """Return the people who share one of these addresses, by their keys. 1 statement.

    Finished people count: a number that changes would tell that somebody finished.
    """
    people = (
        Respondent.objects.annotate(address=Lower("identity__email"))
        .filter(
            administration=administration_id,
            identity__administration=administration_id,
            withdrawn_at=None,
            address__in={address.lower() for address in addresses if address},
        )
        .only("classroom", "grade")
        .order_by("pk")
    )
    by_address: defaultdict[str, list[Respondent]] = defaultdict(list)
    for person in people:
        by_address[person.address].append(person)
    return {
        person.pk: SharedAddress(person, number, len(family))
        for family in by_address.values()
        if len(family) > 1
        for number, person in enumerate(family, 1)
    }
