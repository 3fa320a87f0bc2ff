"""Where allauth asks the project: how staff log in, and with what words."""

from __future__ import annotations

import base64
import ipaddress
import time
from functools import cache
from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.authentication import get_authentication_records
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import salted_hmac

from accounts import audit, login_throttle
from accounts.models import User
from accounts.permissions import Permissions
from accounts.second_factor import is_set_up


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_ajax(self, request: HttpRequest) -> bool:
        # Answers in JSON are one more way in, which nobody needs.
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        found = audit.address_of(request)
        try:
            return str(ipaddress.ip_address(found))
        except ValueError:
            return "0.0.0.0"  # noqa: S104

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User:
        """Raises ValidationError with what to do, the same for every address.

        One password is hashed, also where there is no such user or none that
        may log in.
        """
        email = credentials["email"]
        tried = _take(email)
        user = authenticate(request, **credentials)
        # Whose password was right, but who may not log in any more.
        AuthenticationBackend.unstash_authenticated_user()
        if not isinstance(user, User):
            _record_refusal(request, email, tried)
            raise ValidationError(
                "The e-mail address or the password is not right. Wait"
                f" {login_throttle.in_words(tried.next_wait)} before you try again."
            )
        login_throttle.succeeded(login_throttle.What.PASSWORD, email)
        return user

    def reauthenticate(self, user: Any, password: str) -> bool:
        check_own_password(context.request, user, password)
        return True

    def login(self, request: HttpRequest, user: Any) -> None:
        super().login(request, user)
        audit.record(
            "log in", by=user, request=request, subject=user, **audit.place_of(user)
        )

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        user: User = request.user  # type: ignore[assignment]
        if Permissions(user).memberships:
            return reverse("console_home")
        return reverse("admin:index" if user.is_staff else "my_account")

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("my_account")

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """By code, where there is an app: a password alone must not replace it."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        by_code = [one for one in methods if one["id"] == "mfa_reauthenticate"]
        return by_code or methods

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Not within a few minutes of logging in."""
        request = context.request
        latest = time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
        needed = {"mfa"} if is_set_up(request.user) else {"mfa", "password"}
        return not any(
            one["method"] in needed and one["at"] > latest
            for one in get_authentication_records(request, request.user)
        )


def check_own_password(request: HttpRequest, user: User, password: str) -> None:
    """Of somebody who is logged in; guesses at it wait as well."""
    tried = _take(user.email)
    if not user.check_password(password):
        _record_refusal(request, user.email, tried)
        raise ValidationError(
            "This is not your password. Wait"
            f" {login_throttle.in_words(tried.next_wait)} before you try again."
        )
    login_throttle.succeeded(login_throttle.What.PASSWORD, user.email)


def _take(email: str) -> login_throttle.Try:
    tried = login_throttle.take(login_throttle.What.PASSWORD, email)
    if tried.wait:
        raise ValidationError(
            "Too soon after a wrong password, so this one was not looked at. Wait"
            f" {login_throttle.in_words(tried.wait)}, then try again. A new password,"
            " by “Forgot your password?”, lets you in at once."
        )
    return tried


def _record_refusal(
    request: HttpRequest, email: str, tried: login_throttle.Try
) -> None:
    # Of known accounts only, for an entry stays for good and anybody may type
    # addresses. It shows in no answer: a millisecond, once, before the next
    # try may be made only seconds later.
    if tried.failures < audit.FAILURES_RECORDED:
        return
    user = User.objects.filter(email=email.strip().lower()).first()
    if user is not None:
        audit.record(
            "refuse password",
            by="nobody",
            request=request,
            subject=user,
            after={"in a row": tried.failures},
            **audit.place_of(user),
        )


class SecondFactorAdapter(DefaultMFAAdapter):
    """What apps share with the server is encrypted in the database."""

    error_messages: ClassVar[dict[str, Any]] = dict(DefaultMFAAdapter.error_messages)

    def encrypt(self, text: str) -> str:
        return (
            _cipher(tuple(settings.SECOND_FACTOR_KEYS)).encrypt(text.encode()).decode()
        )

    def decrypt(self, encrypted_text: str) -> str:
        """Raises InvalidToken where the key is gone."""
        cipher = _cipher(tuple(settings.SECOND_FACTOR_KEYS))
        return cipher.decrypt(encrypted_text.encode()).decode()


@cache
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    # Whatever is given becomes a key of the right length; the secret key stands
    # in where none is.
    return MultiFernet(
        Fernet(
            base64.urlsafe_b64encode(
                salted_hmac(
                    "accounts.SecondFactor",
                    "key",
                    secret=key or None,
                    algorithm="sha256",
                ).digest()
            )
        )
        for key in keys or ("",)
    )
