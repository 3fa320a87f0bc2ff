"""Receive bounces and complaints from the e-mail provider (webhooks).

A post needs the shared secret (HTTP basic authentication) and, from Mailgun and
SendGrid, a valid signature; django-anymail checks both and reads the events. An
event only counts for the e-mail with its id and recipient in the ledger. Posting
it again changes nothing.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from anymail.exceptions import AnymailError, AnymailWebhookValidationFailure
from anymail.signals import AnymailTrackingEvent, EventType
from anymail.webhooks.base import AnymailBaseWebhookView
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts.access import anyone
from settings.monitoring.metrics import count_email_event  # noqa: TID251
from survey.fieldwork.emails.delivery import LONGEST_ID
from survey.fieldwork.emails.suppression import digest_of, suppress
from survey.fieldwork.message_platforms.hooks import address_suppressed
from survey.models import EmailDelivery, SuppressedAddress

log = logging.getLogger(__name__)

State, Reason = EmailDelivery.State, EmailDelivery.Reason
VIEWS = {
    "amazon_ses": "AmazonSESTrackingWebhookView",
    "postmark": "PostmarkTrackingWebhookView",
    "mailgun": "MailgunTrackingWebhookView",
    "sendgrid": "SendGridTrackingWebhookView",
}
# Settings without which a provider's signature would not be checked.
SIGNED = {
    "mailgun": "MAILGUN_WEBHOOK_SIGNING_KEY",
    "sendgrid": "SENDGRID_TRACKING_WEBHOOK_VERIFICATION_KEY",
}
# Amazon's kinds of bounces after which the address may still exist.
PASSING = ("Transient", "Undetermined")
SUPPRESSING = {
    EventType.BOUNCED: SuppressedAddress.Reason.BOUNCED,
    EventType.COMPLAINED: SuppressedAddress.Reason.COMPLAINED,
    EventType.UNSUBSCRIBED: SuppressedAddress.Reason.OPTED_OUT,
}


@anyone
@csrf_exempt
@never_cache
@require_http_methods(["HEAD", "POST"])
def email_events(request: HttpRequest) -> HttpResponse:
    """Record the events of one post. 404 where no provider is set up."""
    view = webhook_view()
    if request.method == "HEAD":
        return HttpResponse()
    if "Authorization" not in request.headers:
        # Amazon sends the secret only after this.
        count_email_event("refused")
        return HttpResponse(
            status=401, headers={"WWW-Authenticate": 'Basic realm="e-mail events"'}
        )
    try:
        view.run_validators(request)
        events = view.parse_events(request)
    except AnymailWebhookValidationFailure:
        count_email_event("refused")
        return HttpResponse("Refused", status=403)
    except (AnymailError, ValueError, LookupError, TypeError, AttributeError) as error:
        log.warning("an e-mail event cannot be read: %s", type(error).__name__)
        count_email_event("malformed")
        return HttpResponse("Not understood", status=400)
    for event in events:
        count_email_event(record_event(event))
    return HttpResponse()


def webhook_view() -> AnymailBaseWebhookView:
    """Return the provider's verifying view; Http404 if it could not verify."""
    provider = settings.EMAIL_PROVIDER
    anymail = getattr(settings, "ANYMAIL", {})
    is_signed = provider not in SIGNED or anymail.get(SIGNED[provider])
    if provider not in VIEWS or not anymail.get("WEBHOOK_SECRET") or not is_signed:
        raise Http404
    module = import_module(f"anymail.webhooks.{provider}")
    view: AnymailBaseWebhookView = getattr(module, VIEWS[provider])()
    return view


@transaction.atomic
def record_event(event: AnymailTrackingEvent) -> str:
    """Write a bounce or complaint to the ledger; return what it was counted as."""
    if event.event_type not in SUPPRESSING or _is_passing(event):
        return "ignored"
    message_id = str(event.message_id or "")[:LONGEST_ID]
    deliveries = EmailDelivery.objects.using(DEFAULT_DB_ALIAS).filter(
        provider_id=message_id, address_digest=digest_of(str(event.recipient or ""))
    )
    delivery = deliveries.first() if message_id else None
    if delivery is None:
        return "unknown"
    is_new = suppress(delivery.address_digest, SUPPRESSING[event.event_type])
    address_suppressed(delivery.respondent)
    if event.event_type == EventType.BOUNCED:
        changed = deliveries.exclude(state=State.BOUNCED).update(
            state=State.BOUNCED, reason=Reason.REFUSED, retry_at=None
        )
        is_new = is_new or bool(changed)
    return "recorded" if is_new else "repeated"


def _is_passing(event: AnymailTrackingEvent) -> bool:
    """Tell a full mailbox from an address that does not exist."""
    if event.event_type != EventType.BOUNCED:
        return False
    raw: Any = event.esp_event
    bounce = raw.get("bounce")
    amazon = bounce.get("bounceType") if isinstance(bounce, dict) else ""
    return raw.get("Type") == "SoftBounce" or amazon in PASSING
