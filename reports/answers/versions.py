"""Read the versions of a survey, and how the answers to their items are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import DEFAULT_DB_ALIAS

from survey.instrument.definitions.expressions import references
from survey.instrument.definitions.rule_dependencies import deciding_rules
from survey.instrument.definitions.rules import is_computed
from survey.instrument.definitions.schema import (
    SHORT_KINDS,
    ItemDefinition,
    Measures,
    OptionDefinition,
    SurveyDefinition,
    Texts,
)
from survey.models import Administration, PublishedSurvey, SurveyMeasures

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# `or_other` adds a text question with the name of the choice and this.
OTHER_TEXT = "_other"


@dataclass(frozen=True, slots=True)
class SurveyVersion:
    """One published survey, and how to read its answers."""

    digest: str
    definition: SurveyDefinition
    measures: Measures | None = None

    @property
    def name(self) -> str:
        return self.definition["version"]

    @property
    def items(self) -> Mapping[str, ItemDefinition]:
        return self.definition["items"]

    def exported(self) -> list[str]:
        """Return the names of the items that have a value, page by page."""
        return [
            name
            for page in self.definition["pages"]
            for block in page["blocks"]
            for name in block["items"]
            if self.items[name]["kind"] != "note"
        ]

    def options(self, item: ItemDefinition) -> Sequence[OptionDefinition]:
        # Its single option is not in the definition.
        if item["kind"] == "acknowledge":
            return ({"value": "OK", "label": {}, "attributes": {}},)
        return self.definition["option_sets"].get(item.get("option_set", ""), [])

    def comes_as_json(self, item: ItemDefinition) -> bool:
        """Return whether a value could contain a separator of the stream.

        Such values are JSON there (see `snapshot`).
        """
        return item["kind"] not in SHORT_KINDS or any(
            CONTROL.search(option["value"]) for option in self.options(item)
        )

    def has_typed_text(self, name: str) -> bool:
        """Return whether answers have words that people typed, or are made of them."""
        return any(
            self.items[source]["kind"] == "text" and not self.is_computed(source)
            for source in self.sources(name)
        )

    def sources(self, name: str) -> frozenset[str]:
        """Return the item itself and all items that its value tells about.

        A calculation tells about what it reads, and the text for "Other" about the
        choice.
        """
        if not self.is_computed(name):
            choice = name.removesuffix(OTHER_TEXT)
            return frozenset((name, choice) if choice in self.items else (name,))
        return frozenset((name,)).union(
            *(
                self.sources(source)
                for rule in deciding_rules(self.items[name])
                for source in references(rule)
                if source in self.items
            )
        )

    def is_computed(self, name: str) -> bool:
        item = self.items[name]
        return item["kind"] == "hidden" or is_computed(item)

    def in_language(self, texts: Texts | str, language: str) -> str:
        """Return the text in a language, or else in the survey's first one."""
        if isinstance(texts, str):
            return texts
        first = self.definition["languages"][0]["code"]
        return texts.get(language) or texts.get(first, "")


def versions_of(administrations: Iterable[Administration]) -> dict[str, SurveyVersion]:
    """Return the survey versions by digest, the newest first. 1 statement."""
    versions: list[PublishedSurvey] = [
        administration.published for administration in administrations
    ]
    versions.sort(key=lambda published: published.published_at, reverse=True)
    known = SurveyMeasures.objects.using(DEFAULT_DB_ALIAS)
    measures = known.in_bulk({published.survey_id for published in versions})
    return {
        published.digest: SurveyVersion(
            published.digest,
            json.loads(published.definition),
            measures[published.survey_id].content
            if published.survey_id in measures
            else None,
        )
        for published in versions
    }
