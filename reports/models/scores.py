"""Scores of schools on the measures of a survey, and how they were calculated.

Only `reports.scores` writes these tables. Once calculated, scores stay as they are
until somebody asks for them again.

None of them is distributed where responses are: they are small, are read by place,
and are written by one process at a time.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from accounts.tables import Table
from reports.models.results import GroupResults

# What scores mean, and of whom they are. Scores in another format are shown nowhere,
# and are calculated again (`reports.scores.job.start_outdated`).
FORMAT = 4


class ScoringQuerySet(models.QuerySet["Scoring"]):
    def current(self) -> ScoringQuerySet:
        return self.filter(format=FORMAT)


class Scoring(Table):
    """The calculation of an administration's scores."""

    administration = models.OneToOneField(
        "survey.Administration",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="scoring",
    )
    # When the answers were read: the time of the replica's snapshot.
    as_of = models.DateTimeField()
    calculated_at = models.DateTimeField()
    # People who have answered at least one item.
    people = models.PositiveIntegerField()
    # Of the whole administration, as `reports.scores.problems.Problem.as_json`.
    problems = models.JSONField(default=list)
    # `FORMAT` of the program that calculated them.
    format = models.PositiveSmallIntegerField(default=FORMAT, db_default=1)
    # What careless answers and weights to the roster change, as
    # `reports.scores.effects.Effects`; null until a technical report was made.
    effects = models.JSONField(null=True)

    objects = ScoringQuerySet.as_manager()

    def __str__(self) -> str:
        return f"scores of {self.administration_id}"

    @property
    def is_current(self) -> bool:
        return self.format == FORMAT


class Calibration(Table):
    """The thresholds of one measure: the provenance of all its scores."""

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="calibrations"
    )
    measure = models.CharField(max_length=255)
    # The benchmark whose thresholds the anchored items have; null for a benchmark.
    anchored_to = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="anchored"
    )
    # As in `reports.scores.calibration.ItemResult`.
    items = models.JSONField(default=list)
    # People with an answer to one of these items.
    people = models.PositiveIntegerField()
    reliability = models.FloatField(null=True)
    separation = models.FloatField(null=True)
    # The benchmark's, in logits, and whether the deviation is that of schools or of
    # people. Null: there are no scores.
    scale_mean = models.FloatField(null=True)
    scale_deviation = models.FloatField(null=True)
    scale_unit = models.CharField(max_length=8, blank=True)
    # Of this administration, in logits: as `SchoolDifferences`. Null: not known.
    schools_mean = models.FloatField(null=True)
    schools_deviation = models.FloatField(null=True)
    people_deviation = models.FloatField(null=True)
    # The standard error of its place on the benchmark's scale; null for a benchmark.
    linking_error = models.FloatField(null=True)
    # The published benchmark of which the scale is, and the thresholds if it has some.
    imported = models.ForeignKey(
        "ImportedBenchmark", on_delete=models.PROTECT, null=True, related_name="+"
    )
    # Grade span -> as `reports.scores.spans.SpanScale`. Empty: one scale for all.
    span_scales = models.JSONField(default=dict, db_default={})
    problems = models.JSONField(default=list)
    # The published survey that people answered, and the programs that calculated.
    survey_digest = models.CharField(max_length=64)
    software = models.CharField(max_length=100)
    calculated_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "measure"),
                name="one_calibration_per_measure_of_an_administration",
            ),
        )

    def __str__(self) -> str:
        return f"{self.measure} in {self.administration_id}"


class ReleasedItem(Table):
    """A person's decision that an item no longer means what it did before."""

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    measure = models.CharField(max_length=255)
    item = models.CharField(max_length=255)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    at = models.DateTimeField(auto_now_add=True)
    because = models.CharField(max_length=500, blank=True, default="", db_default="")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "measure", "item"),
                name="an_item_is_released_once_in_an_administration",
            ),
        )

    def __str__(self) -> str:
        return f"{self.item} of {self.measure} in {self.administration_id}"


class ChosenBenchmark(Table):
    """A person's decision to which administration of a survey others are compared."""

    administration = models.OneToOneField(
        "survey.Administration",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="chosen_benchmark",
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    at = models.DateTimeField(auto_now_add=True)
    because = models.CharField(max_length=500)
    # Whether schools are compared with those of their grade span.
    by_span = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"benchmark {self.administration_id}"


class ImportedBenchmark(Table):
    """A published benchmark of others, with which a survey's rounds are compared.

    The last one that is not withdrawn holds for all rounds that are comparable with its
    administration. Rows stay, because they are the provenance of scores.
    """

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    # Measure -> as `reports.scores.imported_benchmark.ImportedMeasure`.
    measures = models.JSONField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    at = models.DateTimeField(auto_now_add=True)
    because = models.CharField(max_length=500)
    withdrawn_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"imported benchmark {self.pk}"


class ScoreRow(Table):
    """The scores of one group of people at one place.

    Of groups, only what is shown is stored: see `reports.suppression.scores`.
    """

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    # Level, place, attribute and value are as in `GroupResults`.
    level = models.CharField(max_length=8, choices=GroupResults.Level)
    place_id = models.BigIntegerField()
    attribute = models.CharField(max_length=64, blank=True)
    value = models.CharField(max_length=200, blank=True)
    # Of a school: the grade span of whose benchmark the scores are; "" for all schools.
    span = models.CharField(max_length=16, blank=True, default="", db_default="")
    # Measure -> [people, mean in logits, its standard error or null, score or null].
    # The score is drawn toward the mean of schools; changes are those of the means.
    measures = models.JSONField()
    # Essential -> score, and -> its standard error in points or null; none of groups.
    essentials = models.JSONField(default=dict)
    essential_errors = models.JSONField(null=True)
    # As `reports.scores.school_errors.StoredErrors`; null of a school in which nobody
    # is known to have answered before, and in scores that took people of a school as
    # independent.
    school_errors = models.JSONField(null=True)

    class Meta:
        constraints = (
            # Its index also finds the groups of a place.
            models.UniqueConstraint(
                fields=("administration", "level", "place_id", "attribute", "value"),
                name="one_score_row_per_group_of_a_place",
            ),
        )

    def __str__(self) -> str:
        group = f", {self.attribute} {self.value}" if self.attribute else ""
        return f"{self.level} {self.place_id}{group} in {self.administration_id}"
