"""Numbers of families or students that schools supply, where there is no roster."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.tables import Reference, Table
from survey.models.administration import Administration

# The largest schools of the country have some 10,000 students.
LARGEST_COUNT = 100_000


class SchoolCountQuerySet(models.QuerySet["SchoolCount"]):
    def current(self) -> SchoolCountQuerySet:
        return self.filter(replaced_at=None)


class SchoolCount(
    Table,
    taking="SELECT (administration_id, school_id, unit, count, replaced_at)",
    school=Reference.ADAPTED,
):
    """The size of a school's group, the denominator of its response rate.

    A change adds a row, and the old one stays: the history says who and when.
    """

    class Unit(models.TextChoices):
        STUDENTS = "students", _("Students")
        FAMILIES = "families", _("Families")

    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="school_counts"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.CASCADE, related_name="counts"
    )
    unit = models.CharField(max_length=16, choices=Unit, default=Unit.STUDENTS)
    count = models.PositiveIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(LARGEST_COUNT)]
    )
    at = models.DateTimeField(default=timezone.now)
    # The e-mail address of a user, or the name of a command.
    by = models.CharField(max_length=254)
    # Null for the number that counts.
    replaced_at = models.DateTimeField(null=True, blank=True)

    objects = SchoolCountQuerySet.as_manager()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "school"),
                condition=Q(replaced_at=None),
                name="one_current_count_per_school_in_an_administration",
            ),
            models.CheckConstraint(
                condition=Q(count__gte=1, count__lte=LARGEST_COUNT),
                name="a_school_count_is_between_1_and_100000",
            ),
        )
        indexes = (
            # The history of a school.
            models.Index(
                fields=("administration", "school", "at"), name="history_of_a_count"
            ),
        )

    def __str__(self) -> str:
        return f"{self.count:,} {self.unit}"
