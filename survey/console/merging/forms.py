"""The forms for merging two districts or two schools."""

from __future__ import annotations

from django import forms
from django.db.models import QuerySet

from accounts.models import District, School
from survey.models import PlaceMerge


class PlaceChoice(forms.ModelChoiceField):
    def label_from_instance(self, obj: object) -> str:
        assert isinstance(obj, District | School)  # noqa: S101
        return f"{obj.name} ({obj.code})"


class MergeForm(forms.Form):
    """Choose the duplicate, and the district or school that stays."""

    duplicate = PlaceChoice(queryset=None, label="Duplicate")
    kept = PlaceChoice(queryset=None, label="Merge it into")

    def __init__(
        self, *args: object, places: QuerySet[District] | QuerySet[School]
    ) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        kind = "district" if places.model is District else "school"
        for name, purpose in (
            ("duplicate", f"This {kind} is deleted. Rosters can go on using its code."),
            ("kept", f"This {kind} keeps its code and name."),
        ):
            field = self.fields[name]
            assert isinstance(field, PlaceChoice)  # noqa: S101
            field.queryset = places.order_by("name", "pk")
            field.help_text = purpose
            field.error_messages["required"] = f"Choose a {kind}."

    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or {}
        if cleaned.get("kept") and cleaned.get("kept") == cleaned.get("duplicate"):
            self.add_error("kept", "Choose another one, not the duplicate.")
        return cleaned


class ConfirmMergeForm(forms.Form):
    keep = forms.ChoiceField(
        label="If a person has started with both records, which one stays?",
        help_text="Answers are never mixed. The record that does not stay is withdrawn,"
        " and its answers are kept.",
        choices=PlaceMerge.Keep.choices,
        widget=forms.RadioSelect,
        required=False,
    )
    typed = forms.CharField(
        label="Name of the duplicate",
        max_length=200,
        strip=True,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: object, merge: PlaceMerge) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.fields["typed"].help_text = f"To confirm, type: {merge.duplicate_name}"
        # In one district, an ID belongs to one person.
        if not merge.report.get("pairs"):
            del self.fields["keep"]
