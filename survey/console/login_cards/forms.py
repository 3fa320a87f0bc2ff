"""Forms to print login cards and to issue new codes."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.http import QueryDict

from accounts.models import School
from survey.console.people.scope import set_choices, set_group_choices
from survey.login_cards.card_text import CARD_WORDS
from survey.models import CardSet

PDF = (CardSet.Format.PDF.value, "Login cards to print (PDF)")
# A CSV file with a byte order mark, after which Excel shows accents correctly.
EXCEL = "excel"
DRAWN = (CardSet.Format.PDF.value, "Cards to draw from, without names (PDF)")
EMAIL = (CardSet.Format.EMAIL.value, "E-mail to each person who has an address")
LISTS = (
    (CardSet.Format.CSV.value, "List for mail merge (CSV)"),
    (EXCEL, "List for Excel (CSV)"),
)
LANGUAGE_NAMES = {"en": "English", "es": "Español", "ar": "العربية"}


class UnfinishedForm(forms.Form):
    unfinished = forms.BooleanField(
        required=False, label="Only people who have not finished"
    )

    def __init__(self, data: QueryDict | None, *, confidential: bool) -> None:
        super().__init__(data)
        # The number of cards would tell how many have finished.
        if confidential:
            del self.fields["unfinished"]


class CardsForm(UnfinishedForm):
    """Options for the cards of one school."""

    field_order = ("grade", "classroom", "unfinished", "format", "language", "shown")

    grade = forms.ChoiceField(required=False)
    classroom = forms.ChoiceField(required=False, label="Class")
    format = forms.ChoiceField(choices=[PDF, EMAIL, *LISTS], initial=PDF[0])
    language = forms.ChoiceField(
        required=False,
        label="Second language",
        help_text="Cards are always in the survey's main language.",
    )
    shown = forms.ChoiceField(
        required=False,
        choices=(("", "Name"), ("id", "Name and ID")),
        label="On each card",
        help_text="Choose the ID too if two people in a class have the same name.",
    )

    def __init__(
        self,
        data: QueryDict | None,
        *,
        groups: Sequence[tuple[str, str]],
        first_language: str,
        confidential: bool,
    ) -> None:
        super().__init__(data, confidential=confidential)
        if confidential:
            set_choices(self, "format", [DRAWN, EMAIL])
            del self.fields["shown"]
        self.groups = set(groups)
        set_group_choices(self, groups)
        languages = [
            (language, LANGUAGE_NAMES[language])
            for language in CARD_WORDS
            if language != first_language
        ]
        own, none = ("", "Each person's own"), (first_language, "None")
        # On a card without a name, one's own language could tell whose it is.
        choices = [none, *languages] if confidential else [own, *languages, none]
        set_choices(self, "language", choices)

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or {}
        grade, room = cleaned.get("grade", ""), cleaned.get("classroom", "")
        # The job would find no one, and only say so later.
        if grade and room and (grade, room) not in self.groups:
            raise forms.ValidationError(
                f"No one in grade {grade} is in class {room}. Choose another class, or"
                " all grades."
            )
        return cleaned


class ListForm(UnfinishedForm):
    """All schools at once are available only as a list, or as e-mails."""

    field_order = ("format", "unfinished")

    format = forms.ChoiceField(choices=[*LISTS, EMAIL])

    def __init__(self, data: QueryDict | None, *, confidential: bool) -> None:
        super().__init__(data, confidential=confidential)
        if confidential:
            set_choices(self, "format", [EMAIL])


class ReissueForm(forms.Form):
    """The school's name, typed as a confirmation."""

    typed = forms.CharField(
        label="To confirm, type the name of the school",
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, data: QueryDict | None, *, school: School) -> None:
        super().__init__(data)
        self.school = school
        self.fields["typed"].help_text = f"Type: {school.name}"

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if " ".join(typed.split()).casefold() != self.school.name.casefold():
            raise forms.ValidationError(
                f"This is not {self.school.name}. Nothing was changed."
            )
        return typed
