"""Try the survey of an administration as its people see it, without a trace.

The pages are those of the preview, where saves are answered in the browser: no
route stores anything. A link with a signature opens them on a phone, for a short
time and without logging in. It shows questions, never answers or people.
"""

from __future__ import annotations

import zlib

import qrcode
from csp.constants import SELF
from csp.decorators import csp_update
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.access import anyone, needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.preview import (
    Preview,
    language_of,
    show_complete,
    show_content,
    show_take,
)
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import PublishedSurvey
from survey.taking.published import Published, published_survey

SALT = "survey.trial_link"
VALID_FOR_HOURS = 2


@needs(Capability.SEE_RATES)
@never_cache
@require_safe
def administration_test_link(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Show the survey in a frame, and the link that opens it on a phone."""
    administration = administration_or_404(
        request.permissions, pk, Capability.SEE_RATES
    )
    token = signing.dumps(administration.pk, salt=SALT)
    published = _published_of(administration.pk)
    language = language_of(request, published)
    take = reverse("trial_take", args=[token])
    link = request.build_absolute_uri(take)
    response = render(
        request,
        "survey/console/administration_test_link.html",
        {
            "administration": administration,
            "languages": published.definition["languages"],
            "language": language,
            "frame": f"{take}?language={language}",
            "link": link,
            "qr_path": qr_path(link),
            "hours": VALID_FOR_HOURS,
        },
    )
    return csp_update({"frame-src": [SELF]})(lambda _: response)(request)


@anyone
@require_safe
def trial_take(request: HttpRequest, token: str) -> HttpResponseBase:
    preview = _preview(request, token)
    if preview is None:
        return _expired(request)
    return show_take(request, preview, "survey/console/survey_test_take.html")


@anyone
@require_safe
def trial_content(
    request: HttpRequest, token: str, language: str, n: int
) -> HttpResponse:
    preview = _preview(request, token)
    if preview is None:
        raise Http404
    return show_content(preview.published, language, n)


@anyone
@require_safe
def trial_complete(request: HttpRequest, token: str) -> HttpResponseBase:
    preview = _preview(request, token)
    return _expired(request) if preview is None else show_complete(request, preview)


def _preview(request: HttpRequest, token: str) -> Preview | None:
    """Return None for a link that was changed or is too old."""
    try:
        pk = signing.loads(token, salt=SALT, max_age=VALID_FOR_HOURS * 60 * 60)
        published = _published_of(pk)
    except (signing.BadSignature, PublishedSurvey.DoesNotExist):
        return None
    base = reverse("trial_take", args=[token]).removesuffix("take/")
    return Preview(
        published,
        # Each link shuffles options differently, as for another person.
        seed=zlib.crc32(token.encode()),
        language=language_of(request, published),
        base=base,
        reaches=base,
        secret=f"test link {token}",
    )


def _published_of(administration: int) -> Published:
    surveys = PublishedSurvey.objects.filter(administrations=administration)
    return published_survey(surveys.values_list("digest", flat=True).get())


def _expired(request: HttpRequest) -> HttpResponse:
    page = render(request, "survey/console/survey_test_expired.html", status=404)
    page["Cache-Control"] = "private, no-store"
    return page


def qr_path(link: str) -> dict[str, object]:
    """Return the size of a QR code, and the path that draws its dark modules."""
    code = qrcode.QRCode(error_correction=qrcode.ERROR_CORRECT_M)
    code.add_data(link)
    rows = code.get_matrix()
    squares = (
        f"M{x} {y}h1v1h-1z"
        for y, row in enumerate(rows)
        for x, is_dark in enumerate(row)
        if is_dark
    )
    return {"size": len(rows), "path": "".join(squares)}
