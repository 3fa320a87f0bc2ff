"""Choose the place and group whose results a page shows, and read them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.models import District, School
from accounts.permissions import Capability, Permissions, Places
from reports.answers.texts import localizer_for, marked_text
from reports.charts.charts import (
    ChartPage,
    ItemChart,
    chart_pages,
    counted_items,
)
from reports.charts.highlights import highlights_of
from reports.charts.rendered import rendered_once
from reports.charts.themes import OF_THEME, QuestionTheme, question_themes
from reports.console.results.provenance import Provenance
from reports.models import GroupResults
from reports.rates.rate_lines import RateLine, RateTotal
from reports.rates.thresholds import ThresholdProgress, ThresholdState
from reports.rates.visible_totals import total_for
from reports.releases.levels import LEVELS, Place
from reports.releases.rollup import attributes_of, is_outdated
from reports.results.access import (
    administration_or_404,
    capability_for,
    is_shared,
    results_for,
    sees_groups,
    threshold_of,
)
from reports.results.aggregate_access import figures_for
from reports.results.comments import may_review
from reports.results.menu import group_label, known_attributes, roster_groups
from reports.results.small_schools import SmallSchools, small_schools
from reports.results.visible import VisibleGroup
from reports.school_report.overview import Overview
from reports.school_report.parts import ReportPart
from reports.school_report.report import SchoolReport, SchoolReports
from reports.scores.visible import has_scores
from reports.suppression import HIDDEN
from survey.fieldwork.administrations import may_manage
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.schema import Measures
from survey.models import Administration
from survey.taking.published import published_survey
from survey.taking.rendering import Text

MAX_KEY = 2**63
# As in `GroupResults.value`.
LONGEST_VALUE = 200
# All questions of a survey, instead of those of one theme.
ALL = "all"
# So many questions are on the first page: another page would only be in the way.
FEW_QUESTIONS = 12


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """A group that the page can show: everyone, a grade or a subgroup's value."""

    key: str
    label: str
    attribute: str = ""
    value: str = ""
    is_hidden: bool = False


