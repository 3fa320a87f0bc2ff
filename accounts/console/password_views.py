"""Coming in: by a link from a mail, to choose a password."""

from __future__ import annotations

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.internal.flows.logout import logout
from allauth.account.models import Login
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts import invitations, passwords
from accounts.access import anyone
from accounts.console.forms import NewPasswordForm
from accounts.models import User


@anyone
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def password_choose(request: HttpRequest) -> HttpResponse:
    """The link for whoever has forgotten their password. The key is a query,
    which no log of requests holds."""
    key = _key(request)
    user = passwords.user_of_reset_key(key)
    if user is None:
        return _over(request, "account/password_link_over.html")
    form = NewPasswordForm(request.POST or None, user=user)
    if request.method == "POST" and form.is_valid():
        passwords.set_password(
            user, form.cleaned_data["password1"], how="reset password", request=request
        )
        messages.success(request, "Your new password is set.")
        return _log_in(request, user)
    return render(request, "account/password_choose.html", {"form": form, "key": key})


@anyone
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest) -> HttpResponse:
    """The link of an invitation; after it comes the second factor."""
    key = _key(request)
    invited = invitations.invited_by_key(key)
    if invited is None:
        return _over(request, "accounts/invitation_over.html")
    form = NewPasswordForm(request.POST or None, user=invited.user)
    if request.method == "POST" and form.is_valid():
        password = form.cleaned_data["password1"]
        if not invitations.accept(invited, password, request=request):
            return _over(request, "accounts/invitation_over.html")
        return _log_in(request, invited.user)
    return render(
        request,
        "accounts/invitation.html",
        {
            "form": form,
            "key": key,
            "invited": invited.user,
            "memberships": invited.user.memberships.current(),
        },
    )


def _key(request: HttpRequest) -> str:
    asked = request.POST if request.method == "POST" else request.GET
    return asked.get("key", "")[:500].replace("\x00", "")


def _over(request: HttpRequest, template: str) -> HttpResponse:
    return render(request, template, status=410)


def _log_in(request: HttpRequest, user: User) -> HttpResponse:
    """By the password just set; who has a second factor is asked for it."""
    # Somebody else may be logged in in this browser.
    logout(request, show_message=False)
    record_authentication(request, user, method="password", email=user.email)
    response: HttpResponse = perform_login(request, Login(user=user, email=user.email))
    request.session.set_expiry(0)
    return response
