"""Read the measures sheet: which items together measure one idea.

A row is a measure or, with the type `essential`, a group of measures. This sheet
is not part of XLSForm; other programs ignore it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from django.utils.translation import gettext as _

from survey.instrument.definitions.schema import MeasureDefinition, Measures, Texts
from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.draft import ItemDraft, OptionDraft
from survey.instrument.xlsform.names import why_not_a_name
from survey.instrument.xlsform.problems import Findings

ESSENTIAL, MEASURE = "essential", "measure"
POSITIVE, NEGATIVE = "positive", "negative"
# Fewer items say little about the fit of any of them.
FEWEST_ITEMS = 3
# As in SPSS's syntax for a reversed item.
REVERSED = "-"
MAX_MEASURES = 200


class MeasureReader:
    """Read the rows of the sheet with the survey's items and option sets."""

    def __init__(
        self,
        items: Mapping[str, ItemDraft],
        option_sets: Mapping[str, list[OptionDraft]],
        findings: Findings,
    ) -> None:
        self.items = items
        self.option_sets = option_sets
        self.findings = findings
        # Names of measures and essentials, and which measure has an item.
        self.rows: dict[str, int] = {}
        self.measure_of: dict[str, str] = {}

    def read(self, rows: list[SurveyRow]) -> Measures:
        measures: Measures = {"essentials": [], "measures": []}
        for row in rows[MAX_MEASURES:]:
            reason = _("more than %(most)s measures") % {"most": MAX_MEASURES}
            row.refuse(self.findings, "name", reason)
        rows = [row for row in rows[:MAX_MEASURES] if self._is_named(row)]
        for row in rows:
            if row.get("type").lower() == ESSENTIAL:
                name, label, description = row.get("name"), *self._texts(row)
                measures["essentials"].append(
                    {"name": name, "label": label, "description": description}
                )
        essentials = {essential["name"] for essential in measures["essentials"]}
        for row in rows:
            if row.get("type").lower() != ESSENTIAL:
                measures["measures"].append(self._measure(row, essentials))
        used = {measure["essential"] for measure in measures["measures"]}
        for row in rows:
            if row.get("name") in essentials - used:
                row.warn(self.findings, "name", _("no measure belongs to it"))
        return measures

    def _is_named(self, row: SurveyRow) -> bool:
        name = row.get("name")
        if row.get("type").lower() not in ("", ESSENTIAL, MEASURE):
            reason = _("neither measure nor essential")
            row.refuse(self.findings, "type", reason)
        if reason := why_not_a_name(name):
            row.refuse(self.findings, "name", reason)
            return False
        first = self.rows.setdefault(name, row.number)
        if first != row.number:
            reason = _("row %(first)s already has this name") % {"first": first}
            row.refuse(self.findings, "name", reason)
        return first == row.number

    def _texts(self, row: SurveyRow) -> tuple[Texts, Texts]:
        if not row.text("label"):
            row.refuse(self.findings, "label", _("has no label"), row.get("name"))
        return row.text("label"), row.text("description")

    def _measure(self, row: SurveyRow, essentials: set[str]) -> MeasureDefinition:
        essential = row.get("essential")
        if essential and essential not in essentials:
            row.refuse(
                self.findings,
                "essential",
                _("no row of this sheet has the type essential and this name"),
            )
        direction = row.get("direction").lower() or POSITIVE
        if direction not in (POSITIVE, NEGATIVE):
            row.refuse(self.findings, "direction", _("neither positive nor negative"))
        words = row.get("items").replace(",", " ").split()
        names = [word.removeprefix(REVERSED) for word in words]
        missing = row.get("missing").replace(",", " ").split()
        if self._are_items(row, names):
            self._check_scale(row, names, missing)
        label, description = self._texts(row)
        return {
            "name": row.get("name"),
            "label": label,
            "description": description,
            "essential": essential,
            "direction": direction,
            "items": [
                {"name": name, "reversed": word.startswith(REVERSED)}
                for word, name in zip(words, names, strict=True)
            ],
            "missing": missing,
        }

    def _are_items(self, row: SurveyRow, names: list[str]) -> bool:
        problems = []
        for name, count in Counter(names).items():
            item = self.items.get(name)
            if item is None:
                reason = _("the survey has no item %(name)s")
            elif item.kind != "select_one":
                reason = _("%(name)s does not have one answer out of a list")
            elif count > 1:
                reason = _("%(name)s is there twice")
            elif self.measure_of.setdefault(name, row.get("name")) != row.get("name"):
                reason = _("%(name)s belongs to the measure %(measure)s already")
            else:
                continue
            measure = self.measure_of.get(name, "")
            problems.append(reason % {"name": name, "measure": measure})
        if not problems and len(names) < FEWEST_ITEMS:
            problems.append(
                _("a measure needs at least %(fewest)s items")
                % {"fewest": FEWEST_ITEMS}
            )
        for problem in problems:
            row.refuse(self.findings, "items", problem)
        return not problems

    def _check_scale(
        self, row: SurveyRow, names: list[str], missing: list[str]
    ) -> None:
        """Refuse items with different lists: their categories do not compare."""
        values = {
            name: tuple(
                option.value for option in self.option_sets[self.items[name].option_set]
            )
            for name in names
            if self.items[name].option_set in self.option_sets
        }
        if len(set(values.values())) > 1:
            lists = {self.items[name].option_set for name in names}
            reason = _("its items have answers from different lists: %(lists)s") % {
                "lists": ", ".join(sorted(lists))
            }
            row.refuse(self.findings, "items", reason)
            return
        offered = set(next(iter(values.values()), ()))
        for value in missing:
            if value not in offered:
                row.refuse(
                    self.findings, "missing", _("not a value of its list"), value
                )
        if len(offered - set(missing)) < 2:
            row.refuse(self.findings, "missing", _("fewer than two answers are left"))