@dataclass(frozen=True)
class ResultsPage:
    """The results of one place and group, and the choices of others."""

    administration: Administration
    district: District | None
    school: School | None
    districts: Sequence[District]
    schools: Sequence[School]
    groups: Sequence[GroupChoice]
    group: GroupChoice
    # Administrations that can be compared, newest first, and the chosen one.
    comparable: Sequence[Administration]
    compared: Administration | None
    # None: nobody in this group has answered, or the figures are not ready.
    figures: VisibleGroup | None
    is_hidden: bool
    # By the name of the place, as they are drawn; and those to compare them with.
    drawn: Mapping[str, VisibleGroup | None]
    drawn_compared: Mapping[str, VisibleGroup | None]
    # Which people of larger places are compared, if the user may not see them all.
    compared_people: str
    # Of a district, if its figures have those of small schools together.
    small_schools: SmallSchools | None
    # Of the school, unless it has reached its threshold or this is not known.
    threshold: ThresholdProgress | None
    # Not shown to this user before the threshold is reached.
    is_withheld: bool
    may_share: bool
    may_publish: bool
    may_review: bool
    permissions: Permissions
    # Of the places that the figures are of: the page's place first.
    places: Mapping[str, Place]
    # The questions that the address asks for, as `QuestionTheme.key`; "" for the
    # overview, and "all".
    questions: str

    @classmethod
    def of(cls, request: StaffRequest, pk: int) -> ResultsPage:
        """Read what the address asks for; Http404 for places of others."""
        permissions = request.permissions
        administration = administration_or_404(permissions, pk)
        capability = capability_for(administration)
        district, school = place_of(request, permissions, capability)
        threshold, is_withheld = _threshold(permissions, administration, school)
        visible_places = permissions.places(capability)
        places = places_to_compare(administration, visible_places, district, school)
        place = next(iter(places.values()))
        groups, group = _groups(administration, place, request)
        group_figures: dict[Place, VisibleGroup | None] = {}
        if not is_withheld:
            group_figures = figures_for(
                *(permissions, administration, places.values()),
                *(group.attribute, group.value),
            )
        comparable, compared = _to_compare(administration, request)
        figures = group_figures.get(place)
        together = None
        drawn_compared: Mapping[str, VisibleGroup | None] = {}
        if figures and district and not school and not group.attribute:
            together = _small_schools(permissions, administration, district, figures)
        if figures and compared:
            drawn_compared = _compared_figures(
                permissions, administration, compared, place, school, group
            )
        districts, schools = place_choices(permissions, capability, district)
        return cls(
            *(administration, district, school, districts, schools, groups, group),
            *(comparable, compared, figures),
            # Whether a group has nobody or too few is not told.
            is_hidden=figures is None
            and (place in group_figures or bool(group.attribute)),
            drawn=_drawn(places, group_figures, together),
            drawn_compared=drawn_compared,
            compared_people=_compared_people(group_figures, places.values()),
            small_schools=together,
            threshold=threshold,
            is_withheld=is_withheld,
            may_share=hasattr(administration, "results_roll_up")
            and may_manage(permissions, administration),
            may_publish=permissions.has(Capability.PUBLISH_RESULTS),
            may_review=may_review(permissions, administration),
            permissions=permissions,
            places=places,
            questions=request.GET.get("questions", ""),
        )

    @property
    def before(self) -> list[Administration]:
        """Return the earlier administrations that can be compared."""
        return [each for each in self.comparable if not self._has_other_role(each)]

    @property
    def other_roles(self) -> list[Administration]:
        """Return those of the same wave to other roles."""
        return [each for each in self.comparable if self._has_other_role(each)]

    def _has_other_role(self, compared: Administration) -> bool:
        return compared.role != self.administration.role

    @property
    def as_of(self) -> datetime | None:
        return self.figures.as_of if self.figures else None

    @property
    def shared_at(self) -> datetime | None:
        """Return since when; None if nobody counted the answers, or shared them."""
        roll_up = getattr(self.administration, "results_roll_up", None)
        return roll_up.shared_at if roll_up else None

    @cached_property
    def measures(self) -> Measures | None:
        return measures_of(self.administration.published.survey)

    @cached_property
    def themes(self) -> list[QuestionTheme]:
        """Return the questions under their themes."""
        definition = published_survey(self.administration.published_id).definition
        counted = counted_items(definition, self.drawn)
        return question_themes(definition, self.measures, counted)

    @cached_property
    def linked_themes(self) -> list[tuple[QuestionTheme, Text]]:
        published = published_survey(self.administration.published_id)
        language = language_to_read(published.languages)
        localizer = localizer_for(published.definition, language)
        frame = get_language() or ""
        return [
            (theme, marked_text(localizer, theme.label, frame)) for theme in self.themes
        ]

    @cached_property
    def theme(self) -> tuple[QuestionTheme, Text] | None:
        """Return the theme that the address asks for. Raises Http404."""
        if self.questions in ("", ALL):
            return None
        for theme, label in self.linked_themes:
            if theme.key == self.questions:
                return theme, label
        raise Http404

    @property
    def shows_overview(self) -> bool:
        return not self.questions

    @cached_property
    def shows_charts(self) -> bool:
        """Test that questions are on this page: chosen ones, or all of a few."""
        if self.questions:
            return True
        return sum(len(theme.items) for theme in self.themes) <= FEW_QUESTIONS

    @cached_property
    def _school_report(self) -> SchoolReport | None:
        """Return the report of the school, as its own page shows it. 8 statements."""
        if self.school is None or not self._has_overview:
            return None
        [report] = self._reports.of([self.school])
        return report

    @property
    def _has_overview(self) -> bool:
        # Scores are those of everyone.
        return bool(self.figures and not self.group.key and self.has_scores)

    @property
    def _reports(self) -> SchoolReports:
        published = published_survey(self.administration.published_id)
        language = language_to_read(published.languages)
        return SchoolReports(
            *(self.permissions, self.administration, language, get_language() or "")
        )

    @cached_property
    def overview(self) -> Overview | None:
        """Return the scores of the place, as the table of scores has them.

        At most 8 statements.
        """
        if not self._has_overview:
            return None
        if self._school_report:
            return self._school_report.overview
        return Overview.of(*self._reports.of_place(list(self.places.items())))

    @property
    def shows_hidden(self) -> bool:
        """Test if a "*" is on the page."""
        has_hidden_score = bool(self.overview and self.overview.shows_hidden)
        return has_hidden_score or self.shows_charts and HIDDEN in self.charts_html

    @property
    def no_scores(self) -> str:
        """Say why a school has no scores."""
        return self._school_report.reason if self._school_report else ""

    @cached_property
    def rate(self) -> str:
        """Return the response rate as the pages of rates show it. 1 statement.

        "" if it is hidden, or of a school without scores.
        """
        if self.group.key or not self.shows_overview:
            return ""
        line: RateLine | RateTotal | None
        if self.school:
            line = self._school_report.line if self._school_report else None
        else:
            line = total_for(
                self.permissions, self.administration, district=self.district
            )
        return line.rate_words if line and line.eligible else ""

    @property
    def shown_measures(self) -> list[ReportPart]:
        """Return the measures of the chosen theme, or the theme itself."""
        if self.theme is None or self.overview is None:
            return []
        theme, _label = self.theme
        name = theme.key.removeprefix(OF_THEME)
        return self.overview.of_theme(name) if theme.key != name else []

    @cached_property
    def charts(self) -> list[ChartPage]:
        """Draw figures of places, and the page's place in another administration."""
        if not self.drawn:
            return []
        return list(chart_pages(**self._chart_arguments))

    @cached_property
    def charts_html(self) -> SafeString:
        if not self.drawn:
            return SafeString()
        arguments = self._chart_arguments
        drawn = arguments | {
            "definition": self.administration.published_id,
            "compared_definition": self.compared and self.compared.published_id,
            "review": self.may_review and self.administration.pk,
            "query": self.query,
        }
        context = {
            "page": self,
            "chart_pages": lambda: self.charts,
            "svg_link": self.svg_link,
        }
        return rendered_once("reports/_results_charts.html", context, drawn)

    @cached_property
    def _chart_arguments(self) -> dict[str, Any]:
        """Return the arguments of `chart_pages`. 2 statements."""
        published = published_survey(self.administration.published_id)
        their_definition = None
        if self.compared and self.drawn_compared:
            their_definition = published_survey(self.compared.published_id).definition
        sentences: dict[str, list[str]] = {}
        rows = self.administration.released_sentences.order_by("text")
        for item, text in rows.values_list("item", "text"):
            sentences.setdefault(item, []).append(text)
        return {
            "definition": published.definition,
            "language": language_to_read(published.languages),
            "measures": self.measures,
            "places": self.drawn,
            "compared": self.drawn_compared,
            "comments": sentences,
            "compared_definition": their_definition,
            "is_other_survey": self.compares_role,
            "only": self.theme[0].items if self.theme else None,
        }

    @cached_property
    def _last_time(
        self,
    ) -> tuple[Administration | None, Mapping[str, VisibleGroup | None]]:
        """Return the chosen or the latest earlier results of the place, if they may be
        seen. 1 statement, and of a school without all responses 2 more."""
        if self.compared and not self.compares_role:
            return self.compared, self.drawn_compared
        if not self.before:
            return None, {}
        place = next(iter(self.places.values()))
        return self.before[0], _compared_figures(
            *(self.permissions, self.administration, self.before[0]),
            *(place, self.school, self.group),
        )

    @cached_property
    def highlights_html(self) -> SafeString:
        """Name the questions that stand out, and those that changed since last time."""
        published = published_survey(self.administration.published_id)
        earlier, compared = self._last_time
        digest = earlier.published_id if earlier and compared else ""
        arguments = (
            *(published.definition, language_to_read(published.languages)),
            *(self.measures, dict([next(iter(self.drawn.items()))]), compared),
            published_survey(digest).definition if digest else None,
        )
        return rendered_once(
            "reports/_question_highlights.html",
            {"highlights": lambda: highlights_of(*arguments), "says_last_time": True},
            (self.administration.published_id, digest, *arguments[1:5]),
        )

    @property
    def is_outdated(self) -> bool:
        """Test if people or answers have changed since. At most 2 statements."""
        return (
            self.may_publish and self.is_released and is_outdated(self.administration)
        )

    @property
    def is_released(self) -> bool:
        roll_up = getattr(self.administration, "results_roll_up", None)
        return bool(roll_up and roll_up.released_at)

    @property
    def keeps_earlier_figures(self) -> bool:
        """Test if too few people of the school have changed to show newer figures."""
        return (
            self.school is not None
            and self.is_released
            and (self.school.pk in self.administration.results_roll_up.kept_schools)
        )

    @property
    def link_to_questions(self) -> str:
        """Return the beginning of an address of questions of this place."""
        return f"?{self.overview_query}&questions="

    @property
    def link_to_themes(self) -> str:
        return f"{self.link_to_questions}{OF_THEME}"

    @property
    def link_to_groups(self) -> str:
        """Return the address of the scores by group of this place and theme, or ""."""
        if not known_attributes(self.administration):
            return ""
        place = next(iter(self.places.values()))
        if not self.school and not sees_groups(self.permissions, place):
            return ""
        chosen = {"school": self.school.pk} if self.school else {}
        if self.district and not self.school:
            chosen = {"district": self.district.pk}
        query: dict[str, int | str] = {**chosen}
        if self.group.attribute:
            query["by"] = self.group.attribute
        if self.theme:
            query["show"] = self.theme[0].key.removeprefix(OF_THEME)
        address = reverse("scores_groups", args=[self.administration.pk])
        return f"{address}?{urlencode(query)}" if query else address

    @property
    def svg_link(self) -> str:
        """Return the beginning of the address of a chart's file."""
        return f"?{self.query}&svg="

    def chart_of(self, item: str) -> ItemChart:
        """Return the bars of an item. Raises Http404 if there are none."""
        for survey_page in self.charts:
            for _stem, charts in survey_page.blocks:
                for chart in charts:
                    if chart.name == item and chart.has_file:
                        return chart
        raise Http404

    @property
    def overview_query(self) -> str:
        return replace(self, questions="").query

    @property
    def query(self) -> str:
        chosen = {"group": self.group.key}
        if self.school:
            chosen["school"] = str(self.school.pk)
        elif self.district:
            chosen["district"] = str(self.district.pk)
        if self.compared:
            chosen["compare"] = str(self.compared.pk)
        if self.questions:
            chosen["questions"] = self.questions
        return urlencode({name: value for name, value in chosen.items() if value})

    @property
    def people(self) -> str:
        return f"{self.figures.people:,}" if self.figures else ""

    @property
    def finished(self) -> str:
        return f"{self.figures.finished:,}" if self.figures else ""

    @property
    def has_scores(self) -> bool:
        return has_scores(self.administration)

    @property
    def is_compared(self) -> bool:
        """Test that a chart shows the results that were chosen to compare."""
        return self.shows_charts and any(
            row.is_compared
            for chart_page in self.charts
            for _stem, charts in chart_page.blocks
            for chart in charts
            for row in chart.rows
        )

    @property
    def compares_role(self) -> bool:
        return bool(self.compared and self._has_other_role(self.compared))

    @property
    def provenance(self) -> list[Provenance]:
        """Return where the figures come from, and then those they are compared with."""
        shown = [self.administration]
        if self.compared and self.is_compared:
            shown.append(self.compared)
        return [source for source in map(Provenance.of, shown) if source]

    @property
    def place_name(self) -> str:
        return str(self.school or self.district or _("All schools"))


