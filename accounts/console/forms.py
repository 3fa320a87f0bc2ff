"""Forms for logging in and for the own account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account import forms as account
from allauth.core import context
from allauth.mfa.base import forms as mfa
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts import forms, login_throttle, passwords, second_factor
from accounts.adapter import check_own_password
from accounts.models import User

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

ADVICE = _(
    "At least 8 characters, and not easy to guess. Three or four unrelated words work"
    " well."
)

APP_OR_RECOVERY_CODE = _(
    "The six digits in your authenticator app, or one of your recovery codes."
)


def password_field(
    label: StrOrPromise, autocomplete: str, help_text: StrOrPromise = ""
) -> forms.CharField:
    return forms.CharField(
        label=label,
        strip=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": autocomplete}),
        help_text=help_text,
    )


def code_field(help_text: StrOrPromise) -> forms.CharField:
    return forms.CharField(
        label=_("Code"),
        help_text=help_text,
        max_length=40,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "one-time-code",
                "inputmode": "numeric",
                "spellcheck": "false",
            }
        ),
    )


def email_field() -> forms.EmailField:
    return forms.EmailField(
        label=_("E-mail address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "username"}),
    )


class LoginForm(forms.RefusesControlCharacters, account.LoginForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"] = email_field()
        self.fields["password"] = password_field(_("Password"), "current-password")

    def clean_login(self) -> str:
        return self.cleaned_data["login"].strip().lower()


class ForgottenPasswordForm(forms.RefusesControlCharacters, account.ResetPasswordForm):
    email = email_field()

    def clean_email(self) -> str:
        return self.cleaned_data["email"].strip().lower()

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        if "email" in cleaned:
            attempt = passwords.start_reset_request(cleaned["email"])
            if attempt.wait:
                raise ValidationError(
                    _(
                        "A link was already requested for this address. Check your"
                        " e-mail, or wait %(time)s and try again."
                    ),
                    params={"time": login_throttle.in_words(attempt.wait)},
                )
        return cleaned

    def save(self, request: HttpRequest, **kwargs: object) -> str:
        email: str = self.cleaned_data["email"]
        passwords.send_reset_link(email)
        return email


class NewPasswordForm(forms.Form):
    """Ask for a new password twice. Subclasses or views save it."""

    password1 = password_field(_("New password"), "new-password", help_text=ADVICE)
    password2 = password_field(_("Repeat it"), "new-password")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        self.user = user
        super().__init__(*args, **kwargs)

    def clean_password1(self) -> str:
        validate_password(self.cleaned_data["password1"], self.user)
        return self.cleaned_data["password1"]

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        first, second = cleaned.get("password1"), cleaned.get("password2")
        if first and second and first != second:
            self.add_error("password2", _("The two passwords differ."))
        return cleaned


class SetPasswordForm(NewPasswordForm):
    def save(self) -> None:
        passwords.set_password(
            self.user,
            self.cleaned_data["password1"],
            how="set password",
            request=context.request,
        )


class ChangePasswordForm(NewPasswordForm):
    oldpassword = password_field(_("Current password"), "current-password")
    field_order = ("oldpassword", "password1", "password2")

    def clean_oldpassword(self) -> str:
        typed = self.cleaned_data["oldpassword"]
        check_own_password(context.request, self.user, typed)
        return typed

    def save(self) -> None:
        passwords.set_password(
            self.user,
            self.cleaned_data["password1"],
            how="change password",
            request=context.request,
        )


class PasswordAgainForm(forms.RefusesControlCharacters, account.ReauthenticateForm):
    password = password_field(_("Password"), "current-password")


class CodeForm(forms.RefusesControlCharacters, mfa.AuthenticateForm):
    code = code_field(APP_OR_RECOVERY_CODE)

    def clean_code(self) -> str:
        code = self.cleaned_data["code"]
        self.authenticator = second_factor.check_code(context.request, self.user, code)
        return code


class CodeAgainForm(forms.RefusesControlCharacters, mfa.ReauthenticateForm):
    code = code_field(APP_OR_RECOVERY_CODE)
    clean_code = CodeForm.clean_code


class SetUpForm(forms.Form):
    """Ask for the first code. The signed secret travels with the form."""

    key = forms.CharField(widget=forms.HiddenInput, max_length=500)
    code = code_field(_("The six digits that the app shows after you scan the code."))

    def __init__(
        self, *args: Any, draft: second_factor.SetUpDraft, **kwargs: Any
    ) -> None:
        self.draft = draft
        kwargs["initial"] = {"key": draft.key}
        super().__init__(*args, **kwargs)

    def clean_code(self) -> str:
        code = self.cleaned_data["code"]
        if second_factor.counter_of(self.draft.secret, code) is None:
            raise ValidationError(
                _(
                    "This code does not match. Enter the code that the app shows now."
                    " If it still does not match, check the clock of your phone."
                )
            )
        return code
