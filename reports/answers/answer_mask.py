"""Apply the rules of a survey again, to all answers of a respondent.

Saving a page checks only what the page itself knows. So an answer may be
stored although an answer on another page made its item inapplicable later:
such answers are masked here. Calculations are evaluated here as well. Most
surveys need neither. In others only the items concerned are looked at, and
respondents with the same inputs share one evaluation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from reports.answers.snapshot import NOT_APPLICABLE, SKIPPED
from reports.answers.versions import SurveyVersion
from survey.instrument.definitions.expressions import labels_of, reads_clock
from survey.instrument.definitions.piping import piped_in_labels
from survey.instrument.definitions.rule_dependencies import deciding_rules, items_read
from survey.instrument.definitions.rules import values_of

MOST_CACHED = 20_000
# Item -> whether it is relevant; item -> its value.
Outcome = tuple[Mapping[str, bool], Mapping[str, str]]


class AnswerMask:
    """The rules of one version. If `concerned` is empty there is nothing to do."""

    def __init__(self, version: SurveyVersion, zone: tzinfo) -> None:
        self._version = version
        self._zone = zone
        items = version.items
        self.concerned = [name for name in version.exported() if self.concerns(name)]

        # The concerned items, and all items that their rules read.
        piped = piped_in_labels(version.definition["option_sets"])
        needed: set[str] = set()
        waiting = list(self.concerned)
        while waiting:
            name = waiting.pop()
            if name in needed or name not in items:
                continue
            needed.add(name)
            for rule in deciding_rules(items[name]):
                waiting.extend(items_read(rule, items, piped))

        self._names = [name for name in version.definition["order"] if name in needed]
        rules = [rule for name in self._names for rule in deciding_rules(items[name])]
        self.reads_clock = any(map(reads_clock, rules))
        self.reads_labels = any(map(labels_of, rules))
        self.inputs = {
            int(items[name]["id"]): name
            for name in self._names
            if not version.is_computed(name)
        }
        self._json = {
            int(item["id"]) for item in items.values() if version.comes_as_json(item)
        }
        self._page = {int(item["id"]): item["page"] for item in items.values()}
        self._cache: dict[tuple[object, ...], Outcome] = {}

    def concerns(self, name: str) -> bool:
        """Return whether an item is computed, or depends on another page."""
        item = self._version.items[name]
        if self._version.is_computed(name):
            return True
        return "relevant" in item and "relevant" not in item.get("local", ())

    def applied(
        self,
        items: Sequence[int],
        answers: Sequence[str],
        *,
        finished: bool,
        at: float,
        language: str,
    ) -> tuple[list[int], list[str]]:
        """Return the items and answers to export.

        Stored answers keep their places. Calculations and items that were
        passed by follow. `at` is the time for rules that read the clock.
        """
        given = dict(zip(items, answers, strict=True))
        relevant, values = self.outcome(given, at, language)
        # Pages up to the last answered one were passed by.
        last_page = max((self._page[item] for item in items), default=0)
        for name in self.concerned:
            item = self._version.items[name]
            key = int(item["id"])
            seen = key in given or finished or item["page"] <= last_page
            if not relevant[name]:
                if seen:
                    given[key] = NOT_APPLICABLE
            elif self._version.is_computed(name) and seen:
                value = values[name]
                text = json.dumps(value) if key in self._json else value
                given[key] = text if value else SKIPPED
        return list(given), list(given.values())

    def outcome(self, given: Mapping[int, str], at: float, language: str) -> Outcome:
        """Apply the rules to stored answers, which are those of `inputs` or more."""
        moment = datetime.fromtimestamp(at, self._zone)
        key = (
            tuple(map(given.get, self.inputs)),
            moment if self.reads_clock else None,
            language if self.reads_labels else None,
        )
        outcome = self._cache.get(key)
        if outcome is None:
            answers = {
                name: json.loads(given[item]) if item in self._json else given[item]
                for item, name in self.inputs.items()
                if item in given and not given[item].startswith("\x02")
            }
            state = values_of(
                self._version.definition,
                answers,
                names=self._names,
                today=moment.date().isoformat(),
                now=moment.isoformat(),
                language=language,
            )
            # Cleared as a whole: evaluating again costs less than
            # remembering which outcome is the oldest.
            if len(self._cache) >= MOST_CACHED:
                self._cache.clear()
            outcome = self._cache[key] = (state.relevant, state.values)
        return outcome
