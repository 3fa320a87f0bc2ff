"""Distributions of the answers to each item, by place and group.

Only `reports.releases.rollup` writes these tables, and `reports.results.visible`
reads them. Everything in them can be counted again at any time.

None of them is distributed where responses are: they are small, are read by place,
and are written by one process at a time.
"""

from __future__ import annotations

from django.db import models

from accounts.place_settings import DEFAULT_CODING_THRESHOLD
from accounts.tables import Erasing, Table
from reports.models.shared_json import SharedJSONField


class ResultsRollUp(Table, reports="SELECT"):
    """The state of an administration's distributions."""

    administration = models.OneToOneField(
        "survey.Administration",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="results_roll_up",
    )
    # When the figures were true: the time of the replica's snapshot.
    as_of = models.DateTimeField()
    written_at = models.DateTimeField()
    # The items, and what each number of `GroupResults.counts` counts: see
    # `reports.releases.layout`. Of a release also the times for authors of drafts.
    layout = SharedJSONField()
    # The `as_of` of the figures for which it is decided what is hidden.
    hidden_as_of = models.DateTimeField(null=True)
    # Null until it is decided what is hidden, as `summed` and `minimum_group` are.
    # Places below which nothing is shown by an attribute: [level, key, attribute] each.
    undivided = models.JSONField(null=True)
    # The schools that were in figures of such places when they were shown last:
    # [level, key, attribute, keys of schools] each.
    summed = models.JSONField(null=True)
    # By which it was decided.
    minimum_group = models.PositiveSmallIntegerField(null=True)
    # Attributes that no school shows, because people could be calculated from them and
    # others, and the attribute that each repeats, "" for several: [attribute,
    # attribute] each.
    repeating = models.JSONField(default=list, db_default=[])
    # The provenance of all figures: the digest of the survey by whose rules answers
    # were counted, and the versions of the programs that did so, as some schools may
    # have been counted by an earlier one.
    survey_digest = models.CharField(
        max_length=64, blank=True, default="", db_default=""
    )
    software = models.CharField(max_length=100, blank=True, default="", db_default="")
    # The `as_of` of the first figures that were counted after the closing. They are a
    # release: only a new one, which a person asks for, changes them. Null before.
    released_at = models.DateTimeField(null=True)
    # Keys of the schools that keep figures of an earlier release.
    kept_schools = models.JSONField(default=list, db_default=[])
    # Attribute and value of all groups on the roster at the release, for menus.
    roster_groups = models.JSONField(default=list, db_default=[])
    # In percent, for `reports.suppression.end_coding`. The state's setting until the
    # release; then it stays, so that a figure has one version.
    coding_threshold = models.PositiveSmallIntegerField(
        default=DEFAULT_CODING_THRESHOLD, db_default=DEFAULT_CODING_THRESHOLD
    )
    # Since when coordinators see the results of their schools.
    shared_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"results of {self.administration_id} as of {self.as_of:%Y-%m-%d %H:%M}"


class CountedSchool(Table, reports="SELECT", erasing=Erasing.STAYS):
    """What a roll-up has seen of a school, to recount only schools that changed.

    Its people are frozen with the figures: scores are calculated of the same, and the
    next release is compared with them.
    """

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    # Without a foreign key, as in `GroupResults`: the next roll-up deletes the rows
    # of schools that are gone.
    school_id = models.BigIntegerField()
    # The district of whose figures the school is a part.
    district_id = models.BigIntegerField()
    # A hash of the people who count, of their groups and of their progress.
    signature = models.BigIntegerField()
    # Item -> its distinct numbers, which decide on the width of its bins.
    numbers = models.JSONField(default=dict)
    # Who have answered, as `frozen_people.packed` makes them.
    people = models.BinaryField(default=b"", db_default=b"")
    # The `as_of` of the figures.
    counted_at = models.DateTimeField(null=True)
    # Whether it is added up for readers who do not see each school of a place. Decided
    # at the release: see `reports.releases.summed_schools`.
    is_summed = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "school_id"),
                name="one_counted_state_per_school_in_an_administration",
            ),
        )

    def __str__(self) -> str:
        return f"{self.school_id} in {self.administration_id}"


class FormerPeople(Table, erasing=Erasing.STAYS):
    """People of a school in an earlier release, whose figures were replaced.

    Their figures have been seen, so every later release is compared with them.
    """

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    school_id = models.BigIntegerField()
    people = models.BinaryField()
    counted_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("administration", "school_id", "counted_at"),
                name="one_record_of_former_people_per_count_of_a_school",
            ),
        )

    def __str__(self) -> str:
        return f"{self.school_id} in {self.administration_id} at {self.counted_at}"


class GroupResults(Table, reports="SELECT"):
    """How one group of people at one place has answered each item."""

    class Level(models.TextChoices):
        STATE = "state"
        DISTRICT = "district"
        SCHOOL = "school"

    administration = models.ForeignKey(
        "survey.Administration", on_delete=models.CASCADE, related_name="+"
    )
    level = models.CharField(max_length=8, choices=Level)
    # Primary key of the district or school; 0 for the state.
    place_id = models.BigIntegerField()
    # "" with the value "" is everyone; "grade", or the name of a subgroup. The value
    # is "" for people without one.
    attribute = models.CharField(max_length=64, blank=True)
    value = models.CharField(max_length=200, blank=True)
    # Who have answered at least one item, and who of them have finished.
    people = models.PositiveIntegerField()
    finished = models.PositiveIntegerField()
    # Numbers in the order of the layout, as `counting.packed` makes them; zeros at
    # the end may be missing.
    counts = models.BinaryField()
    # Because of few people: everything, or the distributions of some items. Of a
    # multiple choice, "item option" is one option.
    is_hidden = models.BooleanField(default=False, db_default=False)
    hidden_items = models.JSONField(default=list, db_default=[])
    # The figures to show, if schools that hide a group are left out of them; null if
    # they are the same. After the counts comes for each item the number of people.
    published_people = models.PositiveIntegerField(null=True)
    published_finished = models.PositiveIntegerField(null=True)
    published_counts = models.BinaryField(null=True)

    class Meta:
        constraints = (
            # Its index also finds the groups of a place.
            models.UniqueConstraint(
                fields=("administration", "level", "place_id", "attribute", "value"),
                name="one_result_per_group_of_a_place",
            ),
        )

    def __str__(self) -> str:
        group = f", {self.attribute} {self.value}" if self.attribute else ""
        return f"{self.level} {self.place_id}{group}: {self.people} people"
