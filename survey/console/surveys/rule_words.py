"""Say the rules of a survey in words, for people who do not write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from django.utils.translation import gettext as _

from survey.instrument.definitions.expressions import columns_of, references
from survey.instrument.definitions.schema import Expr, SurveyDefinition
from survey.instrument.drafts.conditions import COLUMN, THIS, Subject, group_of
from survey.instrument.drafts.rule_sentences import sentence_of
from survey.instrument.xlsform.writing import as_text
from survey.taking.rendering import Localizer


class RuleWords:
    """`numbers` has the number of each question that people answer."""

    def __init__(
        self,
        definition: SurveyDefinition,
        localizer: Localizer,
        numbers: dict[str, int],
    ) -> None:
        self.definition = definition
        self.localizer = localizer
        self.numbers = numbers

    def rules_of(self, name: str) -> Iterator[str]:
        """Yield a sentence for each rule of an item."""
        item = self.definition["items"][name]
        required = item.get("required")
        if required is True:
            yield _("An answer is required.")
        elif required:
            yield _("An answer is required if %(condition)s.") % {
                "condition": self.condition(required, name)
            }
        if (relevant := item.get("relevant")) is not None:
            yield _("Shown only if %(condition)s.") % {
                "condition": self.condition(relevant, name)
            }
        if (constraint := item.get("constraint")) is not None:
            yield _("Accepted only if %(condition)s.") % {
                "condition": self.condition(constraint, name)
            }
        if (choice_filter := item.get("choice_filter")) is not None:
            yield _("Options are shown where %(choice_filter)s.") % {
                "choice_filter": self.condition(choice_filter, name)
            }
        if scale := item.get("range"):
            yield (
                _("From %(start)s to %(end)s in steps of %(step)s.")
                % {"start": scale["start"], "end": scale["end"], "step": scale["step"]}
            )
        if item.get("randomize"):
            yield _("The order of the options differs for each person.")
        if item.get("read_only"):
            yield _("Cannot be changed.")

    def condition(self, expr: Expr, of_item: str) -> str:
        """Say a rule; one that computes something is shown as it was written."""
        subjects = {
            THIS if name == of_item else name: self.subject(name, of_item)
            for name in references(expr)
            if name in self.numbers or name == of_item
        }
        for name in columns_of(expr):
            phrase = _("the option’s %(column)s") % {"column": name}
            subject = Subject(COLUMN + name, "column", phrase=phrase)
            if name == "name":
                options = self.subject(of_item, of_item).options
                subject = replace(subject, phrase=_("the option"), options=options)
            subjects[COLUMN + name] = subject
        group = group_of(expr, subjects)
        return as_text(expr) if group is None else sentence_of(group, subjects)

    def subject(self, name: str, of_item: str) -> Subject:
        item = self.definition["items"][name]
        options = self.definition["option_sets"].get(item.get("option_set", ""), [])
        phrase = _("the answer")
        if name != of_item:
            phrase = _("the answer to question %(number)s") % {
                "number": self.numbers[name]
            }
        return Subject(
            name,
            item["kind"],
            options=tuple(
                (option["value"], self.localizer.plain(option["label"]))
                for option in options
            ),
            phrase=phrase,
        )
