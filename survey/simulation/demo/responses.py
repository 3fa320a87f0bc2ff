"""Made-up people take a survey, by the same functions as real ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.utils import timezone

from survey.access_codes import code_of
from survey.definitions.rules import state_of
from survey.models import Respondent, Response
from survey.simulation.demo.answers import Person, Wire, answers_of, dice
from survey.taking.completion import finish, review
from survey.taking.login import log_in_respondent
from survey.taking.published import Published, published_survey
from survey.taking.saved_answers import read_saved_answers
from survey.taking.session import RespondentSession, tag_for
from survey.taking.storage import Outcome, save_page
from survey.taking.validation import check_page


class AnswerRefused(Exception):
    """A survey of the demo and its made-up answers no longer fit together."""


def take(
    *, respondent: Respondent, person: Person, started_at: datetime, finishing: bool
) -> None:
    """Log in, save page after page, and finish or stop halfway.

    2 statements a page and 5 more. The clock of every row is then put back,
    as though it had all begun at `started_at`.
    """
    taking = _log_in(respondent)
    published = published_survey(taking.digest)
    pages = pages_of(person, published)
    draw = dice("pace", person.key)
    if not finishing:
        pages = pages[: draw.randint(2, len(pages) // 2)]
    moment = started_at
    base = int(started_at.timestamp() * 1_000_000)
    for n, answers in pages:
        moment += timedelta(seconds=draw.uniform(25, 110))
        _save(taking, published, n, answers, revision=base + n, saved_at=moment)
    dates = {"started_at": started_at}
    if finishing:
        _finish(taking, published)
        dates["completed_at"] = moment + timedelta(seconds=draw.uniform(5, 40))
    Respondent.objects.filter(pk=respondent.pk).update(**dates)


def pages_of(person: Person, published: Published) -> list[tuple[int, dict[str, Wire]]]:
    """What a browser would send: the visible pages, irrelevant items blank."""
    given: dict[str, str] = {}
    pages = []
    for n, expected in enumerate(published.answerable, start=1):
        drawn = answers_of(person, list(expected), published.definition)
        state = state_of(
            published.definition,
            given | {name: _text(wire) for name, wire in drawn.items() if wire},
            **_circumstances(person.language),
        )
        if n not in state.visible_pages():
            continue
        answers = {
            name: wire if state.relevant[name] else None for name, wire in drawn.items()
        }
        given |= {name: _text(wire) for name, wire in answers.items() if wire}
        pages.append((n, answers))
    return pages


def _text(wire: Wire) -> str:
    return " ".join(wire) if isinstance(wire, list) else wire or ""


def _circumstances(language: str) -> dict[str, str]:
    now = timezone.localtime()
    return {
        "today": now.date().isoformat(),
        "now": now.isoformat(timespec="seconds"),
        "language": language,
    }


def _log_in(respondent: Respondent) -> RespondentSession:
    login = log_in_respondent(code_of(respondent))
    return RespondentSession(
        administration_id=login.administration_id,
        respondent_id=login.respondent_id,
        issue=login.issue,
        digest=login.digest,
        language=login.language,
        tag=tag_for(login.respondent_id),
    )


def _save(
    taking: RespondentSession,
    published: Published,
    n: int,
    answers: Mapping[str, Wire],
    *,
    revision: int,
    saved_at: datetime,
) -> None:
    rows, problems = check_page(
        published, n, answers, **_circumstances(taking.language)
    )
    if problems:
        raise AnswerRefused(f"Page {n}: {problems}")
    receipt = save_page(
        administration_id=taking.administration_id,
        respondent_id=taking.respondent_id,
        issue=taking.issue,
        revision=revision,
        rows=rows,
    )
    if receipt.outcome is not Outcome.SAVED:
        raise AnswerRefused(f"Page {n}: {receipt.outcome}")
    Response.objects.filter(
        administration_id=taking.administration_id,
        respondent_id=taking.respondent_id,
        revision=revision,
    ).update(saved_at=saved_at)


def _finish(taking: RespondentSession, published: Published) -> None:
    seen = review(
        taking,
        published,
        read_saved_answers(taking, published),
        **_circumstances(taking.language),
    )
    if not finish(taking, seen.reviewed):
        raise AnswerRefused(f"Not finished: {seen.gaps}")
