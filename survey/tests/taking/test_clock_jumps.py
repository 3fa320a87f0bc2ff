"""Nothing is lost, refused for good or undone when the primary's clock jumps."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import psycopg2
import pytest
from django.conf import settings
from django.utils import timezone

from provisioning.processes import descendants_of
from provisioning.prove.shifted_clock import shift_clock
from survey.models import Respondent, Response
from survey.taking.published import published_survey
from survey.taking.saved_answers import SavedAnswers, read_saved_answers
from survey.taking.session import RespondentSession
from survey.taking.storage import AnswerRow, Outcome, Receipt, save_page

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        platform.machine() != "x86_64" or os.geteuid() != 0,
        reason="root alone shifts a server's clock, on x86-64 alone",
    ),
]
HOUR = 3600


@pytest.fixture
def set_clock(maya: Respondent) -> Iterator[Callable[[int], None]]:
    """Shift the clock of PostgreSQL, and of nothing else; Maya is stored already."""
    address = {"host": settings.SERVERS, "port": 5432, "user": "postgres"}
    with (
        closing(psycopg2.connect(dbname="postgres", **address)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_read_file('postmaster.pid')")
        postmaster = int(cursor.fetchone()[0].split()[0])

    def set_clock(seconds: int) -> None:
        shift_clock([postmaster, *descendants_of(postmaster)], seconds)

    yield set_clock
    set_clock(0)


def opened_by(respondent: Respondent) -> SavedAnswers:
    """Return what a new tab of this person begins with."""
    administration = respondent.administration
    session = RespondentSession(
        administration.pk, respondent.pk, issue=1, digest="", language="", tag=""
    )
    published = published_survey(administration.published_id)
    return read_saved_answers(session, published, "")


def save(respondent: Respondent, answer: str, revision: int, seen: int = 0) -> Receipt:
    [item, *_] = item_ids(respondent)
    return save_page(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=1,
        revision=revision,
        rows=[AnswerRow(item, "a", answer)],
        seen=seen,
    )


def item_ids(respondent: Respondent) -> list[int]:
    published = published_survey(respondent.administration.published_id)
    return [item["id"] for item in published.answerable[0].values()]


def stored(respondent: Respondent) -> list[str]:
    rows = Response.objects.filter(respondent_id=respondent.pk)
    return [*rows.values_list("value", flat=True)]


def test_what_was_saved_while_the_clock_was_ahead_can_be_changed_later(maya, set_clock):
    set_clock(HOUR)
    ahead = opened_by(maya).revision
    assert save(maya, "first", ahead).outcome is Outcome.SAVED
    set_clock(0)
    later = opened_by(maya)
    assert later.revision > ahead
    assert save(maya, "second", later.revision, ahead).outcome is Outcome.SAVED
    assert stored(maya) == ["second"]


def test_a_tab_that_counted_from_the_clock_alone_could_change_nothing(maya, set_clock):
    set_clock(HOUR)
    ahead = opened_by(maya).revision
    assert save(maya, "first", ahead).outcome is Outcome.SAVED
    set_clock(0)
    by_clock = ahead - HOUR * 1_000_000
    assert save(maya, "second", by_clock, ahead).outcome is Outcome.SUPERSEDED


def test_a_clock_that_goes_back_undoes_no_answer(maya, set_clock):
    before = opened_by(maya).revision
    assert save(maya, "first", before).outcome is Outcome.SAVED
    set_clock(-HOUR)
    later = opened_by(maya)
    assert later.revision > before
    # A tab that has not seen the first answer may not replace it.
    assert save(maya, "blind", later.revision).outcome is Outcome.SUPERSEDED
    assert save(maya, "second", later.revision, before).outcome is Outcome.SAVED
    assert stored(maya) == ["second"]


def test_a_clock_past_the_close_lets_the_browser_try_again(maya, set_clock):
    administration = maya.administration
    administration.closes_at = timezone.now() + timedelta(minutes=30)
    administration.save(update_fields=["closes_at"])
    set_clock(HOUR)
    # Not CLOSED, after which a browser would give up.
    assert save(maya, "answer", 7).outcome is Outcome.UNCERTAIN
    assert stored(maya) == []
    set_clock(0)
    assert save(maya, "answer", 7).outcome is Outcome.SAVED
