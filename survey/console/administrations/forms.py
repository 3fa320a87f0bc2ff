"""Forms to open, change, close, reopen and remove an administration."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet, TextChoices
from django.forms.utils import ErrorDict
from django.http import QueryDict
from django.utils.functional import cached_property
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts import forms
from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from accounts.templatetags.console import time_zone
from survey.console.administrations.fields import (
    MAX_FOUND,
    MAX_PLACES,
    LocalDateTimeField,
    PartlyDisabledRadio,
    PlacesField,
    SubgroupsField,
    SurveyField,
    WaveField,
    place_choices,
    with_hint,
)
from survey.fieldwork.administrations import (
    COLUMNS,
    MAX_NAME_LENGTH,
    AdministrationPlan,
    default_subgroups,
    has_people,
    has_started,
    plan_of,
    surveys_to_offer,
)
from survey.fieldwork.waves import waves_for
from survey.models import (
    Administration,
    Denominator,
    PublishedSurvey,
    Role,
    Wave,
)
from survey.models.administration import (
    MAX_DISTRICT_PAGES,
    MAX_MINIMUM_GROUP,
    MINIMUM_GROUP,
)

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_SEARCH_LENGTH = 200


class Privacy(TextChoices):
    """Who learns that a person has finished, and who may start."""

    CONFIDENTIAL = "confidential"
    COORDINATORS = "coordinators"
    CONSENT = "consent"


# Fields of an administration that a choice of `Privacy` stands for.
PRIVACY_FIELDS = {
    "coordinators_see_finished": "privacy",
    "requires_consent": "privacy",
}


# Shown under "More settings".
FOLDED = (
    "consent_shows_finished",
    "allows_declining",
    "public_questions",
    "replays_answers",
    "messages_have_names",
    "messages_have_codes",
    "minimum_group",
    "subgroups",
    "joins_waves",
    "district_pages_limit",
)


def privacy_of(plan: AdministrationPlan) -> Privacy:
    if plan.requires_consent:
        return Privacy.CONSENT
    if plan.coordinators_see_finished:
        return Privacy.COORDINATORS
    return Privacy.CONFIDENTIAL


def unavailable_privacy(role: str, denominator: str) -> set[str]:
    """Return the choices that `survey.fieldwork.administrations.checks` refuses."""
    refused: set[str] = set()
    if role == Role.TEACHER:
        refused.add(Privacy.COORDINATORS)
    if denominator == Denominator.COUNT:
        refused.add(Privacy.CONSENT)
    return refused


class AdministrationForm(forms.Form):
    """The fields that opening and changing have in common."""

    published = SurveyField(
        queryset=PublishedSurvey.objects.none(),
        label=_("Questionnaire"),
        empty_label=_("Choose a questionnaire"),
        help_text=_("Can't be changed once people are invited."),
        error_messages={
            "required": _("Choose a questionnaire."),
            "invalid_choice": _("Choose one of the published questionnaires."),
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
    privacy = forms.ChoiceField(
        label=_("Privacy"),
        choices=[
            (
                Privacy.CONFIDENTIAL.value,
                with_hint(
                    _("Confidential"),
                    _(
                        "Nobody at school sees who has finished, only how many. Login"
                        " cards have no names, and each person draws one: subgroups"
                        " of the roster, other than grade and class, are then not"
                        " theirs."
                    ),
                ),
            ),
            (
                Privacy.COORDINATORS.value,
                with_hint(
                    _("Coordinators see who has finished"),
                    _(
                        "By name, so that they can remind people. Login cards have"
                        " names. Never for teachers: they were promised that their"
                        " school does not learn it."
                    ),
                ),
            ),
            (
                Privacy.CONSENT.value,
                with_hint(
                    _("Consent first"),
                    _(
                        "Only people whose consent is recorded can start. For people"
                        " on a roster; can't be changed once they are invited."
                    ),
                ),
            ),
        ],
        initial=Privacy.CONFIDENTIAL,
        widget=PartlyDisabledRadio,
        help_text=_("Answers are never shown next to a name."),
        error_messages={
            "required": _("Choose who sees that people have finished."),
            "invalid_choice": _("Choose one of the three."),
        },
    )
    consent_shows_finished = forms.BooleanField(
        required=False,
        label=_("With consent first: coordinators also see who has finished, by name"),
        help_text=_("Not available for teachers."),
    )
    allows_declining = forms.BooleanField(
        required=False,
        initial=True,
        label=_("People can say on the first page that they do not want to take part"),
        help_text=_(
            "Their code ends, they get no reminders, and what they answered before is"
            " in no result. They count as invited. For people with a code of their"
            " own; leave it out only where taking part is required."
        ),
    )
    public_questions = forms.BooleanField(
        required=False,
        initial=True,
        label=_("Families can read the questions on a public page"),
        help_text=_(
            "Without logging in, also before the survey opens. Only if the state"
            " allows it, and the district does not hide questions."
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
            " where coordinators see who has finished."
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

    district_pages_limit = forms.IntegerField(
        min_value=0,
        max_value=MAX_DISTRICT_PAGES,
        label=_("Pages that each district may add"),
        help_text=_(
            "Districts can ask their own people some more questions after the last"
            " page, with the same login. Only they see the answers, and these results"
            " stay as they are. Leave it empty to allow none."
        ),
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            format_lazy(_("Enter a whole number from 0 to {}."), MAX_DISTRICT_PAGES),
        ),
        required=False,
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
        self.set_places(permissions, owner=owner)
        if owner is not None:
            # Only the state lets districts add pages.
            del self.fields["district_pages_limit"]
        zone = time_zone()
        for name in ("opens_at", "closes_at"):
            hint = self.fields[name].help_text
            self.fields[name].help_text = f"{zone}. {hint}" if hint else f"{zone}."

    def set_places(self, permissions: Permissions, *, owner: District | None) -> None:
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

    def clean_district_pages_limit(self) -> int:
        field = self["district_pages_limit"]
        # A page that was loaded before an update does not have it.
        is_sent = field.html_name in self.data
        return (self.cleaned_data[field.name] if is_sent else field.initial) or 0

    def clean_denominator(self) -> str:
        return self.cleaned_data["denominator"] or self["denominator"].initial

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "privacy" in self.fields:
            choice = cleaned.get("privacy")
            cleaned["requires_consent"] = choice == Privacy.CONSENT
            cleaned["coordinators_see_finished"] = choice == Privacy.COORDINATORS or (
                choice == Privacy.CONSENT and bool(cleaned["consent_shows_finished"])
            )
        return cleaned

    def get_waves(self, permissions: Permissions) -> QuerySet[Wave]:
        waves = waves_for(permissions).select_related("district")
        # The state's waves and the owner's.
        is_allowed = Q(district=None) | Q(district=self.district)
        return waves.filter(is_allowed).order_by("-pk")

    @property
    def has_wrong_settings(self) -> bool:
        """Whether one of the settings that are folded away is wrong."""
        return any(name in self.errors for name in FOLDED)

    @property
    def columns(self) -> dict[str, Any]:
        """What was chosen for an administration's columns."""
        # Only a round of the state has a limit.
        chosen = {"district_pages_limit": 0, **self.cleaned_data}
        return {name: chosen[name] for name in COLUMNS}

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
        name = PRIVACY_FIELDS.get(name, name)
        form.add_error(name if name in form.fields else None, errors)


