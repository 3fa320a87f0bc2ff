"""Sending through a provider's API, and its webhooks for bounces and complaints."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from settings.email_providers import read_provider
from settings.tests.patience import patience
from survey.fieldwork.emails import provider_events
from survey.models import EmailDelivery, Respondent, SuppressedAddress

pytestmark = pytest.mark.django_db

EVENTS = "/email-events/"
SECRET = "postmark:a-long-secret"


INACTIVE = (
    "You tried to send to a recipient that has been marked as inactive. Found inactive"
    " addresses: maya@example.org. Inactive recipients are ones that have generated a"
    " hard bounce or a spam complaint."
)


class Api:
    """A provider's API: `reply` gets a running number and returns a status."""

    def __init__(self) -> None:
        self.reply: Callable[[int], int] = lambda n: 200
        self.requests: list[dict] = []

    def handle(self, request: dict) -> tuple[int, dict]:
        self.requests.append(request)
        n = len(self.requests)
        status = self.reply(n)
        answer = {"ErrorCode": 0, "Message": "OK", "MessageID": f"id-{n}"}
        if status == 422:
            answer = {"ErrorCode": 300, "Message": "Invalid e-mail request"}
        if status in (406, 407):
            message = INACTIVE if status == 406 else "Something new"
            status, answer = 422, {"ErrorCode": 406, "Message": message}
        return status, {"To": request["To"], **answer}


@pytest.fixture
def api(settings) -> Iterator[Api]:
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = api.handle(json.loads(body))
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    configure(
        settings,
        PROVIDER="postmark",
        KEY="token",
        API=f"http://127.0.0.1:{server.server_port}/",
        WEBHOOK_SECRETS=SECRET,
    )
    yield api
    server.shutdown()
    thread.join()
    server.server_close()


def configure(settings, **variables: str) -> None:
    """Set what the environment variables GROUNDSWELL_EMAIL_... would."""
    env = Env()
    env.ENVIRON = {f"GROUNDSWELL_EMAIL_{name}": v for name, v in variables.items()}
    for name, value in read_provider(env, patience(2)).items():
        setattr(settings, name, value)


def states() -> list[tuple[str, str]]:
    rows = EmailDelivery.objects.order_by("pk")
    return list(rows.values_list("state", "reason"))


def test_the_ledger_keeps_the_providers_ids(api, confirmed, people, send):
    send(confirmed)
    assert states() == [("sent", "")] * 3
    ids = EmailDelivery.objects.order_by("pk").values_list("provider_id", flat=True)
    assert list(ids) == ["id-1", "id-2", "id-3"]
    request = api.requests[0]
    headers = {header["Name"]: header["Value"] for header in request["Headers"]}
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    # Nobody rewrites links, which hold access codes.
    assert request["TrackLinks"] == "None" and request["TrackOpens"] is False


@pytest.mark.parametrize(
    ("status", "outcome", "is_retried"),
    [
        (406, ("bounced", "refused"), False),
        # Words that django-anymail does not know.
        (407, ("failed", "unconfirmed"), False),
        (422, ("failed", "refused"), False),
        (429, ("failed", "busy"), True),
        (401, ("failed", "busy"), True),
        # Nobody knows whether it was accepted: it is not sent again.
        (500, ("failed", "unconfirmed"), False),
        (0, ("failed", "unconfirmed"), False),
    ],
)
def test_each_reply_of_the_provider_has_its_outcome(
    api, confirmed, people, send, status, outcome, is_retried
):
    api.reply = lambda n: status if n == 1 else 200
    send(confirmed)
    assert states()[0] == outcome
    first = EmailDelivery.objects.order_by("pk").first()
    assert bool(first.retry_at) is is_retried and first.provider_id == ""


def test_without_a_connection_the_email_is_tried_again(
    api, confirmed, people, send, settings
):
    settings.ANYMAIL = {**settings.ANYMAIL, "POSTMARK_API_URL": "http://127.0.0.1:1/"}
    send(confirmed)
    assert set(states()) == {("failed", "busy")}
    assert not EmailDelivery.objects.filter(retry_at=None).exists()


