"""The images of the handbook show pages whose words have not changed since.

`provisioning/run handbook` takes the images, and runs this module to record the words
of these pages beside it. If a test fails here, take the images again, in each language.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.rates.rollup import roll_up
from reports.tests.conftest import invite
from survey.models import Identity

pytestmark = pytest.mark.django_db

WORDS = Path(__file__).with_name("handbook_words.json")
RECORD = os.environ.get("GROUNDSWELL_RECORD_HANDBOOK", "")
HELP = settings.BASE_DIR / "docs" / "help"
IMAGES = {path.parts[-4]: path.parent for path in HELP.glob("*/coordinators/images/*")}
LANGUAGES = sorted(IMAGES)
# A school day in the middle of a week.
NOW = datetime(2026, 11, 18, 10, 0, tzinfo=ZoneInfo("America/Chicago"))
UNSEEN = {"script", "style", "template", "svg", "head", "noscript"}


class VisibleWords(HTMLParser):
    """Collects texts without digits: dates and figures differ from day to day.

    Of menus and details that are closed, only the button.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words: set[str] = set()
        self.within: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag in UNSEEN or tag == "summary":
            self.within.append(tag)
        elif tag == "details":
            self.within.append("summary" if "open" in dict(attrs) else tag)

    def handle_endtag(self, tag):
        if tag in {*UNSEEN, "summary", "details"}:
            self.within.pop()

    def handle_data(self, data):
        text = " ".join(data.split())
        is_word = any(map(str.isalpha, text)) and not any(map(str.isdigit, text))
        if is_word and (not self.within or self.within[-1] == "summary"):
            self.words.add(text)


@pytest.fixture
def addresses(staff, administer, monkeypatch) -> dict[str, str]:
    """Return the pages of the images, of an open and a closed administration."""
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    opened, closed = (
        administer(name, coordinators_see_finished=True) for name in ("open", "closed")
    )
    # Above the threshold: a pace would depend on the hour of the database.
    for administration in (opened, closed):
        invite(
            administration,
            staff.lincoln,
            40,
            grade="07",
            started=32,
            finished=30,
            at=NOW,
        )
    person = opened.respondents.filter(started_at=None).earliest("pk")
    Identity.objects.create(
        administration=opened,
        respondent=person,
        district=staff.riverside,
        external_id="R40313",
        given_name="Maya",
        family_name="Robinson",
    )
    closed.closes_at = NOW - timedelta(days=1)
    closed.save()
    roll_up()
    page = f"/console/administrations/{opened.pk}/"
    rates = f"/console/rates/schools/{staff.lincoln.pk}/?administration="
    return {
        "before": f"{page}roster/",
        "cards": f"{page}cards/",
        "rates": f"{rates}{opened.pk}",
        "people": f"{page}people/{person.pk}/",
        "after": f"{rates}{closed.pk}",
    }


def words_of(client, user, addresses, language) -> dict[str, list[str]]:
    user.language = language
    user.save()
    log_in(client, user)
    words_by_image = {}
    for name, address in addresses.items():
        response = client.get(address, follow=True)
        assert response.status_code == 200
        parser = VisibleWords()
        parser.feed(response.content.decode())
        words_by_image[name] = sorted(parser.words)
    return words_by_image


@pytest.mark.parametrize("language", LANGUAGES)
def test_images_show_the_words_of_today(client, staff, addresses, language):
    if RECORD and language != RECORD:
        pytest.skip("The images of another language are recorded")
    words_by_image = words_of(client, staff.chen, addresses, language)
    recorded = json.loads(WORDS.read_text()) if WORDS.exists() else {}
    if language == RECORD:
        content = json.dumps(
            recorded | {language: words_by_image},
            ensure_ascii=False,
            indent=1,
            sort_keys=True,
        )
        WORDS.write_text(f"{content}\n")
        return
    for name, words in words_by_image.items():
        was = recorded.get(language, {}).get(name, [])
        changed = sorted(set(words) ^ set(was))
        assert not changed, (
            f"{name}.webp no longer shows its page: {changed}. Take the images again:"
            f" provisioning/run handbook --language {language}"
        )


def test_each_image_has_words_to_compare(client, staff, addresses):
    words_by_image = words_of(client, staff.chen, addresses, "en")
    assert sorted(words_by_image) == sorted(
        path.stem for path in IMAGES["en"].iterdir()
    )
    for name, text in (
        ("before", "Upload and check"),
        ("cards", "Make cards or send codes"),
        ("rates", "Day by day"),
        ("people", "Print card again"),
        ("after", "Grade"),
    ):
        assert text in words_by_image[name]
        # Nothing that differs from day to day.
        assert not [
            word for word in words_by_image[name] if any(map(str.isdigit, word))
        ]
