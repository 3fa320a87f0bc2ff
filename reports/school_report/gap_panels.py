"""Draw the scores of groups, and say how far they are apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from reports.releases.counting import GroupKey
from reports.results.menu import attribute_label, group_label, value_label
from reports.school_report.parts import (
    MIDDLE_LINE,
    STRIP,
    SurveyTexts,
    dot,
    interval,
    plain_area,
    strip,
)
from reports.scores.gaps import Gap, Size, gaps_between, judged
from reports.scores.scale import CERTAIN, HIGHEST, LOWEST
from reports.scores.visible import Scores, VisibleScore
from reports.scores.visible_groups import GroupScores, people_deviation
from reports.suppression import HIDDEN
from survey.instrument.definitions.schema import Measures
from survey.taking.rendering import Text

# Of gaps that are more than chance.
SIZES = {
    Size.SMALL: gettext_lazy("A small gap."),
    Size.MODERATE: gettext_lazy("A moderate gap."),
    Size.LARGE: gettext_lazy("A large gap."),
    Size.UNKNOWN: gettext_lazy("A gap that is more than chance."),
}


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group, with its score on one theme or measure: a row of a chart and a table."""

    name: str
    # None is hidden.
    score: VisibleScore | None

    @property
    def text(self) -> str:
        return str(self.score.of_answers[0]) if self.score else HIDDEN

    @property
    def people(self) -> str:
        return f"{self.score.people:,}" if self.score and self.score.people else ""

    @property
    def ends(self) -> tuple[int, int] | None:
        """Return the ends of the 95 % interval; None without an error."""
        if self.score is None or self.score.of_answers[1] is None:
            return None
        points, error = self.score.of_answers
        margin = CERTAIN * round(error or 0.0, 1)
        low, high = round(points - margin), round(points + margin)
        return max(low, LOWEST), min(high, HIGHEST)

    @property
    def interval(self) -> str:
        if self.ends is None:
            return ""
        low, high = self.ends
        return _("Between %(low)s and %(high)s") % {"low": low, "high": high}

    @property
    def range(self) -> str:
        """Return the ends of the interval, for a table."""
        return "" if self.ends is None else f"{self.ends[0]}–{self.ends[1]}"


@dataclass(frozen=True)
class GapPanel:
    """The scores of an attribute's groups on one theme or measure."""

    name: str
    label: Text
    is_positive: bool
    everyone: VisibleScore
    lines: Sequence[GroupLine]
    gaps: Sequence[Gap] = ()

    @property
    def sentences(self) -> list[tuple[str, str]]:
        """Return what each gap is called, and how large it is."""
        return [(gap_verdict(gap), gap_sentence(gap)) for gap in self.gaps]

    @property
    def pictures(self) -> list[tuple[GroupLine, SafeString]]:
        """Draw a dot with its interval for each group, and a line for everyone."""
        middle = STRIP * self.everyone.of_answers[0]
        line = (
            f'<line class="everyone" stroke="{MIDDLE_LINE}" stroke-dasharray="2 1.5"'
            f' x1="{middle}" x2="{middle}" y1="1" y2="15" />'
        )
        pictures = []
        for group in self.lines:
            parts = [str(plain_area()), line]
            if group.score:
                low, high = group.ends or (0, 0)
                if group.ends:
                    parts.append(interval(STRIP * low, STRIP * high))
                parts.append(dot(STRIP * group.score.of_answers[0]))
            title = ". ".join(
                filter(None, (f"{group.name}: {group.text}", group.interval))
            )
            pictures.append((group, strip("".join(parts), title)))
        return pictures


@dataclass(frozen=True)
class AttributeGaps:
    """The groups of one attribute at one place."""

    attribute: str
    label: str
    panels: Sequence[GapPanel]
    # Groups on the roster without any score here.
    hidden: Sequence[str] = field(default=())

    @property
    def shows_hidden(self) -> bool:
        lines = (line for panel in self.panels for line in panel.lines)
        return any(line.score is None for line in lines)

    @property
    def gaps(self) -> list[Gap]:
        return [gap for panel in self.panels for gap in panel.gaps]

    @property
    def is_by_school(self) -> bool:
        """Test that all errors know that people of the same school are alike."""
        known = self._known_by_school
        return bool(known) and all(known)

    @property
    def is_partly_by_school(self) -> bool:
        return any(self._known_by_school) and not self.is_by_school

    @property
    def _known_by_school(self) -> list[bool]:
        """Return of each score that is shown whether it has an error by school."""
        scores = (line.score for panel in self.panels for line in panel.lines)
        return [score.school_error is not None for score in scores if score]

    @property
    def rows(self) -> list[tuple[str, list[GroupLine]]]:
        """Return the name of each group, and its line of each panel."""
        lines = zip(*(panel.lines for panel in self.panels), strict=True)
        return [(of_group[0].name, list(of_group)) for of_group in lines]

    @property
    def certain(self) -> list[tuple[GapPanel, str, str]]:
        """Return the gaps that are more than chance, in words."""
        return [
            (panel, gap_verdict(gap), gap_sentence(gap))
            for panel in self.panels
            for gap in panel.gaps
            if gap.is_certain
        ]

    @property
    def summary(self) -> str:
        """Say how many gaps there are, of so many that are looked at."""
        gaps = self.gaps
        certain = sum(gap.is_certain for gap in gaps)
        if not gaps:
            return ""
        if not certain:
            return ngettext(
                "%(n)s gap is looked at, which is no more than chance explains.",
                "%(n)s gaps are looked at, and none is more than chance explains.",
                len(gaps),
            ) % {"n": len(gaps)}
        words = ngettext(
            "%(certain)s of %(n)s gap is more than chance; %(small)s of these is"
            " small.",
            "%(certain)s of %(n)s gaps are more than chance; %(small)s of these are"
            " small.",
            len(gaps),
        )
        small = sum(gap.is_certain and gap.size is Size.SMALL for gap in gaps)
        return words % {"certain": certain, "n": len(gaps), "small": small}


