"""Put together a public page in one language, from frozen content.

Nothing here reads results: only what was published, or what a preview would publish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from math import hypot
from typing import Protocol, cast

from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reports.answers.texts import localizer_for, marked_text
from reports.charts.charts import ChartPage, chart_pages, pages_with
from reports.charts.highlights import Highlights, highlights_of
from reports.charts.rendered import rendered_once
from reports.charts.sentences import isolated
from reports.charts.themes import QuestionTheme, question_themes
from reports.models import PublishedPlace
from reports.publishing.freezing import (
    Answers,
    Frame,
    ItemAnswers,
    Summary,
)
from reports.releases.layout import Measured
from reports.releases.levels import LEVELS
from reports.results.distributions import ItemDistribution
from reports.results.visible import VisibleGroup
from reports.school_report.overview import Overview
from reports.school_report.parts import (
    GroupedParts,
    ReportPart,
    ScoreLine,
    grouped_parts,
)
from reports.school_report.report import report_language_for
from reports.scores.spans import SPAN_NAMES
from reports.scores.visible import VisibleScore, measures_in
from reports.scores.words import SCORE_COLUMNS, band_ranges
from reports.suppression import HIDDEN
from reports.suppression.end_coding import CodedShare
from survey.instrument.definitions.schema import (
    EssentialDefinition,
    MeasureDefinition,
    Measures,
    Texts,
)
from survey.taking import messages
from survey.taking.published import published_survey
from survey.taking.rendering import Localizer, Text

NO_MEASURES: Measures = {"essentials": [], "measures": []}
# Unicode's embeddings, overrides and isolates: in a name, they would turn around the
# text after it.
DIRECTIONS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


class Content(Protocol):
    """A `PublishedPlace` or a `FrozenPlace`."""

    @property
    def level(self) -> str: ...
    @property
    def place_id(self) -> int: ...
    @property
    def district_id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def summary(self) -> Summary: ...
    @property
    def answers(self) -> Answers: ...


def coded_of(item: ItemAnswers) -> dict[str, CodedShare]:
    under, over = item["under"].items(), item["over"].items()
    coded = {value: CodedShare(n) for value, n in under}
    return coded | {value: CodedShare(n, is_over=True) for value, n in over}


def group_of(answers: Answers, as_of: datetime) -> VisibleGroup:
    """Return frozen distributions in the form that charts are made from."""
    items = {
        name: ItemDistribution(
            cast("Measured", item["measured"]),
            item["answered"],
            item["skipped"],
            item["not_applicable"],
            item["not_reached"],
            item["values"],
            item["width"],
            coded_of(item),
            item["coded_people"],
        )
        for name, item in answers["items"].items()
    }
    options = {item: set(hidden) for item, hidden in answers["hidden_options"].items()}
    return VisibleGroup(
        as_of, answers["people"], 0, items, answers["hidden_items"], options
    )


@dataclass(frozen=True)
class PublicPage:
    """The results of one place, beside those of the places around it.

    To be used with the language of `frame_language` active.
    """

    frame: Frame
    language: str
    # The place itself first, then its district and the state.
    places: Sequence[Content]
    # The place in earlier results that are public.
    last_time: PublishedPlace | None = None

    @property
    def place(self) -> Content:
        return self.places[0]

    @property
    def frame_language(self) -> str:
        return report_language_for(self.language)

    @property
    def direction(self) -> str:
        return messages.direction(self.frame_language)

    @property
    def title(self) -> str:
        return self.frame["titles"].get(self.language, "")

    @property
    def name(self) -> str:
        return name_of(self.place)

    @cached_property
    def labels(self) -> list[str]:
        """Return a name for each place in tables, charts and sentences.

        They differ, although a school may be called like its district, and each keeps
        its direction in a sentence of the other one.
        """
        formats = {
            LEVELS.DISTRICT.value: _("%(name)s (district)"),
            LEVELS.STATE.value: _("%(name)s (state)"),
        }
        labels: list[str] = []
        for place in self.places:
            name = name_of(place)
            while isolated(name) in labels:
                name = formats[place.level] % {"name": name}
            labels.append(isolated(name))
        return labels

    @property
    def is_school(self) -> bool:
        return self.place.level == LEVELS.SCHOOL.value

    @property
    def is_state(self) -> bool:
        return self.place.level == LEVELS.STATE.value

    @property
    def district(self) -> Content | None:
        around = (
            place for place in self.places if place.level == LEVELS.DISTRICT.value
        )
        return next(around, None)

    @property
    def district_name(self) -> str:
        return name_of(self.district) if self.district else ""

    @property
    def counted_at(self) -> datetime:
        return localtime(datetime.fromisoformat(self.frame["counted_at"]))

    @property
    def people(self) -> str:
        people = self.place.answers["people"]
        return ngettext(
            "%(people)s person answered at least one question.",
            "%(people)s people answered at least one question.",
            people,
        ) % {"people": f"{people:,}"}

    @property
    def rate(self) -> str:
        """Say how many finished: of the school, or of all schools with a report."""
        rate, schools = self.place.summary["rate"], self.place.summary["schools"]
        if not rate["eligible"] or rate["rate"] is None:
            return ""
        figures = {
            "finished": f"{rate['finished']:,}",
            "eligible": f"{rate['eligible']:,}",
            "rate": rate["rate"],
            "schools": f"{schools:,}",
        }
        if self.is_school:
            words = _(
                "%(finished)s of %(eligible)s finished the survey: the response rate is"
                " %(rate)s %%."
            )
        else:
            words = ngettext(
                "In the %(schools)s school that has a report, %(finished)s of"
                " %(eligible)s finished the survey: the response rate is %(rate)s %%.",
                "In the %(schools)s schools that have a report, %(finished)s of"
                " %(eligible)s finished the survey: the response rate is %(rate)s %%.",
                schools,
            )
        return words % figures

    @property
    def without_report(self) -> str:
        """Say how many schools are not here, on the page of the state."""
        other_schools = self.frame["other_schools"]
        if not other_schools or not self.is_state:
            return ""
        words = ngettext(
            "%(n)s school has no report, because too few people took part.",
            "%(n)s schools have no report, because too few people took part.",
            other_schools,
        )
        if self.frame["schools"]:
            words = ngettext(
                "%(n)s school has no report and is not part of these figures, because"
                " too few people took part.",
                "%(n)s schools have no report and are not part of these figures,"
                " because too few people took part.",
                other_schools,
            )
        return words % {"n": f"{other_schools:,}"}

    @cached_property
    def essentials(self) -> list[tuple[ReportPart, list[ReportPart]]]:
        """Return essentials with their measures."""
        return self._parts[0]

    @property
    def other_measures(self) -> list[ReportPart]:
        return self._parts[1]

    @cached_property
    def charts(self) -> list[ChartPage]:
        return list(
            chart_pages(
                published_survey(self.frame["survey_digest"]).definition,
                self.language,
                self.frame["measures"],
                {
                    label: group_of(place.answers, self.counted_at)
                    for label, place in zip(self.labels, self.places, strict=True)
                },
                {},
            )
        )

    @cached_property
    def themes(self) -> list[tuple[QuestionTheme, Text, list[ChartPage]]]:
        """Return the charts under their themes; those about people are last."""
        definition = published_survey(self.frame["survey_digest"]).definition
        drawn = {
            chart.name
            for page in self.charts
            for _stem, charts in page.blocks
            for chart in charts
        }
        return [
            (theme, self._text(theme.label), pages_with(self.charts, theme.items))
            for theme in question_themes(definition, self.frame["measures"], drawn)
        ]

    @cached_property
    def overview(self) -> Overview:
        return Overview.of(self.essentials, self.other_measures)

    @cached_property
    def charts_html(self) -> SafeString:
        context = {"themes": lambda: self.themes}
        answers = [place.answers for place in self.places]
        return rendered_once(
            "reports/public/_charts.html", context, self._drawn(answers)
        )

    @property
    def has_scores(self) -> bool:
        content, scored = self.frame["measures"], self.place.summary["scores"]
        measures = content["measures"] if content else []
        return any(measure["name"] in scored for measure in measures)

    @cached_property
    def scores_html(self) -> SafeString:
        scores = [place.summary["scores"] for place in self.places]
        before = self.last_time
        return rendered_once(
            "reports/public/_scores.html",
            {"page": self},
            self._drawn(
                (
                    *(scores, self.benchmarks, self.frame["is_of_people"]),
                    *(self.frame.get("scales"), self._title_before),
                    self.place.summary.get("span"),
                    self.place.summary.get("change_errors"),
                    self.place.summary.get("shared_errors"),
                    before and (before.summary["scores"], before.summary.get("span")),
                    before and before.publication.frame.get("scales"),
                )
            ),
        )

    @cached_property
    def highlights_html(self) -> SafeString:
        """Name the questions that stand out at the place, and those that changed."""
        definition = published_survey(self.frame["survey_digest"]).definition
        place = {self.labels[0]: group_of(self.place.answers, self.counted_at)}
        before, title, digest = self.last_time, self._title_before, ""
        compared: dict[str, VisibleGroup | None] = {}
        if before is not None:
            frame: Frame = before.publication.frame
            digest = frame["survey_digest"]
            counted_at = datetime.fromisoformat(frame["counted_at"])
            compared[title] = group_of(before.answers, counted_at)

        def highlights() -> Highlights:
            return highlights_of(
                *(definition, self.language, self.frame["measures"], place, compared),
                published_survey(digest).definition if digest else None,
            )

        return rendered_once(
            "reports/_question_highlights.html",
            {"highlights": highlights, "says_last_time": bool(compared)},
            self._drawn((self.place.answers, title, digest, before and before.answers)),
        )

    @property
    def _title_before(self) -> str:
        """Return the title of the earlier results; "" without any."""
        if self.last_time is None:
            return ""
        titles: dict[str, str] = self.last_time.publication.frame["titles"]
        return isolated(titles.get(self.language) or next(iter(titles.values())))

    @property
    def shows_hidden(self) -> bool:
        """Test if a "*" is on the page."""
        return self.overview.shows_hidden or HIDDEN in self.charts_html

    def _drawn(self, figures: object) -> tuple[object, ...]:
        """Return what a part of the page is made from."""
        survey, measures = self.frame["survey_digest"], self.frame["measures"]
        return survey, self.language, measures, self.labels, figures

    @property
    def bands(self) -> list[tuple[int, str, str]]:
        return band_ranges()

    @property
    def benchmarks(self) -> str:
        titles = self.frame["benchmarks"].get(self.language, [])
        if span := self.place.summary.get("span"):
            words = _("%(title)s, %(span)s")
            titles = [
                words % {"title": each, "span": SPAN_NAMES[span]} for each in titles
            ]
        return "; ".join(titles)

    @cached_property
    def _parts(self) -> GroupedParts:
        content = self.frame["measures"] or NO_MEASURES
        return grouped_parts(content, self.place.summary["scores"], self._part)

    def _part(self, definition: MeasureDefinition | EssentialDefinition) -> ReportPart:
        name = definition["name"]
        is_positive = definition.get("direction", "positive") == "positive"
        lines: list[ScoreLine] = []
        for label, place in zip(self.labels, self.places, strict=True):
            scores = place.summary["scores"]
            # Places around are on another scale than a school of a grade span.
            if lines and self.place.summary.get("span"):
                scores = {}
            shown = None
            if score := scores.get(name):
                shown = frozen_score(score)
            is_hidden = name in scores and score is None
            lines.append(ScoreLine(label, shown, is_positive, is_hidden=is_hidden))
        trend: tuple[ScoreLine, ...] = ()
        if comparable := self._comparable_scores(definition):
            before, now = comparable
            earlier = ScoreLine(self._title_before, before, is_positive)
            trend = earlier, replace(lines[0], score=now)
            lines[0] = trend[1]
        return ReportPart(
            name,
            self._text(definition["label"], name),
            self._text(definition["description"]),
            lines,
            trend,
            is_positive=is_positive,
        )

    def _comparable_scores(
        self, definition: MeasureDefinition | EssentialDefinition
    ) -> tuple[VisibleScore, VisibleScore] | None:
        """Return the score of last time and this one, if both have the same scales.

        Of a theme: all its measures, which are the same ones. None also if a number is
        not shown.
        """
        name, before = definition["name"], self.last_time
        if before is None:
            return None
        summaries = before.summary, self.place.summary
        if summaries[0].get("span") != summaries[1].get("span"):
            return None
        frames: tuple[Frame, Frame] = before.publication.frame, self.frame
        scores = []
        digests = []
        for frame, summary in zip(frames, summaries, strict=True):
            parts = measures_in(frame["measures"] or NO_MEASURES, name)
            known = frame.get("scales", {})
            scales = [known[part["name"]] for part in parts if part["name"] in known]
            figures = summary["scores"].get(name)
            if not figures or not parts or len(scales) < len(parts):
                return None
            digests.append(
                {part["name"]: known[part["name"]]["digest"] for part in parts}
            )
            error = hypot(*(scale["linking_error"] for scale in scales)) / len(scales)
            scores.append(frozen_score(figures)._replace(linking_error=error))
        if digests[0] != digests[1]:
            return None
        summary = self.place.summary
        is_larger = self.place.level != LEVELS.SCHOOL.value
        return (
            scores[0]._replace(
                administration=before.publication.administration_id,
                change_errors={} if is_larger else None,
            ),
            scores[1]._replace(
                shared_errors=summary.get("shared_errors", {}).get(name),
                change_errors=summary.get("change_errors", {}).get(name),
            ),
        )

    @cached_property
    def _localizer(self) -> Localizer:
        definition = published_survey(self.frame["survey_digest"]).definition
        return localizer_for(definition, self.language)

    def _text(self, texts: Texts | None, otherwise: str = "") -> Text:
        return marked_text(self._localizer, texts, self.frame_language, otherwise)


def frozen_score(figures: Sequence[float | None]) -> VisibleScore:
    """Return a published score, of any format."""
    columns = [*figures, *[None] * len(SCORE_COLUMNS)][: len(SCORE_COLUMNS)]
    points, error, reliability, mean, mean_error = columns
    people_error = next(iter(figures[len(SCORE_COLUMNS) :]), None)
    return VisibleScore(
        int(points or 0),
        frozenset(),
        error=error,
        reliability=reliability,
        mean=None if mean is None else int(mean),
        mean_error=mean_error,
        people_error=people_error,
        school_error=None if people_error is None else mean_error,
    )


def name_of(place: Content) -> str:
    return without_directions(place.name) or _("All schools")


def without_directions(name: str) -> str:
    return name.translate(DIRECTIONS)


def labels_of(frame: Frame) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield kind, name and label in each language: of measures, items and options.

    An option has the name "item option".
    """
    content = frame["measures"] or {"essentials": [], "measures": []}
    definition = published_survey(frame["survey_digest"]).definition
    localizers = {code: Localizer.of(definition, code) for code in frame["languages"]}

    def label(texts: Texts | None) -> dict[str, str]:
        return {code: each.plain(texts) for code, each in localizers.items()}

    for essential in content["essentials"]:
        yield "essential", essential["name"], label(essential["label"])
    for measure in content["measures"]:
        yield "measure", measure["name"], label(measure["label"])
    for name, item in definition["items"].items():
        yield "item", name, label(item.get("label"))
        for option in definition["option_sets"].get(item.get("option_set", ""), []):
            yield "answer", f"{name} {option['value']}", label(option["label"])
