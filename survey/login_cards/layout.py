"""What stands on one person's login card, out of the database."""

from __future__ import annotations

from django.conf import settings

from survey import access_codes
from survey.login_cards.card_sets import languages_of
from survey.login_cards.card_text import WORDS, Words, card_language, window_in_words
from survey.login_cards.pdf import Card, Sheet
from survey.models import CardSet, Respondent, Role


def sheet_of(card_set: CardSet) -> Sheet:
    administration = card_set.administration
    languages = [code for code, _ in languages_of(administration)]
    opens_at, closes_at = administration.opens_at, administration.closes_at
    return Sheet(
        title=f"Login cards: {card_set.whose}",
        address=settings.PUBLIC_ADDRESS,
        first_language=card_language(*languages) or "en",
        windows={one: window_in_words(one, opens_at, closes_at) for one in WORDS},
    )


def card_of(respondent: Respondent, card_set: CardSet, sheet: Sheet) -> Card:
    identity = getattr(respondent, "identity", None)
    place = _place(respondent, card_set, WORDS[sheet.first_language])
    return Card(
        group=place,
        place=f"{place} · {identity.external_id}"
        if identity and card_set.with_ids
        else place,
        given_name=identity.given_name if identity else "",
        family_name=identity.family_name if identity else "",
        code=access_codes.shown(access_codes.code_of(respondent)),
        language=card_language(card_set.language or respondent.language),
    )


def _place(respondent: Respondent, card_set: CardSet, words: Words) -> str:
    """The school, and by what its cards are handed out."""
    role, parts = card_set.administration.role, [str(card_set.school)]
    if role == Role.TEACHER:
        parts.append(words.teachers)
    elif role == Role.STUDENT and respondent.classroom:
        parts.append(words.room.format(name=respondent.classroom))
    elif role == Role.STUDENT and respondent.grade:
        parts.append(words.grade.format(name=respondent.grade))
    return " · ".join(parts)
