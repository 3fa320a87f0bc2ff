"""Choose what a reader sees first: themes, strengths, and changes beyond chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reports.school_report.parts import (
    ReportPart,
    ScoreLine,
    dot,
    earlier_dot,
    interval,
    place_mark,
    strip,
)
from reports.scores.visible import VisibleScore

# Of strongest and of weakest measures, and of changes.
MOST = 3
# Width of a picture in the legend.
KEY = 14


@dataclass(frozen=True, slots=True)
class Overview:
    """Chosen and sorted by nothing but the scores that the page shows."""

    # Essentials, and measures without one.
    themes: Sequence[ReportPart]
    # Measures that differ from the place's mean by more than their error; the most
    # telling one first.
    strongest: Sequence[ReportPart]
    weakest: Sequence[ReportPart]
    # Whether there are measures to compare.
    is_compared: bool
    # Essentials and measures whose change is more than chance; the largest one first.
    changed: Sequence[ReportPart]
    # Each theme with its measures.
    measures: Mapping[str, Sequence[ReportPart]]

    @classmethod
    def of(
        cls,
        essentials: Sequence[tuple[ReportPart, Sequence[ReportPart]]],
        other_measures: Sequence[ReportPart],
    ) -> Overview:
        measures = [part for _essential, parts in essentials for part in parts]
        measures += other_measures
        scored = [part for part in measures if part.own_line.score]
        mean = sum(part.strength for part in scored) / max(len(scored), 1)
        # Equal ones keep the order of the survey.
        outstanding = sorted(
            (part for part in scored if part.differs_from(mean)),
            key=lambda part: -abs(part.strength - mean),
        )
        headlines = [essential for essential, _parts in essentials]
        # A theme of a single measure changes with it.
        mixed = [essential for essential, parts in essentials if len(parts) > 1]
        changed = [
            (abs(part.change.difference), part)
            for part in (*mixed, *measures)
            if part.change and part.change.exceeds_error
        ]
        changed.sort(key=lambda pair: -pair[0])
        return cls(
            [*headlines, *other_measures],
            [part for part in outstanding if part.strength > mean][:MOST],
            [part for part in outstanding if part.strength < mean][:MOST],
            sum(part.own_line.margin is not None for part in scored) > 1,
            [part for _difference, part in changed[:MOST]],
            {essential.name: parts for essential, parts in essentials},
        )

    def of_theme(self, name: str) -> list[ReportPart]:
        """Return a theme followed by its measures."""
        themes = [part for part in self.themes if part.name == name]
        return [*themes, *self.measures.get(name, ())]

    @property
    def shows_hidden(self) -> bool:
        return any(line.is_hidden for line in self._lines)

    @property
    def shows_errors(self) -> bool:
        return any(line.error for line in self._lines)

    @property
    def shows_school_errors(self) -> bool:
        """Test that errors of larger places know that people of a school are alike."""
        scores = (line.score for line in self._lines)
        return any(score and score.school_error is not None for score in scores)

    @property
    def compares_larger_place(self) -> bool:
        """Test that there are changes of a larger place with errors by school."""
        return bool(self._changes)

    @property
    def shows_school_errors_of_changes(self) -> bool:
        """Test that the errors of all these changes are by school, too."""
        return all(
            now.school_error_of_change(before) is not None
            for before, now in self._changes
        )

    @property
    def _changes(self) -> list[tuple[VisibleScore, VisibleScore]]:
        """Return the scores of last time and this time, of a larger place."""
        return [
            (before.score, now)
            for part in self._parts
            if (now := part.own_line.score)
            if (before := part.last_time) and before.score
            if before.score.change_errors is not None
        ]

    @property
    def _parts(self) -> Iterator[ReportPart]:
        return chain(self.themes, *self.measures.values())

    @property
    def _lines(self) -> Iterator[ScoreLine]:
        for part in self._parts:
            yield from part.places
            yield from part.trend

    @property
    def has_uncertain_change(self) -> bool:
        changes = [part.change for part in self.themes]
        return any(change and change.exceeds_error is False for change in changes)

    @property
    def sentence(self) -> str:
        """Say how many themes are strong; a doubtful band does not count as that."""
        scored = [part for part in self.themes if part.own_line.score]
        banded = [part for part in scored if part.own_line.band]
        strong = sum(
            part.is_strong and not part.own_line.is_doubtful for part in banded
        )
        possible = sum(part.could_be_strong for part in banded) - strong
        if not banded:
            return ""
        total, without_band = len(scored), len(scored) - len(banded)
        words = _("No theme is clearly strong.")
        if strong:
            words = ngettext(
                "%(strong)s of %(total)s theme is clearly strong.",
                "%(strong)s of %(total)s themes are clearly strong.",
                total,
            ) % {"strong": strong, "total": total}
        if possible:
            more = ngettext(
                "%(possible)s could be strong.",
                "%(possible)s could be strong.",
                possible,
            )
            words = f"{words} {more % {'possible': possible}}"
        if without_band:
            rest = ngettext(
                "%(themes)s is not rated.", "%(themes)s are not rated.", without_band
            )
            words = f"{words} {rest % {'themes': without_band}}"
        return words

    @property
    def legend(self) -> list[tuple[SafeString, str]]:
        """Return the marks of the pictures, and what they stand for."""
        first = next(iter(self.themes), None)
        if first is None:
            return []
        picture = f"{interval(0, KEY)}{dot(KEY / 2)}"
        entries = [(strip(picture, _("Dot and line"), KEY), first.own_line.name)]
        before = [part.last_time.name for part in self._parts if part.last_time]
        if before:
            words = _("Last time: %(name)s") % {"name": before[0]}
            entries.append((strip(earlier_dot(KEY / 2), _("Circle"), KEY), words))
        titles = _("Triangle below"), _("Triangle above")
        for number, line in enumerate(first.places[1:]):
            if not any(part.places[number + 1].score for part in self.themes):
                continue
            shape = min(number, 1)
            mark = place_mark(shape, KEY / 2, middle=8)
            entries.append((strip(mark, titles[shape], KEY), line.name))
        return entries
