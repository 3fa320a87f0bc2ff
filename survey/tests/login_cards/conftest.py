"""A survey in three languages, as cards and e-mails can be in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from survey.models import PublishedSurvey
from survey.tests.conftest import THREE_LANGUAGES, publish_items


@pytest.fixture
def publish(db: None) -> Callable[..., PublishedSurvey]:
    return partial(publish_items, languages=THREE_LANGUAGES)
