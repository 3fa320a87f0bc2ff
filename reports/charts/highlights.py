"""Name the questions that stand out, and those whose answers have changed.

Everything is chosen by the figures that the page's charts show: numbers that are hidden
or coded are not here, so nothing about them follows from what is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reports.charts.changes import Change, change_of_share, margin_of_share
from reports.charts.charts import ItemChart, chart_pages
from reports.charts.sentences import (
    Share,
    answered_words,
    exact_share,
    quoted,
    share_of_answers,
)
from reports.results.visible import VisibleGroup
from survey.instrument.definitions.scales import agreement_scales
from survey.instrument.definitions.schema import Measures, SurveyDefinition
from survey.taking.rendering import Text

# Of strongest and of weakest questions, and of changes.
MOST = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a measure, with how many gave an answer on its good side."""

    stem: Text
    chart: ItemChart
    # The answers on the good side, among the segments.
    answers: slice
    share: Share
    # Since last time; None if a number is not shown, or the question was another one.
    change: Change | None = None

    @property
    def answered(self) -> int:
        return self.chart.rows[0].answered or 0

    @property
    def good_answers(self) -> str:
        return quoted(self.chart.rows[0].segments[self.answers])

    @property
    def words(self) -> str:
        segments = self.chart.rows[0].segments[self.answers]
        return answered_words(self.share, segments)

    @property
    def least_likely(self) -> float:
        """Return the lower end of the share's 95 % interval, in percent."""
        return self.share.least - margin_of_share(self.share.least, self.answered)

    @property
    def most_likely(self) -> float:
        return self.share.most + margin_of_share(self.share.most, self.answered)


@dataclass(frozen=True, slots=True)
class Highlights:
    """The questions that stand out in the figures of one place and group."""

    questions: Sequence[Question]
    # Questions on a scale of which a number is not shown.
    without_figures: int
    # Name of the earlier figures; "" if there are none to compare with.
    compared: str
    # Those that differ from the mean of all by more than chance explains, and how many
    # more have as many percent as the last one.
    strongest: Sequence[Question]
    more_strong: int
    weakest: Sequence[Question]
    more_weak: int
    # By more than chance; the largest change first.
    changed: Sequence[Question]
    # Whether the survey says which answers are good.
    has_directions: bool

    @classmethod
    def of(
        cls,
        questions: Sequence[Question],
        without_figures: int = 0,
        compared: str = "",
        *,
        has_directions: bool = True,
    ) -> Highlights:
        ranked = questions if has_directions else ()
        number = max(len(ranked), 1)
        highest = sum(each.share.most for each in ranked) / number
        lowest = sum(each.share.least for each in ranked) / number
        # Equal ones keep the order of the survey.
        strong = [each for each in ranked if each.least_likely > highest]
        strong.sort(key=lambda each: -round(each.share.least))
        weak = [each for each in ranked if each.most_likely < lowest]
        weak.sort(key=lambda each: round(each.share.most))
        changed = [
            (abs(each.change.difference), each)
            for each in questions
            if each.change and each.change.exceeds_error
        ]
        changed.sort(key=lambda pair: -pair[0])
        return cls(
            questions,
            without_figures,
            compared,
            strongest=strong[:MOST],
            more_strong=_tied(strong),
            weakest=weak[:MOST],
            more_weak=_tied(weak),
            changed=[each for _difference, each in changed[:MOST]],
            has_directions=has_directions,
        )

    @property
    def scope(self) -> str:
        """Say from how many questions these are, and how many people answered."""
        people = [each.answered for each in self.questions]
        low, high = f"{min(people):,}", f"{max(people):,}"
        if low != high:
            low = _("%(low)s to %(high)s") % {"low": low, "high": high}
        words = ngettext(
            "%(n)s question on a scale is compared; %(people)s people answered it.",
            "%(n)s questions on a scale are compared; %(people)s people answered each.",
            len(people),
        ) % {"n": len(people), "people": low}
        if not self.without_figures:
            return words
        left_out = ngettext(
            "%(n)s more is not, because its figures are hidden.",
            "%(n)s more are not, because their figures are hidden.",
            self.without_figures,
        )
        return f"{words} {left_out % {'n': self.without_figures}}"

    @property
    def has_changes(self) -> bool:
        """Test that a question has a number now and last time."""
        return any(each.change for each in self.questions)


def _tied(questions: Sequence[Question]) -> int:
    """Return how many have as many percent as the last one that is named."""
    words = [each.share.words for each in questions]
    return words[MOST:].count(words[MOST - 1]) if len(words) > MOST else 0


def highlights_of(
    definition: SurveyDefinition,
    language: str,
    measures: Measures | None,
    place: Mapping[str, VisibleGroup | None],
    compared: Mapping[str, VisibleGroup | None],
    compared_definition: SurveyDefinition | None = None,
) -> Highlights:
    """Return what stands out in the figures of a place.

    The arguments are those of `chart_pages`, with a single place. Without measures,
    nothing says which answers are good: only changes are named.
    """
    good_sides = _good_sides(measures)
    scales = agreement_scales(definition, measures)
    pages = chart_pages(
        *(definition, language, measures, place, compared),
        compared_definition=compared_definition,
        only=good_sides or scales,
    )
    questions = []
    without = 0
    for page in pages:
        for stem, charts in page.blocks:
            for chart in charts:
                if chart.kind != "scale":
                    continue
                steps = len(chart.columns) - len(scales[chart.name])
                is_upper = good_sides.get(chart.name, True)
                half = steps // 2
                answers = slice(steps - half, steps) if is_upper else slice(half)
                if question := _question(stem, chart, answers):
                    questions.append(question)
                else:
                    without += 1
    name = next((name for name, group in compared.items() if group), "")
    return Highlights.of(questions, without, name, has_directions=bool(good_sides))


def _good_sides(measures: Measures | None) -> dict[str, bool]:
    """Return for each item of a measure whether its last answers are the good ones."""
    return {
        item["name"]: (measure["direction"] == "positive") != item["reversed"]
        for measure in (measures["measures"] if measures else ())
        for item in measure["items"]
    }


def _question(stem: Text, chart: ItemChart, answers: slice) -> Question | None:
    """Return None if the chart does not show how many gave these answers."""
    now, *beside = chart.rows
    share = share_of_answers(now, answers) if now.answered else None
    if share is None:
        return None
    change = None
    before = next((row for row in beside if row.is_compared and row.answered), None)
    if before and not chart.compared_label and not share.sign:
        earlier = share_of_answers(before, answers)
        if earlier and not earlier.sign:
            change = change_of_share(now, before, lambda row: exact_share(row, answers))
    return Question(stem, chart, answers, share, change)
