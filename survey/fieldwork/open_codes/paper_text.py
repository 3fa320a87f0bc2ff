"""The words on posters and letters with an open code, by language."""

from __future__ import annotations

from dataclasses import dataclass

from survey.taking import messages


@dataclass(frozen=True, slots=True)
class PaperWords:
    """The messages that begin with `paper_`; others on paper begin with `start_`."""

    # At the top of a letter.
    greeting: str
    # With {name}: the district, or the state.
    run_by: str
    run_by_state: str
    scan: str
    type: str
    # Above the code.
    code: str
    children: str
    # With {n}.
    limited: str


PAPER_WORDS = {
    language: PaperWords(**messages.texts_of(language, "paper_"))
    for language in messages.MESSAGES
}