def owners_for(permissions: Permissions) -> list[District | None]:
    """Return the possible owners of a user's administrations; None is the state."""
    if permissions.places(Capability.MANAGE_SURVEYS).state:
        return [None]
    return list(permissions.districts(Capability.MANAGE_SURVEYS))


class OwnerForm(forms.Form):
    """A form whose field `owner` is a position in the list of possible owners."""

    def __init__(self, data: QueryDict | None, *, permissions: Permissions) -> None:
        super().__init__(data)
        self.owners = owners_for(permissions)
        if len(self.owners) == 1:
            del self.fields["owner"]
        else:
            owner = cast(forms.TypedChoiceField, self.fields["owner"])
            owner.choices = list(enumerate(map(str, self.owners)))


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
                "privacy": privacy_of(plan),
                "consent_shows_finished": plan.requires_consent
                and plan.coordinators_see_finished,
                "subgroups": plan.subgroups,
                "minimum_group": plan.minimum_group,
                "joins_waves": plan.joins_waves,
                "allows_declining": plan.allows_declining,
                "public_questions": plan.public_questions,
                "replays_answers": plan.replays_answers,
                "messages_have_names": plan.messages_have_names,
                "messages_have_codes": plan.messages_have_codes,
                "denominator": plan.denominator,
                "district_pages_limit": plan.district_pages_limit or None,
                "seen": administration.changes,
            },
        )
        # The current survey can be kept even if it could not be chosen anew.
        self.survey_field.queryset = self.surveys | (
            PublishedSurvey.objects.select_related("survey")
            .defer("definition", "survey__source")
            .filter(pk=plan.published.pk)
        )
        self._disable_unchangeable(plan)

    def _disable_unchangeable(self, plan: AdministrationPlan) -> None:
        """Disable what `survey.fieldwork.administrations.checks` would refuse."""
        administration = self.administration
        if administration.state == Administration.State.CLOSED:
            reason = _("It is closed. To accept answers again, reopen it.")
            self._disable("closes_at", reason)
        if has_people(administration):
            for name in ("published", "role", "denominator"):
                self._disable(name, _("Can't be changed, because people are invited."))
            radio = cast(PartlyDisabledRadio, self.fields["privacy"].widget)
            radio.disabled_values = unavailable_privacy(plan.role, plan.denominator) | (
                {Privacy.CONFIDENTIAL, Privacy.COORDINATORS}
                if plan.requires_consent
                else {Privacy.CONSENT}
            )
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
        districts, schools = self.cleaned_data["places"]
        return AdministrationPlan(
            **self.columns,
            districts=frozenset(districts),
            schools=frozenset(schools),
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
