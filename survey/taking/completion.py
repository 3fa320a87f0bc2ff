"""Review all answers, and finish the survey.

The review reads every answer and applies every rule. It signs the sum of the
revisions and the number of rows, and the POST sends them back, so finishing is
one statement: it changes nothing unless the stored answers are still the ones
that were reviewed, because every replaced row raises the sum. (A save in
flight at that very moment is waited for and kept, without a review.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    """A page on which a required answer is missing, or an answer breaks a rule."""

    page: int
    page_title: str
    items: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Review:
    gaps: list[Gap]
    # How many pages this person was shown: those with a relevant item.
    pages: int
    # Signed, for the POST; empty while something is missing.
    reviewed: str


def review(
    session: RespondentSession,
    published: Published,
    saved: SavedAnswers,
    *,
    today: str,
    now: str,
    language: str,
) -> Review:
    """Apply every rule of the survey to all saved answers. 0 SQL."""
    given = {name: text for name, text in saved.answers.items() if text is not None}
    definition = published.definition
    state = state_of(definition, given, today=today, now=now, language=language)
    gaps = find_gaps(definition, state.problems, language)
    total, rows = saved.fingerprint
    reviewed = {"r": total, "n": rows, "who": session.respondent_id}
    return Review(
        gaps=gaps,
        pages=len(state.visible_pages()),
        reviewed="" if gaps else signing.dumps(reviewed, salt=SALT),
    )


def find_gaps(
    definition: SurveyDefinition, problems: Mapping[str, str], language: str
) -> list[Gap]:
    """Group the items that have problems by page, with texts in `language`."""
    default = definition["languages"][0]["code"]

    def translated(texts: Texts) -> str:
        return texts.get(language) or texts.get(default, "")

    gaps = []
    for n, page in enumerate(definition["pages"], start=1):
        items = [
            {
                "name": name,
                "label": translated(definition["items"][name].get("label", {})),
                "problem": problems[name],
            }
            for block in page["blocks"]
            for name in block["items"]
            if name in problems
        ]
        if items:
            gaps.append(Gap(page=n, page_title=translated(page["title"]), items=items))
    return gaps


def finish(session: RespondentSession, reviewed: str) -> bool:
    """Finish if the stored answers are the reviewed ones. 1 statement.

    False if answers have changed since, if something is still missing, or if
    the person may not finish any more: then the review has to be shown again.
    """
    try:
        content = signing.loads(reviewed, salt=SALT)
    except signing.BadSignature:
        return False
    if content["who"] != session.respondent_id:
        return False
    respondent = [session.respondent_id, session.administration_id, session.issue]
    fingerprint = [content["r"], content["n"]]
    answers = [*fingerprint, session.administration_id, session.respondent_id]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(POSTGRESQL, [*respondent, *answers])
        else:
            adapt = connection.ops.adapt_datetimefield_value
            now, latest = adapt(timezone.now()), adapt(timezone.now() - GRACE)
            cursor.execute(SQLITE, [now, now, *respondent, latest, *answers])
        return cursor.rowcount == 1
