"""The form in which a person chooses the columns of a roster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import QuerySet
from django.forms.renderers import BaseRenderer
from django.forms.utils import flatatt
from django.http import QueryDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from accounts import forms
from accounts.models import District, School
from survey.console.rosters.value_questions import (
    BLANK,
    ValueQuestion,
    known_values,
    meanings,
    values_to_ask,
)
from survey.fieldwork.administrations import subgroup_label
from survey.instrument.definitions.schema import load_definition
from survey.models import Role, RosterUpload
from survey.people.rosters.column_choices import ColumnSamples, find_earlier_id
from survey.people.rosters.columns import (
    FIELD_OF_HEADER,
    REQUIRED,
    SUBGROUP,
    field_key,
    squeeze,
)
from survey.people.rosters.field_parsers import value_key
from survey.people.rosters.layouts import KnownPlace, RosterLayout, missing_fields
from survey.people.rosters.presets import preset_headers

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

LABELS = {
    "external_id": gettext_lazy("ID"),
    "previous_id": gettext_lazy("Previous ID"),
    "given_name": gettext_lazy("Given name"),
    "family_name": gettext_lazy("Family name"),
    "name": gettext_lazy("Full name"),
    "district": gettext_lazy("District code"),
    "district_name": gettext_lazy("District name"),
    "school": gettext_lazy("School code"),
    "school_name": gettext_lazy("School name"),
    "grade": gettext_lazy("Grade"),
    "classroom": gettext_lazy("Class"),
    "email": gettext_lazy("E-mail"),
    "birth_date": gettext_lazy("Birth date"),
    "language": gettext_lazy("Language"),
    "role": pgettext_lazy("roster", "Role"),
    "status": gettext_lazy("Status"),
    "exit_date": gettext_lazy("Exit date"),
}
HINTS = {
    "external_id": gettext_lazy(
        "Identifies each person in every roster. Choose the number that stays"
        " the same when a person changes schools."
    ),
    "previous_id": gettext_lazy(
        "The ID under which earlier rosters list the same person."
    ),
    "name": gettext_lazy("Only where given and family name share a column."),
    "school": gettext_lazy("The school's name is enough where the file has no codes."),
    "district": gettext_lazy(
        "The district's name is enough where the file has no codes."
    ),
    "role": gettext_lazy(
        "People with another role than this survey round's are left out."
    ),
    "status": gettext_lazy(
        "People who are marked as inactive or withdrawn are not invited."
    ),
    "exit_date": gettext_lazy("People whose date has passed are not invited."),
}
ID_LABELS = {
    Role.STUDENT: gettext_lazy("Student ID"),
    Role.TEACHER: gettext_lazy("Staff ID"),
    Role.PARENT: gettext_lazy("Parent ID"),
}
PLACE_MISSING = {
    "district": gettext_lazy("Choose the column with the district's code or name."),
    "school": gettext_lazy("Choose the column with the school's code or name."),
}
PLACE_OF_ALL_MISSING = {
    "district": gettext_lazy(
        "Choose the column with the district's code or name, or the district of"
        " everyone in this file."
    ),
    "school": gettext_lazy(
        "Choose the column with the school's code or name, or the school of"
        " everyone in this file."
    ),
}
DATES = ("birth_date", "exit_date")
# Places of everyone in a file that does not name them.
PLACES = ("everyone_district", "everyone_school")
# The choice of no column, where a person has to choose. No header begins so.
NO_COLUMN = " "
# Shown at once. The other fields are folded until there is something to decide.
MAIN = (
    *("external_id", "previous_id", "given_name", "family_name", "name"),
    *("district", "district_name", "school", "school_name"),
)
_RECOGNISED = preset_headers() | FIELD_OF_HEADER.keys()

PlaceT = TypeVar("PlaceT", District, School)
ColumnRow = tuple[forms.BoundField, Sequence[str]]


class ColumnSelect(forms.Select):
    """Draw options without templates.

    A file of 40 columns has 1,600 options, for which Django would run a template
    each: five times as long as all the rest of the page.
    """

    def render(
        self,
        name: str,
        value: Any,
        attrs: dict[str, Any] | None = None,
        renderer: BaseRenderer | None = None,
    ) -> SafeString:
        attributes = self.build_attrs(self.attrs, {"name": name, **(attrs or {})})
        chosen = self.format_value(value)
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            (
                (text, mark_safe(" selected") if text in chosen else "", label)
                for text, label in self.choices
            ),
        )
        return format_html("<select{}>{}</select>", flatatt(attributes), options)


@dataclass(frozen=True)
class FoldedFields:
    """Fields of less interest, which the page shows on demand."""

    title: str
    rows: Sequence[ColumnRow]
    is_open: bool

    @property
    def chosen(self) -> int:
        return sum(bool(field.value()) for field, _ in self.rows)


class ColumnsForm(forms.Form):
    """Map each of our fields to a column of one upload's file."""

    def __init__(self, upload: RosterUpload, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self.upload = upload
        self.administration = upload.administration
        self.samples = ColumnSamples.of(upload)
        self.layout = RosterLayout.from_dict(upload.layout)
        self.district = upload.district
        self.school = upload.school
        self._add_places()
        self.known = KnownPlace.of(self.district, self.school)
        self.value_questions: list[ValueQuestion] = []
        # Form field -> field of the layout.
        self.columns = dict(self._columns())
        for name, column in self.columns.items():
            self._add_column(name, column)
        self._add_values()
        self._add_dates()
        self.fields["same_people"] = forms.BooleanField(
            label=_("Nobody in this file is on the roster under another ID"),
            help_text=_("Otherwise these people are invited twice."),
            required=False,
        )
        # Keeps warning while the ID is another one.
        self.earlier_id = self._earlier_id(self["external_id"].value() or "")
        if not self.earlier_id:
            del self.fields["same_people"]
            if not self["previous_id"].value():
                del self.fields["previous_id"], self.columns["previous_id"]
        self._describe_fields()

    def _add_places(self) -> None:
        """Ask where everyone belongs in a file that does not say it."""
        if not (self.district or self.school) and self._lacks("district"):
            districts = District.objects.filter(closed_at=None).order_by("name", "pk")
            if self.administration.district_id is not None:
                districts = districts.filter(pk=self.administration.district_id)
            self.district = self._add_place(
                PLACES[0], _("District of everyone in this file"), districts
            )
        if self.district is not None and self._lacks("school"):
            schools = School.objects.filter(district=self.district, closed_at=None)
            self.school = self._add_place(
                PLACES[1],
                _("School of everyone in this file"),
                schools.select_related("district").order_by("name", "pk"),
            )

    def _lacks(self, name: str) -> bool:
        """Tell whether no column is chosen for a place, or a place for everyone is."""
        chosen = self.data if self.is_bound else self.layout.fields
        names = (name, f"{name}_name")
        return bool(chosen.get(f"everyone_{name}")) or not any(map(chosen.get, names))

    def _add_place(
        self, name: str, label: str, places: QuerySet[PlaceT]
    ) -> PlaceT | None:
        """Add the choice between places, and return the one that was chosen."""
        by_key: dict[str, PlaceT] = {str(place.pk): place for place in places}
        self.fields[name] = forms.ChoiceField(
            label=label,
            choices=[
                ("", _("A column of the file names it")),
                *((key, str(place)) for key, place in by_key.items()),
            ],
            required=False,
            widget=ColumnSelect,
        )
        return by_key.get(self[name].value() or "")

    def _columns(self) -> Iterator[tuple[str, str]]:
        """Yield the form's name of each field of the layout."""
        for name in LABELS:
            # A known district is offered only where the file has a column for it.
            is_known = name.startswith("district") and self.known.district
            if is_known and name not in self.layout.fields:
                continue
            if name == "grade" and self.administration.role != Role.STUDENT:
                continue
            yield name, name
        for number, name in enumerate(self.administration.subgroups):
            yield f"subgroup-{number}", SUBGROUP + name

    def _add_column(self, name: str, column: str) -> None:
        if column.startswith(SUBGROUP):
            label: StrOrPromise = _("Subgroup: %(readable)s") % {
                "readable": subgroup_label(column.removeprefix(SUBGROUP))
            }
        else:
            label = LABELS[column]
        if column == "external_id":
            label = ID_LABELS[Role(self.administration.role)]
        hint: StrOrPromise = HINTS.get(column, "")
        candidates = self.samples.options.get(column, ())
        if column == "external_id" and len(candidates) > 1:
            hint = _(
                "Several columns can identify people: %(candidates)s. Choose"
                " the one that stays the same when a person changes schools."
            ) % {"candidates": ", ".join(candidates)}
        is_asked = self._is_asked(column)
        if is_asked:
            hint = _(
                "These columns contradict each other: %(candidates)s. Choose the one"
                " that is right."
            ) % {"candidates": ", ".join(candidates)}
        headers = [text for text in self.samples.header if text in self.samples.values]
        self.fields[name] = forms.ChoiceField(
            label=label,
            help_text=hint,
            choices=[
                *([("", _("Choose"))] if is_asked else []),
                (NO_COLUMN if is_asked else "", _("Not in this file")),
                *((text, text) for text in headers),
            ],
            required=is_asked or column == "external_id",
            initial="" if is_asked else self._initial(column),
            widget=ColumnSelect(attrs={"data-column": ""}),
            error_messages={
                "required": _("Choose the column that identifies each person.")
                if column == "external_id"
                else _("Choose one of these columns."),
                "invalid_choice": _(
                    "This column is not in the file. Choose another one."
                ),
            },
        )

    def _is_asked(self, column: str) -> bool:
        """Tell whether nobody has decided yet between columns that differ."""
        return (
            column in self.samples.questions
            and column not in REQUIRED
            and len(self.samples.options.get(column, ())) > 1
            and self.upload.layout_choice_id is None
        )

    def _initial(self, column: str) -> str:
        fields = self.layout.fields
        if column.startswith(SUBGROUP) and column not in fields:
            name = squeeze(column.removeprefix(SUBGROUP))
            return next(
                (text for text in self.samples.header if squeeze(text) == name), ""
            )
        header = fields.get(column, "")
        # Of a name that is also used as the code, only the name is shown.
        return "" if fields.get(f"{column}_name") == header else header

    def _add_values(self) -> None:
        """Ask for the unknown values of the columns that are chosen at the moment."""
        definition = load_definition(self.administration.published.definition)
        languages = {entry["code"]: entry["name"] for entry in definition["languages"]}
        for column, choices in meanings(languages).items():
            header = self[column].value() if column in self.columns else ""
            if header not in self.samples.header:
                continue
            explained: Mapping[str, str] = {}
            if header == self.layout.fields.get(column):
                explained = self.layout.values.get(column, {})
            values = values_to_ask(
                column,
                header,
                samples=self.samples,
                layout=self.layout,
                languages=languages,
            )
            # Questions about another column of the file have other names.
            prefix = f"value-{column}-{list(self.samples.header).index(header)}"
            for number, value in enumerate(values):
                meaning = explained.get(value_key(value))
                question = ValueQuestion(f"{prefix}-{number}", column, value)
                self.value_questions.append(question)
                self.fields[question.name] = forms.ChoiceField(
                    label=f"{LABELS[column]} “{value}”",
                    choices=[("", _("Choose")), *choices.items()],
                    initial=BLANK if meaning == "" else meaning,
                    required=False,
                )

    def _add_dates(self) -> None:
        unclear = {name for name in DATES if not self.samples.options.get(name)}
        if unclear & set(self.samples.questions):
            headers = [self.layout.fields.get(name, "") for name in DATES]
            dates = [
                date
                for header in headers
                for date in self.samples.values.get(header, ())
            ]
            self.fields["day_first"] = forms.ChoiceField(
                label=_("Are dates day first?"),
                help_text=_("Such as %(dates)s.") % {"dates": ", ".join(dates)}
                if dates
                else "",
                choices=[
                    ("yes", _("Yes, the day comes first")),
                    ("no", _("No, the month")),
                ],
                widget=forms.RadioSelect,
                initial={True: "yes", False: "no", None: None}[self.layout.day_first],
                required=False,
            )

    def _describe_fields(self) -> None:
        """Connect each select with the samples of its column."""
        missing = missing_fields({}, self.known)
        for name in self.columns:
            field = self[name]
            # One of code, name and the place of everyone is required.
            code = name.removesuffix("_name")
            field.field.is_conditional = code in missing  # type: ignore[attr-defined]
            described = [f"{field.auto_id}_samples"]
            if field.help_text:
                described.insert(0, f"{field.auto_id}_helptext")
            if self.is_bound and field.errors:
                described.append(f"{field.auto_id}_error")
            field.field.widget.attrs["aria-describedby"] = " ".join(described)

    def _earlier_id(self, header: str) -> str:
        return find_earlier_id(
            header,
            self.samples,
            administration=self.administration,
            district=self.district,
            school=self.school,
        )

    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or {}
        fields = self._chosen(cleaned)
        used: dict[str, str] = {}
        for name, column in self.columns.items():
            header = fields.get(column)
            if header in used:
                label = self.fields[used[header]].label
                self.add_error(
                    name,
                    _("“%(header)s” is already chosen for %(other)s. Choose another.")
                    % {"header": header, "other": label},
                )
            elif header:
                used[header] = name
        if "name" in fields and {"given_name", "family_name"} & fields.keys():
            self.add_error(
                "name", _("Choose either the full name, or given and family name.")
            )
        for name, place in zip(("district", "school"), PLACES, strict=True):
            if cleaned.get(place) and {name, f"{name}_name"} & fields.keys():
                self.add_error(
                    place,
                    _("Choose either a column of the file, or one place for everyone."),
                )
        for name in missing_fields({}, self.known):
            if name != "external_id" and not {name, f"{name}_name"} & fields.keys():
                may_be_one = f"everyone_{name}" in self.fields
                messages = PLACE_OF_ALL_MISSING if may_be_one else PLACE_MISSING
                self.add_error(name, messages[name])
        if (
            self.earlier_id
            and "previous_id" not in fields
            and not cleaned.get("same_people")
        ):
            self.add_error(
                "previous_id",
                _(
                    "Choose the column with the previous ID, or confirm that"
                    " nobody is on the roster under another ID."
                ),
            )
        if (
            "day_first" in self.fields
            and not cleaned.get("day_first")
            and any(name in fields for name in DATES)
        ):
            self.add_error(
                "day_first", _("Choose whether the day or the month is first.")
            )
        for question in self.value_questions:
            if not cleaned.get(question.name) and question.name not in self.errors:
                self.add_error(question.name, _("Choose what this value means."))
        return cleaned

    def _chosen(self, cleaned: Mapping[str, object]) -> dict[str, str]:
        chosen = {
            column: str(cleaned.get(name) or "").removeprefix(NO_COLUMN)
            for name, column in self.columns.items()
        }
        return {column: header for column, header in chosen.items() if header}

    def chosen_layout(self) -> RosterLayout:
        """Return what the valid form says, and what it did not ask for."""
        cleaned = self.cleaned_data
        fields = self._chosen(cleaned)
        values = {
            name: dict(ours)
            for name, ours in self.layout.values.items()
            # Values of another column mean something else.
            if fields.get(name) == self.layout.fields.get(name)
        }
        for name, header in fields.items():
            if ours := known_values(name, header, self.samples, self.layout):
                values.setdefault(name, dict(ours))
        for question in self.value_questions:
            meaning = cleaned[question.name].replace(BLANK, "")
            of_field = values.setdefault(question.field, {})
            of_field[value_key(question.value)] = meaning
        day_first = self.layout.day_first
        if answer := cleaned.get("day_first"):
            day_first = answer == "yes"
        for name, column in self.columns.items():
            # Keeps a column with a subgroup's name from being used unasked.
            if name.startswith("subgroup") and column not in fields:
                fields[column] = ""
        return replace(self.layout, fields=fields, values=values, day_first=day_first)

    # For the template ---------------------------------------------------------

    def rows(self) -> Iterator[ColumnRow]:
        """Yield the fields that are always shown, with values of the chosen column."""
        yield from (self._row(name) for name in self.columns if name in MAIN)

    @property
    def asks_for_place(self) -> bool:
        return any(name in self.fields for name in PLACES)

    def places(self) -> Iterator[forms.BoundField]:
        yield from (self[name] for name in PLACES if name in self.fields)

    def folded(self) -> Iterator[FoldedFields]:
        names_to_fold = [name for name in self.columns if name not in MAIN]
        subgroups = [name for name in names_to_fold if name.startswith("subgroup")]
        more = [name for name in names_to_fold if name not in subgroups]
        titles = {_("More about each person"): more, _("Subgroups"): subgroups}
        for title, names in titles.items():
            if names:
                rows = [self._row(name) for name in names]
                yield FoldedFields(title, rows, self._is_undecided(names))

    def _is_undecided(self, names: Sequence[str]) -> bool:
        """Tell whether a person should look at some fields.

        That is so if one has an error or a question, if its column was only suggested
        because of its values, or if no column was recognised at all.
        """
        chosen = [self[name].value() for name in names if self[name].value()]
        if any(name in self.errors or name in self.samples.questions for name in names):
            return True
        if names[0].startswith("subgroup"):
            return False
        return not chosen or any(field_key(text) not in _RECOGNISED for text in chosen)

    def _row(self, name: str) -> ColumnRow:
        field = self[name]
        return field, self.samples.values.get(field.value() or "", ())

    def questions(self) -> Iterator[forms.BoundField]:
        """Yield the fields that are not columns."""
        for name in self.fields:
            if name not in (*self.columns, *PLACES, "same_people"):
                yield self[name]

    def file_columns(self) -> Iterator[tuple[str, Sequence[str], str]]:
        """Yield each column of the file with its values and what it is used for."""
        used = {self[name].value(): self.fields[name].label for name in self.columns}
        for header in self.samples.header:
            values = self.samples.values.get(header, ())
            yield header, values, str(used.get(header, ""))
