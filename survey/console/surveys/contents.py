"""The contents of a survey, as the console lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.db.models import Prefetch

from survey.definitions.schema import ANSWERABLE, Expr, ItemRules, Texts
from survey.models import Block, Item, Survey
from survey.xlsform.writing import as_text

KIND_WORDS: Mapping[str, str] = {
    "text": "text",
    "integer": "whole number",
    "decimal": "number",
    "range": "scale",
    "date": "date",
    "time": "time",
    "datetime": "date and time",
    "select_one": "one choice",
    "select_multiple": "several choices",
    "acknowledge": "agreement",
    "note": "note",
    "calculate": "calculated",
    "hidden": "hidden",
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
class Contents:
    pages: list[PageSection]
    option_sets: list[OptionSetRow]
    # The number of items that respondents answer.
    questions: int


def contents_of(survey: Survey) -> Contents:
    """Read the contents in the survey's default language. 5 statements."""
    language = survey.languages[0]["code"] if survey.languages else ""

    def plain(texts: Texts) -> str:
        return texts.get(language) or next(iter(texts.values()), "")

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
                        kind=KIND_WORDS[item.kind],
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
    return Contents(pages, option_sets, questions)


def rules_in_words(rules: ItemRules) -> Iterator[tuple[str, str]]:
    required = rules.get("required")
    if required is True:
        yield "Required", ""
    elif required:
        yield "Required if", as_text(required)
    expressions: list[tuple[str, Expr | None]] = [
        ("Shown if", rules.get("relevant")),
        ("Valid if", rules.get("constraint")),
        ("Calculated as", rules.get("calculation")),
        ("Options shown where", rules.get("choice_filter")),
        ("Default", rules.get("default_expression")),
    ]
    for words, expression in expressions:
        if expression is not None:
            yield words, as_text(expression)
    if rules.get("default"):
        yield "Default", rules["default"]
    if rules.get("randomize"):
        yield "Options shuffled", ""
    if rules.get("read_only"):
        yield "Read-only", ""
