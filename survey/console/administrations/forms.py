"""Forms to open, change, close, reopen and remove an administration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db.models import Q, QuerySet
from django.forms.utils import ErrorDict
from django.http import QueryDict
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts import forms
from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from survey.console.administrations.fields import (
    MAX_FOUND,
    MAX_PLACES,
    LocalDateTimeField,
    PlacesField,
    SubgroupsField,
    SurveyField,
    WaveField,
    place_choices,
)
from survey.fieldwork.administrations import (
    MAX_NAME_LENGTH,
    AdministrationPlan,
    default_subgroups,
    format_moment,
    has_people,
    has_started,
    least_minimum_group,
    plan_of,
    suggest_name,
    surveys_to_offer,
)
from survey.fieldwork.administrations.checks import check_window
from survey.fieldwork.waves import MAX_NAME_LENGTH as MAX_WAVE_NAME_LENGTH
from survey.fieldwork.waves import waves_for
from survey.models import (
    Administration,
    Denominator,
    PublishedSurvey,
    Role,
    Wave,
)
from survey.models.administration import MAX_MINIMUM_GROUP, MINIMUM_GROUP

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_SEARCH_LENGTH = 200
STATE = "state"


class AdministrationForm(forms.Form):
    """The fields that opening and changing have in common."""

    published = SurveyField(
        queryset=PublishedSurvey.objects.none(),
        label=_("Survey"),
        empty_label=_("Choose a survey"),
        help_text=_("Can't be changed once people are invited."),
        error_messages={
            "required": _("Choose a survey."),
            "invalid_choice": _("Choose one of the published surveys."),
        },
    )
    role = forms.ChoiceField(
        label=_("Audience"),
        choices=[
            (Role.STUDENT.value, _("Students")),
            (Role.TEACHER.value, _("Teachers")),
            (Role.PARENT.value, _("Parents")),
        ],
        widget=forms.RadioSelect,
        help_text=_("Can't be changed once people are invited."),
        error_messages={
            "required": _("Choose the audience."),
            "invalid_choice": _("Choose students, teachers or parents."),
        },
    )
    wave = WaveField(
        label=_("Season"),
        queryset=Wave.objects.none(),
        required=False,
        empty_label=_("No season"),
        help_text=_("Groups the surveys of one season."),
        error_messages={"invalid_choice": _("Choose one of the seasons in the list.")},
    )
    places = PlacesField(required=False, label=_("Schools"))
    q = forms.CharField(required=False, label=_("Find districts and schools"))
    opens_at = LocalDateTimeField(
        label=_("Opens"),
        required_message=_("Enter when the survey opens."),
    )
    closes_at = LocalDateTimeField(
        label=_("Closes"),
        required_message=_("Enter when the survey closes."),
        help_text=_("Pages already started can be submitted for ten more minutes."),
    )
    coordinators_see_finished = forms.BooleanField(
        required=False,
        label=_("Coordinators can see who has finished, by name"),
        help_text=_(
            "Helps them to remind students or parents. Not available for"
            " teachers. Answers are never shown next to a name."
        ),
    )
    replays_answers = forms.BooleanField(
        required=False,
        label=_("A code shows earlier answers on every device"),
        help_text=_(
            "Otherwise only on the device that they were given on. Anyone"
            " who holds a code could read them."
        ),
    )
    messages_have_names = forms.BooleanField(
        required=False,
        label=_("Message platforms get given names"),
        help_text=_("For greetings. The people who run the platform can read them."),
    )
    messages_have_codes = forms.BooleanField(
        required=False,
        label=_("Message platforms get links with access codes"),
        help_text=_(
            "Opens the survey without typing the code. The people who run"
            " the platform can read the codes, and answer with them. Only"
            " where coordinators can see who has finished."
        ),
    )
    denominator = forms.ChoiceField(
        label=_("Who takes part"),
        choices=[
            (
                Denominator.ROSTER,
                _("People on a roster, each with a login card"),
            ),
            (
                Denominator.COUNT,
                _("Anyone with a school's link, such as parents"),
            ),
        ],
        initial=Denominator.ROSTER,
        widget=forms.RadioSelect,
        help_text=_("Can't be changed once people are invited or have school links."),
        error_messages={"invalid_choice": _("Choose a roster or school links.")},
        required=False,
    )
    requires_consent = forms.BooleanField(
        required=False,
        label=_("Only people whose consent is recorded can start"),
        help_text=_(
            "For surveys that need the consent of each parent or person. Everyone on a"
            " roster awaits consent first: record it on the page of the person, or"
            " upload a list of consents. Can't be changed once people are invited."
        ),
    )
    subgroups = SubgroupsField(
        required=False,
        max_length=20_000,
        label=_("Subgroups"),
        help_text=_(
            "Columns of the roster that are stored next to answers, and"
            " their values, one column in each line, such as lunch: free,"
            " reduced, paid. Other columns and values are left out. Grade"
            " and language are always kept."
        ),
    )

    minimum_group = forms.IntegerField(
        initial=MINIMUM_GROUP,
        min_value=1,
        max_value=MAX_MINIMUM_GROUP,
        label=_("Minimum group"),
        help_text=_(
            "Results are shown where at least this many people answered. In a file"
            " without names, at least this many share the same school, grade,"
            " language and subgroups. Can't be lowered once people have started."
        ),
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            format_lazy(_("Enter a whole number from 1 to {}."), MAX_MINIMUM_GROUP),
        ),
        required=False,
    )
    joins_waves = forms.BooleanField(
        required=False,
        label=_("Answers can be joined with those of other seasons"),
        help_text=_(
            "For panel studies: in exports, the same person has the same"
            " random ID in all seasons that allow this. Tell the people in"
            " the introduction of the survey. Can't be allowed once"
            " people have started."
        ),
    )

    def __init__(
        self,
        data: QueryDict | None,
        *,
        permissions: Permissions,
        owner: District | None,
        initial: dict[str, object] | None = None,
    ) -> None:
        super().__init__(
            data, initial={"subgroups": default_subgroups(), **(initial or {})}
        )
        self.district = owner
        self.waves = self.get_waves(permissions)
        cast(WaveField, self.fields["wave"]).queryset = self.waves
        self.surveys = surveys_to_offer(permissions)
        self.survey_field = cast(SurveyField, self.fields["published"])
        self.survey_field.queryset = self.surveys
        self.places_field = cast(PlacesField, self.fields["places"])
        districts = permissions.districts(Capability.MANAGE_SURVEYS)
        schools = permissions.schools(Capability.MANAGE_SURVEYS)
        if owner is not None:
            districts = districts.filter(pk=owner.pk)
            schools = schools.filter(district=owner)
        self.places_field.districts = districts
        self.places_field.schools = schools

    def clean_minimum_group(self) -> int:
        # Left empty: the number that the page had shown.
        return self.cleaned_data["minimum_group"] or self["minimum_group"].initial

    def clean_denominator(self) -> str:
        return self.cleaned_data["denominator"] or self["denominator"].initial

    def get_waves(self, permissions: Permissions) -> QuerySet[Wave]:
        waves = waves_for(permissions).select_related("district")
        # The state's waves and the owner's.
        is_allowed = Q(district=None) | Q(district=self.district)
        return waves.filter(is_allowed).order_by("-pk")

    def skip_validation(self) -> None:
        """Show the form as it was typed, without errors."""
        self._errors = ErrorDict()

    # Places: chosen ones stay ticked, found ones can be ticked.

    @cached_property
    def chosen(self) -> tuple[list[District], list[School]]:
        """The ticked districts and schools. 2 statements."""
        if not self.is_bound:
            return self.initial.get("places", ([], []))
        return self.places_field.get_places(
            (self["places"].data or [])[: MAX_PLACES + 1]
        )

    @property
    def chosen_places(self) -> list[tuple[str, str]]:
        return place_choices(*self.chosen)

    max_found = MAX_FOUND

    @property
    def searched(self) -> str:
        query = str(self["q"].data or "")[:MAX_SEARCH_LENGTH]
        return query.replace("\x00", "").strip()

    @cached_property
    def found_places(self) -> list[tuple[str, str]]:
        if not self.searched:
            return []
        return self.places_field.find(self.searched, self.chosen)


def show_errors(form: forms.Form, error: ValidationError) -> None:
    """Add the errors of a function to the fields that they are about."""
    if not hasattr(error, "error_dict"):
        form.add_error(None, error)
        return
    for name, errors in error.error_dict.items():
        form.add_error(name if name in form.fields else None, errors)


class OpenAdministrationForm(AdministrationForm):
    owner = forms.ChoiceField(label=_("Owner"))
    new_wave = forms.CharField(
        required=False,
        label=_("Or a new season"),
        max_length=MAX_WAVE_NAME_LENGTH,
        help_text=_("Such as Spring 2027."),
    )
    name = forms.CharField(
        required=False,
        label=_("Short name"),
        max_length=MAX_NAME_LENGTH,
        validators=[validate_slug],
        help_text=_(
            "Letters, digits and hyphens. Shown in lists and file names;"
            " can't be changed later. Made from the season and the audience"
            " if left empty."
        ),
        error_messages={
            "invalid": _("Use letters, digits and hyphens only, such as spring-2027.")
        },
    )
    # Asked for only where there is such an administration already.
    second = forms.BooleanField(required=False, label=_("Open a second one"))
    # The last suggested name; a different name was typed and is kept.
    suggested = forms.CharField(required=False, widget=forms.HiddenInput)

    field_order = (
        "published",
        "role",
        "owner",
        "wave",
        "new_wave",
        "name",
        "opens_at",
        "closes_at",
        "places",
        "coordinators_see_finished",
        "replays_answers",
        "messages_have_names",
        "messages_have_codes",
        "denominator",
        "requires_consent",
        "subgroups",
        "minimum_group",
        "joins_waves",
    )

    def __init__(
        self, data: QueryDict | None, *, permissions: Permissions, published: str = ""
    ) -> None:
        self.owners = owners_for(permissions)
        only_owner = self.owners[0] if len(self.owners) == 1 else None
        super().__init__(
            data,
            permissions=permissions,
            owner=only_owner,
            initial={
                "published": published,
                "minimum_group": least_minimum_group(self.chosen_owner_of(data))
                or MINIMUM_GROUP,
            },
        )
        if len(self.owners) == 1:
            del self.fields["owner"]
        else:
            cast(forms.ChoiceField, self.fields["owner"]).choices = [
                (_owner_key(owner), str(owner)) for owner in self.owners
            ]
        if data is not None:
            self.data = self._with_suggested_name(data)

    def get_waves(self, permissions: Permissions) -> QuerySet[Wave]:
        if len(self.owners) > 1:
            return waves_for(permissions).select_related("district")
        return super().get_waves(permissions)

    def chosen_owner(self) -> District | None:
        """Return the chosen owner, or the first one if there is no valid choice."""
        return self.chosen_owner_of(self.data)

    def chosen_owner_of(self, data: Mapping[str, str] | None) -> District | None:
        key = (data or {}).get("owner")
        chosen = (owner for owner in self.owners if _owner_key(owner) == key)
        return next(chosen, self.owners[0])

    def _with_suggested_name(self, data: QueryDict) -> QueryDict:
        """Return the data with a name from wave and role, unless one was typed."""
        # The browser sends the last suggestion back in a hidden field.
        typed = data.get("name", "").strip()
        if typed and typed != data.get("suggested"):
            return data
        role = data.get("role", "")
        wave = data.get("new_wave", "")[:MAX_WAVE_NAME_LENGTH]
        name = ""
        if role in Role.values:
            key = data.get("wave", "")
            if not wave and key.isascii() and key.isdigit() and len(key) < 19:
                chosen = self.waves.filter(pk=int(key)).first()
                wave = chosen.name if chosen else ""
            name = suggest_name(role=role, wave=wave, district=self.chosen_owner())
        data = data.copy()
        data["name"] = data["suggested"] = name
        return data

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or {}
        # The other rules are in `survey.fieldwork.administrations.checks`.
        closes_at = cleaned.get("closes_at")
        if closes_at is not None and closes_at <= timezone.now():
            self.add_error("closes_at", _("This time has passed. Choose a later one."))
        if cleaned.get("wave") and cleaned.get("new_wave"):
            self.add_error(
                "new_wave",
                _("Choose a season from the list or enter a new one, not both."),
            )
        if not self.errors:
            try:
                check_window(cleaned["opens_at"], cleaned["closes_at"])
            except ValidationError as error:
                self.add_error(None, error)
        if not self.errors and not cleaned["second"] and (twin := self._find_twin()):
            self.add_error("second", _in_words(twin))
        return cleaned

    def _find_twin(self) -> Administration | None:
        """Return one of the same survey, audience and owner at the same time."""
        cleaned = self.cleaned_data
        return (
            Administration.objects.filter(
                published=cleaned["published"],
                role=cleaned["role"],
                district=self.chosen_owner(),
                opens_at__lt=cleaned["closes_at"],
                closes_at__gt=max(cleaned["opens_at"], timezone.now()),
            )
            .select_related("published__survey")
            .defer("published__definition", "published__survey__source")
            .first()
        )


def _in_words(twin: Administration) -> str:
    if twin.state == Administration.State.PLANNED:
        words = gettext(
            "%(survey)s will open for %(audience)s on %(opens)s already. To open a"
            " second one anyway, tick “Open a second one”."
        )
    else:
        words = gettext(
            "%(survey)s is already open for %(audience)s until %(closes)s. To open a"
            " second one anyway, tick “Open a second one”."
        )
    return words % {
        "survey": twin.published.survey.title_to_read,
        "audience": twin.audience,
        "opens": format_moment(twin.opens_at),
        "closes": format_moment(twin.closes_at),
    }


def _owner_key(owner: District | None) -> str:
    return f"district-{owner.pk}" if owner else STATE


def owners_for(permissions: Permissions) -> list[District | None]:
    """Return the possible owners of a user's administrations; None is the state."""
    if permissions.places(Capability.MANAGE_SURVEYS).state:
        return [None]
    return list(permissions.districts(Capability.MANAGE_SURVEYS))


