"""Answer a survey for made-up people, by the functions that views call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from survey.instrument.definitions.rules import state_of
from survey.models import Respondent
from survey.simulation.demo.answers import (
    DemoPerson,
    Scale,
    Wire,
    answer_item,
    seeded_random,
)
from survey.taking.completion import finish, review
from survey.taking.login import Login
from survey.taking.published import Published, published_survey
from survey.taking.saved_answers import read_saved_answers
from survey.taking.session import RespondentSession, tag_for
from survey.taking.storage import Outcome, save_page
from survey.taking.validation import check_page


class AnswerRefused(Exception):
    """A survey of the demo and its made-up answers no longer fit together."""


def answer_survey(
    *,
    login: Login,
    person: DemoPerson,
    scales: Mapping[str, Scale],
    started_at: datetime,
    finishing: bool,
) -> None:
    """Save page after page, and finish or stop halfway.

    2 statements a page and 4 more. The times of all rows are then set back, as
    though the person had begun at `started_at`.
    """
    session = RespondentSession(
        administration_id=login.administration_id,
        respondent_id=login.respondent_id,
        issue=login.issue,
        digest=login.digest,
        language=login.language,
        tag=tag_for(login.respondent_id),
    )
    published = published_survey(session.digest)
    # Once: it takes as long as a tenth of all the rest, for each page.
    inputs = rule_inputs(session.language)
    pages = answered_pages(person, published, scales, inputs)
    draw = seeded_random("pace", person.key)
    if not finishing:
        pages = pages[: draw.randint(2, len(pages) // 2)]
    moment = started_at
    saved_at: list[tuple[datetime, int]] = []
    base = int(started_at.timestamp() * 1_000_000)
    for n, answers in pages:
        moment += timedelta(seconds=draw.uniform(25, 110))
        save_answers(session, published, n, answers, inputs, revision=base + n)
        saved_at.append((moment, base + n))
    set_back(session, saved_at)
    dates = {"started_at": started_at}
    if finishing:
        saved = read_saved_answers(session, published, device="")
        reviewed = review(session, published, saved, **inputs)
        if not finish(session, reviewed.reviewed):
            raise AnswerRefused(f"Not finished: {reviewed.gaps}")
        dates["completed_at"] = moment + timedelta(seconds=draw.uniform(5, 40))
    Respondent.objects.filter(pk=login.respondent_id).update(**dates)


def set_back(
    session: RespondentSession, saved_at: Iterable[tuple[datetime, int]]
) -> None:
    """Store when each page was saved. The ORM takes longer than all the rest."""
    adapt = connection.ops.adapt_datetimefield_value
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE survey_response SET saved_at = %s WHERE administration_id = %s"
            " AND respondent_id = %s AND revision = %s",
            [
                (adapt(moment), session.administration_id, session.respondent_id, page)
                for moment, page in saved_at
            ],
        )


def answered_pages(
    person: DemoPerson,
    published: Published,
    scales: Mapping[str, Scale],
    inputs: Mapping[str, str],
) -> list[tuple[int, dict[str, Wire]]]:
    """Return the visible pages as a browser sends them, irrelevant items blank."""
    answers = {
        name: answer_item(person, name, published.definition, scales)
        for expected in published.answerable
        for name in expected
    }
    while True:
        state = state_of(published.definition, stored_texts(answers), **inputs)
        irrelevant = [
            name for name, wire in answers.items() if wire and not state.relevant[name]
        ]
        if not irrelevant:
            break
        # Other items may ask for one of these.
        answers |= dict.fromkeys(irrelevant)
    visible = state.visible_pages()
    return [
        (n, {name: answers[name] for name in expected})
        for n, expected in enumerate(published.answerable, start=1)
        if n in visible
    ]


def stored_texts(answers: dict[str, Wire]) -> dict[str, str]:
    return {
        name: " ".join(wire) if isinstance(wire, list) else wire
        for name, wire in answers.items()
        if wire
    }


def rule_inputs(language: str) -> dict[str, str]:
    """Return what rules read besides answers: the time and the language."""
    now = timezone.localtime()
    return {
        "today": now.date().isoformat(),
        "now": now.isoformat(timespec="seconds"),
        "language": language,
    }


def save_answers(
    session: RespondentSession,
    published: Published,
    n: int,
    answers: dict[str, Wire],
    inputs: Mapping[str, str],
    *,
    revision: int,
) -> None:
    rows, problems = check_page(published, n, answers, **inputs)
    if problems:
        raise AnswerRefused(f"Page {n}: {problems}")
    receipt = save_page(
        administration_id=session.administration_id,
        respondent_id=session.respondent_id,
        issue=session.issue,
        revision=revision,
        rows=rows,
    )
    if receipt.outcome is not Outcome.SAVED:
        raise AnswerRefused(f"Page {n}: {receipt.outcome}")
