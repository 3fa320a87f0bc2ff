"""Titles of administrations, as lists and e-mails show them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import translation

from survey.models import Administration, PublishedSurvey, Survey

pytestmark = pytest.mark.django_db

SPANISH_FIRST = [
    {"code": "es", "name": "Español", "direction": "ltr"},
    {"code": "en", "name": "English", "direction": "ltr"},
]


def administration(**survey: object) -> Administration:
    published = PublishedSurvey.objects.create(
        digest="d" * 64,
        survey=Survey.objects.create(name="climate", version="1", **survey),
        definition="{}",
    )
    return Administration.objects.create(
        name="fall-students",
        published=published,
        role="student",
        # Still October in Chicago.
        opens_at=datetime(2026, 11, 1, 2, tzinfo=UTC),
        closes_at=datetime(2026, 12, 1, tzinfo=UTC),
    )


def test_title_names_survey_audience_and_month():
    fall = administration(
        title={"en": "My School and Me", "es": "Mi escuela y yo"},
        languages=SPANISH_FIRST[::-1],
    )
    assert fall.title == "My School and Me, students, October 2026"


def test_title_is_in_the_reader_s_language_or_the_first_of_the_survey():
    fall = administration(
        title={"en": "My School and Me", "es": "Mi escuela y yo"},
        languages=SPANISH_FIRST,
    )
    assert fall.title == "My School and Me, students, October 2026"
    with translation.override("es"):
        assert fall.title.startswith("Mi escuela y yo, ")
    fall.published.survey.languages = [{"code": "ar"}, {"code": "es-MX"}]
    fall.published.survey.title = {"ar": "مدرستي", "es-MX": "Mi escuela"}
    assert fall.title.startswith("مدرستي, ")
    with translation.override("es"):
        assert fall.title.startswith("Mi escuela, ")


def test_title_falls_back_to_any_language_and_then_to_the_name():
    fall = administration(title={"en": "My School"}, languages=SPANISH_FIRST)
    assert fall.title == "My School, students, October 2026"
    fall.published.survey.title = {}
    assert fall.title == "climate, students, October 2026"


def test_title_needs_no_query_beyond_the_selected_survey(django_assert_num_queries):
    administration(title={"en": "My School"})
    rows = Administration.objects.select_related("published__survey").defer(
        "published__definition", "published__survey__source"
    )
    with django_assert_num_queries(1):
        assert [row.title for row in rows] == ["My School, students, October 2026"]
