"""The rules of a survey, once more, over answers that are complete.

A page is saved by what it knows itself, so an answer may stand in the database
although another page's answer made its item inapplicable later: it is masked
here. Calculations are worked out here as well. Most surveys need neither, and
of the others only the items concerned are looked at; respondents with the same
answers to what those rules read are looked at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from reports.exports.columns import Version
from reports.exports.snapshot import NOT_APPLICABLE, SKIPPED
from survey.definitions.expressions import labels_of, reads_clock, references
from survey.definitions.rule_dependencies import deciding_rules
from survey.definitions.rules import values_of
from survey.definitions.schema import ItemDefinition

MOST_KEPT = 20_000
Outcome = tuple[Mapping[str, bool], Mapping[str, str]]


class Rules:
    """Of one version; `concerned` is empty where there is nothing to do."""

    def __init__(self, version: Version, zone: tzinfo) -> None:
        self._version = version
        self._zone = zone
        items = version.items
        self.concerned = [name for name in version.exported() if self._is_needed(name)]
        needed = _with_what_they_read(self.concerned, items)
        self._names = [name for name in version.definition["order"] if name in needed]
        rules = [rule for name in self._names for rule in deciding_rules(items[name])]
        self._reads_clock = any(map(reads_clock, rules))
        self._reads_labels = any(map(labels_of, rules))
        self._inputs = {
            int(items[name]["id"]): name
            for name in self._names
            if not version.is_computed(name)
        }
        self._json = {
            int(item["id"]) for item in items.values() if version.comes_as_json(item)
        }
        self._page = {int(item["id"]): item["page"] for item in items.values()}
        self._kept: dict[tuple[object, ...], Outcome] = {}

    def _is_needed(self, name: str) -> bool:
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
        """Items and answers as they are to be exported.

        What is stored keeps its place; what is not, comes after it: items that
        were passed by, and calculations. `at` is when the rules' clock stands.
        """
        given = dict(zip(items, answers, strict=True))
        relevant, values = self._outcome(given, at, language)
        reached = max((self._page[item] for item in items), default=0)
        for name in self.concerned:
            item = self._version.items[name]
            key = int(item["id"])
            seen = key in given or finished or item["page"] <= reached
            if not relevant[name]:
                if seen:
                    given[key] = NOT_APPLICABLE
            elif self._version.is_computed(name) and seen:
                value = values[name]
                text = json.dumps(value) if key in self._json else value
                given[key] = text if value else SKIPPED
        return list(given), list(given.values())

    def _outcome(self, given: Mapping[int, str], at: float, language: str) -> Outcome:
        moment = datetime.fromtimestamp(at, self._zone)
        key = (
            tuple(map(given.get, self._inputs)),
            moment if self._reads_clock else None,
            language if self._reads_labels else None,
        )
        known = self._kept.get(key)
        if known is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            known = self._kept[key] = self._worked_out(given, moment, language)
        return known

    def _worked_out(
        self, given: Mapping[int, str], moment: datetime, language: str
    ) -> Outcome:
        answers = {
            name: json.loads(given[key]) if key in self._json else given[key]
            for key, name in self._inputs.items()
            if key in given and not given[key].startswith("\x02")
        }
        state = values_of(
            self._version.definition,
            answers,
            names=self._names,
            today=moment.date().isoformat(),
            now=moment.isoformat(),
            language=language,
        )
        return state.relevant, state.values


def _with_what_they_read(
    names: Sequence[str], items: Mapping[str, ItemDefinition]
) -> set[str]:
    needed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in needed or name not in items:
            continue
        needed.add(name)
        for rule in deciding_rules(items[name]):
            waiting.extend(references(rule))
    return needed