def gaps_by_attribute(
    texts: SurveyTexts,
    names: Sequence[str],
    everyone: Scores,
    groups: GroupScores,
    roster_groups: Iterable[GroupKey],
    attributes: Sequence[str],
) -> list[AttributeGaps]:
    """Return these attributes with the groups of a place.

    `names` are the themes and measures to show, of which `everyone` are the place's
    scores. All gaps are tested together.
    """
    by_attribute = [
        _of_attribute(texts, names, everyone, groups, roster_groups, attribute)
        for attribute in attributes
    ]
    tested = iter(judged([gap for each in by_attribute for gap in each.gaps]))
    return [
        replace(
            each,
            panels=[
                replace(panel, gaps=[next(tested) for _gap in panel.gaps])
                for panel in each.panels
            ],
        )
        for each in by_attribute
    ]


def _of_attribute(
    texts: SurveyTexts,
    names: Sequence[str],
    everyone: Scores,
    groups: GroupScores,
    roster_groups: Iterable[GroupKey],
    attribute: str,
) -> AttributeGaps:
    values = [value for name, value in roster_groups if name == attribute]
    values += [value for name, value in groups if name == attribute]
    # People whose value is not known come last.
    values = sorted(set(values), key=lambda value: (not value, value))
    shown = {
        value: groups[attribute, value]
        for value in values
        if (attribute, value) in groups
    }
    panels = []
    for name in names if shown else ():
        of_everyone = everyone.get(name)
        if of_everyone is None:
            continue
        scores = {value: scores.get(name) for value, scores in shown.items()}
        known = {
            group_label(attribute, value): score
            for value, score in scores.items()
            if value and score
        }
        panels.append(
            GapPanel(
                *_titles(texts, name),
                of_everyone,
                [
                    GroupLine(group_label(attribute, value), score)
                    for value, score in scores.items()
                ],
                gaps_between(known, people_deviation(texts.content, name, everyone)),
            )
        )
    hidden = [value_label(attribute, value) for value in values if value not in shown]
    return AttributeGaps(attribute, attribute_label(attribute), panels, hidden)


def _titles(texts: SurveyTexts, name: str) -> tuple[str, Text, bool]:
    """Return the name, the label and the direction of a theme or measure."""
    content = texts.content
    for part in (*content["essentials"], *content["measures"]):
        if part["name"] == name:
            is_positive = part.get("direction", "positive") == "positive"
            return name, texts.text(part["label"], name), is_positive
    raise KeyError(name)


def theme_names(content: Measures) -> list[str]:
    """Return the essentials, and the measures without one."""
    essentials = [essential["name"] for essential in content["essentials"]]
    return essentials + [
        measure["name"]
        for measure in content["measures"]
        if measure["essential"] not in essentials
    ]


def gap_sentence(gap: Gap) -> str:
    """Say how large a gap is, and between which numbers it lies."""
    return f"{_difference(gap)} {_interval(gap)}"


def gap_verdict(gap: Gap) -> str:
    """Say what to call a gap."""
    if gap.is_certain:
        return str(SIZES[gap.size])
    if gap.is_at_most_small:
        return _("At most a small gap.")
    return _("Too uncertain to call a gap.")


def _difference(gap: Gap) -> str:
    compared = _("the other groups together")
    if gap.compared:
        compared = _("“%(group)s”") % {"group": gap.compared}
    points = round(gap.points)
    words = {"group": gap.group, "compared": compared, "points": abs(points)}
    if not points:
        return _("“%(group)s” scores about the same as %(compared)s.") % words
    if points > 0:
        return (
            ngettext(
                "“%(group)s” scores %(points)s point higher than %(compared)s.",
                "“%(group)s” scores %(points)s points higher than %(compared)s.",
                points,
            )
            % words
        )
    return (
        ngettext(
            "“%(group)s” scores %(points)s point lower than %(compared)s.",
            "“%(group)s” scores %(points)s points lower than %(compared)s.",
            -points,
        )
        % words
    )


def _interval(gap: Gap) -> str:
    low, high = gap.interval
    if low >= 0:
        words = _("95 %% interval: %(low)s to %(high)s points higher.")
    elif high <= 0:
        low, high = high, low
        words = _("95 %% interval: %(low)s to %(high)s points lower.")
    else:
        words = _("95 %% interval: %(low)s points lower to %(high)s points higher.")
    text = words % {"low": abs(low), "high": abs(high)}
    # On a phone, a line could end between them.
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def file_rows(
    groups: GroupScores, names: Sequence[str]
) -> Iterator[tuple[str, str, list[float | int | str | None]]]:
    """Yield attribute, value and figures of each group, as `FIGURES` names them."""
    for (attribute, value), scores in sorted(groups.items()):
        cells: list[float | int | str | None] = []
        for name in names:
            score = scores.get(name)
            if score is None:
                cells += [HIDDEN if name in scores else None] * len(FIGURES)
                continue
            points, error = score.of_answers
            rounded = None if error is None else round(error, 1)
            cells += [score.people, points, rounded]
        yield attribute, value, cells


# Columns of each measure in files; gaps can be calculated from them.
FIGURES = ("people", "mean", "mean standard error")
