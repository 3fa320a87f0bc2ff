"""Put together the parts of a report: an essential or a measure, with its scores."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from reports.answers.texts import COMMA, localizer_for, marked_text
from reports.releases.levels import Place
from reports.scores.scale import BANDS, CERTAIN, HIGHEST, LOWEST
from reports.scores.visible import (
    Scores,
    VisibleScore,
    measures_in_survey,
    span_of,
)
from reports.scores.words import (
    ScoreChange,
    band_tone,
    band_words,
    change_words,
    score_change,
    score_tone,
    score_words,
)
from reports.suppression import HIDDEN
from survey.instrument.definitions.schema import (
    EssentialDefinition,
    MeasureDefinition,
    Measures,
    Texts,
)
from survey.models import Administration
from survey.taking.published import published_survey
from survey.taking.rendering import Text

# Units of a strip in a score.
STRIP = 2
# Colors in files, which have no style sheet for them: of bands, dots and lines, and
# of the marks of the places around.
FILLS = ("#c98f45", "#f0dcbc", "#eef1f3", "#c5e4e0", "#7fc4bb")
MIDDLE_BAND = 2
# The first color of bands that are strong.
STRONG = 4
INK, MIDDLE_LINE = "#15232b", "#74848f"
POINT = f'class="point" fill="{INK}"'
MARK_FILLS = ("#fff", "#74848f")


@dataclass(frozen=True, slots=True)
class ScoreLine:
    """The score of one place or wave: a row of a table, with a strip as a chart."""

    name: str
    score: VisibleScore | None
    is_positive: bool = True
    # The change since the wave before.
    change: str = ""
    # Without a score: whether there is one.
    is_hidden: bool = False

    @property
    def text(self) -> str:
        if self.score:
            return str(self.score.score)
        return HIDDEN if self.is_hidden else "–"

    @property
    def text_and_words(self) -> str:
        return str(COMMA).join(filter(None, (self.text, self.words)))

    @property
    def error(self) -> str:
        margin = self.margin
        return "" if margin is None else f"±{margin:.1f}"

    @property
    def margin(self) -> float | None:
        """Return half the width of the 95 % interval; None without an error."""
        if self.score is None or self.score.error is None:
            return None
        # Of the error as it is published, so that both pages show the same.
        return CERTAIN * round(self.score.error, 1)

    @property
    def interval(self) -> str:
        """Say between which scores it would be in 95 of 100 surveys."""
        margin = self.margin
        if self.score is None or margin is None:
            return ""
        low = max(round(self.score.score - margin), LOWEST)
        high = min(round(self.score.score + margin), HIGHEST)
        return _("Between %(low)s and %(high)s") % {"low": low, "high": high}

    @property
    def words(self) -> str:
        if self.score is None:
            return ""
        return score_words(self.score, is_positive=self.is_positive)

    @property
    def band(self) -> str:
        """Return the words without doubt."""
        if self.score is None or not self.score.band:
            return ""
        return band_words(self.score.band, is_positive=self.is_positive)

    @property
    def is_doubtful(self) -> bool:
        return bool(self.band and self.score and self.score.is_doubtful)

    @property
    def tone(self) -> int:
        if self.score is None:
            return 0
        return score_tone(self.score, is_positive=self.is_positive)

    @property
    def position(self) -> int:
        return STRIP * self.score.score if self.score else 0

    @property
    def span(self) -> tuple[str, str]:
        """Return where the 95 % interval of the score begins and ends."""
        margin = self.margin or 0.0
        low, high = self.position - STRIP * margin, self.position + STRIP * margin
        return f"{max(low, 0):.1f}", f"{min(high, STRIP * (HIGHEST + 1)):.1f}"

    @property
    def areas(self) -> SafeString:
        """Return the bands; without color where the score is not reliable."""
        if self.score and not self.tone:
            return plain_area()
        return band_areas(is_positive=self.is_positive)


def plain_area() -> SafeString:
    return SafeString(
        f'<rect class="band-0" fill="{FILLS[MIDDLE_BAND]}" x="0" y="4"'
        f' width="{STRIP * (HIGHEST + 1)}" height="8" />'
    )


@cache
def band_areas(*, is_positive: bool) -> SafeString:
    """Return the rectangles of the bands in a strip."""
    ends = [*BANDS[1:], HIGHEST + 1]
    areas = []
    for number, (start, end) in enumerate(zip([0, *BANDS[1:]], ends, strict=True), 1):
        tone = band_tone(number, is_positive=is_positive)
        areas.append(
            f'<rect class="band-{tone}" fill="{FILLS[tone - 1]}" x="{STRIP * start}"'
            f' y="4" width="{STRIP * (end - start)}" height="8" />'
        )
    return SafeString("".join(areas))


def dot(x: float, *, is_faded: bool = False) -> str:
    style = f'class="point faded" fill="{MIDDLE_LINE}"' if is_faded else POINT
    return f'<circle {style} cx="{x}" cy="8" r="3.2" />'


def earlier_dot(x: float) -> str:
    return (
        f'<circle class="earlier" fill="#fff" stroke="{INK}" stroke-width="1"'
        f' cx="{x}" cy="8" r="2.4" />'
    )


def interval(low: float | str, high: float | str) -> str:
    return (
        f'<line class="error" stroke="{INK}" stroke-width="1.6" x1="{low}" x2="{high}"'
        ' y1="8" y2="8" />'
    )


def place_mark(number: int, x: float, middle: float | None = None) -> str:
    """Return the mark of the district, or of the state: below or above the band."""
    if number == 0:
        tip = 11.5 if middle is None else middle - 2.25
        shape = f"M{x} {tip}l2.6 4.5h-5.2z"
    else:
        tip = 4.5 if middle is None else middle + 2.25
        shape = f"M{x} {tip}l2.6-4.5h-5.2z"
    return (
        f'<path class="place-{number}" fill="{MARK_FILLS[number]}" stroke="{INK}"'
        f' stroke-width="0.6" d="{shape}" />'
    )


def strip(contents: str, title: str, width: int = STRIP * (HIGHEST + 1)) -> SafeString:
    # Files have neither the style sheets nor the width of the page.
    return SafeString(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 16"'
        f' width="{width}" height="16" role="img"><title>{escape(title)}</title>'
        f"{contents}</svg>"
    )


@dataclass(frozen=True, slots=True)
class ReportPart:
    """An essential or a measure."""

    name: str
    label: Text
    description: Text
    # The school first, then its district and the state.
    places: Sequence[ScoreLine]
    # Waves from the first to this one; empty without an earlier one.
    trend: Sequence[ScoreLine] = ()
    # Items, and whether they count the other way round.
    items: Sequence[tuple[Text, bool]] = ()
    people: str = ""
    is_positive: bool = True

    @property
    def own_line(self) -> ScoreLine:
        return self.places[0]

    @property
    def around(self) -> list[ScoreLine]:
        """Return the lines of the places around, as far as they have a score."""
        return [line for line in self.places[1:] if line.score]

    @property
    def last_time(self) -> ScoreLine | None:
        """Return the line of the wave before, if it shows a comparable score."""
        before = self.trend[-2] if len(self.trend) > 1 else None
        return before if before and before.score else None

    @property
    def change(self) -> ScoreChange | None:
        now, before = self.own_line.score, self.last_time
        if now is None or before is None or before.score is None:
            return None
        return score_change(now, before.score)

    @property
    def strength(self) -> int:
        """Return the score, turned round where less is better."""
        score = self.own_line.score.score if self.own_line.score else 0
        return score if self.is_positive else LOWEST + HIGHEST - score

    @property
    def is_strong(self) -> bool:
        score = self.own_line.score
        return bool(score and score.band and self._is_strong_band(score.band))

    @property
    def could_be_strong(self) -> bool:
        """Test that the band is strong, or could be with the error of the score."""
        score = self.own_line.score
        if not score or not score.band:
            return False
        return any(map(self._is_strong_band, (score.band, *score.possible_bands)))

    def _is_strong_band(self, band: int) -> bool:
        return band_tone(band, is_positive=self.is_positive) >= STRONG

    def differs_from(self, mean: float) -> bool:
        """Test if the strength is farther from the mean than chance can explain."""
        margin = self.own_line.margin
        return margin is not None and abs(self.strength - mean) > margin

    @property
    def picture(self) -> SafeString:
        """Draw the score with its interval, that of the last time, and places around.

        The text beside it has the same numbers.
        """
        score_line = self.own_line
        title = f"{score_line.name}: {score_line.text_and_words}"
        parts = [str(score_line.areas)]
        parts.append(
            f'<line class="middle" stroke="{MIDDLE_LINE}" x1="100" x2="100"'
            ' y1="1" y2="15" />'
        )
        parts += [
            place_mark(min(number, 1), line.position)
            for number, line in enumerate(self.places[1:])
            if line.score
        ]
        if self.last_time:
            parts.append(earlier_dot(self.last_time.position))
        if score_line.score:
            point = dot(score_line.position, is_faded=not score_line.tone)
            parts.append(f"{interval(*score_line.span)}{point}")
        return strip("".join(parts), title)

    @property
    def sentence(self) -> str:
        if self.own_line.is_hidden:
            return _("Hidden, because too few people answered.")
        if self.own_line.score is None:
            return _("No score, because one of the measures has none.")
        comparisons = str(COMMA).join(
            f"{line.name}: {line.text}" for line in self.places[1:] if line.score
        )
        figures = {"score": self.own_line.text, "words": self.own_line.words}
        sentence = _("%(score)s points of 99: %(words)s.") % figures
        if not self.own_line.words:
            sentence = _(
                "%(score)s points of 99, without a band: chance alone can explain how"
                " far schools differ."
            )
            sentence %= figures
        return f"{sentence} {comparisons}." if comparisons else sentence


# Essentials with their measures, and measures without one.
GroupedParts = tuple[list[tuple[ReportPart, list[ReportPart]]], list[ReportPart]]


def grouped_parts(
    content: Measures,
    scored: Container[str],
    make: Callable[[MeasureDefinition | EssentialDefinition], ReportPart],
) -> GroupedParts:
    """Make the parts of scored measures, and of essentials that have some of them."""
    measures: dict[str, list[ReportPart]] = {}
    for measure in content["measures"]:
        if measure["name"] in scored:
            measures.setdefault(measure["essential"], []).append(make(measure))
    essentials = [
        (make(essential), measures.pop(essential["name"]))
        for essential in content["essentials"]
        if essential["name"] in measures
    ]
    return essentials, [part for rest in measures.values() for part in rest]


class SurveyTexts:
    """The texts of a survey's measures and items. 1 statement.

    And those of the published survey.
    """

    def __init__(
        self, administration: Administration, language: str, frame_language: str
    ) -> None:
        published = published_survey(administration.published_id)
        self.items = published.definition["items"]
        self._localizer = localizer_for(published.definition, language)
        self._frame_language = frame_language
        self.content = measures_in_survey(administration)

    def text(self, texts: Texts | None, otherwise: str = "") -> Text:
        return marked_text(self._localizer, texts, self._frame_language, otherwise)

    @cached_property
    def questions(self) -> dict[str, list[tuple[Text, bool]]]:
        """The items of each measure, and whether they count the other way round."""
        return {
            measure["name"]: [
                (self.text(self.items[item["name"]].get("label")), item["reversed"])
                for item in measure["items"]
                if item["name"] in self.items
            ]
            for measure in self.content["measures"]
        }


@dataclass(frozen=True)
class ReportParts:
    """Makes the parts of a report from scores."""

    administration: Administration
    texts: SurveyTexts
    # The school first.
    places: Sequence[tuple[str, Place]]
    waves: Sequence[Administration]
    scores: Mapping[int, Mapping[Place, Scores]]

    def read(self) -> GroupedParts:
        return grouped_parts(self.texts.content, self._own_scores, self._part)

    def _part(self, definition: MeasureDefinition | EssentialDefinition) -> ReportPart:
        name, text = definition["name"], self.texts.text
        is_positive = definition.get("direction", "positive") == "positive"
        is_measure = "items" in definition
        score = self._own_scores.get(name) if is_measure else None
        return ReportPart(
            name,
            text(definition["label"], name),
            text(definition["description"]),
            self._lines(name, is_positive=is_positive),
            self._trend(name, is_positive=is_positive),
            self.texts.questions[name] if is_measure else (),
            f"{score.people:,}" if score else "",
            is_positive,
        )

    @cached_property
    def _own_scores(self) -> Scores:
        [(_name, school), *_others] = self.places
        return self.scores[self.administration.pk][school]

    def _lines(self, name: str, *, is_positive: bool = True) -> list[ScoreLine]:
        """Return a line for each place; without scores around one of a grade span.

        Those are on the scale of all schools: beside it, a school that is weaker than
        others of its span could look weaker than all.
        """
        by_place = self.scores[self.administration.pk]
        is_of_span = bool(span_of({name: self._own_scores.get(name)}))
        lines: list[ScoreLine] = []
        for place, key in self.places:
            if lines and is_of_span:
                lines.append(ScoreLine(place, None, is_positive))
                continue
            scores = by_place.get(key, {})
            score = scores.get(name)
            is_hidden = name in scores and score is None or key not in by_place
            lines.append(ScoreLine(place, score, is_positive, is_hidden=is_hidden))
        return lines

    def _trend(self, name: str, *, is_positive: bool = True) -> list[ScoreLine]:
        """Return the waves of comparable scores, the oldest first."""
        now = self._own_scores.get(name)
        if now is None:
            return []
        [(_name, school), *_others] = self.places
        lines: list[ScoreLine] = []
        before: VisibleScore | None = None
        for wave in self.waves:
            scores = self.scores[wave.pk].get(school, {})
            score = scores.get(name)
            if name not in scores or (score and score.benchmarks != now.benchmarks):
                continue
            change = change_words(score, before) if score and before else ""
            lines.append(
                ScoreLine(
                    wave.title, score, is_positive, change, is_hidden=score is None
                )
            )
            before = score
        return lines if len(lines) > 1 else []
