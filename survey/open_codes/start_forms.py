"""The form with which a person begins, and the cookie that makes it valid once.

A browser's cookie names its turn: the time from one start to the next. All forms that
the browser gets in one turn begin the same respondent, however many of them are sent
at once; the reply to a start begins the next turn. Each form has a number of its own
too, so that the one that was used can be sent again while another tab's cannot.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.http import HttpResponse

from survey.open_codes.lookup import KnownCode
from survey.taking.login import LoginRefused

SALT = "survey.open_codes.form"
COOKIE = "open_start"
PATH = "/open/"
NUMBER = r"[0-9a-f]{32}"
# The turn, and the form that began the last one. It needs no signature: a respondent
# is derived from the device too, whose cookie has one.
FORMAT = re.compile(rf"({NUMBER})\.({NUMBER}|)")


@dataclass(frozen=True, slots=True)
class StartForm:
    # Equal keys begin one respondent.
    key: str
    number: str


def read_turn(cookies: Mapping[str, str]) -> str:
    """Return a browser's turn, or "" if it has none."""
    found = FORMAT.fullmatch(cookies.get(COOKIE, ""))
    return found[1] if found else ""


def new_turn() -> str:
    return secrets.token_hex(16)


def set_turn_cookie(response: HttpResponse, turn: str, *, used: str = "") -> None:
    """Begin a turn. `used` is the number of the form that ended the last one."""
    response.set_cookie(
        COOKIE,
        f"{turn}.{used}",
        path=PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def key_of(code: KnownCode, device: str, turn: str) -> str:
    return f"{code.id}.{device}.{turn}"


def new_form(code: KnownCode, device: str, turn: str) -> str:
    """Return what a form of the start page sends; valid on this device alone."""
    key = key_of(code, device, turn)
    return Signer(salt=SALT).sign(f"{key}.{secrets.token_hex(16)}")


def read_form(
    form: str, code: KnownCode, device: str, cookies: Mapping[str, str]
) -> StartForm:
    """Check a form that was sent. Raises LoginRefused."""
    try:
        code_id, of_device, turn, number = Signer(salt=SALT).unsign(form).split(".")
    except (BadSignature, ValueError):
        raise LoginRefused("start_form_used") from None
    if not device or (code_id, of_device) != (str(code.id), device):
        raise LoginRefused("start_form_used")
    found = FORMAT.fullmatch(cookies.get(COOKIE, ""))
    if found is None or (turn != found[1] and number != found[2]):
        raise LoginRefused("start_form_used")
    return StartForm(key_of(code, device, turn), number)
