"""Forms with which results are published and withdrawn."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from survey.console.administrations.fields import LocalDateTimeField

LONGEST_EMBARGO = timedelta(days=3650)


class PublishForm(forms.Form):
    # The figures of the preview.
    basis = forms.CharField(widget=forms.HiddenInput)
    embargo_until = LocalDateTimeField(
        label=gettext_lazy("Not before"),
        required_message="",
        help_text=gettext_lazy(
            "Leave this empty to publish at once. Until then, nobody outside can see"
            " that there are results."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["embargo_until"].required = False

    def clean_embargo_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["embargo_until"]
        now = timezone.now()
        if until is not None and until <= now:
            raise forms.ValidationError(
                _("This time is over. Choose a later one, or leave it empty.")
            )
        # The last hours of the calendar have no time in UTC, in which it is stored.
        if until is not None and until > now + LONGEST_EMBARGO:
            raise forms.ValidationError(_("That date is too far away."))
        return until


class WithdrawForm(forms.Form):
    because = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=500,
        help_text=gettext_lazy("Kept in the record. It is not shown to the public."),
        error_messages={"required": gettext_lazy("Say why these are withdrawn.")},
    )
