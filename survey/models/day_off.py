"""Days without school, which response rates leave out."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Lower

from accounts.tables import Reference, Table


# The district that stays has a calendar of its own.
class DayOff(Table, district=Reference.DELETED):
    """A holiday, or a weekday without school.

    A district has the state's days off and its own. Without any weekday, these are
    Saturday and Sunday.
    """

    # The owner. Null: the state.
    district = models.ForeignKey(
        "accounts.District",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="days_off",
    )
    name = models.CharField(max_length=100, blank=True)
    first = models.DateField(null=True, blank=True)
    last = models.DateField(null=True, blank=True)
    # Monday is 0. Only the state's.
    weekday = models.PositiveSmallIntegerField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "days off"
        constraints = (
            models.CheckConstraint(
                condition=Q(
                    weekday=None,
                    first__isnull=False,
                    last__isnull=False,
                    last__gte=F("first"),
                )
                | Q(
                    weekday__isnull=False,
                    weekday__range=(0, 6),
                    first=None,
                    last=None,
                    district=None,
                ),
                name="a_day_off_is_a_range_of_dates_or_a_weekday",
            ),
            models.UniqueConstraint(
                fields=("weekday",),
                condition=Q(weekday__isnull=False),
                name="one_day_off_per_weekday",
            ),
            models.UniqueConstraint(
                Lower("name"),
                Coalesce("district", 0),
                "first",
                condition=Q(weekday=None),
                name="one_holiday_per_name_day_and_owner",
            ),
        )

    def __str__(self) -> str:
        return self.name or f"weekday {self.weekday}"
