"""What is typed to open, change and reopen an administration."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db.models import Model, Q, QuerySet
from django.forms.utils import ErrorDict
from django.utils import timezone
from django.utils.functional import cached_property

from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from survey.administrations import (
    LONGEST_NAME,
    Plan,
    plan_of,
    somebody_has_started,
    somebody_was_invited,
    suggest_name,
    surveys_to_offer,
)
from survey.models import Administration, PublishedSurvey, Role, Wave
from survey.waves import waves_for

# More are chosen by their districts; and a form has a thousand fields at most.
MOST_PLACES = 500
MOST_FOUND = 20
LONGEST_SEARCH = 200
STATE = "state"


def time_zone_in_words() -> str:
    """ "the time of Chicago (America/Chicago)"."""
    city = settings.TIME_ZONE.rpartition("/")[2].replace("_", " ")
    return f"the time of {city} ({settings.TIME_ZONE})"


class LocalMomentField(forms.DateTimeField):
    """A date and a time of day, as clocks show them where surveys are taken."""

    widget = forms.DateTimeInput(
        attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
    )

    def __init__(self, **options: Any) -> None:
        options.setdefault("help_text", f"In {time_zone_in_words()}.")
        super().__init__(**options)

    def to_python(self, value: Any) -> datetime | None:
        try:
            return super().to_python(value)
        except ValidationError as error:
            if error.code == "ambiguous_timezone":
                raise ValidationError(
                    "The clocks are changed in that hour, so it is there twice or not"
                    " at all. Choose an hour before or after."
                ) from error
            raise ValidationError(
                "Write a date and a time of day, such as 2027-03-01 08:00."
            ) from error
        # At the ends of the calendar there is no room for a time zone.
        except OverflowError:
            raise ValidationError("That date is too far away.") from None


class PlacesField(forms.Field):
    """Districts and schools, as `district-12` and `school-345`."""

    widget = forms.SelectMultiple
    districts: QuerySet[District]
    schools: QuerySet[School]

    def clean(self, value: Sequence[str] | None) -> tuple[list[District], list[School]]:
        value = list(dict.fromkeys(value or ()))
        if len(value) > MOST_PLACES:
            raise ValidationError(
                f"At most {MOST_PLACES} places can be chosen one by one. Choose whole"
                " districts, or none at all for everywhere."
            )
        districts, schools = self.known(value)
        if len(districts) + len(schools) != len(value):
            raise ValidationError(
                "One of the places is not there. Those that are there are still"
                " chosen; find the others again."
            )
        return districts, schools

    def known(self, value: Sequence[str]) -> tuple[list[District], list[School]]:
        """2 statements."""
        return (
            list(self.districts.filter(pk__in=_numbers(value, "district"))),
            list(
                self.schools.filter(pk__in=_numbers(value, "school")).select_related(
                    "district"
                )
            ),
        )


def _numbers(value: Sequence[str], kind: str) -> list[int]:
    """Those that can be a key at all."""
    texts = (one.removeprefix(f"{kind}-") for one in value if one.startswith(kind))
    return [
        int(one) for one in texts if one.isascii() and one.isdigit() and one[:18] == one
    ]


class SurveyChoice(forms.ModelChoiceField):
    def label_from_instance(self, published: Model) -> str:
        return survey_in_words(published)  # type: ignore[arg-type]


class WaveChoice(forms.ModelChoiceField):
    def label_from_instance(self, wave: Model) -> str:
        owner = getattr(wave, "district", None)
        return f"{wave} ({owner})" if owner else str(wave)


def survey_in_words(published: PublishedSurvey) -> str:
    """Its title where it has one, in its first language, and its version."""
    survey = published.survey
    first = survey.languages[0]["code"] if survey.languages else ""
    title = survey.title.get(first) or next(iter(survey.title.values()), "")
    named = f"{survey.name}, version {survey.version}"
    return f"{title} ({named})" if title else named


class PlanForm(forms.Form):
    """What opening and changing have in common."""

    published = SurveyChoice(
        queryset=PublishedSurvey.objects.none(),
        label="Survey",
        empty_label="Choose a survey",
        help_text="A published one. It stays the same once people are invited.",
        error_messages={
            "required": "Choose the survey that is offered.",
            "invalid_choice": "Choose one of the published surveys.",
        },
    )
    role = forms.ChoiceField(
        label="Whom it asks",
        choices=[(one.value, f"{one.label}s") for one in Role],
        widget=forms.RadioSelect,
        error_messages={
            "required": "Choose whom it asks.",
            "invalid_choice": "Choose students, teachers or parents.",
        },
    )
    wave = WaveChoice(
        queryset=Wave.objects.none(),
        required=False,
        empty_label="No wave",
        help_text="Administrations of one wave are compared with each other over time.",
        error_messages={"invalid_choice": "Choose one of the waves in the list."},
    )
    places = PlacesField(required=False)
    q = forms.CharField(required=False, label="Find districts and schools")
    opens_at = LocalMomentField(
        label="Opens", error_messages={"required": "Say when it opens."}
    )
    closes_at = LocalMomentField(
        label="Closes",
        error_messages={"required": "Say when it closes."},
        help_text=f"In {time_zone_in_words()}. A page that was begun in time may still"
        " arrive for ten minutes.",
    )
    coordinators_see_finished = forms.BooleanField(
        required=False,
        label="Coordinators may see who has finished, by name",
        help_text="For reminding students or parents. Never for teachers: nobody in"
        " their school learns who has answered. No page shows answers beside a name.",
    )

    def __init__(
        self,
        *args: Any,
        permissions: Permissions,
        owner: District | None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.permissions = permissions
        self.district = owner
        needs = Capability.MANAGE_SURVEYS
        chosen = self.fields
        chosen["published"].queryset = surveys_to_offer(permissions)  # type: ignore[attr-defined]
        chosen["wave"].queryset = self._waves()  # type: ignore[attr-defined]
        places: PlacesField = chosen["places"]  # type: ignore[assignment]
        places.districts = permissions.districts(needs)
        places.schools = permissions.schools(needs)
        if owner is not None:
            places.districts = places.districts.filter(pk=owner.pk)
            places.schools = places.schools.filter(district=owner)

    def _waves(self) -> QuerySet[Wave]:
        waves = waves_for(self.permissions).select_related("district")
        return waves.filter(Q(district=None) | Q(district=self.district)).order_by(
            "-pk"
        )

    def complains_not_yet(self) -> None:
        """Shown again as it was typed, before it was to be saved."""
        self._errors = ErrorDict()

    def complain(self, error: ValidationError) -> None:
        """What a function refused, beside the field that it is about."""
        if not hasattr(error, "error_dict"):
            self.add_error(None, error)
            return
        for name, errors in error.error_dict.items():
            self.add_error(name if name in self.fields else None, errors)

    # The places: chosen ones stay ticked, found ones can be ticked.

    @cached_property
    def chosen(self) -> tuple[list[District], list[School]]:
        """2 statements."""
        if not self.is_bound:
            return self.initial.get("places", ([], []))
        field: PlacesField = self.fields["places"]  # type: ignore[assignment]
        return field.known((self["places"].data or [])[: MOST_PLACES + 1])

    most_found = MOST_FOUND

    @property
    def chosen_places(self) -> list[tuple[str, str]]:
        return _places(*self.chosen)

    @property
    def searched(self) -> str:
        return str(self["q"].data or "")[:LONGEST_SEARCH].replace("\x00", "").strip()

    @cached_property
    def found_places(self) -> list[tuple[str, str]]:
        """One more than are to be shown, where there are. 2 statements."""
        if not self.searched:
            return []
        field: PlacesField = self.fields["places"]  # type: ignore[assignment]
        districts = _found(field.districts, self.searched, self.chosen[0])
        schools = _found(field.schools, self.searched, self.chosen[1], "district__name")
        return _places(list(districts), list(schools.select_related("district")))


def _places(
    districts: Sequence[District], schools: Sequence[School]
) -> list[tuple[str, str]]:
    return [
        *((f"district-{one.pk}", f"{one}, the whole district") for one in districts),
        *((f"school-{one.pk}", f"{one}, in {one.district}") for one in schools),
    ]


def _found(
    rows: QuerySet[Any], query: str, chosen: Sequence[Model], *look_ups: str
) -> QuerySet[Any]:
    """The first that have each word, without those that are chosen."""
    for word in query.split():
        anywhere = Q(name__icontains=word) | Q(code__icontains=word)
        for look_up in look_ups:
            anywhere |= Q(**{f"{look_up}__icontains": word})
        rows = rows.filter(anywhere)
    return rows.exclude(pk__in=[one.pk for one in chosen])[: MOST_FOUND + 1]


class OpeningForm(PlanForm):
    owner = forms.ChoiceField(label="Whose it is")
    new_wave = forms.CharField(
        required=False,
        label="Or a new wave",
        max_length=200,
        help_text="Such as Spring 2027.",
    )
    name = forms.CharField(
        required=False,
        max_length=LONGEST_NAME,
        validators=[validate_slug],
        help_text="Letters, digits and hyphens. Files and lists carry it, and it stays."
        " Left empty, it is made of the wave and the role.",
        error_messages={
            "invalid": "Use letters, digits and hyphens only, such as spring-2027."
        },
    )
    # The name that was made last: one that was typed instead is kept.
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
    )

    def __init__(self, *args: Any, permissions: Permissions, **options: Any) -> None:
        self.owners = owners_for(permissions)
        only = self.owners[0] if len(self.owners) == 1 else None
        super().__init__(*args, permissions=permissions, owner=only, **options)
        if len(self.owners) == 1:
            del self.fields["owner"]
        else:
            field: forms.ChoiceField = self.fields["owner"]  # type: ignore[assignment]
            field.choices = [(_key(one), str(one)) for one in self.owners]
        if self.is_bound:
            self._name_it()

    def _waves(self) -> QuerySet[Wave]:
        if len(self.owners) > 1:
            return waves_for(self.permissions).select_related("district")
        return super()._waves()

    def chosen_owner(self) -> District | None:
        """By what was typed; the first of them where that is none."""
        asked = self.data.get("owner")
        return next((one for one in self.owners if _key(one) == asked), self.owners[0])

    def _name_it(self) -> None:
        """A name that nobody typed follows the wave and the role."""
        data = self.data.copy()  # type: ignore[attr-defined]
        typed = data.get("name", "").strip()
        if typed and typed != data.get("suggested"):
            return
        role = data.get("role", "")
        name = ""
        if role in Role.values:
            name = suggest_name(
                role=role,
                wave=data.get("new_wave", "")[:200]
                or self._wave_name(data.get("wave", "")),
                district=self.chosen_owner(),
            )
        data["name"] = data["suggested"] = name
        self.data = data

    def _wave_name(self, key: str) -> str:
        if not (key.isascii() and key.isdigit() and len(key) < 19):
            return ""
        found = self._waves().filter(pk=int(key)).first()
        return found.name if found else ""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        closes_at = cleaned.get("closes_at")
        if closes_at is not None and closes_at <= timezone.now():
            self.add_error("closes_at", "That is over already. Choose a later moment.")
        if cleaned.get("wave") and cleaned.get("new_wave"):
            self.add_error(
                "new_wave", "Choose a wave from the list or write a new one, not both."
            )
        return cleaned


def _key(owner: District | None) -> str:
    return f"district-{owner.pk}" if owner else STATE


def owners_for(permissions: Permissions) -> list[District | None]:
    """For whom somebody opens administrations; None is the state."""
    if permissions.places(Capability.MANAGE_SURVEYS).state:
        return [None]
    return list(permissions.districts(Capability.MANAGE_SURVEYS))


class ChangeForm(PlanForm):
    # How many changes whoever asks has seen.
    seen = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    confirmed = forms.CharField(
        required=False, label="Its name, to confirm that it closes so soon"
    )

    def __init__(
        self,
        *args: Any,
        permissions: Permissions,
        administration: Administration,
        **options: Any,
    ) -> None:
        self.administration = administration
        plan = plan_of(administration)
        initial = {
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
            "seen": administration.changes,
        }
        super().__init__(
            *args,
            permissions=permissions,
            owner=administration.district,
            initial=initial,
            **options,
        )
        self._keep_what_is_offered(plan)
        self._freeze()

    def _keep_what_is_offered(self, plan: Plan) -> None:
        """Also when it could not be chosen anew."""
        survey: Any = self.fields["published"]
        survey.queryset = survey.queryset | PublishedSurvey.objects.select_related(
            "survey"
        ).defer("definition", "survey__source").filter(pk=plan.published.pk)

    def _freeze(self) -> None:
        """Says beforehand what would be refused."""
        if self.administration.state == Administration.State.CLOSED:
            self._keep("closes_at", "It is closed. To take answers again, reopen it.")
        if somebody_was_invited(self.administration):
            for name in ("published", "role"):
                self._keep(name, "People are invited, so this stays as it is.")
            if somebody_has_started(self.administration):
                self._keep("opens_at", "Somebody has started, so its beginning stays.")

    def _keep(self, name: str, why: str) -> None:
        self.fields[name].disabled = True
        self.fields[name].help_text = why

    def clean_opens_at(self) -> datetime:
        return self._to_the_second("opens_at")

    def clean_closes_at(self) -> datetime:
        return self._to_the_second("closes_at")

    def _to_the_second(self, name: str) -> datetime:
        """The field shows minutes: one that was not touched is as it was."""
        typed: datetime = self.cleaned_data[name]
        was: datetime = getattr(self.administration, name)
        return was if _minute(typed) == _minute(was) else typed

    def plan(self) -> Plan:
        cleaned = self.cleaned_data
        districts, schools = cleaned["places"]
        return Plan(
            published=cleaned["published"],
            role=cleaned["role"],
            wave=cleaned["wave"],
            districts=frozenset(districts),
            schools=frozenset(schools),
            opens_at=cleaned["opens_at"],
            closes_at=cleaned["closes_at"],
            coordinators_see_finished=cleaned["coordinators_see_finished"],
        )


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


class SeenForm(forms.Form):
    """Of a button that ends something: what whoever presses it has seen."""

    seen = forms.IntegerField(widget=forms.HiddenInput, min_value=0)


class ReopeningForm(SeenForm):
    closes_at = LocalMomentField(
        label="Closes", error_messages={"required": "Say when it closes."}
    )
