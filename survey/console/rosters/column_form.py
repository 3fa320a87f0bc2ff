"""The form in which a person chooses the columns of a roster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
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
from accounts.templatetags.console import first_input
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
    REQUIRED,
    SUBGROUP,
    squeeze,
)
from survey.people.rosters.field_parsers import value_key
from survey.people.rosters.layouts import KnownPlace, RosterLayout, missing_fields

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
        "No column of the file is known as the district. Choose the column with the"
        " district's code or name, the district of everyone in this file, or that each"
        " school tells its district."
    ),
    "school": gettext_lazy(
        "No column of the file is known as the school. Choose the column with the"
        " school's code or name, or the school of everyone in this file."
    ),
}
PLACE_LABELS = {
    "district": gettext_lazy("District"),
    "school": gettext_lazy("School"),
}
DATES = ("birth_date", "exit_date")
# Places of everyone in a file that does not name them.
PLACES = ("everyone_district", "everyone_school")
# In place of the district of everyone.
BY_SCHOOL = "schools"
# The choice of no column, where a person has to choose. No header begins so.
NO_COLUMN = " "

PlaceT = TypeVar("PlaceT", District, School)


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
class FileColumn:
    """A column of the file, with the choice of what it holds."""

    id: str
    header: str
    cells: Sequence[str]
    select: SafeString
    errors: Sequence[str]
    # Passwords and the like can't be used.
    can_be_used: bool


@dataclass(frozen=True)
class Need:
    """What the file has to say, or a person to decide, before it can be checked."""

    # The fields that answer it, as the page's script reads them.
    names: str
    label: StrOrPromise
    text: StrOrPromise
    is_met: bool
    # The field that can be said to be in no column.
    can_be_nowhere: str = ""


class ColumnsForm(forms.Form):
    """Map each of our fields to a column of one upload's file."""

    def __init__(self, upload: RosterUpload, data: QueryDict | None = None) -> None:
        self.samples = ColumnSamples.of(upload)
        # Field -> the columns that were chosen for it, if there are several.
        self.repeated: dict[str, list[str]] = {}
        super().__init__(data and self._by_field(data))
        self.upload = upload
        self.administration = upload.administration
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

    def _by_field(self, data: QueryDict) -> QueryDict:
        """Translate the choices at the head of each column, by field."""
        data = data.copy()
        headers: dict[str, list[str]] = {}
        for number, header in enumerate(self.samples.header):
            if name := data.get(f"column-{number}", ""):
                headers.setdefault(name, []).append(header)
        for name, texts in headers.items():
            data[name] = texts[0]
            if len(texts) > 1:
                self.repeated[name] = texts
        return data

    def _add_places(self) -> None:
        """Ask where everyone belongs in a file that does not say it."""
        if not (self.district or self.school) and self._lacks("district"):
            districts = District.objects.filter(closed_at=None).order_by("name", "pk")
            if self.administration.district_id is not None:
                districts = districts.filter(pk=self.administration.district_id)
            self.district = self._add_place(
                PLACES[0],
                _("All rows belong to this district"),
                districts,
                {BY_SCHOOL: _("None: each school tells its district")},
                initial=BY_SCHOOL if self.layout.has_no_district else "",
            )
        if self.district is not None and self._lacks("school"):
            schools = School.objects.filter(district=self.district, closed_at=None)
            self.school = self._add_place(
                PLACES[1],
                _("All rows belong to this school"),
                schools.select_related("district").order_by("name", "pk"),
            )

    def _lacks(self, name: str) -> bool:
        """Tell whether no column is chosen for a place, or a place for everyone is."""
        chosen = self.data if self.is_bound else self.layout.fields
        names = (name, f"{name}_name")
        return bool(chosen.get(f"everyone_{name}")) or not any(map(chosen.get, names))

    def _add_place(
        self,
        name: str,
        label: str,
        places: QuerySet[PlaceT],
        more_choices: Mapping[str, str] = MappingProxyType({}),
        initial: str = "",
    ) -> PlaceT | None:
        """Add the choice between places, and return the one that was chosen."""
        by_key: dict[str, PlaceT] = {str(place.pk): place for place in places}
        self.fields[name] = forms.ChoiceField(
            label=label,
            choices=[
                ("", _("A column of the file names it")),
                *more_choices.items(),
                *((key, str(place)) for key, place in by_key.items()),
            ],
            required=False,
            initial=initial,
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
            widget=ColumnSelect,
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
        self._refuse_repeated_columns(fields)
        for name, place in zip(("district", "school"), PLACES, strict=True):
            if cleaned.get(place) and {name, f"{name}_name"} & fields.keys():
                self.add_error(
                    place,
                    _("Choose either a column of the file, or one place for everyone."),
                )
        for name in missing_fields({}, self.known):
            columns = {name, f"{name}_name"} & fields.keys()
            is_by_school = cleaned.get(f"everyone_{name}") == BY_SCHOOL
            if name != "external_id" and not columns and not is_by_school:
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

    def _refuse_repeated_columns(self, fields: Mapping[str, str]) -> None:
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
        for name, texts in self.repeated.items():
            if name in self.columns:
                self.add_error(
                    name,
                    _("Several columns are chosen for this: %(columns)s. Choose one.")
                    % {"columns": ", ".join(texts)},
                )
        if "name" in fields and {"given_name", "family_name"} & fields.keys():
            self.add_error(
                "name", _("Choose either the full name, or given and family name.")
            )

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
        if cleaned.get(PLACES[0]) == BY_SCHOOL:
            fields["district"] = ""
        return replace(self.layout, fields=fields, values=values, day_first=day_first)

    # For the template ---------------------------------------------------------

    @property
    def asks_for_place(self) -> bool:
        return any(name in self.fields for name in PLACES)

    @property
    def asks_beside_columns(self) -> bool:
        """Tell whether something is asked that no column answers."""
        return bool(
            self.asks_for_place
            or self.id_question
            or self.earlier_id
            or any(need.can_be_nowhere for need in self.needs())
        )

    def places(self) -> Iterator[forms.BoundField]:
        yield from (self[name] for name in PLACES if name in self.fields)

    def questions(self) -> Iterator[forms.BoundField]:
        """Yield the fields that are not columns."""
        for name in self.fields:
            if name not in (*self.columns, *PLACES, "same_people"):
                yield self[name]

    @property
    def id_question(self) -> StrOrPromise:
        """Say between which columns of IDs to decide, or nothing."""
        is_asked = "external_id" in self.samples.options
        return self.fields["external_id"].help_text if is_asked else ""

    def hints(self) -> Iterator[tuple[StrOrPromise, StrOrPromise]]:
        """Yield the label and the explanation of fields that have one."""
        for name in self.columns:
            field = self.fields[name]
            if field.help_text and not self._is_asked(self.columns[name]):
                yield field.label or "", field.help_text

    def needs(self) -> Iterator[Need]:
        """Yield what is required, and columns between which a person decides."""
        for name in missing_fields({}, self.known):
            if name == "external_id":
                names, text = (
                    [name],
                    _("Choose the column that identifies each person."),
                )
            else:
                names = [name, f"{name}_name", f"everyone_{name}"]
                may_be_one = names[2] in self.fields
                text = str(
                    (PLACE_OF_ALL_MISSING if may_be_one else PLACE_MISSING)[name]
                )
            yield self._need(names, self._label(name), text)
        for name, column in self.columns.items():
            if self._is_asked(column) and column not in REQUIRED:
                yield self._need(
                    [name],
                    self._label(name),
                    self.fields[name].help_text,
                    can_be_nowhere=name,
                )

    def _need(
        self,
        names: Sequence[str],
        label: StrOrPromise,
        text: StrOrPromise,
        can_be_nowhere: str = "",
    ) -> Need:
        is_met = any(name in self.fields and self[name].value() for name in names)
        return Need(" ".join(names), label, text, is_met, can_be_nowhere)

    def _label(self, name: str) -> StrOrPromise:
        if name in PLACE_LABELS:
            return PLACE_LABELS[name]
        return self.fields[name].label or ""

    def problems(self) -> list[tuple[str, str]]:
        """Return what is wrong, and where it is on the page."""
        # A template takes any generator for true, and would show an empty box.
        return list(self._problems())

    def _problems(self) -> Iterator[tuple[str, str]]:
        for name, errors in self.errors.items():
            if name not in self.fields:
                continue
            where = first_input(self[name])
            if name in self.columns:
                header = self[name].value()
                headers = list(self.samples.header)
                where = "file-columns"
                if header in headers:
                    where = f"id_column-{headers.index(header)}"
            for error in errors:
                yield f"{self.fields[name].label}: {error}", f"#{where}"

    def file_columns(self) -> Iterator[FileColumn]:
        """Yield each column of the file, with its first cells and what it holds."""
        chosen = {self[name].value(): name for name in reversed(self.columns)}
        required = missing_fields({}, self.known)
        choices: list[tuple[str, StrOrPromise]] = [("", _("Left out"))]
        for name, column in self.columns.items():
            label: StrOrPromise = self.fields[name].label or ""
            if column.removesuffix("_name") in required:
                label = _("%(label)s (required)") % {"label": label}
                if column != "external_id":
                    label = _("%(label)s (code or name required)") % {
                        "label": self.fields[name].label
                    }
            choices.append((name, label))
        for number, header in enumerate(self.samples.header):
            key = f"id_column-{number}"
            name = chosen.get(header, "")
            for field, texts in self.repeated.items():
                if header in texts:
                    name = field
            errors: list[str] = [
                str(error) for error in self.errors.get(name, ()) if self.is_bound
            ]
            attributes = {
                "id": key,
                "data-column": "",
                "aria-describedby": f"{key}_cells",
            }
            if errors:
                attributes["aria-invalid"] = "true"
            select = ColumnSelect(choices=choices).render(
                f"column-{number}", name, attributes
            )
            yield FileColumn(
                key,
                header,
                self._cells(number, header),
                select,
                errors,
                header in self.samples.values,
            )

    def _cells(self, number: int, header: str) -> Sequence[str]:
        """Return the first cells of a column, or of old uploads its first values."""
        if not self.samples.rows:
            return self.samples.values.get(header, ())
        return [
            cells[number] if number < len(cells) else "" for cells in self.samples.rows
        ]
