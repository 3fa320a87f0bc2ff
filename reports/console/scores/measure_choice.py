"""Choose the measure and the district of a page about many schools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.http import StaffRequest
from reports.console.scores.access import ScoresScope
from reports.console.scores.table import ScoreColumn


class MeasureFilter(forms.Form):
    district = forms.ChoiceField(label=gettext_lazy("District"), required=False)
    measure = forms.ChoiceField(label=gettext_lazy("Measure"), required=False)

    @classmethod
    def of(
        cls,
        data: QueryDict,
        scope: ScoresScope,
        columns: Sequence[ScoreColumn],
        **more: Sequence[tuple[str, str]],
    ) -> Self:
        """Return the form with these choices; `more` are those of other fields."""
        # Bound, so that the fields show what is in the address.
        form = cls(data)
        choices = {
            "district": [
                ("", _("All districts")),
                *((str(district.pk), str(district)) for district in scope.districts),
            ],
            "measure": [(column.name, column.label) for column in columns],
            **more,
        }
        for name, options in choices.items():
            cast("forms.ChoiceField", form.fields[name]).choices = options
            if len(options) < 2 or (name == "district" and len(scope.districts) < 2):
                del form.fields[name]
        return form


def chosen_measure(
    request: StaffRequest, columns: Sequence[ScoreColumn]
) -> ScoreColumn | None:
    """Return the measure that the address names, or the first."""
    asked = request.GET.get("measure", "")
    first = columns[0] if columns else None
    return next((column for column in columns if column.name == asked), first)
