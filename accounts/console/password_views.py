"""Pages behind e-mailed links: reset a password, accept an invitation."""

from __future__ import annotations

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.internal.flows.logout import logout
from allauth.account.models import Login
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
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
    """Set a new password by a reset link.

    The key is in the query string, which access logs leave out.
    """
    key = _key(request)
    user = passwords.user_of_reset_key(key)
    if user is None:
        return render(request, "account/password_link_over.html", status=410)
    form = NewPasswordForm(request.POST or None, user=user)
    if request.method == "POST" and form.is_valid():
        passwords.set_password(
            user, form.cleaned_data["password1"], how="reset password", request=request
        )
        messages.success(request, _("Your new password is set."))
        return _log_in(request, user)
    return render(request, "account/password_choose.html", {"form": form, "key": key})


@anyone
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest) -> HttpResponse:
    """Set the first password by an invitation link."""
    key = _key(request)
    invited = invitations.invited_by_key(key)
    if invited is None:
        return render(request, "accounts/invitation_over.html", status=410)
    form = NewPasswordForm(request.POST or None, user=invited.user)
    if request.method == "POST" and form.is_valid():
        password = form.cleaned_data["password1"]
        if not invitations.accept(invited, password, request=request):
            return render(request, "accounts/invitation_over.html", status=410)
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
    # No key is longer. PostgreSQL refuses a text that contains a zero byte.
    parameters = request.POST if request.method == "POST" else request.GET
    return parameters.get("key", "")[:500].replace("\x00", "")


def _log_in(request: HttpRequest, user: User) -> HttpResponse:
    """Log in with the new password. allauth then asks for the second factor."""
    # Another user may be logged in in this browser.
    logout(request, show_message=False)
    record_authentication(request, user, method="password", email=user.email)
    response: HttpResponse = perform_login(request, Login(user=user, email=user.email))
    request.session.set_expiry(0)
    return response