def place_of(
    request: StaffRequest, permissions: Permissions, capability: Capability
) -> tuple[District | None, School | None]:
    """Return the district and school of the address, or the user's only place.

    The form sends both. Somebody who chooses another district, or all districts, does
    not mean the school that was shown before.
    """
    schools = permissions.schools(capability).select_related("district")
    districts = permissions.districts(capability)
    visible_places = permissions.places(capability)
    chosen = request.GET.get("district")
    if asked := request.GET.get("school", ""):
        school = get_object_or_404(schools, pk=_key(asked))
        if chosen in (None, str(school.district_id)):
            return school.district, school
    if chosen:
        return get_object_or_404(districts, pk=_key(chosen)), None
    if visible_places.state:
        return None, None
    if visible_places.districts:
        district = districts.order_by("name").first()
        return district, None
    only = schools.order_by("name").first()
    if only is None:
        raise Http404
    return only.district, only


def _threshold(
    permissions: Permissions, administration: Administration, school: School | None
) -> tuple[ThresholdProgress | None, bool]:
    """Return the threshold of a school below it, and whether its results are withheld.

    Nobody who sees all responses of the school has to wait for it.
    """
    if school is None:
        return None, False
    threshold = threshold_of(permissions, administration, school)
    if threshold and threshold.state == ThresholdState.REACHED:
        return None, False
    sees_all = permissions.places(Capability.SEE_RESPONSES).has_school(school)
    return threshold, not sees_all


