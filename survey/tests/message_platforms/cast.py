"""Riverside's message platform, and what it knows about Maya."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings

from accounts.models import District, User
from survey.fieldwork.message_platforms.directory import forget_directory
from survey.fieldwork.message_platforms.hashes import write_people
from survey.fieldwork.message_platforms.person_keys import person_key
from survey.fieldwork.message_platforms.platforms import create_key, create_platform
from survey.fieldwork.message_platforms.store import message_store
from survey.models import Identity, MessagePlatform, Respondent
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser

needs_servers = pytest.mark.skipif(not settings.SERVERS, reason="needs Redis")


class PlatformClient(Browser):
    """A platform that asks about people with its API key."""

    def __init__(self, platform: MessagePlatform, api_key: str) -> None:
        super().__init__()
        self.platform, self.api_key = platform, api_key

    def address_of(self, respondent: Respondent) -> str:
        key = person_key(bytes(self.platform.person_secret), respondent.pk)
        return f"/messages/{self.platform.pk}/{key}.json"

    def ask(self, about: Respondent | str, api_key: str | None = None) -> Any:
        address = about if isinstance(about, str) else self.address_of(about)
        key = self.api_key if api_key is None else api_key
        return self.get(address, headers={"Authorization": f"Bearer {key}"})


def platform_of(district: District | None, by: User) -> PlatformClient:
    platform = create_platform(name="Braze", district=district, by=by)
    _, text = create_key(platform=platform, by=by)
    forget_directory()
    return PlatformClient(platform, text)


def identify(respondent: Respondent, **fields: str) -> Respondent:
    Identity.objects.create(
        respondent=respondent,
        administration=respondent.administration,
        district=respondent.school.district,
        external_id=f"S{respondent.pk}",
        **{"given_name": "Maya", "email": f"p{respondent.pk}@example.org"} | fields,
    )
    return respondent


def write_hashes(*people: Respondent) -> None:
    store = message_store()
    assert store is not None
    write_people(store, [person.pk for person in people])


@contextmanager
def counting_commands() -> Iterator[list[Any]]:
    """Yield the commands that are sent to the Redis of message platforms."""
    store: Any = message_store()
    sent: list[Any] = []
    ask = store._ask

    def counted(*command: Any) -> Any:
        sent.append(command)
        return ask(*command)

    store._ask = counted
    try:
        yield sent
    finally:
        store._ask = ask


def answer_and_finish(browser: Browser) -> None:
    revision = browser.bootstrap()["revision"]
    pages = (FIRST_PAGE, SECOND_PAGE, {"last": None})
    for n, page in enumerate(pages, start=1):
        saved = browser.save(n, page, revision + n)
        assert saved.status_code == 200, saved.content
    reviewed = browser.get("/take/complete/").context["reviewed"]
    finished = browser.post("/take/complete/", {"reviewed": reviewed})
    assert finished.status_code == 302, finished.content
