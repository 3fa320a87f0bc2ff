"""Review all answers, and finish the survey.

The review reads every answer and applies every rule. It signs the sum of the
revisions and the number of rows, and the POST sends them back, so finishing is
one statement: it changes nothing unless the stored answers are still the ones
that were reviewed, because every replaced row raises the sum. (A save in
flight at that very moment is waited for and kept, without a review.)
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.core import signing
from django.db import connection
from django.utils import timezone

from survey.fieldwork.message_platforms.hooks import person_finished
from survey.instrument.definitions.rules import Clock, RuleState, state_of
from survey.taking.prepared_statements import (
    Parameter,
    execute_where_possible,
    name_administration,
)
from survey.taking.published import Published
from survey.taking.review import Gap, ReviewedPage, find_gaps, reviewed_pages
from survey.taking.saved_answers import SavedAnswers
from survey.taking.session import RespondentSession
from survey.taking.storage import GRACE

SALT = "survey.taking.reviewed"
# As long as the column: finishing never fails for a strange language.
LONGEST_LANGUAGE = 35

POSTGRESQL = """
UPDATE survey_respondent r
SET completed_at = now(), started_at = coalesce(r.started_at, now()),
    response_language = %s
FROM survey_administration a
WHERE a.id = r.administration_id
  AND r.id = %s AND r.administration_id = %s AND r.issue = %s
  AND r.completed_at IS NULL AND r.withdrawn_at IS NULL
  AND a.closes_at > now() - interval '10 minutes'
  AND (%s, %s) = (SELECT coalesce(sum(x.revision), 0), count(*)
      FROM survey_response x
      WHERE x.administration_id = {administration} AND x.respondent_id = %s)
"""

# Citus refuses now() in COALESCE. A login writes the web server's time as well.
ON_CLUSTER = POSTGRESQL.replace(
    "coalesce(r.started_at, now())", "coalesce(r.started_at, %s)"
)

SQLITE = """
UPDATE survey_respondent AS r
SET completed_at = %s, started_at = coalesce(r.started_at, %s),
    response_language = %s
FROM survey_administration a
WHERE a.id = r.administration_id
  AND r.id = %s AND r.administration_id = %s AND r.issue = %s
  AND r.completed_at IS NULL AND r.withdrawn_at IS NULL
  AND a.closes_at > %s
  AND (%s, %s) = (SELECT coalesce(sum(x.revision), 0), count(*)
      FROM survey_response x
      WHERE x.administration_id = {administration} AND x.respondent_id = %s)
"""


@dataclass(frozen=True, slots=True)
class Review:
    gaps: list[Gap]
    # The pages that this person sees: those with a relevant item.
    pages: list[ReviewedPage]
    # Signed, for the POST; empty while something is missing.
    reviewed: str
    # The questions without an answer, each with the number of its page.
    blank: list[tuple[int, str]]


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
    state = state_of(
        definition,
        given,
        published.plain,
        today=today,
        now=now,
        language=language,
    )
    visible = state.visible_pages()
    gaps = find_gaps(definition, state.problems, language, state.values, visible)
    total, rows = saved.fingerprint
    reviewed = {"r": total, "n": rows, "who": session.respondent_id}
    pages = reviewed_pages(published, state, visible, saved.answers, language)
    return Review(
        gaps=gaps,
        pages=pages,
        reviewed="" if gaps else signing.dumps(reviewed, salt=SALT),
        blank=[(page.number, name) for page in pages for name in page.blank],
    )


def count_stored_pages(
    published: Published, saved: SavedAnswers, *, today: str, now: str, language: str
) -> tuple[int, int]:
    """Count the pages that a finished person sees, and those stored to the end."""
    definition = published.definition
    given = {name: text for name, text in saved.answers.items() if text is not None}
    state = RuleState(definition, Clock(today, now), language, plain=published.plain)
    state.compute_values(state.take_plain(given), given)
    visible, relevant = state.visible_pages(), state.relevant
    stored = sum(
        page.keys() <= saved.answers.keys()
        or all(name in saved.answers for name in page if relevant[name])
        for number, page in enumerate(published.answerable, start=1)
        if number in visible
    )
    return len(visible), stored


def reviewed_fingerprint(
    session: RespondentSession, reviewed: str
) -> tuple[int, int] | None:
    """Return the fingerprint of the answers that a review of this person signed."""
    try:
        content = signing.loads(reviewed, salt=SALT)
    except signing.BadSignature:
        return None
    if content["who"] != session.respondent_id:
        return None
    return content["r"], content["n"]


def finish(session: RespondentSession, reviewed: str, language: str = "") -> bool:
    """Finish if the stored answers are the reviewed ones. 1 statement.

    `language` is the one of the review, which exports show.

    Afterwards 1 command in the Redis of message platforms, if there is one.

    False if answers have changed since, if something is still missing, or if
    the person may not finish any more: then the review has to be shown again.
    """
    fingerprint = reviewed_fingerprint(session, reviewed)
    if fingerprint is None:
        return False
    language = language[:LONGEST_LANGUAGE]
    respondent = [session.respondent_id, session.administration_id, session.issue]
    answers = [*fingerprint, session.respondent_id]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            text, started = POSTGRESQL, []
            if settings.IS_DISTRIBUTED:
                text, started = ON_CLUSTER, [timezone.now()]
            text = name_administration(text, session.administration_id)
            # A sum of bigints is numeric.
            numbers = ("bigint", "bigint", "integer", "numeric", "bigint", "bigint")
            types = (*["timestamptz" for _ in started], "text", *numbers)
            values: list[Parameter] = [*started, language, *respondent, *answers]
            execute_where_possible(cursor, text, types, values)
        else:
            adapt = connection.ops.adapt_datetimefield_value
            now, latest = adapt(timezone.now()), adapt(timezone.now() - GRACE)
            parameters = [now, now, language, *respondent, latest, *answers]
            text = name_administration(SQLITE, session.administration_id)
            cursor.execute(text, parameters)
        is_finished = cursor.rowcount == 1
    if is_finished:
        person_finished(session.respondent_id, session.administration_id)
    return is_finished
