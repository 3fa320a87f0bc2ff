"""Form fields for dates, places, surveys and waves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.models import District, School
from survey.fieldwork.administrations import format_subgroups, parse_subgroups
from survey.models import PublishedSurvey, Wave

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# Whole districts take one place each; and Django parses at most a thousand
# form fields.
MAX_PLACES = 500
MAX_FOUND = 20
M = TypeVar("M", bound=Model)


def _with_hint(label: object, hint: object) -> SafeString:
    return format_html("<span>{}<span class='hint'>{}</span></span>", label, hint)


# The label of a radio button, with what follows from the choice below it.
with_hint = lazy(_with_hint, SafeString)


class PartlyDisabledRadio(forms.RadioSelect):
    """Radio buttons, some of which cannot be chosen at the moment."""

    disabled_values: Collection[str] = ()

    def create_option(
        self, name: str, value: Any, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        # What is chosen stays enabled, so that a form can send it back.
        if value in self.disabled_values and not option["selected"]:
            option["attrs"]["disabled"] = True
        return option


class LocalDateTimeField(forms.DateTimeField):
    """A date and a time of day in the time zone of the schools."""

    widget = forms.DateTimeInput(
        attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
    )

    def __init__(
        self,
        *,
        label: StrOrPromise,
        required_message: StrOrPromise,
        help_text: StrOrPromise = "",
    ) -> None:
        super().__init__(
            label=label,
            error_messages={"required": required_message},
            help_text=help_text,
        )

    def to_python(self, value: object) -> datetime | None:
        try:
            return super().to_python(value)  # type: ignore[arg-type]
        except ValidationError as error:
            if error.code == "ambiguous_timezone":
                raise ValidationError(
                    _(
                        "The clocks change in that hour, so it occurs twice or not at"
                        " all. Choose an hour before or after."
                    )
                ) from error
            raise ValidationError(
                _("Enter a date and a time of day, such as 2027-03-01 08:00.")
            ) from error
        # At the ends of the calendar there is no room for a time zone.
        except OverflowError:
            raise ValidationError(_("That date is too far away.")) from None


class PlacesField(forms.Field):
    """Districts and schools, with values such as `district-12` and `school-345`."""

    widget = forms.SelectMultiple
    districts: QuerySet[District]
    schools: QuerySet[School]

    def clean(self, value: Sequence[str] | None) -> tuple[list[District], list[School]]:
        # A place may be both ticked and found again.
        value = list(dict.fromkeys(value or ()))
        if len(value) > MAX_PLACES:
            raise ValidationError(
                _(
                    "Choose at most %(max_places)s places one by one. For more,"
                    " choose whole districts, or select none to offer the"
                    " survey everywhere."
                )
                % {"max_places": MAX_PLACES}
            )
        districts, schools = self.get_places(value)
        if len(districts) + len(schools) != len(value):
            raise ValidationError(
                _(
                    "One of the places does not exist. The others are still"
                    " selected; find the missing one again."
                )
            )
        return districts, schools

    def get_places(self, value: Sequence[str]) -> tuple[list[District], list[School]]:
        """Return the places that exist and may be chosen. 2 statements."""

        def keys(prefix: str) -> list[int]:
            # At most 18 digits: longer numbers do not fit into a key.
            texts = (text.removeprefix(prefix) for text in value if prefix in text)
            return [
                int(text)
                for text in texts
                if text.isascii() and text.isdigit() and len(text) <= 18
            ]

        schools = self.schools.filter(pk__in=keys("school-"))
        return (
            list(self.districts.filter(pk__in=keys("district-"))),
            list(schools.select_related("district")),
        )

    def find(
        self, query: str, chosen: tuple[Sequence[District], Sequence[School]]
    ) -> list[tuple[str, str]]:
        """Find places with all these words that are not chosen. 2 statements.

        Returns up to MAX_FOUND + 1 districts and as many schools: one more
        than a page shows, so that it can say that there are more.
        """
        still_open = self.districts.filter(closed_at=None)
        districts = _search(still_open, query, ("name", "code"), chosen[0])
        schools = _search(
            self.schools.filter(closed_at=None),
            query,
            ("name", "code", "district__name"),
            chosen[1],
        )
        return place_choices(districts, schools.select_related("district"))


def _search(
    rows: QuerySet[M], query: str, lookups: Sequence[str], exclude: Sequence[M]
) -> QuerySet[M]:
    for word in query.split():
        match = Q()
        for lookup in lookups:
            match |= Q(**{f"{lookup}__icontains": word})
        rows = rows.filter(match)
    return rows.exclude(pk__in=[row.pk for row in exclude])[: MAX_FOUND + 1]


def place_choices(
    districts: Sequence[District] | QuerySet[District],
    schools: Sequence[School] | QuerySet[School],
) -> list[tuple[str, str]]:
    """Return the values and labels of places in a form."""
    return [
        *(
            (
                f"district-{district.pk}",
                _("%(district)s (whole district)") % {"district": district},
            )
            for district in districts
        ),
        *(
            (f"school-{school.pk}", f"{school}, {school.district}")
            for school in schools
        ),
    ]


class SubgroupsField(forms.CharField):
    """One line for each column, such as "lunch: free, reduced, paid"."""

    widget = forms.Textarea(attrs={"rows": 12, "spellcheck": "false"})

    def prepare_value(self, value: object) -> object:
        return format_subgroups(value) if isinstance(value, Mapping) else value

    def clean(self, value: str | None) -> dict[str, list[str]]:
        try:
            return parse_subgroups(str(super().clean(value)).splitlines())
        except ValidationError as error:
            raise ValidationError(error.messages) from error


class SurveyField(forms.ModelChoiceField):
    def label_from_instance(self, published: Model) -> str:
        return survey_in_words(cast(PublishedSurvey, published))


class WaveField(forms.ModelChoiceField):
    def label_from_instance(self, wave: Model) -> str:
        owner = cast(Wave, wave).district
        return f"{wave} ({owner})" if owner else str(wave)


def survey_in_words(published: PublishedSurvey) -> str:
    """Return a survey's title, name and version."""
    survey = published.survey
    named = _("%(title)s, version %(version)s") % {
        "title": survey.name,
        "version": survey.version,
    }
    title = survey.title_to_read
    return named if title == survey.name else f"{title} ({named})"
