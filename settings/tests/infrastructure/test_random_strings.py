from __future__ import annotations

from collections import Counter

import pytest
from django.contrib.sessions.backends.base import VALID_KEY_CHARS
from django.middleware.csrf import CSRF_ALLOWED_CHARS

from settings.infrastructure import random_strings
from settings.infrastructure.random_strings import random_string

ALPHABETS = (VALID_KEY_CHARS, CSRF_ALLOWED_CHARS)
EVERY_BYTE = bytes(range(256))


@pytest.fixture
def kernel(monkeypatch):
    """Let the kernel return these bytes; return how often it was asked."""
    drawn = []

    def returns(*answers):
        left = iter(answers)

        def urandom(size):
            drawn.append(size)
            return next(left)

        monkeypatch.setattr(random_strings.os, "urandom", urandom)
        return drawn

    return returns


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_a_string_is_as_long_as_asked_and_of_the_alphabet(alphabet):
    strings = {random_string(32, alphabet) for _ in range(100)}
    assert len(strings) == 100 and {len(string) for string in strings} == {32}
    assert set("".join(strings)) == set(alphabet)


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_each_symbol_is_equally_likely(alphabet, kernel):
    rounds = 256 // len(alphabet)
    kernel(EVERY_BYTE)
    drawn = Counter(random_string(rounds * len(alphabet), alphabet))
    assert drawn == dict.fromkeys(alphabet, rounds)


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_the_remainder_of_a_byte_would_make_some_symbols_likelier(alphabet):
    drawn = Counter(alphabet[byte % len(alphabet)] for byte in EVERY_BYTE)
    assert len(set(drawn.values())) == 2


def test_the_kernel_is_asked_once(kernel):
    asked = kernel(bytes(64))
    assert random_string(32, "ab") == "a" * 32
    assert asked == [64]


def test_the_kernel_is_asked_again_where_too_many_bytes_were_surplus(kernel):
    asked = kernel(b"\xff" * 6, b"\xff\0\x01\x02\0\0")
    assert random_string(3, "abc") == "abc"
    assert len(asked) == 2
