"""What happens to each table that refers to a merged district, school or person.

A test compares these lists with the models: a new foreign key needs a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

from django.apps import apps
from django.db.models import Exists, F, Model, OuterRef, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import District, Membership, School, SchoolListing
from survey.models import (
    Administration,
    ListedId,
    RecordJoin,
    RosterFeed,
    SchoolCount,
    Wave,
)
from survey.work.jobs import JobRefused

TWO_FEEDS = gettext_noop(
    "Each of the districts has a feed that brings people to the same survey,"
    " and each feed would withdraw the people of the other: {names}. Take the"
    " survey out of one of the feeds first."
)


class Reference(Enum):
    """How a foreign key to the duplicate is treated."""

    # It points to the other place from then on.
    MOVED = auto()
    # The same, after rows that would break a constraint were adapted.
    ADAPTED = auto()
    # By `survey.people.merging.people`, in batches.
    PEOPLE = auto()
    # By `survey.people.merging.places`: the schools of a merged district.
    SCHOOLS = auto()
    # Deleted with the duplicate: figures that are counted anew, directory entries.
    DELETED = auto()
    # The duplicate of a person stays, withdrawn, with all that refers to it.
    STAYS = auto()


R = Reference
SCHOOL_REFERENCES: Mapping[str, Reference] = {
    "accounts.Membership.school": R.ADAPTED,
    # The school that stays has its own.
    "accounts.PlaceSettings.school": R.DELETED,
    "accounts.SchoolAlias.school": R.MOVED,
    "accounts.SchoolListing.school": R.ADAPTED,
    "reports.Export.school": R.MOVED,
    "reports.GradeRate.school": R.DELETED,
    "reports.SchoolRate.school": R.DELETED,
    "survey.Administration_schools.school": R.ADAPTED,
    "survey.CardSet.school": R.MOVED,
    "survey.CountedGroup.school": R.PEOPLE,
    "survey.ListedId.school": R.ADAPTED,
    "survey.OpenCode.school": R.MOVED,
    "survey.OpenCodeFile.school": R.MOVED,
    "survey.Respondent.school": R.PEOPLE,
    "survey.RosterChange.school": R.MOVED,
    "survey.RosterLayoutChoice.school": R.MOVED,
    "survey.RosterSchool.school": R.MOVED,
    "survey.RosterUpload.school": R.MOVED,
    "survey.SchoolCount.school": R.ADAPTED,
}
DISTRICT_REFERENCES: Mapping[str, Reference] = {
    "accounts.DistrictAlias.district": R.MOVED,
    "accounts.Membership.district": R.ADAPTED,
    # The district that stays has its own.
    "accounts.PlaceSettings.district": R.DELETED,
    "accounts.School.district": R.SCHOOLS,
    # By the database, with their schools.
    "accounts.SchoolListing.district": R.SCHOOLS,
    "reports.Export.district": R.MOVED,
    "reports.ReportArchive.district": R.MOVED,
    "reports.SchoolRate.district": R.MOVED,
    "survey.Administration.district": R.MOVED,
    "survey.Administration_districts.district": R.ADAPTED,
    "survey.CardSet.district": R.MOVED,
    # The district that stays has a calendar of its own.
    "survey.DayOff.district": R.DELETED,
    "survey.FeedScan.district": R.MOVED,
    "survey.Identity.district": R.PEOPLE,
    "survey.ListedId.district": R.ADAPTED,
    "survey.MessagePlatform.district": R.MOVED,
    "survey.OpenCodeFile.district": R.MOVED,
    "survey.PlaceMerge.district": R.MOVED,
    "survey.RecordJoin.district": R.ADAPTED,
    "survey.RosterFeed.district": R.ADAPTED,
    "survey.RosterLayoutChoice.district": R.MOVED,
    "survey.RosterUpload.district": R.MOVED,
    "survey.Survey.district": R.MOVED,
    "survey.SurveyUpload.district": R.MOVED,
    "survey.Wave.district": R.ADAPTED,
}
RESPONDENT_REFERENCES: Mapping[str, Reference] = {
    "survey.CardSet.respondent": R.STAYS,
    # Counts for the record that stays.
    "survey.Consent.respondent": R.PEOPLE,
    "survey.CountedGroup.respondent": R.STAYS,
    "survey.DeviceLogin.respondent": R.STAYS,
    "survey.EmailDelivery.respondent": R.STAYS,
    # Deleted with the duplicate's name; the ID belongs to one person then.
    "survey.Identity.respondent": R.PEOPLE,
    "survey.OpenCodeSeat.respondent": R.STAYS,
    # A refusal counts for the record that stays.
    "survey.OptOut.respondent": R.PEOPLE,
    "survey.PairChoice.respondent": R.STAYS,
    # Leads to the record that stays from then on.
    "survey.RecordJoin.kept": R.PEOPLE,
    "survey.RecordJoin.other": R.STAYS,
    "survey.RosterChange.respondent": R.STAYS,
    "survey.RosterMissing.respondent": R.STAYS,
}


def foreign_keys_to(model: type[Model]) -> set[str]:
    """Return all foreign keys to a model, such as "survey.Respondent.school"."""
    keys = set()
    for referrer in apps.get_models(include_auto_created=True):
        for field in referrer._meta.local_fields:
            if field.is_relation and field.related_model is model:
                keys.add(f"{referrer._meta.label}.{field.name}")
    return keys


def move_references(duplicate: School | District, target: School | District) -> None:
    """Let all rows that a merge moves refer to `target`. Call it in a transaction."""
    is_school = isinstance(duplicate, School)
    references = SCHOOL_REFERENCES if is_school else DISTRICT_REFERENCES
    for adapt in ADAPTERS[type(duplicate)]:
        adapt(duplicate, target)
    for name, reference in references.items():
        label, _, field = name.rpartition(".")
        if reference in (R.MOVED, R.ADAPTED) and name not in MOVED_BY_ADAPTERS:
            rows = apps.get_model(label)._default_manager
            rows.filter(**{field: duplicate.pk}).update(**{field: target.pk})
        elif reference == R.DELETED:
            rows = apps.get_model(label)._default_manager
            rows.filter(**{field: duplicate.pk}).delete()


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
        _adapt_listed_ids,
    ),
}
