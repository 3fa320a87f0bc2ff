"""Find what is stored about a person: their records, and the rows of each record.

Models say what erasing does with rows about a respondent (`accounts.tables.Erasing`).
Report, erasing and the check afterwards all read `rows_about`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from django.db.models import ForeignKey, Model, Q, QuerySet

from accounts.tables import Erasing, Table, tables
from survey.models import (
    Administration,
    EmailDelivery,
    EmailStep,
    Identity,
    ListedId,
    RecordJoin,
    Respondent,
    RosterChange,
    RosterMissing,
    RosterUpload,
)
from survey.people.opt_outs.modules import respondents_in_modules

JOINED = RecordJoin.State.JOINED


@dataclass(slots=True)
class PersonRecords:
    """A person as the roster knows them: in every round, under every ID."""

    role: str
    district: int
    ids: set[str]
    # Respondent -> administration.
    records: dict[int, int] = field(default_factory=dict)


def records_of(person: Respondent) -> PersonRecords | None:
    """Find all records of a person; None of one without a name, or an erased one.

    A person is known by role, district and ID, as in panels. IDs of records that were
    joined by hand are one person's, wherever they were joined. Records in districts'
    modules have no ID, and are found by keyed digests of the person's numbers. 4
    statements for each ID that was joined, all by indexes that begin with the
    administration; 1 for modules, 3 where there are some.
    """
    identity = Identity.objects.filter(pk=person.pk).first()
    if identity is None:
        return None
    role = Administration.objects.values_list("role", flat=True).get(
        pk=person.administration_id
    )
    rounds = list(Administration.objects.filter(role=role).values_list("pk", flat=True))
    everything = PersonRecords(role, identity.district_id, {identity.external_id})
    looked_up: set[str] = set()
    while remaining := everything.ids - looked_up:
        looked_up |= remaining
        place = {
            "administration__in": rounds,
            "district": identity.district_id,
            "external_id__in": remaining,
        }
        everything.records.update(
            Identity.objects.filter(**place).values_list("pk", "administration")
        )
        aliases = RecordJoin.objects.filter(**place, state=JOINED)
        everything.records.update(aliases.values_list("kept", "administration"))
        # Records that were joined with these have lost their identity.
        joins = RecordJoin.objects.filter(
            kept__in=list(everything.records), state=JOINED
        )
        for joined, administration, district, external_id in joins.values_list(
            "other", "administration", "district", "external_id"
        ):
            everything.records[joined] = administration
            if district == identity.district_id:
                everything.ids.add(external_id)
        names = Identity.objects.filter(pk__in=list(everything.records))
        everything.ids.update(names.values_list("external_id", flat=True))
    add_modules(everything)
    return everything


def add_modules(person: PersonRecords) -> bool:
    """Add a person's records in districts' modules; return whether there are new ones.

    1 statement, 3 where there are modules.
    """
    in_modules = respondents_in_modules(list(person.records))
    new = set(in_modules) - person.records.keys()
    if new:
        modules = Respondent.objects.filter(pk__in=new)
        person.records.update(modules.values_list("pk", "administration"))
    return bool(new)


@cache
def person_fields(model: type[Model]) -> tuple[str, ...]:
    """Return the fields of a model with the key of a respondent."""
    if model is Respondent:
        return ("pk",)
    return tuple(
        field.name
        for field in model._meta.local_fields
        if (isinstance(field, ForeignKey) and field.related_model is Respondent)
        or field.name == "respondent_id"
    )


def _of_rosters(administration: int) -> Q:
    return Q(upload__in=RosterUpload.objects.filter(administration=administration))


def _of_steps(administration: int) -> Q:
    steps = EmailStep.objects.filter(schedule__administration=administration)
    return Q(step__in=steps)


# Tables whose index on people begins with something else.
NARROWED: Mapping[type[Model], Callable[[int], Q]] = {
    EmailDelivery: _of_steps,
    RosterChange: _of_rosters,
    RosterMissing: _of_rosters,
}


def rows_about(
    respondent: int, administration: int, erasing: Erasing
) -> Iterator[tuple[type[Table], QuerySet[Table]]]:
    """Yield the rows about one record in each table with this kind of erasing.

    Of tables without a field for a person there are none: see `rows_by_id`.
    """
    yield from rows_of_people([respondent], administration, erasing)


def rows_of_people(
    people: Collection[int], administration: int, erasing: Erasing
) -> Iterator[tuple[type[Table], QuerySet[Table]]]:
    """Yield the rows about some records of one round, as `rows_about` does."""
    for model in tables():
        if model.declaration.erasing != erasing:
            continue
        about = Q()
        for name in person_fields(model):
            about |= Q(**{f"{name}__in": people})
        if not about:
            continue
        if any(item.name == "administration_id" for item in model._meta.local_fields):
            about &= Q(administration_id=administration)
        if model in NARROWED:
            about &= NARROWED[model](administration)
        yield model, model._default_manager.filter(about)


def rows_of_round(
    administration: int, erasing: Erasing
) -> Iterator[tuple[type[Table], QuerySet[Table]]]:
    """Yield the rows about everybody of a round, also those that lead to nobody."""
    for model in tables():
        if model.declaration.erasing != erasing:
            continue
        columns = {item.attname for item in model._meta.local_fields}
        of_round = Q()
        if model in NARROWED:
            of_round = NARROWED[model](administration)
        elif "administration_id" in columns:
            of_round = Q(administration_id=administration)
        else:
            for name in person_fields(model):
                of_round |= Q(**{f"{name}__administration": administration})
        if of_round:
            yield model, model._default_manager.filter(of_round)


def rows_by_id(person: PersonRecords, administration: int) -> QuerySet[ListedId]:
    """Return IDs of lists that wait for a roster."""
    return ListedId.objects.filter(
        administration=administration,
        district=person.district,
        external_id__in=person.ids,
    )