class ChangeAdministrationForm(AdministrationForm):
    # The number of changes when the page was loaded.
    seen = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    confirmed = forms.CharField(required=False, label=_("Short name, to confirm"))

    def __init__(
        self,
        data: QueryDict | None,
        *,
        permissions: Permissions,
        administration: Administration,
    ) -> None:
        self.administration = administration
        plan = plan_of(administration)
        super().__init__(
            data,
            permissions=permissions,
            owner=administration.district,
            initial={
                "published": plan.published.pk,
                "role": plan.role,
                "wave": plan.wave and plan.wave.pk,
                "places": (
                    sorted(plan.districts, key=str),
                    sorted(plan.schools, key=str),
                ),
                "opens_at": plan.opens_at,
                "closes_at": plan.closes_at,
                "coordinators_see_finished": plan.coordinators_see_finished,
                "subgroups": plan.subgroups,
                "minimum_group": plan.minimum_group,
                "joins_waves": plan.joins_waves,
                "replays_answers": plan.replays_answers,
                "messages_have_names": plan.messages_have_names,
                "messages_have_codes": plan.messages_have_codes,
                "denominator": plan.denominator,
                "requires_consent": plan.requires_consent,
                "seen": administration.changes,
            },
        )
        # The current survey can be kept even if it could not be chosen anew.
        self.survey_field.queryset = self.surveys | (
            PublishedSurvey.objects.select_related("survey")
            .defer("definition", "survey__source")
            .filter(pk=plan.published.pk)
        )
        # Fields that `survey.fieldwork.administrations.checks` would refuse to change.
        if administration.state == Administration.State.CLOSED:
            reason = _("It is closed. To accept answers again, reopen it.")
            self._disable("closes_at", reason)
        if has_people(administration):
            for name in ("published", "role", "denominator", "requires_consent"):
                self._disable(name, _("Can't be changed, because people are invited."))
            if has_started(administration):
                reason = _("Can't be changed, because people have started.")
                self._disable("opens_at", reason)
                if not administration.joins_waves:
                    self._disable("joins_waves", reason)

    def _disable(self, name: str, reason: StrOrPromise) -> None:
        self.fields[name].disabled = True
        self.fields[name].help_text = reason

    def clean_opens_at(self) -> datetime:
        return self._keep_seconds("opens_at")

    def clean_closes_at(self) -> datetime:
        return self._keep_seconds("closes_at")

    def _keep_seconds(self, name: str) -> datetime:
        # The field shows minutes: an untouched one keeps its seconds.
        typed: datetime = self.cleaned_data[name]
        current: datetime = getattr(self.administration, name)
        minute = current.replace(second=0, microsecond=0)
        return current if typed.replace(second=0, microsecond=0) == minute else typed

    def plan(self) -> AdministrationPlan:
        cleaned = self.cleaned_data
        districts, schools = cleaned["places"]
        return AdministrationPlan(
            published=cleaned["published"],
            role=cleaned["role"],
            wave=cleaned["wave"],
            districts=frozenset(districts),
            schools=frozenset(schools),
            opens_at=cleaned["opens_at"],
            closes_at=cleaned["closes_at"],
            coordinators_see_finished=cleaned["coordinators_see_finished"],
            subgroups=cleaned["subgroups"],
            minimum_group=cleaned["minimum_group"],
            joins_waves=cleaned["joins_waves"],
            replays_answers=cleaned["replays_answers"],
            messages_have_names=cleaned["messages_have_names"],
            messages_have_codes=cleaned["messages_have_codes"],
            denominator=cleaned["denominator"],
            requires_consent=cleaned["requires_consent"],
        )


class CloseAdministrationForm(forms.Form):
    # The number of changes when the page was loaded.
    seen = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


class ReopenAdministrationForm(CloseAdministrationForm):
    closes_at = LocalDateTimeField(
        label=_("Closes"),
        required_message=_("Enter when the survey closes."),
    )


class RemoveAdministrationForm(CloseAdministrationForm):
    confirmed = forms.CharField(
        label=_("Short name, to confirm"),
        max_length=MAX_NAME_LENGTH,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
        error_messages={"required": _("Type the short name to confirm.")},
    )

    def __init__(
        self, data: QueryDict | None, *, administration: Administration
    ) -> None:
        super().__init__(data, initial={"seen": administration.changes})
        hint = gettext("Type %(name)s") % {"name": administration.name}
        self.fields["confirmed"].help_text = hint
