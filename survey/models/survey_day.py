"""Survey days, during which work that can wait leaves the servers to respondents."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.db.models.lookups import IsNull

from accounts.tables import Table


class SurveyDayQuerySet(models.QuerySet["SurveyDay"]):
    def current(self) -> SurveyDayQuerySet:
        """By the database's clock, as the leases of jobs: all workers agree."""
        return self.filter(ended_at=None, ends_at__gt=Now())


class SurveyDay(Table):
    """A time without exports, scores and feeds; see `survey.work.survey_day`."""

    began_at = models.DateTimeField(db_default=Now())
    # Reached, it is over, although nobody wrote anything.
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=200)
    # Null: a command.
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    # When somebody ended it, or the next one found it over.
    ended_at = models.DateTimeField(null=True)

    objects = SurveyDayQuerySet.as_manager()

    class Meta:
        ordering = ("-began_at", "-pk")
        constraints = (
            models.UniqueConstraint(
                IsNull(F("ended_at"), True),
                condition=Q(ended_at=None),
                name="one_survey_day_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("began_at")),
                name="a_survey_day_ends_after_it_begins",
            ),
        )

    def __str__(self) -> str:
        return self.reason
