"""My account: the second factor, and where one is logged in."""

from __future__ import annotations

from allauth.account.internal.flows.reauthentication import (
    raise_if_reauthentication_required,
)
from allauth.mfa.adapter import get_adapter
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts import second_factor, sessions
from accounts.access import signed_in
from accounts.console.forms import SetUpForm
from accounts.http import StaffRequest
from accounts.models import User


@signed_in
@require_safe
def my_account(request: StaffRequest) -> HttpResponse:
    user = _me(request)
    return render(
        request,
        "accounts/my_account.html",
        {
            "memberships": request.permissions.memberships,
            "has_app": second_factor.is_set_up(user),
            "codes_left": second_factor.codes_left(user),
            "seats": _seats(request),
        },
    )


# The second factor


@signed_in
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def second_factor_set_up(request: StaffRequest) -> HttpResponse:
    """For the first time, or on another device; also where a session has to
    show one that is there."""
    user = _me(request)
    replaces = second_factor.is_set_up(user)
    if replaces and not second_factor.has_second_factor(request):
        return redirect(
            f"{reverse('mfa_reauthenticate')}?{urlencode({'next': _home()})}"
        )
    raise_if_reauthentication_required(request, app="allauth.mfa")
    draft = second_factor.draft_of(user, request.POST.get("key", "")[:500])
    form = SetUpForm(
        request.POST if draft else None, draft=draft or second_factor.new_draft(user)
    )
    if form.is_bound and form.is_valid():
        codes = second_factor.set_up(
            request, secret=form.draft.secret, code=form.cleaned_data["code"]
        )
        return _recovery_codes(request, codes)
    address = get_adapter().build_totp_url(user, form.draft.secret)
    return render(
        request,
        "accounts/second_factor_set_up.html",
        {
            "form": form,
            "replaces": replaces,
            "secret": _in_fours(form.draft.secret),
            "picture": _picture(address),
            "address": address,
            "too_old": request.method == "POST" and draft is None,
        },
    )


@signed_in
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def recovery_codes_new(request: StaffRequest) -> HttpResponse:
    if not second_factor.is_set_up(_me(request)):
        raise Http404
    raise_if_reauthentication_required(request, app="allauth.mfa")
    if request.method == "POST":
        return _recovery_codes(request, second_factor.new_recovery_codes(request))
    return render(request, "accounts/recovery_codes_new.html")


def _recovery_codes(request: StaffRequest, codes: list[str]) -> HttpResponse:
    # The answer to the POST itself, not another page: the codes are shown
    # once, and lie in no session in between.
    return render(request, "accounts/recovery_codes.html", {"codes": codes})


def _in_fours(secret: str) -> str:
    return " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))


def _picture(address: str) -> SafeString:
    svg = get_adapter().build_totp_svg(address)
    # Made here, of squares; the first line is XML's, and HTML has none.
    return mark_safe(svg[svg.index("<svg") :])  # noqa: S308


# Sessions


@signed_in
@require_POST
def session_end(request: StaffRequest, pk: int) -> HttpResponse:
    user = _me(request)
    mine = [one for one in _seats(request) if one.is_current]
    if any(one.pk == pk for one in mine):
        messages.info(request, "To end the session you are in, log out.")
    elif not sessions.end_one(request, user=user, pk=pk):
        raise Http404
    else:
        messages.success(request, "That session is over.")
    return redirect("my_account")


@signed_in
@require_POST
def sessions_end(request: StaffRequest) -> HttpResponse:
    sessions.end_others(request, user=_me(request))
    messages.success(request, "You are logged out everywhere but here.")
    return redirect("my_account")


def _seats(request: StaffRequest) -> list[sessions.StaffSession]:
    return sessions.seats_of(_me(request), current=request.session.session_key)


def _me(request: StaffRequest) -> User:
    return request.user


def _home() -> str:
    return reverse("console_home")
