"""The form for uploading a roster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, BinaryIO, cast

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from accounts import forms
from accounts.models import District, School
from accounts.permissions import Capability, Permissions
from survey.console.table_files import TableField
from survey.instrument.spreadsheets.file_kinds import EXPORT
from survey.instrument.spreadsheets.old_excel import is_old_excel
from survey.instrument.spreadsheets.workbook_guard import MIB, ROSTER, unpacked_size
from survey.models import Administration, RosterUpload
from survey.people.rosters.column_choices import ColumnReading, read_columns
from survey.people.rosters.file_reader import RosterUnreadable, open_roster_file
from survey.people.rosters.layouts import KnownPlace
from survey.people.rosters.roster_sheets import ALL_SHEETS, SheetsUnclear

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

CompleteFor = RosterUpload.CompleteFor

# Without JavaScript, a browser forgets the file.
CHOOSE_FILE_AGAIN = gettext_noop(
    "If the file is no longer chosen, choose it once more."
)
# Smaller files are opened here, so that the form shows what is wrong; larger
# ones and .xls files are opened by the dry run, a moment later.
OPENED_AT_ONCE = 4 * MIB
# Texts and styles are read before the first row, and 20 rows of each sheet are
# looked at for a header.
UNPACKED_AT_ONCE = 1 * MIB
ENDINGS = (".csv", ".txt", ".tsv", ".xlsx", ".xls", ".zip")

COMPLETE_FOR_LABELS = {
    CompleteFor.SCHOOLS: gettext_lazy("People of the schools in this file"),
    CompleteFor.DISTRICTS: gettext_lazy(
        "People of the districts in this file, including schools that the"
        " file does not name"
    ),
    CompleteFor.STATE: gettext_lazy("Everyone in the state"),
    CompleteFor.CHANGES: gettext_lazy("Nobody: the file only adds and changes people"),
}
UploadPlace = tuple[District | None, School | None]


def upload_places(permissions: Permissions) -> dict[str, UploadPlace]:
    """Return where a user manages rosters: the state, or districts and schools."""
    places: dict[str, UploadPlace] = {}
    managed = permissions.places(Capability.MANAGE_ROSTERS)
    if managed.state:
        return {"state": (None, None)}
    for membership in permissions.memberships:
        school, district = membership.school, membership.district
        if school is not None and managed.has_school(school):
            places[f"school-{school.pk}"] = None, school
        elif district is not None and managed.has_district(district.pk):
            places[f"district-{district.pk}"] = district, None
    return dict(sorted(places.items()))


def place_name(place: UploadPlace) -> str:
    district, school = place
    if school:
        return f"{school}, {school.district}"
    return str(district) if district else _("The whole state")


def complete_for_choices(places: Iterable[UploadPlace]) -> list[CompleteFor]:
    """Return what a file for any of these places can be complete for."""
    choices = [CompleteFor.SCHOOLS]
    for district, school in places:
        if school is None and CompleteFor.DISTRICTS not in choices:
            choices.append(CompleteFor.DISTRICTS)
        if school is None and district is None:
            choices.append(CompleteFor.STATE)
    return [*choices, CompleteFor.CHANGES]


class RosterForm(forms.Form):
    place = forms.ChoiceField(
        label=gettext_lazy("Place"),
        help_text=gettext_lazy("The file may name schools of this place only."),
    )
    file = TableField(
        label=gettext_lazy("Roster file"),
        help_text=(
            gettext_lazy(
                "CSV or Excel with one row per person, or the ZIP file of a"
                " OneRoster export; at most 300 MB."
            )
        ),
        endings=ENDINGS,
        # A little below nginx's `largest_upload`, since the form around the file
        # needs some of that. nginx's error page names the same number.
        largest=300 * 10**6,
        too_large=gettext_lazy(
            "The file is larger than 300 MB. Save it as CSV, which is smaller than a"
            " workbook, or split it by school or district."
        ),
        export=EXPORT,
    )
    sheet = forms.CharField(
        label=gettext_lazy("Sheet"),
        help_text=gettext_lazy(
            "The sheet of the workbook that has the people. * means all sheets that"
            " have them in the same columns."
        ),
        max_length=100,
        required=False,
    )
    complete_for = forms.ChoiceField(
        label=gettext_lazy("Who should be withdrawn if missing?"),
        help_text=gettext_lazy(
            "Withdrawn people can no longer log in. Their answers are kept."
        ),
        widget=forms.RadioSelect,
        initial=CompleteFor.CHANGES,
    )

    def __init__(
        self,
        data: QueryDict | None,
        files: MultiValueDict[str, UploadedFile] | None,
        *,
        permissions: Permissions,
        administration: Administration,
        asks_sheet: bool = False,
    ) -> None:
        """`asks_sheet`: show the field for workbooks with several sheets."""
        super().__init__(data, files)
        if not asks_sheet and not (data and data.get("sheet")):
            self.fields["sheet"].widget = forms.HiddenInput()
        self.administration = administration
        self.places = upload_places(permissions)
        if "state" in self.places:
            # A file for one district need not name it.
            districts = District.objects.order_by("name", "pk")
            if administration.district_id is not None:
                districts = districts.filter(pk=administration.district_id)
            self.places |= {f"district-{row.pk}": (row, None) for row in districts}
        if len(self.places) > 1:
            self._set_choices(
                "place", {key: place_name(place) for key, place in self.places.items()}
            )
            # The first one, which is the whole state.
            self.fields["place"].required = "state" not in self.places
        else:
            del self.fields["place"]
        allowed = complete_for_choices(self.places.values())
        self._set_choices(
            "complete_for", {choice: COMPLETE_FOR_LABELS[choice] for choice in allowed}
        )

    def _set_choices(self, name: str, choices: Mapping[str, StrOrPromise]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101
        field.choices = list(choices.items())

    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or {}
        key = str(cleaned.get("place") or next(iter(self.places), ""))
        if key in self.places:
            place = self.places[key]
            cleaned["district"], cleaned["school"] = place
            choice = cleaned.get("complete_for")
            if choice and choice not in complete_for_choices([place]):
                self.add_error(
                    "complete_for",
                    _(
                        "A file for this place can't withdraw people elsewhere."
                        " Choose another answer."
                    ),
                )
            if file := cleaned.get("file"):
                cleaned["reading"] = self._read_columns(cast(UploadedFile, file), place)
        return cleaned

    def _read_columns(
        self, file: UploadedFile, place: UploadPlace
    ) -> ColumnReading | None:
        """Read the header of a file that opens at once; None leaves it to a worker."""
        content = cast(BinaryIO, file.file)
        # An .xls file is converted first, which takes seconds.
        is_xls = is_old_excel(file.read(8))
        file.seek(0)
        if is_xls or (file.size or 0) > OPENED_AT_ONCE:
            return None
        district, school = place
        try:
            if unpacked_size(content, ROSTER) > UNPACKED_AT_ONCE:
                return None
            known = KnownPlace.of(district, school)
            sheet = self.cleaned_data.get("sheet", "")
            with open_roster_file(content, known, sheet=sheet) as table:
                return read_columns(
                    table,
                    administration=self.administration,
                    district=district,
                    school=school,
                )
        except SheetsUnclear as error:
            field = self.fields["sheet"]
            field.required = True
            field.widget = forms.Select(
                choices=[
                    ("", _("Choose a sheet")),
                    *((sheet, sheet) for sheet in error.sheets),
                    (ALL_SHEETS, _("All of them (*)")),
                ]
            )
            self.add_error("sheet", f"{error} {_(CHOOSE_FILE_AGAIN)}")
            return None
        except RosterUnreadable as error:
            self.add_error("file", str(error))
            return None
        finally:
            file.seek(0)
