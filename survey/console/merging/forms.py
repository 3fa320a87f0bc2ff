"""The forms for merging two districts or two schools."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from accounts import forms
from accounts.models import District, School
from survey.models import PlaceMerge

# What is asked for, what becomes of the duplicate, and of the place that stays.
OF_DISTRICTS = (
    gettext_noop("Choose a district."),
    gettext_noop("This district is deleted. Rosters can go on using its code."),
    gettext_noop("This district keeps its code and name."),
)
OF_SCHOOLS = (
    gettext_noop("Choose a school."),
    gettext_noop("This school is deleted. Rosters can go on using its code."),
    gettext_noop("This school keeps its code and name."),
)


class PlaceChoice(forms.ModelChoiceField):
    def label_from_instance(self, obj: object) -> str:
        assert isinstance(obj, District | School)  # noqa: S101
        return f"{obj.name} ({obj.code})"


class MergeForm(forms.Form):
    """Choose the duplicate, and the district or school that stays."""

    duplicate = PlaceChoice(queryset=None, label=gettext_lazy("Duplicate"))
    kept = PlaceChoice(queryset=None, label=gettext_lazy("Merge it into"))

    def __init__(
        self, *args: Any, places: QuerySet[District] | QuerySet[School]
    ) -> None:
        super().__init__(*args)
        if places.model is District:
            required, deleted, stays = OF_DISTRICTS
        else:
            required, deleted, stays = OF_SCHOOLS
        for name, purpose in (("duplicate", deleted), ("kept", stays)):
            field = self.fields[name]
            assert isinstance(field, PlaceChoice)  # noqa: S101
            field.queryset = places.order_by("name", "pk")
            field.help_text = _(purpose)
            field.error_messages["required"] = _(required)
            field.empty_label = _(required).rstrip(".")

    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or {}
        if cleaned.get("kept") and cleaned.get("kept") == cleaned.get("duplicate"):
            self.add_error("kept", _("Choose another one, not the duplicate."))
        return cleaned


class ConfirmMergeForm(forms.Form):
    keep = forms.ChoiceField(
        label=gettext_lazy(
            "If a person has started with both records, which one stays?"
        ),
        help_text=gettext_lazy(
            "Answers are never mixed. The record that does not stay is withdrawn,"
            " and its answers are kept."
        ),
        choices=PlaceMerge.Keep.choices,
        widget=forms.RadioSelect,
        required=False,
    )
    typed = forms.CharField(
        label=gettext_lazy("Name of the duplicate"),
        max_length=200,
        strip=True,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, merge: PlaceMerge) -> None:
        super().__init__(*args)
        self.fields["typed"].help_text = _("To confirm, type: %(duplicate_name)s") % {
            "duplicate_name": merge.duplicate_name
        }
        # In one district, an ID belongs to one person.
        if not merge.report.get("pairs"):
            del self.fields["keep"]
