"""Answer a survey for made-up people, by the functions that views call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import connection
from django.utils import timezone

from survey.instrument.definitions.rules import state_of
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
from survey.taking.storage import AnswerRow, Outcome, save_page
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
    """Save all pages at once, and finish or stop halfway. 6 statements.

    The times of all rows are then set back, as though the person had begun at
    `started_at` and saved page after page.
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
    rows: list[AnswerRow] = []
    saved_at: list[tuple[datetime, list[int]]] = []
    for n, answers in pages:
        moment += timedelta(seconds=draw.uniform(25, 110))
        of_page = checked_rows(published, n, answers, inputs)
        if of_page:
            saved_at.append((moment, [row.item_id for row in of_page]))
        rows += of_page
    save_answers(session, rows, revision=int(started_at.timestamp() * 1_000_000))
    completed_at = None
    if finishing:
        saved = read_saved_answers(session, published, device="")
        reviewed = review(session, published, saved, **inputs)
        if not finish(session, reviewed.reviewed):
            raise AnswerRefused(f"Not finished: {reviewed.gaps}")
        completed_at = moment + timedelta(seconds=draw.uniform(5, 40))
    set_back(session, started_at, saved_at, completed_at)


def set_back(
    session: RespondentSession,
    started_at: datetime,
    saved_at: Sequence[tuple[datetime, list[int]]],
    completed_at: datetime | None,
) -> None:
    """Store when a person began, saved the items of each page, and finished.

    2 statements. The ORM takes longer than all the rest.
    """
    adapt = connection.ops.adapt_datetimefield_value
    pages = " ".join(
        f"WHEN item_id IN ({','.join(map(str, items))}) THEN %s"
        for _moment, items in saved_at
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE survey_response SET saved_at = CASE {pages} END"  # noqa: S608
            " WHERE administration_id = %s AND respondent_id = %s",
            [adapt(moment) for moment, _items in saved_at]
            + [session.administration_id, session.respondent_id],
        )
        cursor.execute(
            "UPDATE survey_respondent SET started_at = %s, completed_at = %s"
            " WHERE id = %s",
            [
                adapt(started_at),
                completed_at and adapt(completed_at),
                session.respondent_id,
            ],
        )


def answered_pages(
    person: DemoPerson,
    published: Published,
    scales: Mapping[str, Scale],
    inputs: Mapping[str, str],
) -> list[tuple[int, dict[str, Wire]]]:
    """Return the visible pages as a browser sends them, irrelevant items blank."""
    draw = seeded_random(person.key, person.wave)
    answers = {
        name: answer_item(person, name, draw, published.definition, scales)
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


def checked_rows(
    published: Published,
    n: int,
    answers: dict[str, Wire],
    inputs: Mapping[str, str],
) -> Sequence[AnswerRow]:
    rows, problems = check_page(published, n, answers, **inputs)
    if problems:
        raise AnswerRefused(f"Page {n}: {problems}")
    return rows


def save_answers(
    session: RespondentSession, rows: Sequence[AnswerRow], *, revision: int
) -> None:
    receipt = save_page(
        administration_id=session.administration_id,
        respondent_id=session.respondent_id,
        issue=session.issue,
        revision=revision,
        rows=rows,
    )
    if receipt.outcome is not Outcome.SAVED:
        raise AnswerRefused(f"Not saved: {receipt.outcome}")
