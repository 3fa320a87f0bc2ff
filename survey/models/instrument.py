"""Surveys: drafts as rows, and published surveys as one row each.

A draft is rows that can still be changed. Publishing compiles them into one
`PublishedSurvey`; database triggers then freeze it and the rows it was
compiled from. Texts are JSON objects from language codes to texts:
``{"en": "My school", "es": "Mi escuela"}``. Rules are compiled expressions
(see `survey.instrument.definitions.expressions`). `cached` finds published rows only.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from accounts.language import language_to_read
from accounts.tables import Reference, Table
from survey.models.cached import FrozenManager


class Survey(Table, district=Reference.MOVED):
    """One version of a survey; a new version is a new row."""

    # The owner, who may change and retire it. Null: the state.
    district = models.ForeignKey(
        "accounts.District",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="surveys",
    )
    name = models.CharField(max_length=64)
    version = models.CharField(max_length=64)
    title = models.JSONField(default=dict)
    # [{"code": "en", "name": "English", "direction": "ltr"}], default first.
    languages = models.JSONField(default=list)
    source_name = models.CharField(max_length=255, blank=True)
    source = models.BinaryField(null=True)
    # The published version whose texts this one corrects. In a draft this is an
    # intention, which `survey.instrument.definitions.corrections` checks at publishing.
    corrects = models.ForeignKey(
        "PublishedSurvey",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="corrections",
    )
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    # The number of the last change to the draft's rows, and of the change whose
    # state the pages, items and options have.
    last_change = models.PositiveIntegerField(default=0)
    compiled_change = models.PositiveIntegerField(default=0)
    # Set by publishing only; from then on the triggers refuse every change.
    published_at = models.DateTimeField(null=True, editable=False)

    objects = models.Manager()
    cached = FrozenManager("published_at")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                "name",
                "version",
                Coalesce("district", 0),
                name="one_survey_per_name_and_version_of_an_owner",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def default_title(self) -> str:
        """Title in the survey's first language, or else its name."""
        first = self.languages[0]["code"] if self.languages else ""
        known = self.title.get(first) or next(iter(self.title.values()), "")
        return known or self.name

    @property
    def title_to_read(self) -> str:
        """Title in the reader's language if the survey has it, or else the first."""
        return self.title.get(self.language_to_read) or self.default_title

    @property
    def language_to_read(self) -> str:
        return language_to_read([language["code"] for language in self.languages])

    @property
    def full_title(self) -> str:
        return _("%(title)s, version %(version)s") % {
            "title": self.title_to_read,
            "version": self.version,
        }


class OptionSet(Table):
    survey = models.ForeignKey(
        Survey, on_delete=models.CASCADE, related_name="option_sets"
    )
    name = models.CharField(max_length=255)

    objects = models.Manager()
    cached = FrozenManager("survey__published_at")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("survey", "name"), name="one_option_set_per_name_in_a_survey"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Option(Table):
    option_set = models.ForeignKey(
        OptionSet, on_delete=models.CASCADE, related_name="options"
    )
    position = models.PositiveIntegerField()
    value = models.CharField(max_length=255)
    label = models.JSONField(default=dict)
    # Free columns of the choices sheet, which choice filters read.
    attributes = models.JSONField(default=dict)

    objects = models.Manager()
    cached = FrozenManager("option_set__survey__published_at")

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(
                fields=("option_set", "value"), name="one_option_per_value_in_a_set"
            ),
        )

    def __str__(self) -> str:
        return self.value


class Page(Table):
    survey = models.ForeignKey(Survey, on_delete=models.CASCADE, related_name="pages")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=255)
    title = models.JSONField(default=dict)

    objects = models.Manager()
    cached = FrozenManager("survey__published_at")

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(
                fields=("survey", "position"), name="one_page_per_position_in_a_survey"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Block(Table):
    """Items of a page that belong together: under a heading, or in a grid."""

    page = models.ForeignKey(Page, on_delete=models.CASCADE, related_name="blocks")
    position = models.PositiveIntegerField()
    # The stem of a grid or a heading; may be empty.
    label = models.JSONField(default=dict)
    is_grid = models.BooleanField(default=False)

    objects = models.Manager()
    cached = FrozenManager("page__survey__published_at")

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(
                fields=("page", "position"), name="one_block_per_position_on_a_page"
            ),
        )

    def __str__(self) -> str:
        return f"{self.page} {self.position}"


