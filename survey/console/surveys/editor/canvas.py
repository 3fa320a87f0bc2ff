"""Render a page of a draft as respondents see it, with all of its questions."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import cached_property
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from survey.console.surveys.editor.outline import Outline, PageEntry
from survey.console.surveys.editor.panels import SHOWN_OPTIONS
from survey.console.surveys.rule_words import RuleWords
from survey.instrument.definitions.schema import Expr, SurveyDefinition
from survey.instrument.xlsform.writing import as_text
from survey.taking.rendering import Localizer, render_page


@dataclass(frozen=True)
class Canvas:
    """`page` is None for a draft without pages."""

    outline: Outline
    page: PageEntry | None
    language: str
    shows_all_options: bool = False

    @cached_property
    def html(self) -> str:
        definition = self.outline.reading.drawn_definition
        if definition is None or self.page is None:
            return ""
        if self.page.number > len(definition["pages"]):
            return ""
        return render_page(
            self.with_short_lists(definition), self.language, self.page.number
        )

    def with_short_lists(self, definition: SurveyDefinition) -> SurveyDefinition:
        """Cut lists of options that nobody looks through here. Badges say so."""
        if self.shows_all_options:
            return definition
        option_sets = {
            name: options[:SHOWN_OPTIONS]
            for name, options in definition["option_sets"].items()
        }
        return {**definition, "option_sets": option_sets}

    @cached_property
    def direction(self) -> str:
        definition = self.outline.reading.drawn_definition
        for language in definition["languages"] if definition else ():
            if language["code"] == self.language:
                return language["direction"]
        return "ltr"

    def marks(self) -> dict[str, object]:
        """Return the key and the badges of each part of the page, by its HTML id."""
        definition = self.outline.reading.drawn_definition
        if definition is None or self.page is None:
            return {"items": {}, "blocks": {}, "page": ""}
        numbers = {
            entry.name: entry.number
            for page in self.outline.pages
            for entry in page.entries
            if entry.number
        }
        words = RuleWords(definition, Localizer.of(definition, self.language), numbers)
        items = {}
        for entry in self.page.entries:
            if entry.name not in definition["items"]:
                continue
            item = definition["items"][entry.name]
            badges = []
            if (relevant := item.get("relevant")) is not None:
                badges.append(self.shown_if(words, relevant, entry.name))
            if isinstance(item.get("required"), list):
                badges.append(_("Required if …"))
            if item.get("randomize"):
                badges.append(_("Shuffled"))
            options = definition["option_sets"].get(item.get("option_set", ""), ())
            if len(options) > SHOWN_OPTIONS and not self.shows_all_options:
                badges.append(
                    _("The first %(shown)s of %(count)s options")
                    % {"shown": SHOWN_OPTIONS, "count": f"{len(options):,}"}
                )
            items[entry.name] = {
                "key": entry.key,
                "badges": badges,
                # Once for all languages.
                "problems": [
                    *dict.fromkeys(capfirst(row.reason) for row in entry.problems)
                ],
                "missing": _("No text yet") if entry.is_unfinished else "",
            }
        return {"items": items, "blocks": self.blocks(), "page": self.page.key}

    def shown_if(self, words: RuleWords, relevant: Expr, name: str) -> str:
        try:
            condition = words.condition(relevant, name)
        except (KeyError, ValueError):
            condition = as_text(relevant)
        return _("Shown if %(condition)s") % {"condition": condition}

    def blocks(self) -> dict[str, str]:
        """Return the key of each block that has a row of its own, by its position."""
        draft = self.outline.reading.draft
        if draft is None or self.page is None:
            return {}
        page = draft.pages[self.page.number - 1]
        return {
            str(position): self.outline.reading.rows[block.row.number].key
            for position, block in enumerate(page.blocks)
            if block.row is not None
        }
