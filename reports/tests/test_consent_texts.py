"""The text of a box of consent, as the person who ticked it may have read it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts import audit
from reports.consent_texts import consent_texts
from reports.exports.offered_versions import ACTION, offered_versions
from survey.models import Administration, PublishedSurvey, Respondent, Response
from survey.tests.conftest import (  # noqa: F401
    PAGES,
    SECOND_PAGE,
    administration,
    browser,
    lincoln,
    maya,
    publish,
    publish_items,
)

# Fixtures are imported, and then arguments of the same name.
# ruff: noqa: F811

# The time of a save is that of its own transaction.
pytestmark = pytest.mark.django_db(transaction=True)


def pages_with(text: str):
    pages = [dict(page) for page in PAGES]
    pages[1]["promise"] = {
        "kind": "acknowledge",
        "label": {"en": f"I agree {text}", "es": f"Acepto {text}"},
    }
    return pages


@pytest.fixture
def first(administration) -> PublishedSurvey:
    published = publish_items(pages_with("first"), name="first")
    Administration.objects.update(published=published)
    return published


def corrected(administration: Administration, text: str) -> PublishedSurvey:
    """Offer another version, as `use_correction` does and records."""
    administration.refresh_from_db()
    published = publish_items(pages_with(text), name=text)
    offer(administration, published)
    return published


def offer(administration: Administration, published: PublishedSurvey) -> None:
    administration.refresh_from_db()
    before = administration.published_id
    Administration.objects.update(published=published)
    audit.record(
        ACTION,
        by="a test",
        subject=administration,
        before={"digest": before},
        after={"digest": published.digest},
    )


def agree(browser, person, *, language: str = "") -> Response:
    browser.log_in(person)
    base = browser.bootstrap()["revision"]
    assert browser.save(2, SECOND_PAGE, base).status_code == 200
    if language:
        Respondent.objects.filter(pk=person.pk).update(
            completed_at=timezone.now(), response_language=language
        )
    return Response.objects.get(respondent_id=person.pk, value="OK")


def texts(administration, person, answer) -> list[str]:
    administration.refresh_from_db()
    person.refresh_from_db()
    offered = offered_versions([administration])[administration.pk]
    return [shown.text for shown in consent_texts(person, answer, "promise", offered)]


def test_the_text_is_that_of_the_version_and_language(
    browser, administration, first, maya
):
    answer = agree(browser, maya, language="es")
    corrected(administration, "second")
    assert texts(administration, maya, answer) == ["Acepto first"]


def test_a_person_after_a_correction_agreed_to_the_new_text(
    browser, administration, first, maya
):
    corrected(administration, "second")
    answer = agree(browser, maya, language="en")
    assert texts(administration, maya, answer) == ["I agree second"]
    # And after it was taken back, to the old one again.
    offer(administration, first)
    assert texts(administration, maya, answer) == ["I agree second"]


def test_what_cannot_be_told_apart_is_all_shown(browser, administration, first, maya):
    """Started before a correction, saved after it, and not finished."""
    answer = agree(browser, maya)
    corrected(administration, "second")
    answer.saved_at = timezone.now() + timedelta(minutes=1)
    assert texts(administration, maya, answer) == [
        "I agree first",
        "Acepto first",
        "I agree second",
        "Acepto second",
    ]


def test_a_version_that_was_offered_again_is_found(
    browser, administration, first, maya
):
    corrected(administration, "second")
    offer(administration, first)
    answer = agree(browser, maya, language="en")
    assert texts(administration, maya, answer) == ["I agree first"]
