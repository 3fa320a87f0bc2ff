"""What somebody chooses before an export is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.formats import date_format

from accounts.models import District, School
from accounts.permissions import Capability, Permissions, Places
from reports.exports.job import too_many_columns, too_many_rows
from reports.exports.snapshot import Selection, Snapshot
from reports.exports.xlsx_file import MOST_COLUMNS, MOST_ROWS
from reports.models.exports import IDENTITIES, RESPONSES, Export
from survey.administrations import administrations_for
from survey.definitions.schema import ANSWERABLE
from survey.models import Administration, Role

SHORTEST_REASON = 10
Format = Export.Format


class AdministrationsField(forms.ModelMultipleChoiceField):
    def label_from_instance(self, one: Any) -> str:
        survey = one.published.survey
        opens, closes = map(timezone.localtime, (one.opens_at, one.closes_at))
        window = f"{date_format(opens, 'M j, Y')} to {date_format(closes, 'M j, Y')}"
        role = one.get_role_display().lower()
        return f"{one.name}: {survey} for {role}s, {window}"


class ExportForm(forms.Form):
    """For one person: offers what they may see, and nothing else.

    After `is_valid`, `choices` are the fields of the export.
    """

    administrations = AdministrationsField(
        queryset=Administration.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        help_text="Several in one file line up by the names of their items. They"
        " have to be versions of one survey.",
        error_messages={"required": "Choose at least one administration."},
    )
    district = forms.ModelChoiceField(
        queryset=District.objects.none(),
        required=False,
        empty_label="All that you may see",
    )
    school = forms.ModelChoiceField(
        queryset=School.objects.none(), required=False, empty_label="All schools"
    )
    role = forms.ChoiceField(
        label="Who answered", required=False, choices=[("", "Everybody"), *Role.choices]
    )
    finished_only = forms.ChoiceField(
        label="How far they came",
        choices=[("", "Everybody who started"), ("1", "Only who finished")],
        required=False,
        widget=forms.RadioSelect,
    )
    format = forms.ChoiceField(
        choices=Format.choices, initial=Format.WIDE, widget=forms.RadioSelect
    )
    labels = forms.ChoiceField(
        label="A single choice is written as",
        choices=[("", "its code, such as 4"), ("1", "its label, such as Agree")],
        required=False,
        widget=forms.RadioSelect,
    )
    language = forms.ChoiceField(label="Language of labels", required=False)
    bom = forms.BooleanField(
        label="The CSV will be opened in Excel",
        required=False,
        help_text="Begins the file with the mark by which Excel knows its letters.",
    )
    identities = forms.BooleanField(
        label="With names, student numbers and e-mail addresses",
        required=False,
        help_text="Answers are confidential. Whoever has this file can read what each"
        " person answered. It is written down that you asked, and why.",
    )
    reason = forms.CharField(
        label="Why they are needed",
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="For example: parental consent has to be checked, by order of …",
    )

    def __init__(self, *args: Any, permissions: Permissions, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.permissions = permissions
        self.choices: dict[str, Any] = {}
        self.schools = permissions.schools(*RESPONSES)
        administrations = self._administrations()
        self.fields["administrations"].queryset = administrations  # type: ignore[attr-defined]
        self._offer_places()
        languages = self._languages(administrations)
        # Without an administration there is none.
        self.is_empty = not languages
        self.fields["language"].choices = languages or [("", "English")]  # type: ignore[attr-defined]
        if not permissions.places(*IDENTITIES):
            del self.fields["identities"], self.fields["reason"]

    def _administrations(self) -> QuerySet[Administration]:
        found = administrations_for(self.permissions, Capability.SEE_RESPONSES)
        heavy = ("published__definition", "published__survey__source")
        known = found.select_related("published__survey__district").defer(*heavy)
        return known.order_by("-opens_at", "-pk")

    def _offer_places(self) -> None:
        districts = District.objects.filter(
            pk__in=self.schools.values("district")
        ).order_by("name", "pk")
        self.fields["district"].queryset = districts  # type: ignore[attr-defined]
        several = len(districts[:2]) > 1
        chosen = self.data.get("district", "") if self.is_bound else ""
        schools = self.schools.order_by("name", "pk")
        if not several:
            del self.fields["district"]
        elif chosen.isdecimal() and len(chosen) < 19:
            schools = schools.filter(district_id=int(chosen))
        else:
            # Thousands of schools are no list to choose from.
            schools = schools.none()
            self.fields["school"].help_text = "Choose a district first."
        self.fields["school"].queryset = schools  # type: ignore[attr-defined]

    def _languages(
        self, administrations: QuerySet[Administration]
    ) -> list[tuple[str, str]]:
        names: dict[str, str] = {}
        for one in administrations:
            for language in one.published.survey.languages:
                names.setdefault(language["code"], language["name"])
        return list(names.items())

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        self._clean_administrations(given)
        places = self._places(given)
        self._clean_identities(given, places)
        if not self.errors:
            self._check_sheet(given, places)
        self.choices = {
            "format": given.get("format"),
            "district": given.get("district"),
            "school": given.get("school"),
            "role": given.get("role", ""),
            "finished_only": bool(given.get("finished_only")),
            "language": given.get("language") or self._first_language(),
            "labels": bool(given.get("labels")),
            "bom": bool(given.get("bom")) and given.get("format") != Format.XLSX,
            "identities": bool(given.get("identities")),
            "reason": given.get("reason", "") if given.get("identities") else "",
            "places": as_json(places),
        }
        return given

    def _first_language(self) -> str:
        choices = self.fields["language"].choices  # type: ignore[attr-defined]
        return str(choices[0][0])

    def chosen(self) -> list[Administration]:
        """The administrations, of the role that was asked for."""
        given = self.cleaned_data
        role = given.get("role")
        return [
            one for one in given.get("administrations", ()) if role in ("", one.role)
        ]

    def _clean_administrations(self, given: dict[str, Any]) -> None:
        administrations = given.get("administrations") or ()
        surveys = {one.published.survey for one in administrations}
        names = {f"{one.name} of {one.district or 'the state'}" for one in surveys}
        if len(names) > 1:
            self.add_error(
                "administrations",
                f"These are different surveys ({', '.join(sorted(names))}), whose items"
                " only seem to line up. Make one export of each.",
            )
        elif administrations and not self.chosen():
            self.add_error("role", "None of the chosen administrations is for them.")

    def _places(self, given: dict[str, Any]) -> Places:
        own = self.permissions.places(*RESPONSES)
        district, school = given.get("district"), given.get("school")
        if school is not None:
            return Places(schools=frozenset((school.pk,)))
        if district is None:
            return own
        if own.has_district(district.pk):
            return Places(districts=frozenset((district.pk,)))
        schools = self.schools.filter(district=district)
        return Places(schools=frozenset(schools.values_list("pk", flat=True)))

    def _clean_identities(self, given: dict[str, Any], places: Places) -> None:
        if not given.get("identities"):
            return
        if len(given.get("reason", "").strip()) < SHORTEST_REASON:
            self.add_error("reason", "Say in a sentence why the names are needed.")
        if not self.permissions.cover(places, *IDENTITIES):
            self.add_error(
                "identities",
                "You may not see the names of everybody in this export. Choose a"
                " district or school of which you may, or export without names.",
            )

    def _check_sheet(self, given: dict[str, Any], places: Places) -> None:
        if given.get("format") != Format.XLSX:
            return
        size = size_of(self.chosen(), places, bool(given.get("finished_only")))
        if size.respondents + 1 > MOST_ROWS:
            self.add_error("format", too_many_rows(size.respondents))
        if size.items > MOST_COLUMNS:
            self.add_error("format", too_many_columns(size.items))

    def size(self) -> Size | None:
        """Of what is chosen so far; None while it is nothing."""
        self.is_valid()
        given = self.cleaned_data
        administrations = self.chosen()
        if not administrations or "administrations" in self.errors:
            return None
        finished = bool(given.get("finished_only"))
        return size_of(administrations, self._places(given), finished)


class Size:
    """How large it will be; every item of everybody at the most."""

    def __init__(self) -> None:
        self.respondents = 0
        self.most_responses = 0
        self.items = 0


def size_of(
    administrations: Sequence[Administration], places: Places, finished_only: bool
) -> Size:
    """1 statement for each administration and 1 more: heads, not answers."""
    answerable = Q(published__survey__items__kind__in=ANSWERABLE)
    items = dict(
        Administration.objects.filter(pk__in=[one.pk for one in administrations])
        .annotate(items=Count("published__survey__items", filter=answerable))
        .values_list("pk", "items")
    )
    size = Size()
    for one in administrations:
        people = Snapshot(
            DEFAULT_DB_ALIAS, Selection([one], places, finished_only)
        ).people()
        size.respondents += people
        size.most_responses += people * items[one.pk]
    size.items = max(items.values(), default=0)
    return size


def as_json(places: Places) -> dict[str, Any]:
    return {
        "state": places.state,
        "districts": sorted(places.districts),
        "schools": sorted(places.schools),
    }
