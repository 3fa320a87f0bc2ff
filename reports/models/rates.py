"""Who was invited, has started and has finished, as they were last counted.

Written by `reports.rollup` alone, once a minute; never by a page save. What
stands here can be counted again at any time.
"""

from __future__ import annotations

from django.db import models


class RollUp(models.Model):
    """When the figures of an administration were counted; one row each."""

    administration = models.OneToOneField(
        "survey.Administration",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="roll_up",
    )
    # The moment that the figures are true for: of the replica's snapshot.
    as_of = models.DateTimeField()
    written_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.administration_id} as of {self.as_of:%Y-%m-%d %H:%M:%S}"


class SchoolRate(models.Model):
    """One administration in one school.

    Nobody who was withdrawn is in any of the numbers, and who moved counts in
    the new school, with what was done in the old one.
    """

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="rates"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.CASCADE, related_name="rates"
    )
    # The school's, kept here so that districts are summed without a join.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.CASCADE, related_name="rates"
    )
    eligible = models.PositiveIntegerField(default=0)
    started = models.PositiveIntegerField(default=0)
    finished = models.PositiveIntegerField(default=0)
    # On the local day of the roll-up's `as_of`.
    finished_today = models.PositiveIntegerField(default=0)
    last_started_at = models.DateTimeField(null=True)
    # Of the same wave, for the parents' threshold; null where nobody knows.
    students = models.PositiveIntegerField(null=True)
    # How many have to finish for a report; null where no number will do.
    needed = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "school"),
                name="one_rate_per_school_in_an_administration",
            ),
        )
        indexes = (
            # A district's schools, and the sums of districts.
            models.Index(
                fields=("administration", "district"), name="rates_of_a_district"
            ),
        )

    def __str__(self) -> str:
        return f"{self.finished} of {self.eligible} in {self.school_id}"


class GradeRate(models.Model):
    """One grade of a school; never of teachers, who are too few."""

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.CASCADE, related_name="+"
    )
    grade = models.CharField(max_length=16, blank=True)
    eligible = models.PositiveIntegerField()
    started = models.PositiveIntegerField()
    finished = models.PositiveIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "school", "grade"),
                name="one_rate_per_grade_of_a_school",
            ),
        )

    def __str__(self) -> str:
        return f"{self.finished} of {self.eligible} in grade {self.grade}"


class Curve(models.Model):
    """Starts and finishes by hour, of a school, a district, or of all."""

    class Level(models.TextChoices):
        ALL = "all"
        DISTRICT = "district"
        SCHOOL = "school"

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    level = models.CharField(max_length=8, choices=Level)
    # The district's or the school's; 0 for all.
    place_id = models.BigIntegerField()
    # JSON, [[seconds since 1970 at which the hour begins, started, finished], …],
    # in order, without the hours in which nothing happened. A text, because
    # the roll-up compares 4,000 of them each minute and reads none.
    hours = models.TextField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "level", "place_id"),
                name="one_curve_per_place_in_an_administration",
            ),
        )

    def __str__(self) -> str:
        return f"{self.level} {self.place_id}"
