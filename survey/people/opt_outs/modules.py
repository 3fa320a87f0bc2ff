"""Keep people who opt out of the state's round out of their district's module too."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import Value
from django.db.models.functions import Coalesce

from survey.models import Administration, Respondent
from survey.people.access_codes import digest_versions, module_digest_for
from survey.people.rosters.counted_groups import (
    Writer,
    keep_groups_of_returning,
    keep_groups_of_withdrawn,
)

# Digests in one statement.
BATCH = 1000


def withdraw_from_modules(
    writer: Writer, people: Collection[int], at: datetime
) -> None:
    """Withdraw these people from modules. 1 statement where there are none."""
    if keys := respondents_in_modules(people):
        keep_groups_of_withdrawn(writer, keys)
        Respondent.objects.filter(pk__in=keys).update(
            opted_out_at=at, withdrawn_at=Coalesce("withdrawn_at", Value(at))
        )


def return_to_modules(writer: Writer, people: Collection[int]) -> None:
    """Undo `withdraw_from_modules`. 1 statement where there are no modules."""
    if keys := respondents_in_modules(people):
        keep_groups_of_returning(writer, keys)
        Respondent.objects.filter(pk__in=keys).update(
            opted_out_at=None, withdrawn_at=None
        )


def respondents_in_modules(people: Collection[int]) -> list[int]:
    """Return the respondents that these people are in modules of their rounds."""
    rounds = Respondent.objects.filter(pk__in=people).values("administration")
    modules = Administration.objects.filter(module_of__in=rounds)
    digests = [
        module_digest_for(module, person, version)
        for module in modules.order_by().values_list("pk", flat=True)
        for person in people
        for version in digest_versions()
    ]
    keys: list[int] = []
    for first in range(0, len(digests), BATCH):
        rows = Respondent.objects.filter(code_digest__in=digests[first : first + BATCH])
        keys += rows.values_list("pk", flat=True)
    return sorted(keys)
