"""Forms to plan, write and confirm e-mails."""

from __future__ import annotations

import re

from django.http import QueryDict
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from survey.fieldwork.emails.schedules import MAX_DAYS, MAX_REMINDERS
from survey.fieldwork.emails.templates import LONGEST_BODY, LONGEST_SUBJECT
from survey.models.email_schedule import MAX_RATE
from survey.taking.messages import languages

LANGUAGES = {entry["code"]: entry["name"] for entry in languages()}
DAYS_HELP = gettext_lazy(
    "The days after a person's invitation, separated by commas."
    " Reminders stop for people who have finished. Leave it empty"
    " to send no reminders."
)


class PlanForm(forms.Form):
    reminder_days = forms.CharField(
        required=False,
        label=gettext_lazy("Reminders after days"),
        max_length=100,
        help_text=DAYS_HELP,
        widget=forms.TextInput(attrs={"placeholder": "3, 7", "autocomplete": "off"}),
    )
    thanks = forms.BooleanField(
        required=False,
        label=gettext_lazy("Send thanks after the closing"),
        help_text=gettext_lazy(
            "To everyone who was invited, whether they finished or not."
        ),
    )
    rate_per_minute = forms.IntegerField(
        label=gettext_lazy("E-mails a minute"),
        min_value=1,
        max_value=MAX_RATE,
        help_text=gettext_lazy(
            "At most. Your engineers know what your mail server accepts."
        ),
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            format_lazy(
                gettext_lazy("Write a whole number from 1 to {most}."),
                most=f"{MAX_RATE:,}",
            ),
        ),
    )

    def clean_reminder_days(self) -> list[int]:
        words = re.split(r"[\s,;]+", self.cleaned_data["reminder_days"].strip())
        words = [word for word in words if word]
        if not all(word.isascii() and word.isdecimal() for word in words):
            raise forms.ValidationError(_("Write whole numbers, such as 3, 7."))
        # Longer numbers are refused by `plan_emails`; these would take time to read.
        if any(len(word) > len(str(MAX_DAYS)) for word in words):
            raise forms.ValidationError(
                _("Write numbers of days from 1 to %(max_days)s.")
                % {"max_days": MAX_DAYS}
            )
        days = sorted({int(word) for word in words})
        if len(days) > MAX_REMINDERS:
            raise forms.ValidationError(
                _("Plan at most %(max_reminders)s reminders.")
                % {"max_reminders": MAX_REMINDERS}
            )
        return days


class TextForm(forms.Form):
    """The subject and text of one e-mail in one language.

    `survey.fieldwork.emails.templates` checks them.
    """

    subject = forms.CharField(
        label=gettext_lazy("Subject"),
        max_length=LONGEST_SUBJECT,
        error_messages={"required": gettext_lazy("Write a subject.")},
    )
    body = forms.CharField(
        label=gettext_lazy("Text"),
        max_length=LONGEST_BODY,
        error_messages={"required": gettext_lazy("Write a text.")},
        strip=False,
        widget=forms.Textarea(attrs={"rows": 16}),
    )

    def __init__(
        self, data: QueryDict | None, *, language: str, initial: dict[str, str]
    ) -> None:
        super().__init__(data, initial=initial)
        for field in self.fields.values():
            direction = "rtl" if language == "ar" else "ltr"
            field.widget.attrs |= {"lang": language, "dir": direction}

    def clean_body(self) -> str:
        # Browsers send line breaks of two characters.
        body: str = self.cleaned_data["body"]
        return body.replace("\r\n", "\n")


class ConfirmForm(forms.Form):
    typed = forms.CharField(
        required=False,
        label=gettext_lazy("How many people will get e-mails?"),
        max_length=20,
        widget=forms.TextInput(
            attrs={"inputmode": "numeric", "autocomplete": "off"},
        ),
    )