class Item(Table):
    class Kind(models.TextChoices):
        TEXT = "text"
        INTEGER = "integer"
        DECIMAL = "decimal"
        RANGE = "range"
        DATE = "date"
        TIME = "time"
        DATETIME = "datetime"
        SELECT_ONE = "select_one"
        SELECT_MULTIPLE = "select_multiple"
        ACKNOWLEDGE = "acknowledge"
        NOTE = "note"
        CALCULATE = "calculate"
        HIDDEN = "hidden"

    survey = models.ForeignKey(Survey, on_delete=models.CASCADE, related_name="items")
    block = models.ForeignKey(Block, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=255)
    kind = models.CharField(max_length=16, choices=Kind)
    label = models.JSONField(default=dict)
    hint = models.JSONField(default=dict)
    guidance = models.JSONField(default=dict)
    option_set = models.ForeignKey(
        OptionSet, on_delete=models.CASCADE, null=True, related_name="items"
    )
    # Rules and appearance: `survey.instrument.definitions.schema.ItemRules`.
    rules = models.JSONField(default=dict)

    objects = models.Manager()
    cached = FrozenManager("survey__published_at")

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(
                fields=("survey", "name"), name="one_item_per_name_in_a_survey"
            ),
            models.UniqueConstraint(
                fields=("survey", "position"),
                name="one_item_per_position_in_a_survey",
            ),
        )

    def __str__(self) -> str:
        return self.name


class SurveyMeasures(Table):
    """The measures of a survey, as `survey.instrument.definitions.schema.Measures`.

    Reports read them. They are not in the published definition, because
    respondents' pages never do.
    """

    survey = models.OneToOneField(
        Survey, on_delete=models.CASCADE, primary_key=True, related_name="measures"
    )
    content = models.JSONField()

    objects = models.Manager()

    class Meta:
        verbose_name_plural = "survey measures"

    def __str__(self) -> str:
        return f"measures of {self.survey_id}"


class PublishedSurvey(Table, taking="SELECT"):
    """A survey as respondents answer it, in one row that never changes.

    `definition` is the canonical JSON text whose SHA-256 is `digest`; its
    schema is `survey.instrument.definitions.schema.SurveyDefinition`.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    survey = models.ForeignKey(
        Survey, on_delete=models.PROTECT, related_name="published"
    )
    definition = models.TextField()
    published_at = models.DateTimeField(auto_now_add=True)

    objects = models.Manager()
    cached = FrozenManager("published_at")

    def __str__(self) -> str:
        return self.digest[:12]


class Retirement(Table):
    """Keeps new administrations from offering a published survey.

    A separate row, because the survey's own row is frozen.
    """

    survey = models.OneToOneField(
        Survey, on_delete=models.PROTECT, related_name="retirement"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
    )
    at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.survey}, retired"


class SurveyUpload(Table, district=Reference.MOVED):
    """An uploaded workbook, and the problems found in it.

    `problems` and `warnings` are lists of {sheet, row, column, reason, text};
    `report` is one of {place, text, outcome, reason, part} if a questionnaire of
    another program was converted.
    """

    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    corrects = models.ForeignKey(
        PublishedSurvey, on_delete=models.PROTECT, null=True, related_name="+"
    )
    name = models.CharField(max_length=255)
    # Null once it is read; the draft has a copy.
    content = models.BinaryField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True)
    problems = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    report = models.JSONField(default=list, db_default=[])
    # The draft that was created from it, until that is deleted.
    survey = models.ForeignKey(
        Survey, on_delete=models.SET_NULL, null=True, related_name="uploads"
    )

    def __str__(self) -> str:
        return self.name
