"""The form with which a person begins.

A browser's CSRF secret names its turn: each start replaces it, as every login does.
All forms that a browser gets in one turn begin the same respondent, however many of
them are sent at once.
"""

from __future__ import annotations

import secrets
from hashlib import sha256

from django.core.signing import BadSignature, Signer
from django.http import HttpRequest

from survey.fieldwork.open_codes.lookup import KnownCode
from survey.taking.csrf_tokens import get_token
from survey.taking.login import LoginRefused

SALT = "survey.open_codes.form"


def turn_of(request: HttpRequest) -> str:
    # Makes the secret, where the browser has none.
    get_token(request)
    return sha256(request.META["CSRF_COOKIE"].encode()).hexdigest()[:32]


def new_form(code: KnownCode, device: str, turn: str) -> str:
    """Return what a form of the start page sends, with a number of its own."""
    number = secrets.token_hex(16)
    return Signer(salt=SALT).sign(f"{code.id}.{device}.{turn}.{number}")


def number_of(form: str) -> str:
    return form.partition(":")[0].rpartition(".")[2]


def key_of(code: KnownCode, device: str, turn: str) -> str:
    """Return from what a respondent is derived: equal keys make one."""
    return f"{code.id}.{device}.{turn}"


def read_key(form: str, code: KnownCode, device: str, turn: str) -> str:
    """Return the key of a form that this browser got in this turn.

    Raises LoginRefused for another one.
    """
    try:
        signed, _, _ = Signer(salt=SALT).unsign(form).rpartition(".")
    except BadSignature:
        signed = ""
    key = key_of(code, device, turn)
    if not device or signed != key:
        raise LoginRefused("start_form_used")
    return key