def place_choices(
    permissions: Permissions, capability: Capability, district: District | None
) -> tuple[list[District], list[School]]:
    """Return the districts, unless there is only one, and the schools of the district.

    2 statements.
    """
    districts = permissions.districts(capability).order_by("name")
    schools = permissions.schools(capability).order_by("name")
    visible_places = permissions.places(capability)
    sees_several = visible_places.state or len(visible_places.districts) > 1
    return (
        list(districts) if sees_several else [],
        list(schools.filter(district=district)) if district else [],
    )


def _key(asked: str) -> int:
    # Python refuses to read numbers of several thousand digits.
    if not asked.isascii() or not asked.isdigit() or len(asked) > len(str(MAX_KEY)):
        raise Http404
    key = int(asked)
    if key >= MAX_KEY:
        raise Http404
    return key


def places_to_compare(
    administration: Administration,
    visible_places: Places,
    district: District | None,
    school: School | None,
) -> dict[str, Place]:
    """Return the place and those around it whose results the user may see."""
    is_for_all = is_shared(administration)
    places: dict[str, Place] = {}
    if school is not None:
        places[str(school)] = (LEVELS.SCHOOL.value, school.pk)
    if district and (is_for_all or visible_places.has_district(district.pk)):
        name = str(district)
        if name in places:
            # Of the same name as its school.
            name = _("%(district)s (district)") % {"district": name}
        places[name] = (LEVELS.DISTRICT.value, district.pk)
    if is_for_all or visible_places.state:
        places[_("All schools")] = (LEVELS.STATE.value, 0)
    return places


