"""Try a survey as its people see it, without a trace.

The pages are those of the preview, where saves are answered in the browser: no
route stores anything. A link with a signature opens them on a phone, for a short
time and without logging in. It shows questions, never answers or people.
"""

from __future__ import annotations

import zlib
from urllib.parse import quote, urlencode

import qrcode
from csp.constants import SELF
from csp.decorators import csp_update
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import audit
from accounts.access import anyone, needs
from accounts.http import StaffRequest
from accounts.models import User
from accounts.permissions import Capability, Permissions
from survey.console.surveys.preview import (
    Preview,
    language_of,
    published_or_draft,
    show_complete,
    show_content,
    show_take,
)
from survey.console.surveys.views import survey_or_404
from survey.fieldwork.administrations.queries import administration_or_404
from survey.instrument.definitions.ownership import surveys_for
from survey.instrument.definitions.publishing import NotPublishable
from survey.models import PublishedSurvey, Survey
from survey.taking.published import Published, published_survey

SALT = "survey.trial_link"
VALID_FOR_HOURS = 2
# Colleagues read a draft when they have time.
DRAFT_VALID_FOR_DAYS = 7
HOUR, DAY = 60 * 60, 24 * 60 * 60


@needs(Capability.SEE_RATES)
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
            "mail": mail_of(administration.title, link),
            "qr_path": qr_path(link),
            "hours": VALID_FOR_HOURS,
        },
    )
    return csp_update({"frame-src": [SELF]})(lambda request: response)(request)


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_test_link(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the link with which colleagues try a survey, also a draft, on a phone.

    It opens the draft as it is then, as long as the user who made it may see it.
    """
    survey = survey_or_404(request, pk)
    token = signing.dumps([survey.pk, request.user.pk], salt=SALT)
    audit.record_owned("make test link", survey, request.user, request)
    link = request.build_absolute_uri(reverse("trial_take", args=[token]))
    return render(
        request,
        "survey/console/survey_test_link.html",
        {
            "survey": survey,
            "link": link,
            "mail": mail_of(survey.full_title, link),
            "qr_path": qr_path(link),
            "days": DRAFT_VALID_FOR_DAYS,
        },
    )


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
        subject = signing.loads(token, salt=SALT, max_age=DRAFT_VALID_FOR_DAYS * DAY)
        if isinstance(subject, list):
            pk, maker = subject
            permissions = Permissions(User.objects.get(pk=maker))
            published = published_or_draft(surveys_for(permissions).get(pk=pk))
        else:
            signing.loads(token, salt=SALT, max_age=VALID_FOR_HOURS * HOUR)
            published = _published_of(subject)
    except (
        signing.BadSignature,
        NotPublishable,
        PublishedSurvey.DoesNotExist,
        Survey.DoesNotExist,
        User.DoesNotExist,
    ):
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
        is_test=True,
    )


def _published_of(administration: int) -> Published:
    surveys = PublishedSurvey.objects.filter(administrations=administration)
    return published_survey(surveys.values_list("digest", flat=True).get())


def _expired(request: HttpRequest) -> HttpResponse:
    page = render(request, "survey/console/survey_test_expired.html", status=404)
    page["Cache-Control"] = "private, no-store"
    return page


def mail_of(title: str, link: str) -> str:
    """Return the address of an email that has the link in it."""
    subject = _("Please try: %(title)s") % {"title": title}
    words = {"subject": subject, "body": f"{link}\r\n"}
    # In such addresses a plus is no blank.
    return f"mailto:?{urlencode(words, quote_via=quote)}"


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
