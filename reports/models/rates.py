"""Response rates: how many people are invited, have started and have finished.

Only `reports.rates.rollup` writes these tables, once a minute. Everything in them
can be counted again at any time.
"""

from __future__ import annotations

from django.db import models

from accounts.tables import Reference, Table


class RollUp(Table):
    """The time of an administration's figures."""

    administration = models.OneToOneField(
        "survey.Administration",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="roll_up",
    )
    # When the figures were true: the time of the replica's snapshot.
    as_of = models.DateTimeField()
    written_at = models.DateTimeField()
    # The `as_of` of the last figures that differed from those before.
    changed_at = models.DateTimeField(null=True)
    # Changes of rosters count if they were made before. Null until it has opened.
    groups_as_of = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.administration_id} as of {self.as_of:%Y-%m-%d %H:%M:%S}"


class SchoolRate(Table, school=Reference.DELETED, district=Reference.MOVED):
    """The figures of one school in one administration.

    Withdrawn people are not counted, and those who have opted out are counted
    apart. People who moved count in their new
    school, including what they did before. After the opening, such changes
    count later, many at once: see `reports.rates.counting_groups`.
    """

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="rates"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.CASCADE, related_name="rates"
    )
    # Copied from the school, so that districts are summed without a join.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.CASCADE, related_name="rates"
    )
    eligible = models.PositiveIntegerField(default=0)
    # `eligible` when the groups were frozen, which decides what is hidden; 0 before.
    at_opening = models.PositiveIntegerField(default=0, db_default=0)
    # People who have opted out, who are not among the eligible.
    opted_out = models.PositiveIntegerField(default=0, db_default=0)
    # People whose consent is missing, who are not among the eligible either.
    awaiting_consent = models.PositiveIntegerField(default=0, db_default=0)
    # People of this school on the roster whose last change does not count yet.
    waiting = models.PositiveIntegerField(default=0, db_default=0)
    started = models.PositiveIntegerField(default=0)
    finished = models.PositiveIntegerField(default=0)
    # On the local day of the roll-up's `as_of`.
    finished_today = models.PositiveIntegerField(default=0)
    last_started_at = models.DateTimeField(null=True)
    # What a school's number counts where there is no roster, as in `SchoolCount`;
    # empty for rosters, and while there is no number.
    unit = models.CharField(max_length=16, default="", db_default="")
    # Students in the same wave, or those that the school counted, for the threshold
    # of parents; null if unknown.
    students = models.PositiveIntegerField(null=True)
    # The threshold of the school in percent; null is the usual one.
    percent = models.PositiveSmallIntegerField(null=True)
    # How many have to finish for a report; null if too few are invited.
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


class GradeRate(Table, school=Reference.DELETED):
    """The figures of one grade. Teachers have none: their groups are too small."""

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    school = models.ForeignKey(
        "accounts.School", on_delete=models.CASCADE, related_name="+"
    )
    grade = models.CharField(max_length=16, blank=True)
    eligible = models.PositiveIntegerField()
    # As in SchoolRate; 0 for a grade that only came later.
    at_opening = models.PositiveIntegerField(default=0, db_default=0)
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


class Curve(Table):
    """Starts and finishes by hour in a school, a district or everywhere."""

    class Level(models.TextChoices):
        ALL = "all"
        DISTRICT = "district"
        SCHOOL = "school"

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    level = models.CharField(max_length=8, choices=Level)
    # Primary key of the district or school; 0 for all.
    place_id = models.BigIntegerField()
    # JSON: [[Unix time at which the hour begins, started, finished], …], in
    # order, without hours in which nothing happened. A text, because each
    # minute the roll-up compares 4,000 of them without parsing any.
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
