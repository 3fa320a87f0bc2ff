"""Show the scores of groups at one place, and how far they are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from accounts.http import Cell, StaffRequest
from accounts.language import language_to_read
from accounts.models import District, School
from reports.console.results.page import place_choices, place_of
from reports.console.scores.access import reached_schools, schools_with_scores
from reports.rates.thresholds import ThresholdProgress, ThresholdState
from reports.releases.levels import LEVELS, STATE, Place
from reports.results.access import (
    administration_or_404,
    capability_for,
    sees_groups,
    threshold_of,
)
from reports.results.menu import attribute_label, known_attributes, roster_groups
from reports.school_report.gap_panels import (
    FIGURES,
    AttributeGaps,
    file_rows,
    gaps_by_attribute,
    theme_names,
)
from reports.school_report.parts import SurveyTexts
from reports.scores.visible import (
    Scores,
    has_scores,
    measures_in,
    measures_in_survey,
    visible_scores,
)
from reports.scores.visible_groups import GroupScores, visible_group_scores
from survey.models import Administration
from survey.taking.published import published_survey
from survey.taking.rendering import Text


@dataclass(frozen=True)
class GroupsPage:
    """The scores of one place by the groups of one attribute."""

    administration: Administration
    district: District | None
    school: School | None
    districts: Sequence[District]
    schools: Sequence[School]
    attributes: Sequence[str]
    attribute: str
    # The theme of which the measures are shown; "" for all themes.
    show: str
    texts: SurveyTexts
    threshold: ThresholdProgress | None
    may_see: bool
    everyone: Scores
    groups: GroupScores

    @classmethod
    def of(cls, request: StaffRequest, pk: int) -> GroupsPage:
        """Read what the address asks for; Http404 for places of others.

        13 statements.
        """
        permissions = request.permissions
        administration = administration_or_404(permissions, pk)
        capability = capability_for(administration)
        district, school = place_of(request, permissions, capability)
        threshold = (
            threshold_of(permissions, administration, school) if school else None
        )
        place: Place = STATE
        if school:
            place = (LEVELS.SCHOOL.value, school.pk)
        elif district:
            place = (LEVELS.DISTRICT.value, district.pk)
        # As in reports, a school has no scores below its threshold.
        may_see = sees_groups(permissions, place)
        if school:
            may_see = bool(threshold and threshold.state == ThresholdState.REACHED)
        texts = SurveyTexts(
            administration,
            language_to_read(published_survey(administration.published_id).languages),
            get_language() or "",
        )
        everyone = visible_scores(administration, [place] if may_see else [])
        groups = visible_group_scores(administration, texts.content, everyone)
        attributes = known_attributes(administration)
        with_scores = {attribute for attribute, _value in groups.get(place, {})}
        first = [each for each in attributes if each in with_scores] or attributes
        asked = request.GET.get("by", "")
        show = request.GET.get("show", "")
        if not measures_in(texts.content, show):
            show = ""
        return cls(
            *(administration, district, school),
            *place_choices(permissions, capability, district),
            attributes,
            asked if asked in attributes else next(iter(first), ""),
            show=show,
            texts=texts,
            threshold=threshold,
            may_see=may_see,
            everyone=everyone.get(place, {}),
            groups=groups.get(place, {}),
        )

    @property
    def place_name(self) -> str:
        return str(self.school or self.district or _("All schools"))

    @property
    def attribute_choices(self) -> list[tuple[str, str]]:
        return [(each, attribute_label(each)) for each in self.attributes]

    @property
    def names(self) -> list[str]:
        """Return the themes, or the measures of the chosen one."""
        if not self.show:
            return theme_names(self.texts.content)
        return [
            measure["name"] for measure in measures_in(self.texts.content, self.show)
        ]

    @property
    def themes(self) -> list[tuple[str, Text]]:
        content = self.texts.content
        return [
            (essential["name"], self.texts.text(essential["label"], essential["name"]))
            for essential in content["essentials"]
            if measures_in(content, essential["name"])
        ]

    @cached_property
    def gaps(self) -> AttributeGaps | None:
        if not self.attribute:
            return None
        [gaps] = gaps_by_attribute(
            *(self.texts, self.names, self.everyone, self.groups),
            *(roster_groups(self.administration), [self.attribute]),
        )
        return gaps

    @property
    def has_scores(self) -> bool:
        return has_scores(self.administration)

    @property
    def query(self) -> str:
        chosen = {"by": self.attribute, "show": self.show}
        if self.school:
            chosen["school"] = str(self.school.pk)
        elif self.district:
            chosen["district"] = str(self.district.pk)
        return urlencode({name: value for name, value in chosen.items() if value})


def csv_rows(
    request: StaffRequest, administration: Administration
) -> Iterator[Sequence[Cell]]:
    """Yield the header and a row for each group of all places that the user sees.

    Groups without any score there have no row. 11 statements.
    """
    permissions = request.permissions
    content = measures_in_survey(administration)
    names = [measure["name"] for measure in content["measures"]]
    names = [essential["name"] for essential in content["essentials"]] + names
    header = ["level", "district", "school", "code", "attribute", "group"]
    yield header + [f"{name} {figure}" for name in names for figure in FIGURES]
    places: dict[Place, tuple[str, str, str]] = {}
    if sees_groups(permissions, STATE):
        places[STATE] = ("", "", "")
    capability = capability_for(administration)
    for district in permissions.districts(capability).order_by("name"):
        place: Place = (LEVELS.DISTRICT.value, district.pk)
        if sees_groups(permissions, place):
            places[place] = (district.name, "", "")
    rows = schools_with_scores(permissions, administration)
    for line in reached_schools(
        rows.order_by("school__district__name", "school__name")
    ):
        places[line.place] = (line.district, line.name, line.code)
    everyone = visible_scores(administration, places)
    groups = visible_group_scores(administration, content, everyone)
    for place, about in places.items():
        for attribute, value, cells in file_rows(groups.get(place, {}), names):
            yield [place[0], *about, attribute, value, *cells]