def _small_schools(
    permissions: Permissions,
    administration: Administration,
    district: District,
    figures: VisibleGroup,
) -> SmallSchools | None:
    """Return the small schools of a district, for users who see all of its schools."""
    seen = permissions.places(Capability.SEE_RESPONSES)
    if not seen.has_district(district.pk):
        return None
    return small_schools(administration, district.pk, figures)


def _drawn(
    places: Mapping[str, Place],
    group_figures: Mapping[Place, VisibleGroup | None],
    together: SmallSchools | None,
) -> dict[str, VisibleGroup | None]:
    """Return the figures of the place, and then of those around it, by name."""
    (name, place), *around = places.items()
    if place not in group_figures:
        return {}
    drawn = {name: group_figures[place]}
    if drawn[name] is None:
        # The page says so in a sentence, and the file in a row.
        return drawn
    if together:
        drawn[together.name] = together.group
    return drawn | {
        name: group_figures[place] for name, place in around if place in group_figures
    }


def _compared_people(
    group_figures: Mapping[Place, VisibleGroup | None], places: Collection[Place]
) -> str:
    if any(group and group.is_sum_of_reports for group in group_figures.values()):
        return _("Compared with the people of all schools that have a report.")
    if group_figures and len(group_figures) < len(places):
        return _(
            "Not compared with larger places, because the answers of a single school"
            " could be calculated."
        )
    return ""


