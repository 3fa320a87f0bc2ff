from __future__ import annotations

import logging
import traceback

import pytest

from survey.people.rosters.feeds.credentials import (
    FeedKeyMissing,
    check_feed_keys,
    reseal,
    seal,
    unseal,
)
from survey.people.rosters.feeds.downloads import FeedSource

OLD = "the-old-key-" + "o" * 32
NEW = "the-new-key-" + "n" * 32
SECRET = "correct horse battery staple"


def test_sealed_credentials_are_unreadable_until_unsealed():
    credentials = {"username": "northfield", "password": SECRET, "name": "Schüler"}
    sealed = seal(credentials)
    for part in (b"northfield", SECRET.encode(), b"password"):
        assert part not in sealed
    assert unseal(sealed) == credentials
    # A database's binary field may be a memoryview.
    assert unseal(memoryview(sealed)) == credentials
    assert seal(credentials) != sealed


def test_the_first_key_encrypts_and_all_decrypt(settings):
    settings.FEED_KEYS = [OLD]
    sealed = seal({"password": SECRET})
    settings.FEED_KEYS = [NEW, OLD]
    assert unseal(sealed) == {"password": SECRET}
    renewed = reseal(sealed)
    settings.FEED_KEYS = [NEW]
    assert unseal(renewed) == {"password": SECRET}
    with pytest.raises(FeedKeyMissing, match="Enter them"):
        unseal(sealed)


def test_without_a_key_nothing_is_sealed(settings):
    settings.FEED_KEYS = []
    with pytest.raises(FeedKeyMissing):
        seal({"password": SECRET})


def test_changed_credentials_are_refused():
    sealed = bytearray(seal({"password": SECRET}))
    sealed[40] ^= 1
    with pytest.raises(FeedKeyMissing):
        unseal(bytes(sealed))


def test_no_key_of_another_purpose_decrypts(settings):
    sealed = seal({"password": SECRET})
    settings.FEED_KEYS = [settings.SECRET_KEY, *settings.ACCESS_CODE_KEYS.values()]
    with pytest.raises(FeedKeyMissing):
        unseal(sealed)


def test_a_repr_log_or_traceback_never_shows_a_secret(caplog):
    credentials = unseal(seal({"password": SECRET}))
    source = FeedSource("zip", "https://sis.example.org/", credentials=credentials)
    assert "password" in repr(credentials)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("feeds").warning("%s %r %s", credentials, source, source)
    try:
        raise ValueError(credentials, source)
    except ValueError as error:
        shown = "".join(
            traceback.TracebackException.from_exception(
                error, capture_locals=True
            ).format()
        )
    for text in (repr(credentials), str(credentials), repr(source), caplog.text, shown):
        assert SECRET not in text
    # The twin: an ordinary mapping would show it.
    assert SECRET in repr(dict(credentials))


@pytest.mark.parametrize(
    ("keys", "expected"), [([], []), ([NEW, "short"], ["survey.E004"]), ([NEW], [])]
)
def test_the_deploy_check_refuses_short_keys(settings, keys, expected):
    settings.FEED_KEYS = keys
    assert [message.id for message in check_feed_keys()] == expected
