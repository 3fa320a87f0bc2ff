"""What a survey holds, for a person to read through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch

from survey.definitions.schema import ANSWERABLE
from survey.models import Block, Item, OptionSet, Survey
from survey.xlsform.writing import as_text

KINDS: Mapping[str, str] = {
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
RULES: Mapping[str, str] = {
    "relevant": "Shown if",
    "constraint": "Fits if",
    "calculation": "Worked out as",
    "choice_filter": "Offers the options where",
    "default_expression": "Begins as",
}


@dataclass(frozen=True, slots=True)
class ItemShown:
    name: str
    kind: str
    label: str
    options: str
    # (what it says, the rule as its author writes it or "").
    rules: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PageShown:
    number: int
    name: str
    title: str
    items: list[ItemShown]


@dataclass(frozen=True, slots=True)
class OptionSetShown:
    name: str
    # (value, label)
    options: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Contents:
    title: str
    pages: list[PageShown]
    option_sets: list[OptionSetShown]
    # What a respondent can answer.
    asked: int


def contents_of(survey: Survey) -> Contents:
    """In the survey's default language. 5 statements."""
    language = survey.languages[0]["code"] if survey.languages else ""
    items = Item.objects.select_related("option_set")
    blocks = Block.objects.prefetch_related(Prefetch("items", queryset=items))
    rows = survey.pages.prefetch_related(Prefetch("blocks", queryset=blocks))
    pages = [
        PageShown(
            number,
            page.name,
            plain(page.title, language),
            [
                _item(item, language)
                for block in page.blocks.all()
                for item in block.items.all()
            ],
        )
        for number, page in enumerate(rows, start=1)
    ]
    sets = survey.option_sets.order_by("pk").prefetch_related("options")
    asked = {KINDS[kind] for kind in ANSWERABLE}
    return Contents(
        plain(survey.title, language),
        pages,
        [_options(one, language) for one in sets],
        sum(item.kind in asked for page in pages for item in page.items),
    )


def plain(texts: Mapping[str, str], language: str) -> str:
    return texts.get(language) or next(iter(texts.values()), "")


def _item(item: Item, language: str) -> ItemShown:
    return ItemShown(
        item.name,
        KINDS[item.kind],
        plain(item.label, language),
        item.option_set.name if item.option_set else "",
        list(_rules(item.rules)),
    )


def _rules(rules: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    required = rules.get("required")
    if required is True:
        yield "Needs an answer", ""
    elif required:
        yield "Needs an answer if", as_text(required)
    for key, words in RULES.items():
        if key in rules:
            yield words, as_text(rules[key])
    if rules.get("default"):
        yield "Begins as", str(rules["default"])
    if rules.get("randomize"):
        yield "Options in an order of each person's own", ""
    if rules.get("read_only"):
        yield "Cannot be changed", ""


def _options(option_set: OptionSet, language: str) -> OptionSetShown:
    return OptionSetShown(
        option_set.name,
        [(one.value, plain(one.label, language)) for one in option_set.options.all()],
    )
