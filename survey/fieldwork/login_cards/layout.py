"""The contents and the order of login cards, from the database."""

from __future__ import annotations

import re
from functools import partial
from random import SystemRandom

from django.conf import settings
from django.db.models import QuerySet

from accounts.place_settings import Brands
from accounts.time_zones import zone_of
from survey.fieldwork.login_cards.card_text import (
    CARD_WORDS,
    card_language,
    card_languages,
    group_of,
    window_in_words,
)
from survey.fieldwork.login_cards.fonts import printable
from survey.fieldwork.login_cards.pdf import CardSheet, LoginCard
from survey.models import CardSet, Respondent, Role
from survey.people import access_codes
from survey.taking.published import published_survey


def sheet_of(card_set: CardSet, brands: Brands | None = None) -> CardSheet:
    """Return what all cards of a set have in common.

    Those who make several sets read the `brands` of all districts once.
    """
    administration, school = card_set.administration, card_set.school
    opens_at, closes_at = administration.opens_at, administration.closes_at
    languages = card_languages(administration)
    first = languages[0]
    zone = zone_of(school.district if school else card_set.district)
    published = published_survey(administration.published_id)
    titles = {card_language(code): code for code in reversed(published.languages)}
    return CardSheet(
        title=f"Login cards: {card_set.scope}",
        address=settings.PUBLIC_ADDRESS,
        first_language=first,
        titles={
            language: printable(published.title_in(titles.get(language, language)))
            or ""
            for language in languages
        },
        windows={
            language: window_in_words(language, opens_at, closes_at, zone)
            for language in languages
        },
        note=CARD_WORDS[first].drawn if card_set.anonymous else "",
        brand=(brands or Brands()).of(school.district_id if school else None),
    )


def cards_of(
    card_set: CardSet, people: QuerySet[Respondent], sheet: CardSheet
) -> list[LoginCard]:
    """Return all cards of a set, group by group."""
    role = card_set.administration.role
    heading_of = partial(
        group_of,
        school=str(card_set.school),
        role=role,
        words=CARD_WORDS[sheet.first_language],
    )
    in_order = class_by_class(people, role)
    if not card_set.anonymous:
        return [
            card_of(person, card_set, heading_of(person), sheet) for person in in_order
        ]
    groups: dict[str, list[Respondent]] = {}
    for person in in_order:
        groups.setdefault(heading_of(person), []).append(person)
    return [
        card_of(person, card_set, group, sheet)
        for group, members in merge_small(groups, str(card_set.school)).items()
        # In the order of their names, the cards would be known by counting.
        for person in SystemRandom().sample(members, len(members))
    ]


def merge_small(
    groups: dict[str, list[Respondent]], label: str
) -> dict[str, list[Respondent]]:
    """Put groups that are too small to draw from together, under one label."""
    merged: list[Respondent] = []
    large: dict[str, list[Respondent]] = {}
    for group, members in sorted(groups.items(), key=lambda entry: len(entry[1])):
        if len(members) < CardSet.MIN_DRAWN or 0 < len(merged) < CardSet.MIN_DRAWN:
            merged += members
        else:
            large[group] = members
    in_order = {group: large[group] for group in groups if group in large}
    return {**in_order, label: merged} if merged else in_order


def card_of(
    respondent: Respondent, card_set: CardSet, group: str, sheet: CardSheet
) -> LoginCard:
    """Return one person's card."""
    # A language that only one person speaks would tell whose card it is.
    preferred = "" if card_set.anonymous else respondent.language
    language = card_language(card_set.language or preferred)
    identity = None
    if not card_set.anonymous:
        identity = getattr(respondent, "identity", None)
    place = group
    if identity and card_set.with_ids:
        place += f" · {identity.external_id}"
    given = printable(identity.given_name) if identity else ""
    family = printable(identity.family_name) if identity else ""
    is_named_by_id = given is None or family is None
    if identity and is_named_by_id:
        given, family = identity.external_id, ""
    return LoginCard(
        group=group,
        place=place,
        given_name=given or "",
        family_name=family or "",
        is_named_by_id=is_named_by_id,
        code=access_codes.format_code(access_codes.code_of(respondent)),
        language=language if language in sheet.windows else "",
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
