"""A page turn: what somebody sent becomes rows, and a reply.

It knows neither requests nor responses, for two carry it: the view, and the
short way of `wsgi` that stands before Django's handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils import timezone

from survey.taking.published import Published
from survey.taking.save_request import BadRequest, Save
from survey.taking.session import RespondentSession
from survey.taking.storage import Outcome, Receipt, save_page
from survey.taking.unavailable import ServiceUnavailable
from survey.taking.validation import check_page

REFUSALS = {
    Outcome.SUPERSEDED: (409, "superseded"),
    Outcome.FINISHED: (409, "finished"),
    Outcome.WITHDRAWN: (409, "withdrawn"),
    Outcome.CLOSED: (409, "closed"),
    Outcome.REISSUED: (401, "reissued"),
}


@dataclass(frozen=True, slots=True)
class PageReply:
    """`content` is to be sent as JSON; `outcome` is for whoever counts."""

    status: int
    content: Mapping[str, object]
    outcome: str = ""


def process_page(
    taking: RespondentSession, published: Published, n: int, save: Save
) -> PageReply:
    """Check and save page `n`. 1 statement; 2 when refused.

    Raises BadRequest, and ComeAgain.
    """
    if not 1 <= n <= len(published.answerable):
        raise BadRequest(404, "page")
    # Only a page with rules of its own looks at the clock.
    now = timezone.localtime() if published.ruled[n - 1] else None
    rows, problems = check_page(
        published,
        n,
        save.answers,
        today=now.date().isoformat() if now else "",
        now=now.isoformat(timespec="seconds") if now else "",
        language=taking.language,
    )
    if problems:
        return PageReply(422, {"error": "answers", "items": problems})
    receipt = save_page(
        administration_id=taking.administration_id,
        respondent_id=taking.respondent_id,
        issue=taking.issue,
        revision=save.revision,
        rows=rows,
        seen=save.seen,
        base=save.base,
    )
    if receipt.outcome is Outcome.UNCERTAIN:
        raise ServiceUnavailable("again")
    if receipt.saved_at is None:
        status, error = REFUSALS[receipt.outcome]
        return PageReply(status, {"error": error}, receipt.outcome.value)
    at = receipt.saved_at.isoformat(timespec="seconds")
    saved = {"saved": len(rows), "revision": save.revision, "at": at}
    return PageReply(200, saved, _how(taking, receipt))


def _how(taking: RespondentSession, receipt: Receipt) -> str:
    if receipt.retried:
        return "retried"
    return "resumed" if taking.resumed else "saved"
