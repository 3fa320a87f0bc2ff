"""Forms for open codes and for their posters, letters and lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.http import QueryDict
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.console.widgets import LanguageSelect
from survey.console.administrations.fields import LocalDateTimeField
from survey.console.login_cards.forms import EXCEL, LANGUAGE_NAMES
from survey.console.people.scope import set_choices
from survey.console.rosters.forms import UploadPlace, place_name
from survey.fieldwork.open_codes.codes import CodeOptions
from survey.models import Administration, OpenCodeFile
from survey.models.open_code import MAX_PER_HOUR, MAX_SEATS, validate_label
from survey.taking.published import published_survey

LIMIT = format_lazy(
    gettext_lazy("Enter a whole number from 1 to {most}, or leave it empty."),
    most=f"{MAX_SEATS:,}",
)

PER_HOUR = format_lazy(
    gettext_lazy("Enter a whole number from 1 to {most}, or leave it empty."),
    most=f"{MAX_PER_HOUR:,}",
)


def languages_of(administration: Administration) -> dict[str, str]:
    """Return the survey's languages, with their own names."""
    definition = published_survey(administration.published_id).definition
    return {language["code"]: language["name"] for language in definition["languages"]}


class OpenCodeForm(forms.Form):
    label = forms.CharField(
        label=gettext_lazy("Label"),
        required=False,
        max_length=100,
        validators=[validate_label],
        help_text=gettext_lazy(
            "For you and your colleagues, such as Spring newsletter."
            " Nobody else sees it."
        ),
    )
    limit = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_SEATS,
        label=gettext_lazy("Places"),
        help_text=gettext_lazy(
            "So many people can begin with this code. Leave it empty for no limit."
        ),
        error_messages={"invalid": LIMIT, "min_value": LIMIT, "max_value": LIMIT},
    )
    hourly_limit = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_PER_HOUR,
        label=gettext_lazy("Starts per hour"),
        help_text=gettext_lazy(
            "So many people can begin in one hour, as a protection against programs."
            " Leave it empty for a number that fits the school: twice the students that"
            " it has supplied and 2,000 at least, or 6,000 if it has supplied none."
        ),
        error_messages={
            "invalid": PER_HOUR,
            "min_value": PER_HOUR,
            "max_value": PER_HOUR,
        },
    )
    language = forms.ChoiceField(
        required=False,
        label=gettext_lazy("First language"),
        help_text=gettext_lazy(
            "In which the survey's first page opens. Everyone can choose"
            " another one there."
        ),
        widget=LanguageSelect,
        error_messages={
            "invalid_choice": gettext_lazy("Choose one of the survey's languages.")
        },
    )
    opens_at = LocalDateTimeField(
        label=gettext_lazy("From"),
        required_message="",
        help_text=gettext_lazy("Leave it empty to begin when the survey round opens."),
    )
    closes_at = LocalDateTimeField(
        label=gettext_lazy("Until"),
        required_message="",
        help_text=gettext_lazy("Leave it empty to end when the survey round closes."),
    )

    def __init__(
        self, data: QueryDict | None, *, administration: Administration
    ) -> None:
        super().__init__(data)
        for name in ("opens_at", "closes_at"):
            self.fields[name].required = False
        languages = {"": _("The browser's language")} | languages_of(administration)
        set_choices(self, "language", list(languages.items()))

    def options(self) -> CodeOptions:
        cleaned = self.cleaned_data
        opens_at: datetime | None = cleaned["opens_at"]
        closes_at: datetime | None = cleaned["closes_at"]
        return {
            "label": cleaned["label"],
            "language": cleaned["language"],
            "limit": cleaned["limit"],
            "hourly_limit": cleaned["hourly_limit"],
            "opens_at": opens_at,
            "closes_at": closes_at,
        }


class CodeFileForm(forms.Form):
    """What to make, for one code or for the codes of a place."""

    place = forms.ChoiceField(
        label=gettext_lazy("Schools"),
        error_messages={"invalid_choice": gettext_lazy("Choose one of your places.")},
    )
    format = forms.ChoiceField(
        label=gettext_lazy("Format"),
        choices=[
            *OpenCodeFile.Format.choices,
            (EXCEL, gettext_lazy("List for Excel (CSV)")),
        ],
        initial=OpenCodeFile.Format.POSTER,
    )
    language = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Second language"),
        help_text=gettext_lazy(
            "Posters and letters are always in the survey's main language."
        ),
    )

    def __init__(
        self,
        data: QueryDict | None,
        *,
        languages: Sequence[str],
        places: Mapping[str, UploadPlace],
    ) -> None:
        super().__init__(data)
        self.places = places
        if len(places) > 1:
            choices = [(key, place_name(place)) for key, place in places.items()]
            set_choices(self, "place", choices)
        else:
            del self.fields["place"]
        if not languages[1:]:
            del self.fields["language"]
            return
        more = [(language, LANGUAGE_NAMES[language]) for language in languages[1:]]
        set_choices(self, "language", [("", _("None")), *more])

    def chosen_place(self) -> UploadPlace:
        """Return a district or a school, or neither for the whole state."""
        key = self.cleaned_data.get("place") or next(iter(self.places), "")
        return self.places.get(key, (None, None))
