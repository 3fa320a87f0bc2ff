"""Forms of the settings of the state, districts and schools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.accent_color import HEX, is_visible, nearest_visible
from accounts.logo_upload import LARGEST_UPLOAD, TOO_LARGE
from accounts.place_settings import DEFAULT_THRESHOLDS, LARGEST_CODING_THRESHOLD
from accounts.time_zones import zone_choices, zone_label, zone_of

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PHONE = re.compile(r"[0-9+()/. x-]{5,40}", re.ASCII)


def one_line(text: str) -> str:
    """Return a text without double spaces. Raises ValidationError."""
    text = " ".join(text.split())
    if not text.isprintable():
        raise ValidationError(_("Use letters, digits and punctuation only."))
    return text


class ContactForm(forms.Form):
    contact_name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        required=False,
        help_text=gettext_lazy("A person or an office, such as Front office."),
    )
    contact_email = forms.EmailField(
        label=gettext_lazy("E-mail address"),
        max_length=254,
        required=False,
        error_messages={
            "invalid": gettext_lazy("Enter an address like office@school.example.")
        },
    )
    contact_phone = forms.CharField(
        label=gettext_lazy("Phone number"),
        max_length=40,
        required=False,
        help_text=gettext_lazy("Such as 217 555 0134."),
    )

    def clean_contact_name(self) -> str:
        return one_line(self.cleaned_data["contact_name"])

    def clean_contact_phone(self) -> str:
        phone = " ".join(self.cleaned_data["contact_phone"].split())
        if phone and not PHONE.fullmatch(phone):
            raise ValidationError(
                _("Use digits, spaces and + ( ) - only, such as 217 555 0134.")
            )
        return phone

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or {}
        reachable = cleaned.get("contact_email") or cleaned.get("contact_phone")
        if cleaned.get("contact_name") and not reachable and not self.errors:
            self.add_error(
                "contact_email", _("Enter an e-mail address or a phone number.")
            )
        return cleaned


def _percent(label: StrOrPromise, role: str) -> forms.IntegerField:
    words = {
        "min_value": gettext_lazy("Enter a whole number from 1 to 100."),
        "max_value": gettext_lazy("Enter a whole number from 1 to 100."),
        "invalid": gettext_lazy(
            "Enter a whole number from 1 to 100, without a percent sign."
        ),
    }
    return forms.IntegerField(
        label=label,
        min_value=1,
        max_value=100,
        required=False,
        error_messages=words,
        help_text=(
            gettext_lazy("In percent of the number of students.")
            if role == "parent"
            else gettext_lazy("In percent of the invited people.")
        ),
    )


class ThresholdsForm(forms.Form):
    student_percent = _percent(gettext_lazy("Students"), "student")
    teacher_percent = _percent(gettext_lazy("Teachers"), "teacher")
    parent_percent = _percent(gettext_lazy("Parents"), "parent")


class MinimumGroupForm(forms.Form):
    minimum_group = forms.IntegerField(
        label=gettext_lazy("Minimum group"),
        min_value=1,
        max_value=100,
        required=False,
        help_text=gettext_lazy(
            "Results are shown where at least this many people answered. In a file"
            " without names, at least this many share each combination of facts, such"
            " as a school, a grade and a gender."
        ),
        error_messages=dict.fromkeys(
            ("min_value", "max_value", "invalid"),
            gettext_lazy("Enter a whole number from 1 to 100."),
        ),
    )

    def __init__(self, *args: Any, least: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.least = least

    def clean_minimum_group(self) -> int | None:
        number: int | None = self.cleaned_data["minimum_group"]
        if number is not None and number < self.least:
            words = _("The state requires at least %(least)s.")
            raise ValidationError(words % {"least": self.least})
        return number


class CodingThresholdForm(forms.Form):
    coding_threshold = forms.IntegerField(
        label=gettext_lazy("Smallest percentage"),
        min_value=1,
        max_value=LARGEST_CODING_THRESHOLD,
        required=False,
        help_text=gettext_lazy(
            "In percent. In groups of more than 300 people it is 1 %."
        ),
        error_messages=dict.fromkeys(
            ("min_value", "max_value", "invalid"),
            gettext_lazy("Enter a whole number from 1 to 20."),
        ),
    )


class HelpForm(forms.Form):
    public_help = forms.BooleanField(
        label=gettext_lazy("Everyone may read the help without logging in"),
        required=False,
    )


class PublicQuestionsForm(forms.Form):
    public_questions = forms.BooleanField(
        label=gettext_lazy("Families can read the questions of surveys"),
        required=False,
        help_text=gettext_lazy(
            "Districts can leave their own survey rounds out, and owners single rounds."
        ),
    )


class HiddenQuestionsForm(forms.Form):
    hides_questions = forms.BooleanField(
        label=gettext_lazy("Show no questions of the district’s survey rounds"),
        required=False,
        help_text=gettext_lazy(
            "For rounds that the district opens, also those that are open now. The"
            " state decides about its own."
        ),
    )


class NameForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=60,
        required=False,
        help_text=gettext_lazy("Such as Riverside Public Schools."),
    )
    logo = forms.FileField(
        label=gettext_lazy("Logo"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("PNG or JPEG, at most 2 MB. Shown 32 pixels high."),
        widget=forms.FileInput(attrs={"accept": ".png,.jpg,.jpeg"}),
        error_messages={
            "empty": gettext_lazy("This file is empty. Choose another one.")
        },
    )
    remove_logo = forms.BooleanField(
        label=gettext_lazy("Remove the current logo"), required=False
    )

    accent = forms.CharField(
        label=gettext_lazy("Accent color"),
        max_length=7,
        required=False,
        help_text=gettext_lazy(
            "A color code such as #0a6375, for buttons, links and chosen answers. On"
            " dark screens a lighter shade is used."
        ),
        error_messages={
            "max_length": gettext_lazy(
                "Enter a color code: # and six digits or letters A to F, such as"
                " #0a6375."
            )
        },
    )

    def __init__(self, *args: Any, has_logo: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not has_logo:
            del self.fields["remove_logo"]

    def clean_name(self) -> str:
        return one_line(self.cleaned_data["name"])

    def clean_accent(self) -> str:
        """Refuse a color that is too light, and name the nearest one that is not."""
        text = self.cleaned_data["accent"].strip().lower()
        if not text:
            return ""
        color = f"#{text.removeprefix('#')}"
        if not HEX.fullmatch(color):
            raise ValidationError(self.fields["accent"].error_messages["max_length"])
        if not is_visible(color):
            words = _(
                "This color is too light: buttons would hardly stand out from the page."
                " The nearest color that does is %(color)s."
            )
            raise ValidationError(words % {"color": nearest_visible(color)})
        return color

    def clean_logo(self) -> UploadedFile | None:
        file: UploadedFile | None = self.cleaned_data["logo"]
        if file is not None and (file.size or 0) > LARGEST_UPLOAD:
            raise ValidationError(TOO_LARGE)
        return file


class TimeZoneForm(forms.Form):
    time_zone = forms.ChoiceField(label=gettext_lazy("Time zone"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        state = _("Of the state: %(zone)s") % {"zone": zone_label(zone_of(None))}
        field = cast(forms.ChoiceField, self.fields["time_zone"])
        field.choices = [("", state), *zone_choices()]


PERCENTS = tuple(f"{role}_percent" for role in DEFAULT_THRESHOLDS)
