"""Change a person in a transaction, and tell message platforms after its commit.

Lists of people: `lock_people` of `opt_outs.records`; new codes: `new_codes`; rosters
and merges: `write_batch` of `rosters.batch_writes`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from django.db import transaction

from survey.fieldwork.message_platforms.hooks import people_changed
from survey.models import Respondent

P = ParamSpec("P")
T = TypeVar("T")
Change = Callable[Concatenate[Respondent, P], T]


def changes_person(change: Change[P, T]) -> Change[P, T]:
    """Give a function the person as stored, locked until its transaction ends.

    Rosters, starts and page saves wait for it, or are seen.
    """

    @wraps(change)
    @transaction.atomic
    def locked(person: Respondent, /, *args: P.args, **kwargs: P.kwargs) -> T:
        people = Respondent.objects.select_for_update(of=("self",))
        current = people.select_related("school", "administration").get(pk=person.pk)
        result = change(current, *args, **kwargs)
        people_changed([current.pk])
        return result

    return locked
