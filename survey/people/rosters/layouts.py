"""Decide which column of a roster holds which field, and what its values mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.utils.translation import gettext as _

from accounts.models import District, School
from survey.models import Role
from survey.people.rosters import field_parsers
from survey.people.rosters.column_samples import (
    SampleTable,
    dates_are_unclear,
    day_is_first,
    rows_of_people,
)
from survey.people.rosters.columns import (
    FIELD_NAMES,
    REQUIRED,
    bare_key,
    clean_headers,
    columns_of,
    field_key,
    headers_by_field,
    ids_of_role,
)
from survey.people.rosters.field_parsers import InvalidCell, value_key
from survey.people.rosters.presets import (
    Preset,
    all_presets,
    recognise_preset,
)

# Fields whose values a layout can translate.
VALUE_FIELDS = ("grade", "role", "status", "language", "district", "school")
SAMPLES_SHOWN = 3
ROWS_SHOWN = 4
MOST_VALUES_ASKED = 40
# Fewer unknown grades or roles are mistakes in single rows.
FEWEST_UNKNOWN = 5

# Code and name of a district, code and name of a school.
PlaceTexts = tuple[str, str, str, str]
# Distinct schools (code and name) and cells of unused columns -> whether each school
# tells its district.
DistrictTest = Callable[[Collection[tuple[str, str]], Collection[str]], bool]
# In place of a primary key: the school is new, although a known one has a near name.
NEW_SCHOOL = 0


@dataclass(frozen=True)
class RosterLayout:
    """Which column of a file holds which field, and what its values mean."""

    # Such as "powerschool-students"; empty if no preset matched.
    preset: str = ""
    # Field, or the name of a subgroup after `columns.SUBGROUP` -> the file's header.
    fields: Mapping[str, str] = field(default_factory=dict)
    # One of VALUE_FIELDS -> value of the file, casefolded -> ours.
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Whether 3/4/2015 is in April; None: the dates of the file decide.
    day_first: bool | None = None
    # A district and school as the file writes them -> primary key of the school that
    # a person has chosen for them, or NEW_SCHOOL; in this file only.
    schools: Mapping[PlaceTexts, int] = field(default_factory=dict)

    @property
    def has_no_district(self) -> bool:
        """Tell whether it is decided that each school tells its district."""
        return self.fields.get("district") == ""

    def as_dict(self) -> dict[str, object]:
        return {
            "preset": self.preset,
            "fields": dict(self.fields),
            "values": {name: dict(ours) for name, ours in self.values.items()},
            "day_first": self.day_first,
            "schools": [[*texts, pk] for texts, pk in self.schools.items()],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, object]) -> RosterLayout:
        """Read what `as_dict` wrote; unknown keys and other types are dropped."""
        day_first = stored.get("day_first")
        values = stored.get("values")
        return cls(
            preset=str(stored.get("preset") or ""),
            fields=_texts(stored.get("fields")),
            values={str(name): _texts(ours) for name, ours in values.items()}
            if isinstance(values, dict)
            else {},
            day_first=day_first if isinstance(day_first, bool) else None,
            schools=_chosen_schools(stored.get("schools")),
        )


def _texts(stored: object) -> dict[str, str]:
    if not isinstance(stored, dict):
        return {}
    return {str(key): str(value) for key, value in stored.items()}


def _chosen_schools(stored: object) -> dict[PlaceTexts, int]:
    if not isinstance(stored, list):
        return {}
    return {
        (district, district_name, school, school_name): pk
        for district, district_name, school, school_name, pk in stored
    }


@dataclass(frozen=True)
class KnownPlace:
    """The codes and names of the place that a file was uploaded for."""

    district: str = ""
    district_name: str = ""
    school: str = ""
    school_name: str = ""

    @classmethod
    def of(cls, district: District | None, school: School | None) -> KnownPlace:
        """Return the place of an upload, where both null mean the whole state."""
        if school is not None:
            of = school.district
            return cls(of.code, of.name, school.code, school.name)
        return cls(district.code, district.name) if district else cls()


@dataclass(frozen=True)
class Suggestion:
    """How a file can be read, and what a person has to decide first."""

    layout: RosterLayout
    # Fields that a person has to decide, such as "external_id" (several ID
    # columns), "birth_date" (day or month first) or "values:grade". Empty: the
    # file can be read without a person.
    questions: Sequence[str]
    # Header -> three values.
    samples: Mapping[str, Sequence[str]]
    # Question -> the headers or values between which a person decides.
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Header -> all values, of columns with few.
    few_values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # The first rows, with shortened cells.
    rows: Sequence[Sequence[str]] = ()


def suggest_layout(
    header: Sequence[str],
    samples: Sequence[Sequence[str]],
    *,
    known: KnownPlace,
    role: str,
    preset: str = "",
    schools_tell_district: DistrictTest | None = None,
) -> Suggestion:
    """Suggest a layout from the headers, and from sample rows of the file.

    A preset is used if it is named or recognised. Columns that only look like a
    field are suggested where a person has to decide anyway. A missing district is no
    question if `schools_tell_district` says so.
    """
    header = clean_headers(header)
    samples = rows_of_people(header, samples)
    table = SampleTable(header, samples)
    used = all_presets().get(preset) or recognise_preset(header, role)
    fields, options = _fields_of(header, used, role)
    values = {name: dict(ours) for name, ours in used.values.items()} if used else {}
    if "status" in fields and "status" not in values:
        values |= status_flags(fields["status"])
    # The rows of an exit date are read one by one; birth dates decide together.
    day_first = day_is_first(table, fields) if "exit_date" in fields else None
    if used and used.month_first:
        day_first = None
    layout = RosterLayout(used.name if used else "", fields, values, day_first)

    questions = missing_fields(fields, known)
    has_no_district = (
        "district" in questions
        and "school" not in questions
        and schools_tell_district is not None
        and schools_tell_district(*_cells_that_tell_district(table, fields))
    )
    if has_no_district:
        questions.remove("district")
    options |= _contradicting_columns(table, layout, role)
    options |= _unknown_values(table, layout, role)
    options |= _other_places(table, fields, known)
    if not (used and used.month_first) and dates_are_unclear(table, fields):
        options.setdefault("birth_date", [])
    questions += [name for name in options if name not in questions]
    if questions:
        layout = replace(layout, fields={**table.look_like_fields(fields), **fields})
    if has_no_district:
        layout = replace(layout, fields={**layout.fields, "district": ""})
    if "external_id" in questions and "external_id" not in options:
        options["external_id"] = table.possible_ids()
    return _suggestion(table, layout, questions, options)


def _suggestion(
    table: SampleTable,
    layout: RosterLayout,
    questions: list[str],
    options: dict[str, list[str]],
) -> Suggestion:
    """Return them with shortened samples of each column, and the first rows."""
    different = {
        text: list(dict.fromkeys(map(_shorten, table.cells(text))))
        for text in table.header
        if text
    }
    return Suggestion(
        layout,
        questions,
        {text: values[:SAMPLES_SHOWN] for text, values in different.items()},
        options,
        {
            text: values
            for text, values in different.items()
            if 0 < len(values) <= MOST_VALUES_ASKED
        },
        [
            [_shorten(cell) for cell in cells[: len(table.header)]]
            for cells in table.rows[:ROWS_SHOWN]
        ],
    )


def _cells_that_tell_district(
    table: SampleTable, fields: Mapping[str, str]
) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the schools of the rows, and the cells of columns without a field."""
    used = {*fields.values()}
    schools: set[tuple[str, str]] = set()
    unused: set[str] = set()
    for row in table.rows:
        cells = dict(zip(table.header, map(str.strip, row), strict=False))
        code = cells.get(fields.get("school", ""), "")
        name = cells.get(fields.get("school_name", ""), "")
        schools.add((code or name, name or code))
        unused |= {cell for text, cell in cells.items() if text not in used}
    return schools - {("", "")}, unused - {""}


