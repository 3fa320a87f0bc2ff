"""Pages of the own account: second factor and sessions."""

from __future__ import annotations

from allauth.account.internal.flows.reauthentication import (
    raise_if_reauthentication_required,
)
from allauth.mfa.adapter import get_adapter
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import second_factor, sessions
from accounts.access import signed_in
from accounts.console.forms import SetUpForm
from accounts.http import StaffRequest


@signed_in
@require_safe
def my_account(request: StaffRequest) -> HttpResponse:
    return render(
        request,
        "accounts/my_account.html",
        {
            "memberships": request.permissions.memberships,
            "has_app": second_factor.is_set_up(request.user),
            "codes_left": second_factor.codes_left(request.user),
            "sessions": sessions.sessions_of(
                request.user, current=request.session.session_key
            ),
        },
    )


@signed_in
@require_POST
def choose_language(request: StaffRequest) -> HttpResponse:
    """Store the user's language, and return to the page that the form names."""
    language = request.POST.get("language", "")
    if language not in dict(settings.LANGUAGES):
        return HttpResponseBadRequest(_("This language is not offered."))
    request.user.language = language
    request.user.save(update_fields=["language"])
    page = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(page, allowed_hosts=None):
        page = reverse("my_account")
    return redirect(page)


@signed_in
def second_factor_set_up(request: StaffRequest) -> HttpResponse:
    """Set up the second factor for the first time or on another device.

    Sessions that have not yet shown an existing second factor are sent to the
    page that asks for a code.
    """
    user = request.user
    replaces = second_factor.is_set_up(user)
    if replaces and not second_factor.has_second_factor(request):
        query = urlencode({"next": reverse("console_home")})
        return redirect(f"{reverse('mfa_reauthenticate')}?{query}")
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
    secret = form.draft.secret
    url = get_adapter().build_totp_url(user, secret)
    svg = get_adapter().build_totp_svg(url)
    return render(
        request,
        "accounts/second_factor_set_up.html",
        {
            "form": form,
            "replaces": replaces,
            # In groups of four, to be typed.
            "secret": " ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
            # Generated here. The first line is an XML header, unknown in HTML.
            "qr_code": mark_safe(svg[svg.index("<svg") :]),  # noqa: S308
            "url": url,
            "expired": request.method == "POST" and draft is None,
        },
    )


@signed_in
def recovery_codes_new(request: StaffRequest) -> HttpResponse:
    if not second_factor.is_set_up(request.user):
        raise Http404
    raise_if_reauthentication_required(request, app="allauth.mfa")
    if request.method == "POST":
        return _recovery_codes(request, second_factor.new_recovery_codes(request))
    return render(request, "accounts/recovery_codes_new.html")


def _recovery_codes(request: StaffRequest, codes: list[str]) -> HttpResponse:
    # Shown in the response to the POST, so that the codes are never stored in a
    # session on their way to another page.
    return render(request, "accounts/recovery_codes.html", {"codes": codes})


@signed_in
@require_POST
def session_end(request: StaffRequest, pk: int) -> HttpResponse:
    current = request.session.session_key
    known = sessions.sessions_of(request.user, current=current)
    if any(session.pk == pk and session.is_current for session in known):
        messages.info(request, _("To end your current session, log out."))
    elif not sessions.end_one(request, user=request.user, pk=pk):
        raise Http404
    else:
        messages.success(request, _("Session ended."))
    return redirect("my_account")


@signed_in
@require_POST
def sessions_end(request: StaffRequest) -> HttpResponse:
    sessions.end_others(request, user=request.user)
    messages.success(request, _("All other sessions ended."))
    return redirect("my_account")
