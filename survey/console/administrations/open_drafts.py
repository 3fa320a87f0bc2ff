"""Drafts of survey rounds that a user is about to open, in the user's session.

A draft holds what was typed, as the browser sent it, so that the forms can check all
of it again at the end. It goes with the session: at the latest when it expires.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field

from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.http import QueryDict
from django.utils.crypto import get_random_string

from survey.console.administrations.fields import MAX_PLACES
from survey.models import PublishedSurvey

SESSION_KEY = "survey_round_drafts"
OPENED_KEY = "opened_survey_rounds"
# Each in a tab of its own. A session is read with every page, so it stays small.
MOST_DRAFTS = 3
LASTS = 24 * 60 * 60
# One character more than the forms take, so that they refuse what is longer.
LONGEST_TEXT = 20_001
LONGEST_VALUE = 251


@dataclass
class Draft:
    key: str = field(default_factory=lambda: get_random_string(8))
    # Counts the changes: a page that was loaded before the last one is refused.
    revision: int = 0
    values: dict[str, list[str]] = field(default_factory=dict)
    # The steps whose answers are valid.
    done: list[str] = field(default_factory=list)
    saved_at: float = 0

    @property
    def version(self) -> tuple[str, int]:
        return self.key, self.revision

    def answers(self) -> QueryDict:
        """Return all answers so far, as if one form had sent them."""
        answers = QueryDict(mutable=True)
        for name, values in self.values.items():
            if values:
                answers.setlist(name, values)
        return answers

    def answer(self, sent: QueryDict, fields: tuple[str, ...]) -> None:
        """Replace the answers of some fields by those that a browser sent."""
        for name in fields:
            longest = LONGEST_TEXT if name == "subgroups" else LONGEST_VALUE
            values = sent.getlist(name)
            values = values[: MAX_PLACES + 1] if name == "places" else values[-1:]
            self.values[name] = [value[:longest] for value in values]


def drafts_of(session: SessionBase) -> list[Draft]:
    """Return the drafts that are not too old, newest first."""
    drafts = [Draft(**stored) for stored in session.get(SESSION_KEY, [])]
    oldest = time.time() - LASTS
    return [draft for draft in drafts if draft.saved_at > oldest]


def find_draft(session: SessionBase, key: str) -> Draft | None:
    return next((draft for draft in drafts_of(session) if draft.key == key), None)


def begin_draft(session: SessionBase, published: PublishedSurvey) -> Draft:
    """Store a new draft whose questionnaire is chosen."""
    draft = Draft(values={"published": [published.pk]}, done=["questions"])
    save_draft(session, draft)
    return draft


def save_draft(session: SessionBase, draft: Draft) -> None:
    """Store a draft as the newest; the oldest of too many goes."""
    draft.revision += 1
    draft.saved_at = time.time()
    _store(session, [draft, *_others(session, draft)])


def lock_draft(session: SessionBase, draft: Draft) -> bool:
    """Check that no other request has opened or changed a draft since it was read.

    Others wait until the transaction ends. 1 statement.
    """
    rows = Session.objects.select_for_update()
    row = rows.filter(session_key=session.session_key).first()
    newest = row.get_decoded() if row else {}
    held = [Draft(**stored).version for stored in newest.get(SESSION_KEY, [])]
    if draft.version in held:
        return True
    # Otherwise the end of this request would store what it had read.
    for name in (SESSION_KEY, OPENED_KEY):
        session[name] = newest.get(name, [])
    return False


def note_opened(session: SessionBase, draft: Draft, administration: int) -> None:
    """Replace a draft by the key of the administration that was opened from it."""
    _store(session, _others(session, draft))
    opened = [(draft.key, administration), *session.get(OPENED_KEY, [])]
    session[OPENED_KEY] = opened[:MOST_DRAFTS]


def opened_from(session: SessionBase, key: str) -> int | None:
    """Return the administration that was opened from a draft."""
    return dict(session.get(OPENED_KEY, [])).get(key)


def _others(session: SessionBase, draft: Draft) -> list[Draft]:
    return [stored for stored in drafts_of(session) if stored.key != draft.key]


def _store(session: SessionBase, drafts: list[Draft]) -> None:
    session[SESSION_KEY] = [asdict(draft) for draft in drafts[:MOST_DRAFTS]]