def _shorten(cell: str) -> str:
    return " ".join(cell[:200].split())[:80]


_TOGETHER = (
    {"district", "district_name"},
    {"school", "school_name"},
    {"name", "given_name", "family_name"},
)


def _fields_of(
    header: list[str], preset: Preset | None, role: str
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the fields by header, and the headers between which to decide.

    What identifies people is never guessed: if several columns could, a preset or
    a person decides.
    """
    texts_of = headers_by_field(header)
    by_header = columns_of(header).fields
    # A name that is used as a code is only the name.
    fields = {
        name: header[index]
        for name, index in by_header.items()
        if index != by_header.get(f"{name}_name")
    }
    options: dict[str, list[str]] = {}
    named: dict[str, str] = {}
    if preset:
        named = preset.fields_in(header)
        if "given_name" in named or "family_name" in named:
            named.pop("name", None)
        rest = {
            name: text
            for name, text in fields.items()
            if text not in named.values() and name != "external_id"
        }
        # The preset's code and name of a place belong together, and so do names.
        for group in _TOGETHER:
            if named.keys() & group:
                rest = {name: text for name, text in rest.items() if name not in group}
        fields = rest | named
    else:
        ids = ids_of_role(texts_of.get("external_id", []), role)
        if len(ids) == 1:
            fields["external_id"] = ids[0]
        elif ids:
            options["external_id"] = ids
    for code in ("district", "school"):
        if code not in named and len(texts_of.get(code, ())) > 1:
            options[code] = texts_of[code]
    return fields, options


# Each decides who is invited, who gets the code, or in which grade answers count.
_NEVER_CONTRADICTED = ("status", "exit_date", "email", "birth_date", "grade")


def _contradicting_columns(
    table: SampleTable, layout: RosterLayout, role: str
) -> dict[str, list[str]]:
    """Return columns between which to decide, by field.

    These are several of one header that differ, and for some fields any that could
    be meant. Equal columns are one.
    """
    asked: dict[str, list[str]] = {}
    candidates = headers_by_field(table.header)
    for name, chosen in layout.fields.items():
        if name == "grade" and role not in ("", Role.STUDENT):
            continue
        also = candidates.get(name, ()) if name in _NEVER_CONTRADICTED else ()
        texts = [chosen] + [
            text
            for text in table.header
            if text != chosen and (text in also or bare_key(text) == bare_key(chosen))
        ]
        columns = [_meanings(table, layout, name, text) for text in texts]
        if any(column != columns[0] for column in columns):
            asked[name] = texts
    return asked


def _meanings(
    table: SampleTable, layout: RosterLayout, name: str, text: str
) -> list[object]:
    """Return what the cells of a column mean if it holds a field."""
    ours = layout.values.get(name, {}) if text == layout.fields[name] else {}
    if name == "status" and not ours:
        ours = status_flags(text).get(name, {})
    parse = _PARSERS.get(name, value_key)
    index = table.header.index(text)
    meanings: list[object] = []
    for cells in table.rows:
        cell = cells[index] if index < len(cells) else ""
        try:
            meanings.append(parse(ours.get(value_key(cell), cell)))
        except InvalidCell:
            meanings.append(value_key(cell))
    return meanings


_FLAGS = frozenset(
    ["active", "isactive", "activeflag", "inactive"]
    + ["enrolled", "isenrolled", "currentlyenrolled"]
)


def status_flags(header: str) -> dict[str, dict[str, str]]:
    """Return what yes and no mean in a column such as "Active" or "Inactive"."""
    squeezed = field_key(header)
    if squeezed == "enrollstatus":
        # PowerSchool's own field, in a file that is otherwise no PowerSchool export.
        return {"status": dict(all_presets()["powerschool-students"].values["status"])}
    if squeezed not in _FLAGS:
        return {}
    yes, no = ("left", "active") if squeezed == "inactive" else ("active", "left")
    return {
        "status": dict.fromkeys(("y", "yes", "true", "t", "1", "x"), yes)
        | dict.fromkeys(("n", "no", "false", "f", "0"), no)
    }


def _unknown_values(
    table: SampleTable, layout: RosterLayout, role: str
) -> dict[str, list[str]]:
    """Return the values that nothing is known about, by question.

    A single unknown grade is a mistake in its row. An unknown status is always
    asked for: it could be that of people who have left.
    """
    unknown: dict[str, list[str]] = {}
    for name in _PARSERS:
        if name == "grade" and role not in ("", Role.STUDENT):
            continue
        cells = table.cells(layout.fields.get(name, ""))
        ours = layout.values.get(name, {})
        failed = [cell for cell in cells if is_unknown_value(name, cell, ours)]
        are_many = len(failed) >= FEWEST_UNKNOWN and 2 * len(failed) > len(cells)
        if failed and (name == "status" or are_many):
            shown = list(dict.fromkeys(" ".join(cell.split())[:80] for cell in failed))
            unknown[f"values:{name}"] = shown[:MOST_VALUES_ASKED]
    return unknown


_PARSERS: Mapping[str, Callable[[str], object]] = {
    "status": field_parsers.parse_status,
    "role": field_parsers.parse_role,
    "grade": field_parsers.parse_grade,
}


def is_unknown_value(
    name: str,
    cell: str,
    ours: Mapping[str, str],
    languages: Mapping[str, str] | None = None,
) -> bool:
    """Tell whether neither we nor a layout know a status, role, grade or language.

    `ours` are the layout's values, `languages` those of `field_parsers.language_names`.
    """
    if value_key(cell) in ours:
        return False
    try:
        if name == "language":
            return field_parsers.parse_language(cell, languages or {}) is None
        _PARSERS[name](cell)
    except InvalidCell:
        return True
    return False


def _other_places(
    table: SampleTable, fields: Mapping[str, str], known: KnownPlace
) -> dict[str, list[str]]:
    """Ask about a file that names one place only, which is not that of the upload.

    Student information systems have codes of their own for a school.
    """
    asked: dict[str, list[str]] = {}
    for name, code, called in (
        ("district", known.district, known.district_name),
        ("school", known.school, known.school_name),
    ):
        columns = {fields[key] for key in (name, f"{name}_name") if key in fields}
        named = {text: set(map(value_key, table.cells(text))) for text in columns}
        ours = {code.casefold(), value_key(called), code.casefold().lstrip("0")}
        if code and named and all(len(texts) == 1 for texts in named.values()):
            texts = set().union(*named.values())
            if not (texts | {text.lstrip("0") for text in texts}) & ours:
                asked[name] = sorted(columns)
    return asked


def missing_fields(fields: Collection[str], known: KnownPlace) -> list[str]:
    """Return the required fields that neither the file nor its place answers."""
    answered = {
        *fields,
        *(name for name in ("district", "school") if f"{name}_name" in fields),
        *(("district",) if known.district else ()),
        *(("school",) if known.school else ()),
    }
    return [name for name in REQUIRED if name not in answered]


def questions_text(suggestion: Suggestion) -> str:
    """Say what a person has to decide, and between what."""
    missing = [
        _(REQUIRED[name])
        for name in suggestion.questions
        if name in REQUIRED and not suggestion.options.get(name)
    ]
    texts = [
        _question_text(name, suggestion)
        for name in suggestion.questions
        if name not in REQUIRED or suggestion.options.get(name)
    ]
    if missing:
        shown = ", ".join(suggestion.samples)
        texts.append(
            _("No column for: %(missing)s. The columns are: %(shown)s.")
            % {"missing": ", ".join(missing), "shown": shown[:500]}
        )
    return " ".join(texts)


def _question_text(question: str, suggestion: Suggestion) -> str:
    options = ", ".join(f"'{text}'" for text in suggestion.options.get(question, ()))
    if question == "external_id":
        return _id_question(suggestion, options)
    if question == "birth_date" and not options:
        return _("Dates such as 3/4/2015 could have the day or the month first.")
    if question.startswith("values:"):
        name = question.removeprefix("values:")
        header = suggestion.layout.fields.get(name, name)
        return _("Unknown values in '%(header)s' (%(name)s): %(options)s.") % {
            "header": header,
            "name": name,
            "options": options,
        }
    return _("It is unclear which column is the %(required)s: %(options)s.") % {
        "required": _(FIELD_NAMES[question]),
        "options": options,
    }


def _id_question(suggestion: Suggestion, options: str) -> str:
    required = _("student or staff ID")
    text = _("Several columns could be the %(required)s: %(options)s.")
    if len(suggestion.options["external_id"]) == 1:
        text = _("It is not certain that %(options)s is the %(required)s.")
    text = text % {"required": required, "options": options}
    preset = all_presets().get(suggestion.layout.preset)
    if preset and "external_id" not in preset.fields_in(suggestion.samples):
        expected = ", ".join(f"'{header}'" for header in preset.fields["external_id"])
        missing = _("The file has no column %(expected)s, as a %(title)s has.")
        text = f"{missing % {'expected': expected, 'title': preset.title}} {text}"
    return text
