"""Move what refers to a merged district or school, as the models declare it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.apps import apps
from django.db.models import Exists, F, Model, OuterRef, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import District, Membership, PlaceSettings, School, SchoolListing
from accounts.tables import Reference, tables
from survey.models import (
    Administration,
    ErasedId,
    ListedId,
    RecordJoin,
    RosterFeed,
    SchoolCount,
    Wave,
)
from survey.work.jobs import JobRefused

TWO_FEEDS = gettext_noop(
    "Each of the districts has a roster sync that brings people to the same survey,"
    " and each roster sync would withdraw the people of the other: {names}. Take the"
    " survey out of one of the roster syncs first."
)


def foreign_keys_to(model: type[Model]) -> set[str]:
    """Return all foreign keys to a model, such as "survey.Respondent.school"."""
    keys = set()
    for referrer in apps.get_models(include_auto_created=True):
        for field in referrer._meta.local_fields:
            if field.is_relation and field.related_model is model:
                keys.add(f"{referrer._meta.label}.{field.name}")
    return keys


def references_to(model: type[Model]) -> dict[str, Reference]:
    """Return what a merge does with each foreign key to a model."""
    references = {}
    for declaring in tables():
        for name, reference in declaring.declaration.references.items():
            field: Any = declaring._meta.get_field(name)
            if field.related_model is not model:
                continue
            if field.many_to_many:
                field = field.remote_field.through._meta.get_field(
                    field.m2m_reverse_field_name()
                )
            references[f"{field.model._meta.label}.{field.name}"] = reference
    return dict(sorted(references.items()))


def move_references(duplicate: School | District, target: School | District) -> None:
    """Let all rows that a merge moves refer to `target`. Call it in a transaction."""
    for adapt in ADAPTERS[type(duplicate)]:
        adapt(duplicate, target)
    for name, reference in references_to(type(duplicate)).items():
        label, _, field = name.rpartition(".")
        rows = apps.get_model(label)._default_manager.filter(**{field: duplicate.pk})
        if reference == Reference.DELETED:
            rows.delete()
        elif reference in MOVING and name not in MOVED_BY_ADAPTERS:
            rows.update(**{field: target.pk})


MOVING = (Reference.MOVED, Reference.ADAPTED)
# The rest of a row cannot refer to two places, or it is not one of the duplicate's.
MOVED_BY_ADAPTERS = frozenset(
    (
        "accounts.SchoolListing.school",
        "survey.Administration_schools.school",
        "survey.Administration_districts.district",
    )
)


def _adapt_memberships(duplicate: School | District, target: School | District) -> None:
    """End memberships that the user has in the other place too."""
    field = "school" if isinstance(duplicate, School) else "district"
    current = Membership.objects.current()
    held = set(current.filter(**{field: target.pk}).values_list("user", "role"))
    for membership in current.filter(**{field: duplicate.pk}):
        if (membership.user_id, membership.role) in held:
            membership.ended_at = timezone.now()
            membership.save(update_fields=["ended_at"])


def _adapt_offers(duplicate: School | District, target: School | District) -> None:
    """Offer an administration in the other place if it was offered here."""
    field = "schools" if isinstance(duplicate, School) else "districts"
    for administration in Administration.objects.filter(**{field: duplicate.pk}):
        chosen = getattr(administration, field)
        chosen.add(target.pk)
        chosen.remove(duplicate.pk)


def _adapt_counts(duplicate: School, target: School) -> None:
    """Of two numbers for one administration, that of the other school counts."""
    counts = SchoolCount.objects.current()
    counts.filter(
        school=duplicate,
        administration__in=counts.filter(school=target).values("administration"),
    ).update(replaced_at=timezone.now())


def _adapt_listing(duplicate: School, target: School) -> None:
    """Keep an address or a contact that only the duplicate has."""
    listing = SchoolListing.objects.filter(school=target).first()
    duplicate_listing = SchoolListing.objects.filter(school=duplicate).first()
    if listing is None or duplicate_listing is None:
        return
    for fields in (
        ("street", "city", "state", "postal_code", "latitude", "longitude"),
        ("contact_name", "contact_phone", "contact_email"),
    ):
        if any(getattr(listing, name) for name in fields):
            continue
        changes = {name: getattr(duplicate_listing, name) for name in fields}
        SchoolListing.objects.filter(school=target).update(**changes)


def _adapt_waves(duplicate: District, target: District) -> None:
    taken = {name.casefold() for name in _names(Wave.objects.filter(district=target))}
    for wave in Wave.objects.filter(district=duplicate):
        wave.name = _free_name(wave.name, taken)
        wave.save(update_fields=["name"])


def _adapt_hidden_questions(duplicate: District, target: District) -> None:
    """Keep the questions off public pages that the duplicate kept off."""
    if PlaceSettings.objects.filter(district=duplicate, hides_questions=True).exists():
        rounds = Administration.objects.filter(district=duplicate)
        rounds.update(public_questions=False)


def refuse_two_feeds(duplicate: District, target: District) -> None:
    """Refuse districts whose feeds bring one administration. 3 statements or 1.

    A roster withdraws the people of its district whom it does not list, so a district
    has one feed for an administration. Raises JobRefused.
    """
    feeds = RosterFeed.objects.current().prefetch_related("administrations")
    brought = {
        administration.pk: feed
        for feed in feeds.filter(district=target)
        for administration in feed.administrations.all()
    }
    both = [
        f"{feed.name}, {brought[administration.pk].name} ({administration.name})"
        for feed in feeds.filter(district=duplicate).order_by("pk")
        for administration in feed.administrations.all()
        if administration.pk in brought
    ]
    if both:
        raise JobRefused(_(TWO_FEEDS).format(names="; ".join(both[:5])))


def _adapt_feeds(duplicate: District, target: District) -> None:
    refuse_two_feeds(duplicate, target)
    current = RosterFeed.objects.filter(removed_at=None)
    taken = {name.casefold() for name in _names(current.filter(district=target))}
    for feed in current.filter(district=duplicate):
        feed.name = _free_name(feed.name, taken)
        feed.save(update_fields=["name"])


def _adapt_listed_ids(duplicate: School | District, target: School | District) -> None:
    """Delete opt-outs and consents of IDs that are listed for the other place too."""
    field = "school" if isinstance(duplicate, School) else "district"
    same = ListedId.objects.filter(
        administration=OuterRef("administration"),
        external_id=OuterRef("external_id"),
        kind=OuterRef("kind"),
    )
    second_field = "school" if field == "district" else "district"
    # Rows for a whole district have no school.
    of_kept = same.annotate(second=Coalesce(F(second_field), 0)).filter(
        **{field: target.pk}, second=Coalesce(OuterRef(second_field), 0)
    )
    ListedId.objects.filter(Exists(of_kept), **{field: duplicate.pk}).delete()


def _adapt_erased_ids(duplicate: District, target: District) -> None:
    """Forget erased IDs of the duplicate that the other district has as well."""
    same = ErasedId.objects.filter(
        district=target, role=OuterRef("role"), digest=OuterRef("digest")
    )
    ErasedId.objects.filter(Exists(same), district=duplicate).delete()


def _adapt_joins(duplicate: District, target: District) -> None:
    """Forget IDs of joined records that lead to somebody of the other district."""
    joined = RecordJoin.objects.filter(state=RecordJoin.State.JOINED)
    same = joined.filter(
        district=target,
        administration=OuterRef("administration"),
        external_id=OuterRef("external_id"),
    )
    joined.filter(Exists(same), district=duplicate).update(district=None)


def _names(rows: QuerySet[Any]) -> list[str]:
    return list(rows.values_list("name", flat=True))


def _free_name(name: str, taken: set[str]) -> str:
    number, free = 2, name
    while free.casefold() in taken:
        free = f"{name[:90]} ({number})"
        number += 1
    taken.add(free.casefold())
    return free


ADAPTERS: Mapping[type, tuple[Callable[..., None], ...]] = {
    School: (
        _adapt_memberships,
        _adapt_offers,
        _adapt_counts,
        _adapt_listing,
        _adapt_listed_ids,
    ),
    District: (
        _adapt_memberships,
        _adapt_offers,
        _adapt_waves,
        _adapt_feeds,
        _adapt_joins,
        _adapt_erased_ids,
        _adapt_hidden_questions,
        _adapt_listed_ids,
    ),
}
