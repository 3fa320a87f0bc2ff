"""The words on login cards, in each language of the respondents' messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from django.utils import translation
from django.utils.formats import date_format

from survey.instrument.definitions.schema import load_definition
from survey.models import Administration, Respondent, Role
from survey.models.grades import grade_name
from survey.taking import messages


@dataclass(frozen=True, slots=True)
class CardWords:
    """The messages that begin with `card_`: each is one line, under 60 letters.

    Pupils get the same cards as parents and teachers, so Spanish has no imperatives:
    they would say "tú" or "usted".
    """

    code: str
    open: str
    type: str
    # On cards without a name.
    drawn: str
    # In e-mails, above the link.
    link: str
    # Whose code it is, with {name}; and where several people have one address.
    for_person: str
    counted: str
    # With {opens} and {closes}; a window of one day has {day}.
    window: str
    one_day: str
    # The group that gets these cards, with {name}.
    room: str
    grade: str
    teachers: str


CARD_WORDS = {
    language: CardWords(**messages.texts_of(language, "card_"))
    for language in messages.MESSAGES
}


def card_language(*wanted: str) -> str:
    """Return the first of these languages that has words, or "".

    "es-MX" is Spanish.
    """
    for language in wanted:
        base = language.replace("_", "-").split("-")[0].lower()
        if base in CARD_WORDS:
            return base
    return ""


def card_languages(administration: Administration) -> list[str]:
    """Return the survey's languages that have words, its first one first.

    Cards and e-mails in another language would invite to what their readers can't
    read. English if the survey has none that has words.
    """
    definition = load_definition(administration.published.definition)
    codes = [language["code"] for language in definition["languages"]]
    known = dict.fromkeys(card_language(code) for code in codes)
    return [code for code in known if code] or ["en"]


def group_of(
    respondent: Respondent, *, school: str, role: str, words: CardWords
) -> str:
    """Return the heading under which a person's card is printed and handed out."""
    parts = [school]
    if role == Role.TEACHER:
        parts.append(words.teachers)
    elif role == Role.STUDENT and respondent.classroom:
        parts.append(words.room.format(name=respondent.classroom))
    elif role == Role.STUDENT and respondent.grade:
        parts.append(words.grade.format(name=grade_name(respondent.grade)))
    return " · ".join(parts)


def for_whom(
    *, name: str, group: str, number: int, total: int, words: CardWords
) -> list[str]:
    """Return the lines of an e-mail that say whose code it has.

    `name` is empty where cards have no names either. `number` and `total` count the
    people with one address.
    """
    if name:
        return [words.for_person.format(name=name)]
    if total > 1:
        return [group, words.counted.format(n=number, total=total)]
    return [group]


def window_in_words(
    language: str, opens_at: datetime, closes_at: datetime, zone: tzinfo
) -> str:
    """Return the days of a window by the clocks of the readers' district."""
    first = opens_at.astimezone(zone).date()
    # An administration that closes at midnight is last open the day before.
    last = (closes_at - timedelta(seconds=1)).astimezone(zone).date()
    words = CARD_WORDS[language]
    with translation.override(language):
        if first == last:
            return words.one_day.format(day=date_format(first, "DATE_FORMAT"))
        return words.window.format(
            opens=date_format(first, "DATE_FORMAT"),
            closes=date_format(last, "DATE_FORMAT"),
        )
