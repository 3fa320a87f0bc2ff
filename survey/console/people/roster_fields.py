"""The fields of one person in a form, checked as the cells of a roster are."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from survey.people.rosters.field_parsers import (
    InvalidCell,
    parse_classroom,
    parse_email,
    parse_grade,
    parse_text,
)

LONGEST_NAME = 200


class RosterFieldsForm(forms.Form):
    given_name = forms.CharField(
        label=gettext_lazy("Given name"), max_length=LONGEST_NAME, required=False
    )
    family_name = forms.CharField(
        label=gettext_lazy("Family name"), max_length=LONGEST_NAME, required=False
    )
    grade = forms.CharField(label=gettext_lazy("Grade"), max_length=40, required=False)
    classroom = forms.CharField(
        label=gettext_lazy("Class"), max_length=64, required=False
    )
    email = forms.CharField(
        label=gettext_lazy("E-mail"), max_length=254, required=False
    )

    def clean_given_name(self) -> str:
        return self.parsed("given_name", parse_text)

    def clean_family_name(self) -> str:
        return self.parsed("family_name", parse_text)

    def clean_grade(self) -> str:
        return self.parsed("grade", parse_grade)

    def clean_classroom(self) -> str:
        return self.parsed("classroom", parse_classroom)

    def clean_email(self) -> str:
        return self.parsed("email", parse_email)

    def parsed(self, name: str, parse: Callable[[str], str]) -> str:
        try:
            return parse(self.cleaned_data[name])
        except InvalidCell as error:
            raise forms.ValidationError(
                _("What you typed %(problem)s.") % {"problem": error}
            ) from error
