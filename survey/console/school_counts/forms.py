"""The forms for the number of one school, and for a file with many."""

from __future__ import annotations

from django.core.files.uploadedfile import UploadedFile
from django.utils.functional import lazy
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from accounts import forms
from survey.console.table_files import check_table_file
from survey.instrument.spreadsheets.workbook_guard import MIB, ROSTER, unpacked_size
from survey.models import SchoolCount
from survey.models.school_count import LARGEST_COUNT

ENDINGS = (".csv", ".txt", ".tsv", ".xlsx")
# The rows are read while the browser waits.
LARGEST_UPLOAD = 4 * MIB
LARGEST_UNPACKED = 32 * MIB
TOO_LARGE = gettext_lazy("The file is larger than 4 MB. Upload one district at a time.")
_RANGE_TEXT = gettext_noop("Type a whole number from 1 to %(largest)s.")
# A number within a text that is translated when it is shown.
RANGE = lazy(lambda: gettext(_RANGE_TEXT) % {"largest": f"{LARGEST_COUNT:,}"}, str)()
LONGEST_NAME = 200


class UnitForm(forms.Form):
    unit = forms.ChoiceField(
        label=gettext_lazy("What is counted?"),
        choices=SchoolCount.Unit,
        initial=SchoolCount.Unit.STUDENTS,
        widget=forms.RadioSelect,
        help_text=gettext_lazy(
            "The survey is answered once for each child, so students fit best."
        ),
    )


class CountForm(UnitForm):
    count = forms.IntegerField(
        label=gettext_lazy("Count"),
        min_value=1,
        max_value=LARGEST_COUNT,
        error_messages={
            "invalid": RANGE,
            "min_value": RANGE,
            "max_value": RANGE,
            "required": RANGE,
        },
        widget=forms.TextInput(attrs={"inputmode": "numeric"}),
    )
    # The key of the number that was shown; empty if there was none.
    seen = forms.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput
    )

    field_order = ("count", "unit", "seen")


class CountFileForm(UnitForm):
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("CSV or Excel (.xlsx), with one row for each school."),
        max_length=LONGEST_NAME,
        widget=forms.FileInput(attrs={"accept": ",".join(ENDINGS)}),
    )

    field_order = ("file", "unit")

    def clean_file(self) -> UploadedFile:
        file: UploadedFile = self.cleaned_data["file"]
        content = check_table_file(file, ENDINGS)
        is_large = (file.size or 0) > LARGEST_UPLOAD
        if is_large or unpacked_size(content, ROSTER) > LARGEST_UNPACKED:
            raise forms.ValidationError(TOO_LARGE)
        file.seek(0)
        return file
