"""The forms for the number of one school, and for a file with many."""

from __future__ import annotations

from django.utils.functional import lazy
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from accounts import forms
from survey.console.table_files import TableField
from survey.models import SchoolCount
from survey.models.school_count import LARGEST_COUNT

_RANGE_TEXT = gettext_noop("Type a whole number from 1 to %(largest)s.")
# A number within a text that is translated when it is shown.
RANGE = lazy(lambda: gettext(_RANGE_TEXT) % {"largest": f"{LARGEST_COUNT:,}"}, str)()


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
    file = TableField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("CSV or Excel (.xlsx), with one row for each school."),
        endings=(".csv", ".txt", ".tsv", ".xlsx"),
        too_large=gettext_lazy(
            "The file is larger than 4 MB. Upload one district at a time."
        ),
    )

    field_order = ("file", "unit")
