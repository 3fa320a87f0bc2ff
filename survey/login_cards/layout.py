"""The contents and the order of login cards, from the database."""

from __future__ import annotations

import re

from django.conf import settings
from django.db.models import QuerySet

from survey import access_codes
from survey.login_cards.card_text import (
    CARD_WORDS,
    card_language,
    first_card_language,
    window_in_words,
)
from survey.login_cards.pdf import CardSheet, LoginCard
from survey.models import CardSet, Respondent, Role


def sheet_of(card_set: CardSet) -> CardSheet:
    """Return what all cards of a set have in common."""
    administration = card_set.administration
    opens_at, closes_at = administration.opens_at, administration.closes_at
    return CardSheet(
        title=f"Login cards: {card_set.scope}",
        address=settings.PUBLIC_ADDRESS,
        first_language=first_card_language(administration),
        windows={
            language: window_in_words(language, opens_at, closes_at)
            for language in CARD_WORDS
        },
    )


def card_of(respondent: Respondent, card_set: CardSet, sheet: CardSheet) -> LoginCard:
    """Return one person's card."""
    identity = getattr(respondent, "identity", None)
    words = CARD_WORDS[sheet.first_language]
    # Cards are handed out class by class, so the class is printed on them.
    role, parts = card_set.administration.role, [str(card_set.school)]
    if role == Role.TEACHER:
        parts.append(words.teachers)
    elif role == Role.STUDENT and respondent.classroom:
        parts.append(words.room.format(name=respondent.classroom))
    elif role == Role.STUDENT and respondent.grade:
        parts.append(words.grade.format(name=respondent.grade))
    group = " · ".join(parts)
    place = group
    if identity and card_set.with_ids:
        place += f" · {identity.external_id}"
    return LoginCard(
        group=group,
        place=place,
        given_name=identity.given_name if identity else "",
        family_name=identity.family_name if identity else "",
        code=access_codes.format_code(access_codes.code_of(respondent)),
        language=card_language(card_set.language or respondent.language),
    )


def class_by_class(people: QuerySet[Respondent], role: str) -> list[Respondent]:
    """Return people in the order in which cards are handed out. 1 statement.

    Class 10A follows class 9B. Students without a class come last, by grade.
    """

    def sort_key(respondent: Respondent) -> tuple[object, ...]:
        if role != Role.STUDENT:
            return ()
        if respondent.classroom:
            return (0, _natural(respondent.classroom), respondent.classroom)
        return (1, _natural(respondent.grade), respondent.grade)

    # Sorted by name in the database, and by class here: in a database's
    # collation "10A" precedes "9B".
    by_name = people.select_related("identity").order_by(
        "identity__family_name", "identity__given_name", "pk"
    )
    return sorted(by_name, key=sort_key)


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts "10A" after "9B"."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part.casefold())
        for part in re.split(r"(\d+)", text)
        if part
    ]
