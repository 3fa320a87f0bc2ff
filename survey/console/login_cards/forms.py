"""Forms to print login cards and to issue new codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.models import District, School
from survey.console.people.scope import set_choices, set_group_choices
from survey.models import CardSet
from survey.models.grades import grade_name
from survey.taking.messages import languages

PDF = (
    CardSet.Format.PDF.value,
    gettext_lazy(
        "Cards to print (PDF): one for each person, with their name, access code and"
        " QR code"
    ),
)
ZIP = (
    CardSet.Format.ZIP.value,
    gettext_lazy("Cards to print (ZIP): one PDF for each school, class by class"),
)
DRAWN_ZIP = (
    CardSet.Format.ZIP.value,
    gettext_lazy(
        "Cards to draw from (ZIP): one PDF for each school, class by class, without"
        " names"
    ),
)
# A CSV file with a byte order mark, after which Excel shows accents correctly.
EXCEL = "excel"
DRAWN = (
    CardSet.Format.PDF.value,
    gettext_lazy(
        "Cards to draw from (PDF): each has an access code and a QR code, and no name"
    ),
)
EMAIL = (
    CardSet.Format.EMAIL.value,
    gettext_lazy(
        "E-mails, sent at once: people who have an address get their own code and link"
    ),
)
LISTS = (
    (
        CardSet.Format.CSV.value,
        gettext_lazy(
            "List for mail merge (CSV): one row for each person, with their name, code"
            " and link"
        ),
    ),
    (
        EXCEL,
        gettext_lazy(
            "List for Excel (CSV): the same rows, with accents that Excel shows"
            " correctly"
        ),
    ),
)
# A key of no district.
WHOLE_STATE = "state"
LANGUAGE_NAMES = {entry["code"]: entry["name"] for entry in languages()}


class CodesForm(forms.Form):
    """What to make of access codes, and for whom."""

    format = forms.ChoiceField(
        label=gettext_lazy("What do you need?"), widget=forms.RadioSelect
    )
    unfinished = forms.BooleanField(
        required=False, label=gettext_lazy("Only people who have not finished")
    )

    def __init__(self, data: QueryDict | None, *, confidential: bool) -> None:
        super().__init__(data)
        # The number of cards would tell how many have finished.
        if confidential:
            del self.fields["unfinished"]


class CardsForm(CodesForm):
    """Options for the cards of one school."""

    field_order = ("format", "grade", "classroom", "unfinished", "language", "shown")

    grade = forms.ChoiceField(required=False, label=gettext_lazy("Grade"))
    classroom = forms.ChoiceField(required=False, label=gettext_lazy("Class"))
    language = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Second language on the cards"),
        help_text=gettext_lazy(
            "Every card is in the survey's main language, with this language below it."
        ),
    )
    shown = forms.ChoiceField(
        required=False,
        choices=(("", gettext_lazy("Name")), ("id", gettext_lazy("Name and ID"))),
        label=gettext_lazy("On each card"),
        help_text=gettext_lazy(
            "Choose the ID too if two people in a class have the same name."
        ),
    )

    def __init__(
        self,
        data: QueryDict | None,
        *,
        groups: Sequence[tuple[str, str]],
        languages: Sequence[str],
        confidential: bool,
    ) -> None:
        super().__init__(data, confidential=confidential)
        set_choices(self, "format", [PDF, EMAIL, *LISTS])
        if confidential:
            set_choices(self, "format", [DRAWN, EMAIL])
            del self.fields["shown"]
        self.initial["format"] = CardSet.Format.PDF
        self.groups = set(groups)
        set_group_choices(self, groups)
        first_language, *more = languages
        if not more:
            del self.fields["language"]
            return
        second = [(language, LANGUAGE_NAMES[language]) for language in more]
        personal = ("", _("Each person's own language on the roster"))
        none = (first_language, _("None"))
        # On a card without a name, one's own language could tell whose it is.
        choices = [none, *second] if confidential else [personal, *second, none]
        set_choices(self, "language", choices)

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or {}
        grade, room = cleaned.get("grade", ""), cleaned.get("classroom", "")
        # The job would find no one, and only say so later.
        if grade and room and (grade, room) not in self.groups:
            raise forms.ValidationError(
                _(
                    "No one in grade %(grade)s is in class %(room)s. Choose"
                    " another class, or all grades."
                )
                % {"grade": grade_name(grade), "room": room}
            )
        return cleaned


class ManySchoolsForm(CodesForm):
    """Options for all schools of a district or of the state at once."""

    field_order = ("district", "format", "unfinished")

    district = forms.ChoiceField(label=gettext_lazy("Schools"))

    def __init__(
        self,
        data: QueryDict | None,
        *,
        districts: Iterable[District],
        whole_state: bool,
        confidential: bool,
    ) -> None:
        super().__init__(data, confidential=confidential)
        self.districts = {str(district.pk): district for district in districts}
        choices = [(key, district.name) for key, district in self.districts.items()]
        if whole_state:
            choices = [(WHOLE_STATE, _("All schools of the state")), *choices]
        set_choices(self, "district", choices)
        # The only district needs no choice.
        if len(choices) == 1:
            del self.fields["district"]
        of_schools = [DRAWN_ZIP, EMAIL] if confidential else [ZIP, *LISTS, EMAIL]
        set_choices(self, "format", of_schools)
        self.initial["format"] = CardSet.Format.ZIP

    def chosen_district(self) -> District | None:
        """Return the chosen or only district, or None for the whole state."""
        if "district" in self.fields:
            return self.districts.get(self.cleaned_data["district"])
        return next(iter(self.districts.values()), None)


class ReissueForm(forms.Form):
    """The school's name, typed as a confirmation."""

    typed = forms.CharField(
        label=gettext_lazy("To confirm, type the name of the school"),
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, data: QueryDict | None, *, school: School) -> None:
        super().__init__(data)
        self.school = school
        self.fields["typed"].help_text = _("Type: %(name)s") % {"name": school.name}

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if " ".join(typed.split()).casefold() != self.school.name.casefold():
            raise forms.ValidationError(
                _("This is not %(name)s. Nothing was changed.")
                % {"name": self.school.name}
            )
        return typed
