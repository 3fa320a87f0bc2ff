"""The form to open an administration, as a whole or one step of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import ValidationError
from django.db.models import Case, Count, Q, When
from django.http import QueryDict
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from accounts import forms
from accounts.models import District
from accounts.permissions import Permissions
from survey.console.administrations.fields import (
    PartlyDisabledRadio,
    with_hint,
)
from survey.console.administrations.forms import (
    AdministrationForm,
    owners_for,
    show_errors,
    unavailable_privacy,
)
from survey.fieldwork.administrations import format_moment, least_minimum_group
from survey.fieldwork.administrations.checks import (
    check_minimum_group,
    check_places,
    check_settings,
    check_window,
)
from survey.fieldwork.administrations.suggestions import suggest_window
from survey.fieldwork.waves import MAX_NAME_LENGTH as MAX_WAVE_NAME_LENGTH
from survey.fieldwork.waves import clean_name
from survey.instrument.definitions.schema import ANSWERABLE
from survey.models import Administration, Denominator, PublishedSurvey, Survey, Wave
from survey.models.administration import MINIMUM_GROUP

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

STATE = "state"
EVERYWHERE = "everywhere"
CHOSEN = "chosen"
CHOSEN_PLACES = _("Chosen districts and schools")
# More are searched.
MOST_SURVEYS = 12


class OpenAdministrationForm(AdministrationForm):
    """Checks the fields of one step, or all of them.

    `answers` are those of all steps so far: what one step may choose depends on
    others. With `is_answered=False` it shows suggestions instead.
    """

    owner = forms.ChoiceField(
        label=_("Owner"),
        widget=forms.RadioSelect,
        error_messages={"invalid_choice": _("Choose one of your districts.")},
    )
    scope = forms.ChoiceField(
        label=_("Schools"),
        choices=[
            (EVERYWHERE, _("All schools")),
            (CHOSEN, CHOSEN_PLACES),
        ],
        initial=EVERYWHERE,
        widget=forms.RadioSelect,
        error_messages={"required": _("Choose all schools, or some of them.")},
    )
    new_wave = forms.CharField(
        required=False,
        label=_("Or a new season"),
        max_length=MAX_WAVE_NAME_LENGTH,
        help_text=_("Such as Spring 2027. Used instead of the one above."),
    )
    # Asked for only where there is such an administration already.
    second = forms.BooleanField(required=False, label=_("Open a second one"))

    def __init__(
        self,
        answers: QueryDict,
        *,
        permissions: Permissions,
        only: Collection[str] = (),
        is_answered: bool = True,
    ) -> None:
        self.answers = answers
        self.owners = owners_for(permissions)
        super().__init__(
            answers if is_answered else None,
            permissions=permissions,
            owner=self.chosen_owner,
        )
        # An administrator of several districts chooses places and owner together. Who
        # has lost one of two since is not led to open it for the other.
        if len(self.owners) > 1 or answers.get("owner"):
            if len(self.owners) > 1:
                self.set_places(permissions, owner=None)
            cast(forms.ChoiceField, self.fields["owner"]).choices = [
                (_owner_key(owner), str(owner)) for owner in self.owners
            ]
            self.initial["owner"] = _owner_key(self.chosen_owner)
        else:
            del self.fields["owner"]
        self.twin: Administration | None = None
        self.is_whole = not only
        if only:
            self.fields = {
                name: self.fields[name] for name in only if name in self.fields
            }
        self._suggest()

    def _suggest(self) -> None:
        if "published" in self.fields:
            self.initial["published"] = self.answers.get("published", "")
            self.survey_field.widget = forms.RadioSelect()
            self.survey_field.choices = self.survey_choices
        if "role" in self.fields and not self.is_bound:
            self.initial["role"] = self._usual_role()
        if "scope" in self.fields and len(self.owners) == 1:
            scope = cast(forms.ChoiceField, self.fields["scope"])
            scope.choices = [(EVERYWHERE, self.everywhere), (CHOSEN, CHOSEN_PLACES)]
        if "opens_at" in self.fields and not self.is_bound:
            opens_at, closes_at = suggest_window(self.chosen_owner)
            self.initial.update(
                opens_at=opens_at, closes_at=closes_at, wave=self._current_wave()
            )
        if "privacy" in self.fields:
            radio = cast(PartlyDisabledRadio, self.fields["privacy"].widget)
            radio.disabled_values = unavailable_privacy(
                self.answers.get("role", ""), self.answers.get("denominator", "")
            )
            self.initial["minimum_group"] = (
                least_minimum_group(self.chosen_owner) or MINIMUM_GROUP
            )

    def _usual_role(self) -> str:
        """Return the only audience that has answered this questionnaire so far.

        Any version of it, in rounds of the state and of the user's districts. Blank
        if there were several. 2 statements.
        """
        digest = self.answers.get("published", "").replace("\x00", "")
        rows = self.surveys.filter(pk=digest)
        survey = rows.values("survey__name", "survey__district").first()
        if survey is None:
            return ""
        owners = [owner for owner in self.owners if owner is not None]
        rounds = Administration.objects.filter(
            Q(district=None) | Q(district__in=owners),
            published__survey__name=survey["survey__name"],
            published__survey__district=survey["survey__district"],
        )
        roles = list(rounds.order_by().values_list("role", flat=True).distinct())
        return roles[0] if len(roles) == 1 else ""

    def _current_wave(self) -> Wave | None:
        """Return the newest wave with an administration that has not ended."""
        return self.waves.filter(administrations__closes_at__gt=timezone.now()).first()

    @cached_property
    def chosen_owner(self) -> District | None:
        """The chosen owner, or the first one if there is no valid choice."""
        key = self.answers.get("owner")
        chosen = (owner for owner in self.owners if _owner_key(owner) == key)
        return next(chosen, self.owners[0])

    @property
    def everywhere(self) -> str:
        if self.chosen_owner is None:
            return gettext("All schools of the state")
        return gettext("All schools of %(district)s") % {"district": self.chosen_owner}

    def label_of(self, name: str, value: str) -> str:
        field = cast(forms.ChoiceField, self.fields[name])
        return str(dict(cast(list[tuple[str, str]], field.choices))[value])

    # Surveys

    @cached_property
    def newest_surveys(self) -> list[PublishedSurvey]:
        """The newest version of each survey, the last published first. 1 statement."""
        newest: dict[tuple[str, int | None], PublishedSurvey] = {}
        for published in self.surveys.select_related("survey__district"):
            survey = published.survey
            newest.setdefault((survey.name, survey.district_id), published)
        return sorted(newest.values(), key=lambda row: row.published_at, reverse=True)

    @property
    def is_searchable(self) -> bool:
        return len(self.newest_surveys) > MOST_SURVEYS

    @cached_property
    def matching_surveys(self) -> list[PublishedSurvey]:
        words = self.searched.casefold().split()
        return [
            published
            for published in self.newest_surveys
            if all(word in _searched_text(published.survey) for word in words)
        ]

    @property
    def has_more_surveys(self) -> bool:
        return len(self.matching_surveys) > MOST_SURVEYS

    @cached_property
    def survey_choices(self) -> list[tuple[str, StrOrPromise]]:
        shown = self.matching_surveys[:MOST_SURVEYS]
        # An older version is chosen on its own page.
        digest = self.answers.get("published", "").replace("\x00", "")
        if digest and all(published.pk != digest for published in shown):
            chosen = self.surveys.select_related("survey__district").filter(pk=digest)
            shown = [*chosen, *shown]
        surveys = Survey.objects.filter(pk__in=[row.survey_id for row in shown])
        pages = surveys.annotate(n=Count("pages"))
        page_counts = dict(pages.values_list("pk", "n"))
        is_question = Q(items__kind__in=ANSWERABLE)
        items = surveys.annotate(n=Count("items", filter=is_question))
        question_counts = dict(items.values_list("pk", "n"))
        return [
            (
                published.pk,
                with_hint(
                    published.survey.title_to_read,
                    _survey_hint(
                        published.survey,
                        pages=page_counts[published.survey_id],
                        questions=question_counts[published.survey_id],
                    ),
                ),
            )
            for published in shown
        ]

    # Checks; `open_administration` makes them again

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("scope") == EVERYWHERE:
            self.errors.pop("places", None)
            cleaned["places"] = [], []
        self._check_window(cleaned)
        for check in (
            self._check_places,
            self._check_season,
            self._check_privacy,
            self._check_minimum_group,
        ):
            try:
                check(cleaned)
            except ValidationError as error:
                show_errors(self, error)
        if self.is_whole and not self.errors:
            self.twin = self._find_twin()
            if self.twin and not cleaned["second"]:
                self.add_error("second", self.twin_in_words)
        return cleaned

    def _check_window(self, cleaned: dict[str, Any]) -> None:
        opens_at, closes_at = map(cleaned.get, ("opens_at", "closes_at"))
        if closes_at is not None and closes_at <= timezone.now():
            passed = gettext("This time has passed. Choose a later one.")
            self.add_error("closes_at", passed)
        elif opens_at is not None and closes_at is not None:
            try:
                check_window(opens_at, closes_at)
            except ValidationError as error:
                show_errors(self, error)

    def _check_places(self, cleaned: dict[str, Any]) -> None:
        if "places" not in cleaned or "scope" not in cleaned:
            return
        districts, schools = cleaned["places"]
        if cleaned["scope"] == CHOSEN and not districts and not schools:
            words = gettext(
                "Find and select districts or schools, or choose all schools."
            )
            raise ValidationError({"places": words})
        check_places(self.chosen_owner, districts, schools)

    def _check_season(self, cleaned: dict[str, Any]) -> None:
        if name := cleaned.get("new_wave"):
            try:
                clean_name(name)
            except ValidationError as error:
                raise ValidationError({"new_wave": error.messages}) from error

    def _check_privacy(self, cleaned: dict[str, Any]) -> None:
        if "privacy" in cleaned:
            check_settings(
                Administration(
                    role=self.answers.get("role", ""),
                    denominator=self.answers.get("denominator", Denominator.ROSTER),
                    coordinators_see_finished=cleaned["coordinators_see_finished"],
                    messages_have_codes=cleaned["messages_have_codes"],
                    requires_consent=cleaned["requires_consent"],
                )
            )

    def _check_minimum_group(self, cleaned: dict[str, Any]) -> None:
        if "minimum_group" in cleaned:
            check_minimum_group(self.chosen_owner, cleaned["minimum_group"])

    def _find_twin(self) -> Administration | None:
        """Return one of the same survey, audience and owner, in the same season.

        Or at the same time. Rounds that are over do not count.
        """
        cleaned = self.cleaned_data
        survey = cleaned["published"].survey
        overlaps = Q(
            opens_at__lt=cleaned["closes_at"], closes_at__gt=cleaned["opens_at"]
        )
        is_twin = overlaps
        if name := cleaned["new_wave"]:
            is_twin |= Q(wave__name__iexact=name)
        elif wave := cleaned["wave"]:
            is_twin |= Q(wave=wave)
        return (
            Administration.objects.filter(
                is_twin,
                published__survey__name=survey.name,
                published__survey__district=survey.district_id,
                role=cleaned["role"],
                district=self.chosen_owner,
                closes_at__gt=timezone.now(),
            )
            .order_by(Case(When(overlaps, then=0), default=1), "opens_at", "pk")
            .select_related("published__survey")
            .defer("published__definition", "published__survey__source")
            .first()
        )

    @property
    def twin_in_words(self) -> str:
        twin = self.twin
        if twin is None:
            return ""
        if twin.state == Administration.State.PLANNED:
            words = gettext(
                "%(survey)s will open for %(audience)s on %(opens)s already. To open a"
                " second one anyway, select “Open a second one”."
            )
        else:
            words = gettext(
                "%(survey)s is already open for %(audience)s until %(closes)s. To open"
                " a second one anyway, select “Open a second one”."
            )
        cleaned = self.cleaned_data
        planned = Administration(
            published=cleaned["published"],
            role=cleaned["role"],
            opens_at=cleaned["opens_at"],
        )
        if planned.title == twin.title:
            words += " " + gettext(
                "Both would be called “%(title)s”. A round that opens in another month"
                " has another title."
            )
        return words % {
            "title": twin.title,
            "survey": twin.published.survey.title_to_read,
            "audience": twin.audience,
            "opens": format_moment(twin.opens_at),
            "closes": format_moment(twin.closes_at),
        }


def _owner_key(owner: District | None) -> str:
    return f"district-{owner.pk}" if owner else STATE


def _searched_text(survey: Survey) -> str:
    return " ".join((survey.name, *survey.title.values())).casefold()


def _survey_hint(survey: Survey, *, pages: int, questions: int) -> str:
    """Return "Version 2, 14 pages, 60 questions, English and Spanish"."""
    parts = [
        gettext("Version %(version)s") % {"version": survey.version},
        ngettext("%(n)s page", "%(n)s pages", pages) % {"n": pages},
        ngettext("%(n)s question", "%(n)s questions", questions) % {"n": questions},
    ]
    parts.append(str(survey.district or gettext("The state")))
    languages = format_html_join(
        ", ",
        "<span lang='{}'>{}</span>",
        ((language["code"], language["name"]) for language in survey.languages),
    )
    return format_html("{} · {}", " · ".join(parts), languages)
