"""One-click opting out of e-mails (RFC 8058): links, headers and the page."""

from __future__ import annotations

from django.conf import settings
from django.core import signing
from django.db import DEFAULT_DB_ALIAS
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts.access import anyone
from survey.fieldwork.emails.default_texts import EMAIL_WORDS
from survey.fieldwork.emails.suppression import suppress
from survey.fieldwork.emails.templates import words_for
from survey.fieldwork.message_platforms.hooks import address_suppressed
from survey.models import EmailDelivery, SuppressedAddress
from survey.taking.messages import direction, messages_in

SALT = "survey.reminders.unsubscribe"
# The body that RFC 8058 prescribes. Mail programs send it without a cookie, so
# there is no CSRF token; the link itself is what nobody else can know.
ONE_CLICK = ("List-Unsubscribe", "One-Click")


def unsubscribe_link(delivery_id: int) -> str:
    """Return the link of one e-mail. It holds the number of a row, and no address."""
    token = signing.Signer(salt=SALT).sign(str(delivery_id))
    return f"{settings.PUBLIC_ADDRESS}{reverse('unsubscribe', args=[token])}"


def unsubscribe_headers(link: str) -> dict[str, str]:
    return {
        "List-Unsubscribe": f"<{link}>",
        "List-Unsubscribe-Post": "=".join(ONE_CLICK),
    }


@anyone
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Show a button; on POST, suppress the address that the e-mail went to.

    A GET changes nothing, because mail scanners open every link. The page is the
    same whether or not the address was suppressed before.
    """
    delivery = _delivery_of(token)
    is_done = request.method == "POST"
    if is_done:
        name, value = ONE_CLICK
        if request.POST.get(name) != value:
            return HttpResponse("Unknown request", status=400)
        suppress(delivery.address_digest, SuppressedAddress.Reason.OPTED_OUT)
        address_suppressed(delivery.respondent)
    language = words_for(delivery.respondent.language)
    response = render(
        request,
        "survey/unsubscribe.html",
        {
            "texts": EMAIL_WORDS[language],
            "words": messages_in(language),
            "language": language,
            "direction": direction(language),
            "is_done": is_done,
        },
    )
    # The path is as good as a password for this one thing.
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex"
    return response


def _delivery_of(token: str) -> EmailDelivery:
    try:
        pk = int(signing.Signer(salt=SALT).unsign(token))
    except (signing.BadSignature, ValueError):
        raise Http404 from None
    # The replica may not have the row of an e-mail that has just arrived.
    primary = EmailDelivery.objects.using(DEFAULT_DB_ALIAS)
    deliveries = primary.select_related("respondent")
    delivery = deliveries.filter(pk=pk).first()
    if delivery is None:
        raise Http404
    return delivery
