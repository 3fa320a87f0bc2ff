"""The contents of a survey, as the console lists them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Prefetch
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.schema import ANSWERABLE, Expr, ItemRules, Texts
from survey.instrument.xlsform.measures import POSITIVE
from survey.instrument.xlsform.writing import as_text
from survey.models import Block, Item, Survey

KIND_WORDS = {
    "text": pgettext_lazy("question type", "text"),
    "integer": pgettext_lazy("question type", "whole number"),
    "decimal": pgettext_lazy("question type", "number"),
    "range": pgettext_lazy("question type", "scale"),
    "date": pgettext_lazy("question type", "date"),
    "time": pgettext_lazy("question type", "time"),
    "datetime": pgettext_lazy("question type", "date and time"),
    "select_one": pgettext_lazy("question type", "one choice"),
    "select_multiple": pgettext_lazy("question type", "several choices"),
    "acknowledge": pgettext_lazy("question type", "consent (one box to tick)"),
    "note": pgettext_lazy("question type", "note"),
    "calculate": pgettext_lazy("question type", "calculated"),
    "hidden": pgettext_lazy("question type", "hidden"),
}


@dataclass(frozen=True, slots=True)
class ItemRow:
    name: str
    kind: str
    label: str
    options: str
    # (meaning, the rule as its author writes it or "").
    rules: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PageSection:
    number: int
    name: str
    title: str
    items: list[ItemRow]


@dataclass(frozen=True, slots=True)
class OptionSetRow:
    name: str
    # (value, label)
    options: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class MeasureRow:
    name: str
    label: str
    description: str
    essential: str
    is_positive: bool
    # (label, whether it is reversed)
    items: list[tuple[str, bool]]
    missing: list[str]


@dataclass(frozen=True, slots=True)
class Contents:
    pages: list[PageSection]
    option_sets: list[OptionSetRow]
    measures: list[MeasureRow]
    # The number of items that respondents answer.
    questions: int


def contents_of(survey: Survey) -> Contents:
    """Read the contents in the reader's language or the first. 6 statements."""
    wanted = [survey.language_to_read, *(entry["code"] for entry in survey.languages)]

    def plain(texts: Texts) -> str:
        written = (texts[code] for code in wanted if texts.get(code))
        return next(written, "")

    items = Item.objects.select_related("option_set")
    blocks = Block.objects.prefetch_related(Prefetch("items", queryset=items))
    rows = survey.pages.prefetch_related(Prefetch("blocks", queryset=blocks))
    questions = 0
    pages = []
    for number, page in enumerate(rows, start=1):
        section = PageSection(number, page.name, plain(page.title), [])
        for block in page.blocks.all():
            for item in block.items.all():
                questions += item.kind in ANSWERABLE
                section.items.append(
                    ItemRow(
                        name=item.name,
                        kind=str(KIND_WORDS[item.kind]),
                        label=plain(item.label),
                        options=item.option_set.name if item.option_set else "",
                        rules=list(rules_in_words(item.rules)),
                    )
                )
        pages.append(section)
    option_sets = [
        OptionSetRow(
            option_set.name,
            [
                (option.value, plain(option.label))
                for option in option_set.options.all()
            ],
        )
        for option_set in survey.option_sets.order_by("pk").prefetch_related("options")
    ]
    labels = {item.name: item.label for page in pages for item in page.items}
    measures = measures_of(survey) or {"essentials": [], "measures": []}
    essentials = {row["name"]: plain(row["label"]) for row in measures["essentials"]}
    measure_rows = [
        MeasureRow(
            name=measure["name"],
            label=plain(measure["label"]),
            description=plain(measure["description"]),
            essential=essentials.get(measure["essential"], ""),
            is_positive=measure["direction"] == POSITIVE,
            items=[(labels[row["name"]], row["reversed"]) for row in measure["items"]],
            missing=measure["missing"],
        )
        for measure in measures["measures"]
    ]
    return Contents(pages, option_sets, measure_rows, questions)


def rules_in_words(rules: ItemRules) -> Iterator[tuple[str, str]]:
    required = rules.get("required")
    if required is True:
        yield _("Required"), ""
    elif required:
        yield _("Required if"), as_text(required)
    expressions: list[tuple[str, Expr | None]] = [
        (_("Shown if"), rules.get("relevant")),
        (_("Valid if"), rules.get("constraint")),
        (_("Calculated as"), rules.get("calculation")),
        (_("Options shown where"), rules.get("choice_filter")),
        (_("Default"), rules.get("default_expression")),
    ]
    for words, expression in expressions:
        if expression is not None:
            yield words, as_text(expression)
    if rules.get("default"):
        yield _("Default"), rules["default"]
    if rules.get("randomize"):
        yield _("Options shuffled"), ""
    if rules.get("read_only"):
        yield _("Read-only"), ""