def test_no_log_names_the_address(api, confirmed, people, send, caplog):
    api.reply = lambda n: (406, 422, 500)[n - 1]
    send(confirmed)
    assert "example.org" not in caplog.text


# Webhooks ---------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch) -> list[str]:
    events: list[str] = []
    monkeypatch.setattr(provider_events, "count_email_event", events.append)
    return events


@pytest.fixture
def sent(api, confirmed, people, send, counted):
    send(confirmed)
    return EmailDelivery.objects.order_by("pk")


def post(client, event: object, secret: str = SECRET, **headers: str):
    token = base64.b64encode(secret.encode()).decode()
    body = event if isinstance(event, bytes) else json.dumps(event)
    extra = {"HTTP_AUTHORIZATION": f"Basic {token}"} if secret else {}
    return client.post(EVENTS, body, "application/json", **extra, **headers)


def bounce(number: int = 1, address: str = "maya@example.org", **changes) -> dict:
    return {
        "RecordType": "Bounce",
        "Type": "HardBounce",
        "ID": 42,
        "MessageID": f"id-{number}",
        "Email": address,
        "BouncedAt": "2027-01-05T10:00:00Z",
        **changes,
    }


def suppressed() -> list[str]:
    return list(SuppressedAddress.objects.values_list("reason", flat=True))


def test_a_bounce_is_recorded_and_the_address_gets_no_more(client, sent, counted):
    assert post(client, bounce()).status_code == 200
    assert [row.state for row in sent.all()] == ["bounced", "sent", "sent"]
    assert suppressed() == ["bounced"] and counted == ["recorded"]


def test_message_platforms_are_told_of_a_bounce(client, sent, monkeypatch):
    reported: list[Respondent] = []
    monkeypatch.setattr(provider_events, "address_suppressed", reported.append)
    post(client, bounce())
    assert reported == [sent.get(state="bounced").respondent]


def test_a_complaint_stops_emails_and_stays_sent(client, sent, counted):
    event = bounce(RecordType="SpamComplaint", Type="SpamComplaint")
    assert post(client, event).status_code == 200
    assert [row.state for row in sent.all()] == ["sent"] * 3
    assert suppressed() == ["complained"] and counted == ["recorded"]


def test_a_full_mailbox_is_no_reason_to_stop(client, sent, counted):
    assert post(client, bounce(Type="SoftBounce")).status_code == 200
    assert suppressed() == [] and counted == ["ignored"]
    assert sent.first().state == "sent"


def test_an_event_that_is_posted_again_changes_nothing(client, sent, counted):
    post(client, bounce())
    before = (
        list(EmailDelivery.objects.values()),
        list(SuppressedAddress.objects.values()),
    )
    assert post(client, bounce()).status_code == 200
    after = (
        list(EmailDelivery.objects.values()),
        list(SuppressedAddress.objects.values()),
    )
    assert after == before and counted == ["recorded", "repeated"]


def test_an_unknown_email_is_counted_and_ignored(client, sent, counted):
    cases = [
        bounce(99),
        bounce(MessageID=""),
        bounce(MessageID="x" * 5000),
        # Another person's e-mail: nobody's address is suppressed by it.
        bounce(2, "maya@example.org"),
        bounce(1, "somebody@example.org"),
    ]
    for event in cases:
        assert post(client, event).status_code == 200
        assert counted.pop() == "unknown"
        assert suppressed() == [] and counted == []
        assert {row.state for row in sent.all()} == {"sent"}


def test_a_forged_post_is_refused(client, sent, counted):
    for secret, status in (("", 401), ("postmark:guess", 403), (":", 403)):
        assert post(client, bounce(), secret).status_code == status
        assert counted.pop() == "refused"
        assert suppressed() == [] and counted == []
        assert sent.first().state == "sent"


def test_a_malformed_post_is_refused(client, sent, counted):
    for body in (b"", b"{", b"[]", b"null", b"\xff", b'"x"', b"[1]"):
        assert post(client, body).status_code == 400
        assert counted.pop() == "malformed"
        assert suppressed() == [] and counted == []


