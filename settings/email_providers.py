"""Read from the environment through which service e-mails are sent.

`smtp` is Django's own; the others are sent by django-anymail over HTTPS. No link
is rewritten to count clicks: the links hold access codes, which would then be the
service's to keep.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from environ import Env

SMTP = "smtp"
# With django-anymail's names of their settings.
PREFIXES = {
    "amazon_ses": "AMAZON_SES",
    "postmark": "POSTMARK",
    "mailgun": "MAILGUN",
    "sendgrid": "SENDGRID",
}


def read_provider(env: Env, timeout: int) -> dict[str, Any]:
    """Return the settings of the chosen service; none for SMTP."""
    provider = env.str("GROUNDSWELL_EMAIL_PROVIDER", default=SMTP) or SMTP
    if provider == SMTP:
        return {"EMAIL_PROVIDER": SMTP}
    if provider not in PREFIXES:
        known = ", ".join([SMTP, *PREFIXES])
        raise ImproperlyConfigured(f"GROUNDSWELL_EMAIL_PROVIDER is one of {known}.")
    key = env.str("GROUNDSWELL_EMAIL_KEY", default="")
    webhook_key = env.str("GROUNDSWELL_EMAIL_WEBHOOK_KEY", default="")
    anymail = {
        "REQUESTS_TIMEOUT": timeout,
        "WEBHOOK_SECRET": env.list("GROUNDSWELL_EMAIL_WEBHOOK_SECRETS", default=[]),
    }
    if provider == "amazon_ses":
        anymail |= _amazon_ses(key, env.str("GROUNDSWELL_EMAIL_REGION", ""), timeout)
    else:
        prefix = PREFIXES[provider]
        anymail[f"{prefix}_SEND_DEFAULTS"] = {
            "track_clicks": False,
            "track_opens": False,
        }
        name = "SERVER_TOKEN" if provider == "postmark" else "API_KEY"
        anymail[f"{prefix}_{name}"] = key
        if address := env.str("GROUNDSWELL_EMAIL_API", default=""):
            anymail[f"{prefix}_API_URL"] = address
    if provider == "mailgun":
        anymail["MAILGUN_SENDER_DOMAIN"] = env.str("GROUNDSWELL_EMAIL_DOMAIN", "")
        anymail["MAILGUN_WEBHOOK_SIGNING_KEY"] = webhook_key
    if provider == "sendgrid":
        anymail["SENDGRID_TRACKING_WEBHOOK_VERIFICATION_KEY"] = webhook_key
    return {
        "EMAIL_PROVIDER": provider,
        "EMAIL_BACKEND": f"anymail.backends.{provider}.EmailBackend",
        "ANYMAIL": anymail,
    }


def _amazon_ses(key: str, region: str, timeout: int) -> dict[str, Any]:
    # Without a key, boto3 takes that of the machine's role.
    session = {}
    if key:
        key_id, _, secret = key.partition(":")
        session = {"aws_access_key_id": key_id, "aws_secret_access_key": secret}
    # boto3 repeats requests that got no answer: people would get two e-mails.
    config = {
        "retries": {"total_max_attempts": 1},
        "connect_timeout": timeout,
        "read_timeout": timeout,
    }
    client = {"config": config, **({"region_name": region} if region else {})}
    return {
        "AMAZON_SES_SESSION_PARAMS": session,
        "AMAZON_SES_CLIENT_PARAMS": client,
        # It would be done by the web servers, which have no key.
        "AMAZON_SES_AUTO_CONFIRM_SNS_SUBSCRIPTIONS": False,
    }
