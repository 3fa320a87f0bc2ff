"""Make the CSRF tokens of respondents, which Django's middleware checks.

The same tokens as Django's functions of these names make, of as many random symbols. A
token takes a quarter of the instructions, and one system call in place of 33.
"""

from __future__ import annotations

from django.http import HttpRequest
from django.middleware.csrf import CSRF_ALLOWED_CHARS, CSRF_SECRET_LENGTH

from settings.infrastructure.random_strings import random_string  # noqa: TID251

NUMBERS = bytes.maketrans(
    CSRF_ALLOWED_CHARS.encode(), bytes(range(len(CSRF_ALLOWED_CHARS)))
)
# Twice, so that a sum of two numbers needs no remainder.
SYMBOLS = CSRF_ALLOWED_CHARS * 2


def get_token(request: HttpRequest) -> str:
    """Return a token for a form. The response sets the cookie that it belongs to."""
    if "CSRF_COOKIE" not in request.META:
        rotate_token(request)
    request.META["CSRF_COOKIE_NEEDS_UPDATE"] = True
    return mask_secret(request.META["CSRF_COOKIE"])


def rotate_token(request: HttpRequest) -> None:
    """Give the browser a new secret with the response, as Django does at a login."""
    request.META["CSRF_COOKIE"] = _random()
    request.META["CSRF_COOKIE_NEEDS_UPDATE"] = True


def mask_secret(secret: str) -> str:
    """Return a mask, and the secret with it added: no two tokens are the same.

    Otherwise the sizes of compressed responses would tell the secret, bit by bit.
    """
    mask = _random()
    pairs = zip(_numbers(secret), _numbers(mask), strict=True)
    return mask + "".join([SYMBOLS[a + b] for a, b in pairs])


def _random() -> str:
    return random_string(CSRF_SECRET_LENGTH, CSRF_ALLOWED_CHARS)


def _numbers(text: str) -> bytes:
    return text.encode("ascii").translate(NUMBERS)
