"""Find out how an uploaded file is read, and remember the columns people chose.

A remembered choice comes before the recognised headers: somebody has looked at it.
It is shown with every upload that it was used for, and can be changed there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256

from django.db.models import Q

from accounts.models import District, School
from survey.models import (
    Administration,
    Identity,
    RosterLayoutChoice,
    RosterUpload,
)
from survey.people.rosters.blank_districts import DistrictsOfSchools
from survey.people.rosters.columns import holds_secrets, squeeze
from survey.people.rosters.field_parsers import InvalidCell, parse_external_id
from survey.people.rosters.file_reader import suggest_columns
from survey.people.rosters.identity_changes import ID_COLUMNS, name_of_id
from survey.people.rosters.layouts import RosterLayout, Suggestion, missing_fields
from survey.people.rosters.scope import RosterScope, offered_schools
from survey.people.rosters.table import RosterTable

ID = "external_id"


@dataclass(frozen=True)
class ColumnSamples:
    """What is shown to the person who chooses the columns of a file."""

    header: Sequence[str] = ()
    # Header -> its first different values; without columns of passwords.
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Fields to decide, and what there is to choose from; see `layouts.Suggestion`.
    questions: Sequence[str] = ()
    # Also the values of columns with few different ones, by `values_key`.
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # What identifies people in earlier rosters, where this file has other IDs.
    earlier_id: str = ""
    # The first rows; cells of passwords are blank.
    rows: Sequence[Sequence[str]] = ()

    @classmethod
    def of(cls, upload: RosterUpload) -> ColumnSamples:
        """Read what `as_dict` wrote; what a later version added is dropped."""
        names = {column.name for column in fields(cls)}
        stored = upload.samples or {}
        return cls(**{name: stored[name] for name in stored.keys() & names})

    def values_of(self, header: str) -> Sequence[str] | None:
        """Return all values of a column, or None if it has many."""
        return self.options.get(values_key(header))

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def values_key(header: str) -> str:
    return f"cells:{header}"


@dataclass(frozen=True)
class ColumnReading:
    """How a file would be read, and what a person has to decide first."""

    layout: RosterLayout
    samples: ColumnSamples
    choice: RosterLayoutChoice | None = None

    @property
    def is_unclear(self) -> bool:
        return bool(self.samples.questions)


def read_columns(
    table: RosterTable,
    *,
    administration: Administration,
    district: District | None,
    school: School | None,
) -> ColumnReading:
    """Find out how a file of `open_roster_file` can be read.

    Without a column of districts, a file of the state is read if the schools of its
    first rows tell them. Raises RosterUnreadable. 9 statements at most.
    """

    def tell_district(
        schools: Collection[tuple[str, str]], unused: Collection[str]
    ) -> bool:
        scope = RosterScope(offered=offered_schools(administration))
        return DistrictsOfSchools(scope).tell_all(schools, unused)

    guess = suggest_columns(
        table, role=administration.role, schools_tell_district=tell_district
    )
    layout, questions = guess.layout, guess.questions
    samples = samples_without_secrets(guess)
    choice = remembered_choice(samples.header, district=district, school=school)
    if choice is None:
        samples = replace(samples, options={**guess.options, **samples.options})
    else:
        layout = RosterLayout.from_dict(choice.layout)
        questions = missing_fields(layout.fields, table.known)
    samples = replace(samples, questions=questions)
    earlier_id = find_earlier_id(
        layout.fields.get(ID, ""),
        samples,
        administration=administration,
        district=district,
        school=school,
    )
    if earlier_id:
        samples = replace(
            samples,
            earlier_id=earlier_id,
            questions=list(dict.fromkeys([*samples.questions, ID])),
        )
    return ColumnReading(layout, samples, choice)


def samples_without_secrets(guess: Suggestion) -> ColumnSamples:
    """Return what the columns hold, without passwords, and no questions yet."""
    shown = {
        text: values
        for text, values in guess.samples.items()
        if not holds_secrets(text)
    }
    return ColumnSamples(
        list(guess.samples),
        shown,
        options={
            values_key(text): values
            for text, values in guess.few_values.items()
            if text in shown
        },
        rows=[
            [
                cell if text in shown else ""
                for text, cell in zip(guess.samples, cells, strict=False)
            ]
            for cells in guess.rows
        ],
    )


def header_key(header: Iterable[str]) -> str:
    """Return the same key for the same headers in any order and spelling."""
    squeezed = sorted({squeeze(text) for text in header} - {""})
    return sha256("\n".join(squeezed).encode()).hexdigest()


def remembered_choice(
    header: Iterable[str], *, district: District | None, school: School | None
) -> RosterLayoutChoice | None:
    """Return the newest choice for these headers that counts in a place.

    A school uses its own before its district's. Nobody else's choice decides how
    a file of the district or the state is read.
    """
    choices = RosterLayoutChoice.objects.filter(header_key=header_key(header))
    if school is not None:
        choice = choices.filter(school=school).order_by("-pk").first()
        if choice is not None:
            return choice
        district = school.district
    return choices.filter(district=district, school=None).order_by("-pk").first()


def find_earlier_id(
    chosen: str,
    samples: ColumnSamples,
    *,
    administration: Administration,
    district: District | None,
    school: School | None,
) -> str:
    """Name what identifies people in earlier rosters if this file has other IDs.

    Everybody would be invited a second time under an ID of another kind. A column
    with another header that holds the IDs of people on the roster is the same.
    """
    applied = RosterUpload.objects.filter(
        state=RosterUpload.State.APPLIED,
        administration__role=administration.role,
        report__columns__has_key=ID,
    )
    people = Identity.objects.all()
    if school is not None:
        applied = applied.filter(
            Q(school=school) | Q(district=school.district_id) | _of_state()
        )
        people = people.filter(
            district=school.district_id, respondent__school=school.pk
        )
    elif district is not None:
        applied = applied.filter(
            Q(district=district) | Q(school__district=district) | _of_state()
        )
        people = people.filter(district=district)
    rows = applied.order_by("-ended_at", "-pk")
    latest = rows.values_list("administration", *ID_COLUMNS).first()
    if not chosen or latest is None:
        return ""
    earlier, header, identity, previous_identity = latest
    people = people.filter(administration__in={administration.pk, earlier})
    # The files of a feed have a header of ours.
    source = previous_identity or identity or header
    if squeeze(chosen) == squeeze(source) or not people.exists():
        return ""
    ids = set()
    for cell in samples.values.get(chosen, ()):
        with suppress(InvalidCell):
            ids.add(parse_external_id(cell))
    same = people.filter(external_id__in=ids).values("external_id").distinct().count()
    if ids and 2 * same >= len(ids):
        return ""
    return name_of_id(header, identity, previous_identity)


def _of_state() -> Q:
    return Q(district=None, school=None)
