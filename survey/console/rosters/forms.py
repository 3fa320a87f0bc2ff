"""The form by which a roster comes in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, BinaryIO, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile

from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from survey.models import RosterUpload
from survey.rosters.file_reader import RosterUnreadable, open_table
from survey.spreadsheets.old_excel import is_old_excel

CompleteFor = RosterUpload.CompleteFor

# A little below nginx's `largest_upload`, whose page names this number too: the
# form around the file needs some of it.
LARGEST_UPLOAD = 300 * 10**6
TOO_LARGE = (
    "The file is larger than 300 MB. Save it as CSV, which is smaller than a"
    " workbook, or divide it by school or district."
)
# Read at once, so that what is wrong is said beside the field; of a larger one
# a worker says it, a moment later.
READ_AT_ONCE = 4 * 2**20
ENDINGS = (".csv", ".txt", ".tsv", ".xlsx", ".xls")
LONGEST_NAME = 200

MEANINGS = {
    CompleteFor.SCHOOLS: (
        "Every school in it: whoever of these schools is missing from the file is"
        " withdrawn"
    ),
    CompleteFor.DISTRICTS: (
        "Every district in it: the people of schools that the file does not name are"
        " withdrawn as well"
    ),
    CompleteFor.STATE: "The whole state: whoever is missing from the file is withdrawn",
    CompleteFor.CHANGES: (
        "Nothing, it has additions and changes only: nobody is withdrawn"
    ),
}
_STATE = (CompleteFor.SCHOOLS, CompleteFor.DISTRICTS, CompleteFor.STATE)
_DISTRICT = (CompleteFor.SCHOOLS, CompleteFor.DISTRICTS)
Place = tuple[District | None, School | None]


def places_of(permissions: Permissions) -> dict[str, Place]:
    """Where somebody manages rosters, the largest first."""
    places: dict[str, Place] = {}
    seen = permissions.places(Capability.MANAGE_ROSTERS)
    for one in permissions.memberships:
        if one.school is not None and seen.has_school(one.school):
            places[f"school-{one.school.pk}"] = None, one.school
        elif one.district is not None and seen.has_district(one.district.pk):
            places[f"district-{one.district.pk}"] = one.district, None
    if seen.state:
        return {"state": (None, None)}
    return dict(sorted(places.items()))


def name_of(place: Place) -> str:
    district, school = place
    if school:
        return f"{school}, {school.district}"
    return str(district) if district else "The whole state"


class RosterForm(forms.Form):
    place = forms.ChoiceField(
        label="For which people",
        help_text="The file may name schools of this place only.",
    )
    file = forms.FileField(
        label="Roster file",
        help_text=(
            "CSV or Excel (.xlsx or .xls), at most 300 MB, with a row for each person."
        ),
        widget=forms.FileInput(
            attrs={
                "accept": ",".join(ENDINGS),
                "data-largest": LARGEST_UPLOAD,
                "data-words": TOO_LARGE,
            }
        ),
        max_length=LONGEST_NAME,
    )
    complete_for = forms.ChoiceField(
        label="What the file is complete for",
        widget=forms.RadioSelect,
        initial=CompleteFor.SCHOOLS,
    )

    def __init__(self, *args: Any, permissions: Permissions, **options: Any) -> None:
        super().__init__(*args, **options)
        self.places = places_of(permissions)
        if len(self.places) > 1:
            self._choices("place").choices = [
                (key, name_of(place)) for key, place in self.places.items()
            ]
        else:
            del self.fields["place"]
        self._choices("complete_for").choices = [
            (one, MEANINGS[one]) for one in self._meanings(self.places.values())
        ]

    def _choices(self, name: str) -> forms.ChoiceField:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101
        return field

    @staticmethod
    def _meanings(places: Any) -> Sequence[CompleteFor]:
        whole: tuple[CompleteFor, ...] = (CompleteFor.SCHOOLS,)
        for district, school in places:
            if district is None and school is None:
                whole = _STATE
            elif district is not None and whole != _STATE:
                whole = _DISTRICT
        return (*whole, CompleteFor.CHANGES)

    def clean_file(self) -> UploadedFile:
        file: UploadedFile = self.cleaned_data["file"]
        ending = PurePath(file.name or "").suffix.casefold()
        if ending not in ENDINGS:
            raise forms.ValidationError(
                "A roster is a CSV or an Excel file (.csv, .xlsx, .xls). Open this one"
                " in a spreadsheet program and save it as one of them."
            )
        if (file.size or 0) > LARGEST_UPLOAD:
            raise forms.ValidationError(TOO_LARGE)
        # An .xls file is converted first, which takes seconds: a worker does it.
        is_xls = is_old_excel(file.read(8))
        file.seek(0)
        if (file.size or 0) <= READ_AT_ONCE and not is_xls:
            _check_outline(file)
        return file

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        key = cleaned.get("place") or next(iter(self.places), "")
        if key in self.places:
            cleaned["district"], cleaned["school"] = self.places[key]
            meaning = cleaned.get("complete_for")
            if meaning and meaning not in self._meanings([self.places[key]]):
                self.add_error(
                    "complete_for", "A file for this place cannot be complete for that."
                )
        return cleaned


def _check_outline(file: UploadedFile) -> None:
    """What it is, and where its header stands; the rows are for a worker."""
    try:
        with open_table(cast(BinaryIO, file.file)):
            pass
    except RosterUnreadable as error:
        raise forms.ValidationError(str(error)) from error
    finally:
        file.seek(0)
