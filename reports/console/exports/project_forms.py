"""Forms of approved research projects."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.models import User
from reports.console.exports.forms import SHORTEST_REASON
from reports.exports.requests import project_named

LONGEST = timedelta(days=10 * 366)


class ProjectApprovalForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Title"), max_length=100)
    purpose = forms.CharField(
        label=gettext_lazy("Purpose"),
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("The question of the research, in a sentence or two."),
    )
    people = forms.CharField(
        label=gettext_lazy("People who work in it"),
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy(
            "Everybody who gets the files, with their institutions. You make the files"
            " and give them to these people alone."
        ),
    )
    approval_number = forms.CharField(
        label=gettext_lazy("Approval number"),
        max_length=100,
        required=False,
        help_text=gettext_lazy("Of the review board or of the agreement."),
    )
    ends_on = forms.DateField(
        label=gettext_lazy("Last day"),
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=gettext_lazy(
            "The day after, its key is destroyed and its files are deleted. That can"
            " come earlier, but not later."
        ),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if project_named(name, self.user):
            raise forms.ValidationError(
                _("You have a project of this title. Choose another title.")
            )
        return name

    def clean_ends_on(self) -> date:
        ends_on: date = self.cleaned_data["ends_on"]
        today = timezone.localdate()
        if ends_on < today:
            raise forms.ValidationError(_("This day is over. Choose a later one."))
        if ends_on > today + LONGEST:
            raise forms.ValidationError(
                _("Choose a day in the next ten years. A project needs an end.")
            )
        return ends_on


class KeyTableForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason for the key table"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy(
            "Your request and its reason are logged. For example: The department links"
            " the answers with attendance, and deletes the table afterwards."
        ),
    )

    def clean_reason(self) -> str:
        reason: str = self.cleaned_data["reason"]
        if len(reason.strip()) < SHORTEST_REASON:
            raise forms.ValidationError(
                _("Explain in one sentence why you need the key table.")
            )
        return reason
