"""Published results: what everybody may read, frozen, with everything hidden left out.

Only `reports.publishing` writes these tables. The content of a publication never
changes; to correct it, it is withdrawn and the results are published again.

Neither table is distributed where responses are: a public page reads three rows by
their keys, and rows are written once, by one process.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.tables import Table
from reports.models.results import GroupResults


class PublicationQuerySet(models.QuerySet["Publication"]):
    def public(self, now: datetime | None = None) -> PublicationQuerySet:
        """Filter what everybody may read at this moment."""
        return self.filter(public_condition("", now))


def public_condition(publication: str, now: datetime | None = None) -> Q:
    """Return the condition that a publication is public.

    `publication` is the path to it in a query, such as "publication__".
    """
    embargo = f"{publication}embargo_until"
    is_over = Q(**{f"{embargo}__isnull": True}) | Q(
        **{f"{embargo}__lte": now or timezone.now()}
    )
    return is_over & Q(
        **{
            f"{publication}published_at__isnull": False,
            f"{publication}withdrawn_at__isnull": True,
        }
    )


class Publication(Table):
    """The results of an administration, as they were published once."""

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="publications"
    )
    title = models.CharField(max_length=300)
    # The figures that the person saw in the preview; others are not published.
    basis = models.CharField(max_length=64)
    # As `reports.publishing.freezing.Frame`; the rest is in the places.
    frame = models.JSONField(default=dict)
    # SHA-256 of the frame and of all places; "" until the content is frozen.
    digest = models.CharField(max_length=64, blank=True)
    # Null: everybody may read it as soon as it is frozen.
    embargo_until = models.DateTimeField(null=True)
    requested_at = models.DateTimeField(auto_now_add=True)
    job = models.ForeignKey(
        "survey.Job", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    # When the content was frozen.
    published_at = models.DateTimeField(null=True)
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    withdrawn_because = models.CharField(max_length=500, blank=True)

    objects = PublicationQuerySet.as_manager()

    class Meta:
        constraints = (
            # Its index also finds the publication of an administration.
            models.UniqueConstraint(
                fields=("administration",),
                condition=Q(withdrawn_at__isnull=True),
                name="one_publication_of_an_administration_until_withdrawn",
            ),
            models.CheckConstraint(
                condition=Q(withdrawn_at__isnull=True) | ~Q(withdrawn_because=""),
                name="a_withdrawal_has_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(published_at__isnull=True, digest="")
                | (Q(published_at__isnull=False) & ~Q(digest="")),
                name="what_is_published_has_a_digest",
            ),
        )

    def __str__(self) -> str:
        return self.title

    @property
    def is_embargoed(self) -> bool:
        return self.embargo_until is not None and self.embargo_until > timezone.now()

    @property
    def was_public(self) -> bool:
        """Return whether anybody could have read it before it was withdrawn."""
        if self.published_at is None:
            return False
        since = max(self.published_at, self.embargo_until or self.published_at)
        return since <= (self.withdrawn_at or timezone.now())


class PublishedPlace(Table):
    """What is published of the state, a district or a school."""

    publication = models.ForeignKey(
        Publication, on_delete=models.CASCADE, related_name="places"
    )
    # Level and place are as in `GroupResults`; there is no foreign key, because the
    # row stays as it is when schools are merged or closed.
    level = models.CharField(max_length=8, choices=GroupResults.Level)
    place_id = models.BigIntegerField()
    # Of a school, its district; 0 otherwise.
    district_id = models.BigIntegerField(default=0)
    # At the time; "" is the state.
    name = models.CharField(max_length=200, blank=True)
    code = models.CharField(max_length=64, blank=True)
    # Without accents and capitals, for searches.
    search = models.CharField(max_length=400, blank=True)
    # As `reports.publishing.freezing.Summary` and `Answers`.
    summary = models.JSONField()
    answers = models.JSONField()
    # SHA-256 of all of these but `search`.
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = (
            # Its index also finds the places of a level.
            models.UniqueConstraint(
                fields=("publication", "level", "place_id"),
                name="one_published_row_per_place",
            ),
        )
        indexes = (
            # The schools of a district, by name.
            models.Index(
                fields=("publication", "district_id", "name"),
                name="published_schools_of_district",
            ),
            # All that is published of a school.
            models.Index(fields=("place_id", "level"), name="published_of_a_place"),
        )

    def __str__(self) -> str:
        return f"{self.level} {self.name} in {self.publication_id}"
