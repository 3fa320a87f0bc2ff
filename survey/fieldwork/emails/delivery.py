"""Hand one e-mail to the mail server, and tell what became of it."""

from __future__ import annotations

import logging
import smtplib
from contextlib import suppress
from enum import Enum
from traceback import walk_tb
from typing import NamedTuple

from anymail.exceptions import (
    AnymailAPIError,
    AnymailError,
    AnymailInvalidAddress,
    AnymailRecipientsRefused,
)
from django.core.exceptions import ValidationError
from django.core.mail import BadHeaderError, EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.core.validators import validate_email
from django.utils.translation import gettext_noop

from survey.models import EmailDelivery

log = logging.getLogger(__name__)

State = EmailDelivery.State
Reason = EmailDelivery.Reason


# As long as its column.
LONGEST_ID = 200
# Errors of urllib3 and botocore that come before the request is sent.
NOT_CONNECTED = frozenset(
    {
        "NewConnectionError",
        "ConnectTimeoutError",
        "NameResolutionError",
        "EndpointConnectionError",
    }
)


class ServerProblem(Enum):
    """What a failed e-mail says about those that would follow it."""

    NONE = ""
    # The connection is of no use any more.
    LOST = gettext_noop(
        "The mail server does not respond. It is tried again every minute."
    )
    # The same for every e-mail: sending must stop before all of them have failed.
    REFUSED = gettext_noop("The mail server refuses our sender address or login.")


class Outcome(NamedTuple):
    state: EmailDelivery.State
    reason: str = ""
    # Certainly not delivered, and worth another try.
    is_retried: bool = False
    problem: ServerProblem = ServerProblem.NONE
    # The provider's number of a sent e-mail.
    provider_id: str = ""


SENT = Outcome(State.SENT)
BUSY = Outcome(State.FAILED, Reason.BUSY, is_retried=True)
LOST = BUSY._replace(problem=ServerProblem.LOST)
SENDER_REFUSED = BUSY._replace(problem=ServerProblem.REFUSED)
REFUSED = Outcome(State.FAILED, Reason.REFUSED)
NO_ADDRESS = Outcome(State.FAILED, Reason.NO_ADDRESS)
ERROR = Outcome(State.FAILED, Reason.ERROR)
UNCONFIRMED = Outcome(State.FAILED, Reason.UNCONFIRMED, problem=ServerProblem.LOST)


class Mailer:
    """A connection to the mail server, opened when it is needed."""

    def __init__(self) -> None:
        self._connection: BaseEmailBackend | None = None

    def open(self) -> ServerProblem:
        """Connect unless connected: before an e-mail is claimed, not after."""
        if self._connection is not None:
            return ServerProblem.NONE
        connection = get_connection()
        try:
            connection.open()
        except (smtplib.SMTPAuthenticationError, smtplib.SMTPNotSupportedError):
            return ServerProblem.REFUSED
        except (OSError, smtplib.SMTPException) as error:
            log.warning("no connection to the mail server: %s", type(error).__name__)
            return ServerProblem.LOST
        self._connection = connection
        return ServerProblem.NONE

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError, smtplib.SMTPException):
                connection.close()

    def send(self, message: EmailMessage) -> Outcome:
        """Send one e-mail over the connection that `open` made; never raises."""
        outcome = self._send(message)
        if outcome.problem is not ServerProblem.NONE:
            self.close()
        return outcome

    def _send(self, message: EmailMessage) -> Outcome:
        try:
            [address] = message.to
            # A line break in it would end the header, and begin another one.
            validate_email(address)
        except (ValidationError, ValueError):
            return NO_ADDRESS
        if self._connection is None:
            return LOST
        try:
            self._connection.send_messages([message])
        except BadHeaderError:
            return ERROR
        except AnymailError as error:
            return outcome_of_provider(error)
        except (OSError, smtplib.SMTPException) as error:
            return outcome_of(error)
        except Exception:
            log.exception("an e-mail cannot be sent")
            return ERROR
        return accepted(message)


def accepted(message: EmailMessage) -> Outcome:
    """Return what an e-mail without an error became."""
    status = getattr(message, "anymail_status", None)
    if status is None:
        return SENT
    # A reply that django-anymail does not understand.
    if not status.message_id:
        return UNCONFIRMED._replace(problem=ServerProblem.NONE)
    return SENT._replace(provider_id=str(status.message_id)[:LONGEST_ID])


def outcome_of_provider(error: AnymailError) -> Outcome:
    """Tell from the reply of a provider's API whether it accepted the e-mail.

    Nothing of the error is logged: its text holds the address.
    """
    if isinstance(error, AnymailRecipientsRefused):
        return Outcome(State.BOUNCED, Reason.REFUSED)
    if isinstance(error, AnymailInvalidAddress):
        return NO_ADDRESS
    if not isinstance(error, AnymailAPIError):
        log.error("an e-mail cannot be sent: %s", type(error).__name__)
        return ERROR
    status = _status_of(error)
    if status is None:
        return LOST if _never_connected(error) else UNCONFIRMED
    if status in (401, 403):
        return SENDER_REFUSED
    if status == 429:
        return LOST
    # It may have failed after it accepted the e-mail.
    return UNCONFIRMED if status >= 500 else REFUSED


def _status_of(error: AnymailError) -> int | None:
    # The answers of Amazon's library are dictionaries.
    if isinstance(error.response, dict):
        metadata = error.response.get("ResponseMetadata", {})
        return metadata.get("HTTPStatusCode")
    return error.status_code


def _never_connected(error: BaseException) -> bool:
    reason: BaseException | None = error
    while reason is not None:
        if type(reason).__name__ in NOT_CONNECTED:
            return True
        reason = reason.__cause__ or reason.__context__
    return False


def outcome_of(error: Exception) -> Outcome:
    """Tell from an SMTP error whether the e-mail may have been delivered."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
        is_final = all(500 <= code < 600 for code in codes)
        return Outcome(State.BOUNCED, Reason.REFUSED) if is_final else BUSY
    if isinstance(error, smtplib.SMTPSenderRefused):
        return SENDER_REFUSED if error.smtp_code >= 500 else LOST
    if isinstance(error, smtplib.SMTPDataError):
        # 421 announces that the server closes the connection.
        if error.smtp_code == 421:
            return LOST
        return REFUSED if error.smtp_code >= 500 else BUSY
    # No reply. Until the text is sent, the server can't have delivered it; once it
    # is being sent, nobody knows.
    sending = smtplib.SMTP.data.__code__
    was_sending = any(
        frame.f_code is sending for frame, _ in walk_tb(error.__traceback__)
    )
    return UNCONFIRMED if was_sending else LOST
