"""The form for a new export, and the size of what it would contain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.console.widgets import LanguageSelect
from accounts.language import language_to_read
from accounts.models import District, School
from accounts.permissions import Capability, Permissions, Places
from reports.answers.selection import Selection
from reports.answers.snapshot import Snapshot
from reports.exports.destroyed import destroyed_message
from reports.exports.minimum_group import too_few_people
from reports.exports.reading import too_many_columns, too_many_rows
from reports.exports.release_mask import count_people, no_release
from reports.exports.requests import ExportChoices
from reports.exports.xlsx_file import MOST_COLUMNS, MOST_ROWS
from reports.models.exports import IDENTITIES, RESPONSES, Export, ValueType
from survey.fieldwork.administrations import administrations_for
from survey.instrument.definitions.schema import ANSWERABLE
from survey.models import Administration, Role

SHORTEST_REASON = 10
SMALLEST_JOINED = 5
# Digits of a primary key.
LONGEST_KEY = 18
Format = Export.Format
CSV_FORMATS = (Format.WIDE, Format.LONG)
# The others have codes and labels at once.
TEXT_FORMATS = (*CSV_FORMATS, Format.XLSX)


class AdministrationsField(forms.ModelMultipleChoiceField):
    def clean(self, value: Sequence[object] | None) -> QuerySet[Administration]:
        for key in value or ():
            # A longer number does not fit into a bigint.
            if len(str(key)) > LONGEST_KEY:
                raise forms.ValidationError(
                    self.error_messages["invalid_choice"],
                    code="invalid_choice",
                    params={"value": key},
                )
        return super().clean(value)

    def label_from_instance(self, obj: Administration) -> str:  # type: ignore[override]
        opens, closes = map(timezone.localtime, (obj.opens_at, obj.closes_at))
        words = _("%(title)s (%(opens)s to %(closes)s; version %(version)s)")
        return words % {
            "title": obj.title,
            "opens": date_format(opens, "DATE_FORMAT"),
            "closes": date_format(closes, "DATE_FORMAT"),
            "version": obj.published.survey.version,
        }


class ExportForm(forms.Form):
    """Offers only what the user may see. `choices` is set once it is valid."""

    is_panel = False
    # The field that errors about names belong to.
    names_field = "identities"

    administrations = AdministrationsField(
        label=gettext_lazy("Survey rounds"),
        queryset=Administration.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy(
            "Several survey rounds can share a file if their surveys"
            " are versions of one survey."
        ),
        error_messages={"required": gettext_lazy("Choose at least one survey round.")},
    )
    district = forms.ModelChoiceField(
        label=gettext_lazy("District"),
        queryset=District.objects.none(),
        required=False,
        empty_label=gettext_lazy("All districts you may see"),
    )
    school = forms.ModelChoiceField(
        label=gettext_lazy("School"),
        queryset=School.objects.none(),
        required=False,
        empty_label=gettext_lazy("All schools"),
    )
    role = forms.ChoiceField(
        label=gettext_lazy("Audience"),
        required=False,
        choices=[("", gettext_lazy("Everyone")), *Role.choices],
    )
    finished_only = forms.ChoiceField(
        label=gettext_lazy("Progress"),
        choices=[
            ("", gettext_lazy("People who started")),
            ("1", gettext_lazy("Only people who finished")),
        ],
        required=False,
        widget=forms.RadioSelect,
    )
    format = forms.ChoiceField(
        label=gettext_lazy("File type"),
        choices=Format.choices,
        initial=Format.WIDE,
        help_text=gettext_lazy(
            "SPSS, Stata and Parquet files have codes, with labels in the language that"
            " you choose under More options."
        ),
    )
    labels = forms.ChoiceField(
        label=gettext_lazy("Answers to single-choice questions"),
        choices=[
            ("", gettext_lazy("Codes, such as 4")),
            ("1", gettext_lazy("Labels, such as Agree")),
        ],
        required=False,
        widget=forms.RadioSelect,
    )
    language = forms.ChoiceField(
        label=gettext_lazy("Language of labels"), required=False, widget=LanguageSelect
    )
    bom = forms.BooleanField(
        label=gettext_lazy("Open the CSV file in Excel"),
        required=False,
        help_text=gettext_lazy(
            "Adds a byte order mark, so that Excel shows accents correctly."
        ),
    )
    blank_missing = forms.MultipleChoiceField(
        label=gettext_lazy("Blank cells for missing answers in columns of"),
        choices=[
            (value_type.value, capfirst(value_type.label)) for value_type in ValueType
        ],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy(
            "Otherwise a cell without an answer says why there is none, with a code"
            " such as -97 (the question did not apply), -98 (it was skipped) or -99"
            " (it was not reached). Leave these codes out of means and sums."
        ),
    )
    identities = forms.BooleanField(
        label=gettext_lazy("Include names, student numbers and e-mail addresses"),
        required=False,
        help_text=gettext_lazy(
            "Answers are confidential, and this file shows what each"
            " person answered. Your request and its reason are logged."
            " A file without names has the people of the results, so it can be"
            " made after the closing, and leaves out what would single people"
            " out."
        ),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason for including names"),
        required=False,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy(
            "Required if you include names. For example: The school board"
            " asked us to check parental consent."
        ),
    )

    def __init__(self, *args: Any, permissions: Permissions, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.permissions = permissions
        self.choices: ExportChoices = {}
        # Says which administrations have no release yet, and so no size.
        self.unreleased: list[str] = []
        administrations = (
            administrations_for(permissions, Capability.SEE_RESPONSES)
            .select_related("published__survey__district")
            .defer("published__definition", "published__survey__source")
            .order_by("-opens_at", "-pk")
        )
        self._model_field("administrations").queryset = administrations
        self._offer_places()
        names: dict[str, str] = {}
        for administration in administrations:
            for language in administration.published.survey.languages:
                names.setdefault(language["code"], language["name"])
        self.is_empty = not names
        languages = list(names.items()) or [("", "English")]
        self.first_language = language_to_read(list(dict(languages)))
        self.initial.setdefault("language", self.first_language)
        cast("forms.ChoiceField", self.fields["language"]).choices = languages
        if not permissions.places(*IDENTITIES):
            # The form ignores what is sent for fields it does not have.
            del self.fields["identities"], self.fields["reason"]

    def _model_field(self, name: str) -> forms.ModelChoiceField:
        return cast("forms.ModelChoiceField", self.fields[name])

    def _offer_places(self) -> None:
        schools = self.permissions.schools(*RESPONSES)
        districts = District.objects.filter(pk__in=schools.values("district"))
        districts = districts.order_by("name", "pk")
        self._model_field("district").queryset = districts
        chosen = self.data.get("district", "") if self.is_bound else ""
        schools = schools.order_by("name", "pk")
        if len(districts[:2]) <= 1:
            del self.fields["district"]
        elif chosen.isdecimal() and len(chosen) <= LONGEST_KEY:
            schools = schools.filter(district_id=int(chosen))
        else:
            # A list of thousands of schools would be no help.
            schools = schools.none()
            self.fields["school"].help_text = _("Choose a district first.")
        self._model_field("school").queryset = schools

    def clean(self) -> dict[str, object]:
        given = super().clean() or {}
        self._check_administrations(given.get("administrations") or ())
        places = self._places(given)
        identities, reason = bool(given.get("identities")), given.get("reason", "")
        if identities and len(reason.strip()) < SHORTEST_REASON:
            self.add_error(
                "reason", _("Explain in one sentence why you need the names.")
            )
        # A district administrator may be an analyst elsewhere.
        if identities and not self.permissions.cover(places, *IDENTITIES):
            self.add_error(
                self.names_field,
                _(
                    "You may not see the names of everyone in this export. Choose"
                    " a district or school whose names you may see, or leave"
                    " names out."
                ),
            )
        if identities and any(chosen.module_of_id for chosen in self.chosen()):
            self.add_error(
                self.names_field,
                _(
                    "The questions of a district are answered without names. Leave"
                    " names out, or this survey round."
                ),
            )
        if message := destroyed_message(self.chosen(), with_names=identities):
            self.add_error("administrations", message)
        finished_only = bool(given.get("finished_only"))
        # The job checks again, when more people may have started.
        if not self.errors:
            size = size_of(
                self.chosen(), places, finished_only, without_names=not identities
            )
            self._check_size(size)
        chosen_format = given.get("format", "")
        self.choices = {
            "format": given.get("format", ""),
            "district": given.get("district"),
            "school": given.get("school"),
            "role": given.get("role", ""),
            "finished_only": finished_only,
            "language": given.get("language") or self.first_language,
            "labels": bool(given.get("labels")) and chosen_format in TEXT_FORMATS,
            "bom": bool(given.get("bom")) and chosen_format in CSV_FORMATS,
            "blank_missing": given.get("blank_missing", []),
            "identities": identities,
            "reason": reason if identities else "",
            "places": {
                "state": places.state,
                "districts": sorted(places.districts),
                "schools": sorted(places.schools),
            },
        }
        return given

    def _check_administrations(self, administrations: Iterable[Administration]) -> None:
        surveys = {chosen.published.survey for chosen in administrations}
        names = {
            _("%(survey)s of %(owner)s")
            % {"survey": survey.name, "owner": survey.district or _("the state")}
            for survey in surveys
        }
        if len(names) > 1:
            self.add_error(
                "administrations",
                _(
                    "These are different surveys (%(names)s). Create one export"
                    " for each."
                )
                % {"names": ", ".join(sorted(names))},
            )
        elif names and not self.chosen():
            self.add_error(
                "role", _("None of the chosen survey rounds has this audience.")
            )

    def _check_size(self, size: ExportSize) -> None:
        self.unreleased = [no_release(unreleased) for unreleased in size.unreleased]
        for message in self.unreleased:
            self.add_error("administrations", message)
        for administration in size.too_few:
            self.add_error("administrations", too_few_people(administration))
        if self.errors or self.cleaned_data.get("format") != Format.XLSX:
            return
        if size.respondents + 1 > MOST_ROWS:
            self.add_error("format", too_many_rows(size.respondents))
        if size.items > MOST_COLUMNS:
            self.add_error("format", too_many_columns(size.items))

    def chosen(self) -> list[Administration]:
        """Return the chosen administrations that have the chosen audience."""
        given = self.cleaned_data
        role = given.get("role", "")
        return [
            administration
            for administration in given.get("administrations", ())
            if role in ("", administration.role)
        ]

    def _places(self, given: dict[str, Any]) -> Places:
        places = self.permissions.places(*RESPONSES)
        district, school = given.get("district"), given.get("school")
        if school is not None:
            return Places(schools=frozenset((school.pk,)))
        if district is None:
            return places
        if places.has_district(district.pk):
            return Places(districts=frozenset((district.pk,)))
        # The user sees some schools of this district, and not all.
        schools = self.permissions.schools(*RESPONSES).filter(district=district)
        return Places(schools=frozenset(schools.values_list("pk", flat=True)))

    def size(self) -> ExportSize | None:
        """Return the size of the choices so far; None without any."""
        # Fills `cleaned_data`, also when some fields have errors.
        self.is_valid()
        administrations = self.chosen()
        if not administrations or "administrations" in self.errors:
            return None
        finished_only = bool(self.cleaned_data.get("finished_only"))
        size = size_of(
            administrations,
            self._places(self.cleaned_data),
            finished_only,
            without_names=not self.cleaned_data.get("identities"),
        )
        self.unreleased = [no_release(unreleased) for unreleased in size.unreleased]
        return size


@dataclass(slots=True)
class ExportSize:
    """`most_responses` is reached if everyone answers every item."""

    respondents: int = 0
    most_responses: int = 0
    items: int = 0
    # Of a file without names: administrations that have no release yet, and those
    # with people here, but not as many as their minimum group.
    unreleased: list[Administration] = field(default_factory=list)
    too_few: list[Administration] = field(default_factory=list)
    # People in several administrations of a panel; None if they were not counted.
    joined: int | None = None

    @property
    def joined_in_words(self) -> str:
        # Fewer could be recognised.
        if self.joined is not None and 0 < self.joined < SMALLEST_JOINED:
            return _("Fewer than %(smallest_joined)s people") % {
                "smallest_joined": SMALLEST_JOINED
            }
        return _("At least %(joined)s people") % {"joined": f"{self.joined or 0:,}"}


def size_of(
    administrations: Sequence[Administration],
    places: Places,
    finished_only: bool,
    *,
    without_names: bool,
) -> ExportSize:
    """Count the respondents, but not their answers, with the console's role.

    With names, starts with an open code count without an answer as well; the job leaves
    them out. Without names, the people of the release count; the job leaves out some.

    1 statement, and at most 2 for each administration.
    """
    answerable = Q(published__survey__items__kind__in=ANSWERABLE)
    items = dict(
        Administration.objects.filter(
            pk__in=[administration.pk for administration in administrations]
        )
        .annotate(items=Count("published__survey__items", filter=answerable))
        .values_list("pk", "items")
    )
    size = ExportSize(items=max(items.values(), default=0))
    for administration in administrations:
        people: int | None
        if without_names:
            people = count_people(
                administration, DEFAULT_DB_ALIAS, places, finished_only=finished_only
            )
        else:
            selection = Selection(
                [administration], places, finished_only, reads_responses=False
            )
            counts = Snapshot(DEFAULT_DB_ALIAS, selection).count_people()
            people = counts[administration.pk]
        if people is None:
            size.unreleased.append(administration)
            continue
        if without_names and 0 < people < administration.minimum_group:
            size.too_few.append(administration)
        size.respondents += people
        size.most_responses += people * items[administration.pk]
    return size