def _to_compare(
    administration: Administration, request: StaffRequest
) -> tuple[list[Administration], Administration | None]:
    """Return administrations that can be compared, newest first, and the chosen one.

    Earlier ones of the survey to the same role, and those of the wave to other roles.
    1 statement.
    """
    survey = administration.published.survey
    chosen = Q(
        role=administration.role,
        published__survey__name=survey.name,
        published__survey__district=survey.district_id,
        closes_at__lt=administration.closes_at,
    )
    if administration.wave_id is not None:
        chosen |= Q(wave=administration.wave_id) & ~Q(role=administration.role)
    choices = list(
        results_for(request.permissions)
        .filter(chosen, district=administration.district_id)
        .select_related("published__survey", "wave", "district")
        .select_related("results_roll_up", "roll_up")
        .defer("published__definition", "published__survey__source")
        .order_by("-closes_at")
    )
    asked = request.GET.get("compare", "")
    compared = next((choice for choice in choices if str(choice.pk) == asked), None)
    if asked and compared is None:
        raise Http404
    return choices, compared


def _compared_figures(
    permissions: Permissions,
    administration: Administration,
    compared: Administration,
    place: Place,
    school: School | None,
    group: GroupChoice,
) -> dict[str, VisibleGroup | None]:
    """Return the place's figures in another administration, by its month or role."""
    visible_places = permissions.places(capability_for(compared))
    level, key = place
    if school is not None:
        may_see = visible_places.has_school(school)
        if not permissions.places(Capability.SEE_RESPONSES).has_school(school):
            threshold = threshold_of(permissions, compared, school)
            is_reached = threshold and threshold.state == ThresholdState.REACHED
            may_see = may_see and bool(is_reached)
    elif level == LEVELS.DISTRICT.value:
        may_see = visible_places.has_district(key)
    else:
        may_see = visible_places.state
    if not may_see:
        return {}
    group_figures = figures_for(
        permissions, compared, [place], group.attribute, group.value
    )
    if place not in group_figures:
        return {}
    name = date_format(localtime(compared.opens_at), "F Y")
    if compared.role != administration.role:
        name = capfirst(compared.audience)
    return {name: group_figures[place]}


def _groups(
    administration: Administration, place: Place, request: StaffRequest
) -> tuple[list[GroupChoice], GroupChoice]:
    """Return everyone and the groups on the roster, and the chosen one. 1 statement.

    The list is the same for each place, and has groups of which nobody has answered:
    that a group is on it would tell that somebody took part. A group without people is
    marked as a hidden one. A subgroup that is not known of anybody has no groups.
    """
    level, key = place
    rows = GroupResults.objects.filter(
        administration=administration, level=level, place_id=key, is_hidden=False
    )
    shown = set(rows.exclude(attribute="").values_list("attribute", "value"))
    groups = roster_groups(administration)
    known = known_attributes(administration)
    choices = [GroupChoice("", _("Everyone"))]
    order = {name: number for number, name in enumerate(administration.subgroups, 1)}
    for attribute, value in sorted(
        (group for group in groups if group[0] in known),
        key=lambda group: (order.get(group[0], 0), group[1] == "", group[1]),
    ):
        choices.append(
            GroupChoice(
                f"{attribute}:{value}",
                group_label(attribute, value),
                *(attribute, value, (attribute, value) not in shown),
            )
        )
    asked = request.GET.get("group", "")
    selected = next((choice for choice in choices if choice.key == asked), None)
    if selected is None:
        selected = _group_elsewhere(administration, asked)
        choices.append(selected)
    return choices, selected


def _group_elsewhere(administration: Administration, asked: str) -> GroupChoice:
    """Return a group that has nobody in this place, as after choosing another school.

    Any value of a known attribute: whether the group exists elsewhere is not told.
    """
    attribute, _colon, value = asked.partition(":")
    is_known = attribute in attributes_of(administration)[1:]
    if not is_known or not value.isprintable() or len(value) > LONGEST_VALUE:
        raise Http404
    return GroupChoice(asked, group_label(attribute, value), attribute, value)