def test_without_a_provider_or_secret_there_are_no_webhooks(client, settings, api):
    settings.ANYMAIL = {**settings.ANYMAIL, "WEBHOOK_SECRET": []}
    assert post(client, bounce()).status_code == 404
    settings.EMAIL_PROVIDER = "smtp"
    assert post(client, bounce()).status_code == 404
    assert client.get(EVENTS).status_code == 405


def test_mailgun_signs_its_events(client, confirmed, people, send, settings, counted):
    send(confirmed)
    EmailDelivery.objects.filter(respondent=people[0]).update(provider_id="<m1@mg>")
    variables = {"PROVIDER": "mailgun", "KEY": "k", "WEBHOOK_SECRETS": SECRET}
    configure(settings, **variables)
    # Without the key, signatures would not be checked.
    assert post(client, {}).status_code == 404
    configure(settings, **variables, WEBHOOK_KEY="signing-key")

    def event(key: bytes) -> dict:
        digest = hmac.new(key, b"1700000000token", hashlib.sha256).hexdigest()
        return {
            "signature": {
                "token": "token",
                "timestamp": "1700000000",
                "signature": digest,
            },
            "event-data": {
                "event": "failed",
                "severity": "permanent",
                "recipient": "maya@example.org",
                "timestamp": 1700000000.5,
                "message": {"headers": {"message-id": "m1@mg"}},
            },
        }

    assert post(client, event(b"another-key")).status_code == 403
    assert post(client, event(b"signing-key")).status_code == 200
    assert counted == ["refused", "recorded"] and suppressed() == ["bounced"]


def test_amazon_tells_permanent_bounces_from_passing_ones(
    client, confirmed, people, send, settings, counted
):
    send(confirmed)
    EmailDelivery.objects.filter(respondent=people[0]).update(provider_id="ses-1")
    configure(
        settings, PROVIDER="amazon_ses", REGION="us-east-1", WEBHOOK_SECRETS=SECRET
    )

    def event(kind: str) -> dict:
        message = {
            "eventType": "Bounce",
            "mail": {"messageId": "ses-1", "destination": ["maya@example.org"]},
            "bounce": {
                "bounceType": kind,
                "bounceSubType": "General",
                "timestamp": "2027-01-05T10:00:00Z",
                "bouncedRecipients": [{"emailAddress": "maya@example.org"}],
            },
        }
        return {
            "Type": "Notification",
            "MessageId": "sns-1",
            "Message": json.dumps(message),
        }

    headers = {
        "HTTP_X_AMZ_SNS_MESSAGE_TYPE": "Notification",
        "HTTP_X_AMZ_SNS_MESSAGE_ID": "sns-1",
    }
    assert post(client, event("Transient"), **headers).status_code == 200
    assert post(client, event("Permanent"), **headers).status_code == 200
    assert counted == ["ignored", "recorded"] and suppressed() == ["bounced"]


def test_the_environment_chooses_the_provider():
    def read(**variables: str) -> dict:
        env = Env()
        env.ENVIRON = {f"GROUNDSWELL_EMAIL_{k}": v for k, v in variables.items()}
        return read_provider(env, 10)

    assert read() == {"EMAIL_PROVIDER": "smtp"}
    values = read(PROVIDER="mailgun", KEY="k", DOMAIN="mg.example.org")
    assert values["EMAIL_BACKEND"] == "anymail.backends.mailgun.EmailBackend"
    assert values["ANYMAIL"]["MAILGUN_SENDER_DOMAIN"] == "mg.example.org"
    assert read(PROVIDER="sendgrid", KEY="k")["ANYMAIL"]["SENDGRID_API_KEY"] == "k"
    ses = read(PROVIDER="amazon_ses", KEY="id:secret")["ANYMAIL"]
    assert ses["AMAZON_SES_SESSION_PARAMS"]["aws_secret_access_key"] == "secret"
    # A request without an answer is never sent again.
    config = ses["AMAZON_SES_CLIENT_PARAMS"]["config"]
    assert config["retries"] == {"total_max_attempts": 1}
    with pytest.raises(ImproperlyConfigured, match="smtp, amazon_ses"):
        read(PROVIDER="pigeon")
