"""Reviewing and finishing.

The review reads every answer and applies every rule. What it saw is signed
and comes back with the POST, so that finishing is one statement: it holds
only while the stored answers are still those that were reviewed, by the sum
of their revisions, which every replaced row raises, and their number. (A save that
is in flight in that very moment is waited for and kept, without a review.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core import signing
from django.db import connection
from django.utils import timezone

from survey.definitions.rules import state_of
from survey.definitions.schema import SurveyDefinition, Texts
from survey.taking.published import Published
from survey.taking.saved_answers import SavedAnswers
from survey.taking.session import RespondentSession
from survey.taking.storage import GRACE

SALT = "survey.taking.reviewed"

POSTGRESQL = """
UPDATE survey_respondent r
SET completed_at = now(), started_at = coalesce(r.started_at, now())
FROM survey_administration a
WHERE a.id = r.administration_id
  AND r.id = %s AND r.administration_id = %s AND r.issue = %s
  AND r.completed_at IS NULL AND r.withdrawn_at IS NULL
  AND now() < a.closes_at + interval '10 minutes'
  AND (%s, %s) = (SELECT coalesce(sum(x.revision), 0), count(*)
      FROM survey_response x
      WHERE x.administration_id = %s AND x.respondent_id = %s)
"""

SQLITE = """
UPDATE survey_respondent AS r
SET completed_at = %s, started_at = coalesce(r.started_at, %s)
FROM survey_administration a
WHERE a.id = r.administration_id
  AND r.id = %s AND r.administration_id = %s AND r.issue = %s
  AND r.completed_at IS NULL AND r.withdrawn_at IS NULL
  AND a.closes_at > %s
  AND (%s, %s) = (SELECT coalesce(sum(x.revision), 0), count(*)
      FROM survey_response x
      WHERE x.administration_id = %s AND x.respondent_id = %s)
"""


@dataclass(frozen=True, slots=True)
class Gap:
    """A page on which a required answer is missing, or one breaks a rule."""

    page: int
    page_title: str
    items: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Review:
    gaps: list[Gap]
    # How many pages this person was shown: those with something relevant.
    pages: int
    # Signed, for the POST; empty while something is missing.
    reviewed: str


def review(
    taking: RespondentSession,
    published: Published,
    taken: SavedAnswers,
    *,
    today: str,
    now: str,
    language: str,
) -> Review:
    """Apply every rule of the survey to everything that is saved. 0 SQL."""
    given = {name: text for name, text in taken.answers.items() if text is not None}
    definition = published.definition
    state = state_of(definition, given, today=today, now=now, language=language)
    gaps = gaps_in(definition, state.problems, language)
    total, rows = taken.fingerprint
    seen = {"r": total, "n": rows, "who": taking.respondent_id}
    return Review(
        gaps=gaps,
        pages=len(state.visible_pages()),
        reviewed="" if gaps else signing.dumps(seen, salt=SALT),
    )


def gaps_in(
    definition: SurveyDefinition, problems: Mapping[str, str], language: str
) -> list[Gap]:
    gaps = []
    for n, page in enumerate(definition["pages"], start=1):
        names = [
            name
            for block in page["blocks"]
            for name in block["items"]
            if name in problems
        ]
        if names:
            gaps.append(
                Gap(
                    page=n,
                    page_title=_in(page["title"], language, definition),
                    items=[
                        {
                            "name": name,
                            "label": _in(
                                definition["items"][name].get("label", {}),
                                language,
                                definition,
                            ),
                            "problem": problems[name],
                        }
                        for name in names
                    ],
                )
            )
    return gaps


def _in(texts: Texts, language: str, definition: SurveyDefinition) -> str:
    default = definition["languages"][0]["code"]
    return texts.get(language) or texts.get(default, "")


def finish(taking: RespondentSession, reviewed: str) -> bool:
    """Finish, if what was reviewed still stands. 1 statement.

    False when answers changed since, when something is still missing, or when
    the person may not finish any more: look again.
    """
    try:
        seen = signing.loads(reviewed, salt=SALT)
    except signing.BadSignature:
        return False
    if seen["who"] != taking.respondent_id:
        return False
    text, parameters = _statement(taking, seen["r"], seen["n"])
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return cursor.rowcount == 1


def _statement(
    taking: RespondentSession, total: int, rows: int
) -> tuple[str, list[Any]]:
    person = [taking.respondent_id, taking.administration_id, taking.issue]
    answers = [total, rows, taking.administration_id, taking.respondent_id]
    if connection.vendor == "postgresql":
        return POSTGRESQL, [*person, *answers]
    now = timezone.now()
    adapt = connection.ops.adapt_datetimefield_value
    return SQLITE, [adapt(now), adapt(now), *person, adapt(now - GRACE), *answers]
