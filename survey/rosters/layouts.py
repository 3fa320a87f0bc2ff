"""Decide which column of a roster holds which field, and what its values mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from accounts.models import District, School
from survey.rosters.columns import (
    REQUIRED,
    clean_header,
    columns_of,
    headers_by_field,
)

# Fields whose values a layout can translate.
VALUE_FIELDS = ("grade", "role", "status", "language", "district", "school")
SAMPLES_SHOWN = 3


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

    def as_dict(self) -> dict[str, object]:
        return {
            "preset": self.preset,
            "fields": dict(self.fields),
            "values": {name: dict(ours) for name, ours in self.values.items()},
            "day_first": self.day_first,
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
        )


def _texts(stored: object) -> dict[str, str]:
    if not isinstance(stored, dict):
        return {}
    return {str(key): str(value) for key, value in stored.items()}


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


def suggest_layout(
    header: Sequence[str],
    samples: Sequence[Sequence[str]],
    *,
    known: KnownPlace,
    role: str,
) -> Suggestion:
    """Suggest a layout from the headers, and from sample rows of the file.

    Columns that only resemble a field are suggested together with a question.
    """
    header = [clean_header(cell) for cell in header]
    fields = {name: header[index] for name, index in columns_of(header).fields.items()}
    found = headers_by_field(header)
    questions = missing_fields(fields, known)
    options: dict[str, list[str]] = {}
    if len(found.get("external_id", ())) > 1:
        options["external_id"] = found["external_id"]
    return Suggestion(
        RosterLayout(fields=fields),
        questions,
        first_values(header, samples),
        options,
    )


def missing_fields(fields: Mapping[str, str], known: KnownPlace) -> list[str]:
    """Return the required fields that neither the file nor its place answers."""
    answered = {
        *fields,
        *(("district",) if known.district else ()),
        *(("school",) if known.school else ()),
    }
    return [name for name in REQUIRED if name not in answered]


def first_values(
    header: Sequence[str], samples: Sequence[Sequence[str]]
) -> dict[str, list[str]]:
    """Return the first different values of each column, shortened."""
    shown: dict[str, list[str]] = {}
    for index, text in enumerate(header):
        if not text or text in shown:
            continue
        values = dict.fromkeys(
            " ".join(cells[index][:200].split())[:80]
            for cells in samples
            if index < len(cells)
        )
        values.pop("", None)
        shown[text] = list(values)[:SAMPLES_SHOWN]
    return shown
