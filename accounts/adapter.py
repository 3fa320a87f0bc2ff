"""Adapt allauth: log staff in by password and second factor, with throttling."""

from __future__ import annotations

import base64
import ipaddress
import time
from functools import cache
from typing import ClassVar, cast

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.authentication import get_authentication_records
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from accounts import audit, known_device, login_throttle
from accounts.models import User
from accounts.permissions import Permissions
from accounts.second_factor import is_set_up


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_ajax(self, request: HttpRequest) -> bool:
        # JSON replies would be a second interface to secure, and nothing uses them.
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        address = audit.address_of(request)
        try:
            return str(ipaddress.ip_address(address))
        except ValueError:
            return "0.0.0.0"  # noqa: S104

    def authenticate(self, request: HttpRequest, **credentials: str) -> User:
        """Return the user, or raise ValidationError with what to do next.

        The message and the work are the same for every address: one password
        is hashed even where no such user exists.
        """
        email = credentials["email"]
        device = known_device.device_of(request, email)
        attempt = _start_attempt(email, device)
        user = authenticate(request, **credentials)
        # allauth remembers deactivated users whose password was right.
        AuthenticationBackend.unstash_authenticated_user()
        if not isinstance(user, User):
            _record_failure(request, email, device, attempt)
            raise ValidationError(
                _(
                    "The e-mail address or password is wrong. Wait %(time)s, then try"
                    " again."
                )
                % {"time": login_throttle.in_words(attempt.next_wait)}
            )
        login_throttle.succeeded(login_throttle.Purpose.PASSWORD, email, device)
        return user

    def reauthenticate(self, user: User, password: str) -> bool:
        check_own_password(context.request, user, password)
        return True

    def login(self, request: HttpRequest, user: User) -> None:
        super().login(request, user)
        audit.record(
            "log in", by=user, request=request, subject=user, **audit.place_of(user)
        )

    def post_login(
        self, request: HttpRequest, user: User, **options: object
    ) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **options)
        known_device.remember(request, response, user)
        return response

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        user = cast(User, request.user)
        if Permissions(user).memberships:
            return reverse("console_home")
        return reverse("admin:index" if user.is_staff else "my_account")

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("my_account")

    def get_reauthentication_methods(self, user: User) -> list[dict[str, str]]:
        """Ask for a code where an app is set up: a password must not replace it."""
        methods: list[dict[str, str]] = super().get_reauthentication_methods(user)
        code_methods = [
            method for method in methods if method["id"] == "mfa_reauthenticate"
        ]
        return code_methods or methods

    def is_reauthentication_required(self, *, app: str, **kwargs: object) -> bool:
        """Ask again unless the last login was a few minutes ago."""
        request = context.request
        latest = time.time() - settings.ACCOUNT_REAUTHENTICATION_TIMEOUT
        methods = {"mfa"} if is_set_up(request.user) else {"mfa", "password"}
        return not any(
            record["method"] in methods and record["at"] > latest
            for record in get_authentication_records(request, request.user)
        )


def check_own_password(request: HttpRequest, user: User, password: str) -> None:
    """Check the password of a user who is logged in, with the same throttling."""
    device = known_device.device_of(request, user.email)
    attempt = _start_attempt(user.email, device)
    if not user.check_password(password):
        _record_failure(request, user.email, device, attempt)
        raise ValidationError(
            _("This is not your current password. Wait %(time)s, then try again.")
            % {"time": login_throttle.in_words(attempt.next_wait)}
        )
    login_throttle.succeeded(login_throttle.Purpose.PASSWORD, user.email, device)


def _start_attempt(email: str, device: str) -> login_throttle.Attempt:
    attempt = login_throttle.start_attempt(
        login_throttle.Purpose.PASSWORD, email, device
    )
    if attempt.wait:
        raise ValidationError(
            _(
                "Too many wrong passwords, so this one was not checked. Wait %(time)s,"
                " then try again. To log in at once, set a new password with “Forgot"
                " your password?”."
            )
            % {"time": login_throttle.in_words(attempt.wait)}
        )
    return attempt


def _record_failure(
    request: HttpRequest, email: str, device: str, attempt: login_throttle.Attempt
) -> None:
    login_throttle.failed(login_throttle.Purpose.PASSWORD, email, device)
    # Only for accounts that exist: audit entries are permanent, and attackers
    # can type any address. The extra millisecond reveals nothing, because the
    # next attempt is allowed only seconds later.
    if attempt.failures < audit.FAILURES_RECORDED:
        return
    user = User.objects.filter(email=email.strip().lower()).first()
    if user is not None:
        audit.record(
            "refuse password",
            by="nobody",
            request=request,
            subject=user,
            after={"in a row": attempt.failures},
            **audit.place_of(user),
        )


class SecondFactorAdapter(DefaultMFAAdapter):
    """Encrypt the secrets of authenticator apps in the database."""

    error_messages: ClassVar[dict[str, object]] = dict(DefaultMFAAdapter.error_messages)

    def encrypt(self, text: str) -> str:
        return (
            _cipher(tuple(settings.SECOND_FACTOR_KEYS)).encrypt(text.encode()).decode()
        )

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a secret. Raises InvalidToken if its key is no longer configured."""
        cipher = _cipher(tuple(settings.SECOND_FACTOR_KEYS))
        return cipher.decrypt(encrypted_text.encode()).decode()


@cache
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    # Any text becomes a key of the right length. Without configured keys, one
    # is derived from SECRET_KEY.
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
