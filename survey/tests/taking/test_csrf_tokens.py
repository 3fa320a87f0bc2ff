"""Tokens are those of Django, whose middleware checks them."""

from __future__ import annotations

from django.http import HttpResponse
from django.middleware import csrf
from django.middleware.csrf import CsrfViewMiddleware
from django.test import RequestFactory

from survey.taking.csrf_tokens import get_token, mask_secret, rotate_token


def is_accepted(cookie: str, token: str) -> bool:
    """Post a form with a token to Django's middleware."""
    request = RequestFactory().post("/", {"csrfmiddlewaretoken": token})
    request.COOKIES["csrftoken"] = cookie
    middleware = CsrfViewMiddleware(lambda _: HttpResponse())
    middleware.process_request(request)
    try:
        middleware._check_token(request)
    except csrf.RejectRequest:
        return False
    return True


def test_a_token_is_accepted_with_its_cookie_alone():
    request = RequestFactory().get("/")
    token = get_token(request)
    secret = request.META["CSRF_COOKIE"]
    assert is_accepted(secret, token) and is_accepted(secret, get_token(request))
    assert not is_accepted(csrf._get_new_csrf_string(), token)
    changed = token[:-1] + ("a" if token[-1] != "a" else "b")
    assert not is_accepted(secret, changed)


def test_no_two_tokens_of_a_secret_are_the_same():
    secret = csrf._get_new_csrf_string()
    tokens = {mask_secret(secret) for _ in range(50)}
    assert len(tokens) == 50
    assert {csrf._unmask_cipher_token(token) for token in tokens} == {secret}


def test_every_symbol_is_masked_as_by_django(monkeypatch):
    symbols = csrf.CSRF_ALLOWED_CHARS
    for start in range(len(symbols)):
        mask = (symbols[start:] + symbols[:start])[:32]
        for secret in (symbols[:32], symbols[-32:]):
            with monkeypatch.context() as same:
                same.setattr(csrf, "_get_new_csrf_string", lambda mask=mask: mask)
                same.setattr(
                    "survey.taking.csrf_tokens._random", lambda mask=mask: mask
                )
                assert mask_secret(secret) == csrf._mask_cipher_secret(secret)


def test_a_login_replaces_the_secret():
    request = RequestFactory().get("/")
    token = get_token(request)
    secret = request.META["CSRF_COOKIE"]
    request.META["CSRF_COOKIE_NEEDS_UPDATE"] = False
    rotate_token(request)
    assert request.META["CSRF_COOKIE"] != secret
    assert request.META["CSRF_COOKIE_NEEDS_UPDATE"]
    assert not csrf._does_token_match(token, request.META["CSRF_COOKIE"])


def test_a_secret_that_a_browser_has_stays():
    request = RequestFactory().get("/")
    request.META["CSRF_COOKIE"] = secret = csrf._get_new_csrf_string()
    assert csrf._does_token_match(get_token(request), secret)
    assert request.META["CSRF_COOKIE"] == secret
