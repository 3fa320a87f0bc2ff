"""Looking a person up in more schools than one, at a bounded cost."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from accounts.models import District
from accounts.permissions import Capability, Permissions
from survey.models import Administration, Identity, Respondent

# Whoever finds more has typed too little.
MOST_FOUND = 200
SHORTEST = 2


def find_people(
    permissions: Permissions, administration: Administration, query: str
) -> tuple[QuerySet[Respondent], bool]:
    """The people meant, at most MOST_FOUND of them, and whether there are more.

    Each word begins a name or an e-mail address, or is a whole ID: what an
    index finds. Sorting and counting see only what was found.
    """
    words = [word for word in query.split() if len(word) >= SHORTEST]
    people = Respondent.objects.filter(administration=administration)
    if not words:
        return people.none(), False
    found = Identity.objects.filter(administration=administration)
    places = permissions.places(Capability.SEE_IDENTITIES)
    if not places.state:
        schools = permissions.schools(Capability.SEE_IDENTITIES)
        found = found.filter(respondent__school__in=schools)
    districts = list(District.objects.values_list("pk", flat=True))
    for word in words:
        found = found.filter(_begins(word) | _is_id(word, districts))
    ids = list(found.order_by().values_list("pk", flat=True)[: MOST_FOUND + 1])
    return people.filter(pk__in=ids[:MOST_FOUND]), len(ids) > MOST_FOUND


def _begins(word: str) -> Q:
    return (
        Q(family_name__istartswith=word)
        | Q(given_name__istartswith=word)
        # With the condition of its index.
        | (Q(email__istartswith=word) & ~Q(email=""))
    )


def _is_id(word: str, districts: list[int]) -> Q:
    # The index that finds an ID begins with its district: with all of them
    # named, it is looked up once in each.
    return Q(district__in=districts, external_id__in={word, word.upper()})
