from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from survey.people.rosters.feeds.credentials import FeedKeyMissing, seal, unseal

pytestmark = pytest.mark.django_db

OLD, NEW = "the-old-key-" + "o" * 32, "the-new-key-" + "n" * 32


def run() -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("reseal_feeds", stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_credentials_are_encrypted_with_the_new_key(feed, settings):
    settings.FEED_KEYS = [OLD]
    feed.credentials = seal({"password": "secret"})
    feed.save()
    settings.FEED_KEYS = [NEW, OLD]
    assert "of 1 feeds" in run()[0]
    settings.FEED_KEYS = [NEW]
    feed.refresh_from_db()
    assert unseal(bytes(feed.credentials)) == {"password": "secret"}


def test_credentials_without_a_key_stay_as_they_are(feed, settings):
    settings.FEED_KEYS = [OLD]
    sealed = seal({"password": "secret"})
    feed.credentials = sealed
    feed.save()
    settings.FEED_KEYS = [NEW]
    out, err = run()
    assert "of 0 feeds" in out
    assert "PowerSchool" in err
    feed.refresh_from_db()
    assert bytes(feed.credentials) == sealed
    with pytest.raises(FeedKeyMissing):
        unseal(bytes(feed.credentials))
