"""Forms of the settings of the state, districts and schools."""

from __future__ import annotations

import re

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile

from accounts.logo_upload import LARGEST_UPLOAD, TOO_LARGE
from accounts.place_settings import DEFAULT_THRESHOLDS

PHONE = re.compile(r"[0-9+()/. x-]{5,40}", re.ASCII)


def one_line(text: str) -> str:
    """Return a text without double spaces. Raises ValidationError."""
    text = " ".join(text.split())
    if not text.isprintable():
        raise ValidationError("Use letters, digits and punctuation only.")
    return text


class ContactForm(forms.Form):
    contact_name = forms.CharField(
        label="Name",
        max_length=100,
        required=False,
        help_text="A person or an office, such as Front office.",
    )
    contact_email = forms.EmailField(
        label="E-mail address",
        max_length=254,
        required=False,
        error_messages={"invalid": "Enter an address like office@school.example."},
    )
    contact_phone = forms.CharField(
        label="Phone number",
        max_length=40,
        required=False,
        help_text="Such as 217 555 0134.",
    )

    def clean_contact_name(self) -> str:
        return one_line(self.cleaned_data["contact_name"])

    def clean_contact_phone(self) -> str:
        phone = " ".join(self.cleaned_data["contact_phone"].split())
        if phone and not PHONE.fullmatch(phone):
            raise ValidationError(
                "Use digits, spaces and + ( ) - only, such as 217 555 0134."
            )
        return phone

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or {}
        reachable = cleaned.get("contact_email") or cleaned.get("contact_phone")
        if cleaned.get("contact_name") and not reachable and not self.errors:
            self.add_error(
                "contact_email", "Enter an e-mail address or a phone number."
            )
        return cleaned


def _percent(label: str, role: str) -> forms.IntegerField:
    words = {
        "min_value": "Enter a whole number from 1 to 100.",
        "max_value": "Enter a whole number from 1 to 100.",
        "invalid": "Enter a whole number from 1 to 100, without a percent sign.",
    }
    return forms.IntegerField(
        label=label,
        min_value=1,
        max_value=100,
        required=False,
        error_messages=words,
        help_text=(
            "In percent of the number of students."
            if role == "parent"
            else "In percent of the invited people."
        ),
    )


class ThresholdsForm(forms.Form):
    student_percent = _percent("Students", "student")
    teacher_percent = _percent("Teachers", "teacher")
    parent_percent = _percent("Parents", "parent")


class NameForm(forms.Form):
    name = forms.CharField(
        label="Name",
        max_length=60,
        required=False,
        help_text="Such as Riverside Public Schools.",
    )
    logo = forms.FileField(
        label="Logo",
        required=False,
        max_length=200,
        help_text="PNG or JPEG, at most 2 MB. Shown 32 pixels high.",
        widget=forms.FileInput(attrs={"accept": ".png,.jpg,.jpeg"}),
        error_messages={"empty": "This file is empty. Choose another one."},
    )
    remove_logo = forms.BooleanField(label="Remove the current logo", required=False)

    def __init__(self, *args: object, has_logo: bool, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if not has_logo:
            del self.fields["remove_logo"]

    def clean_name(self) -> str:
        return one_line(self.cleaned_data["name"])

    def clean_logo(self) -> UploadedFile | None:
        file: UploadedFile | None = self.cleaned_data["logo"]
        if file is not None and (file.size or 0) > LARGEST_UPLOAD:
            raise ValidationError(TOO_LARGE)
        return file


PERCENTS = tuple(f"{role}_percent" for role in DEFAULT_THRESHOLDS)
