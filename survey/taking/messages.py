"""The texts that respondents read besides the survey itself, by language.

English is in `messages.json`, by key; the other languages are gettext catalogs,
`locale/<language>/LC_MESSAGES/respondents.po`, whose contexts are the keys
(`manage.py update_translations`). Places such as `{n}` are filled here or in the
browser. Adults are addressed more formally in some languages: `adults.po` has only
the texts that differ. Texts that are shown before the role is known, or in pages
that are cached for everyone, must suit all roles.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from gettext import GNUTranslations
from pathlib import Path

from django.utils.translation.trans_real import parse_accept_lang_header

from survey.instrument.definitions.schema import Direction, LanguageDefinition
from survey.models import Role

SOURCE = Path(__file__).with_name("messages.json")
LOCALE = Path(__file__).with_name("locale")
DOMAIN, ADULTS = "respondents", "adults"
FALLBACK = "en"
# Keys of the page of an open code, of login cards, posters and letters, of footers, of
# tests, and of what only the server writes begin like these; a tab does not need them.
NOT_IN_TABS = (
    *("start_", "card_", "paper_", "slider_", "about_", "site_", "review_"),
    *("module_", "test_", "limits_", "declining_"),
)
# Surveys come in more languages than there are messages for, so this lists
# the right-to-left languages that a school is likely to have.
RIGHT_TO_LEFT = frozenset(
    ("ar", "ckb", "dv", "fa", "he", "ks", "nqo", "prs", "ps", "sd", "syr", "ug")
    + ("ur", "yi")
)
RIGHT_TO_LEFT_SCRIPTS = frozenset(("arab", "hebr", "nkoo", "syrc", "thaa"))


ENGLISH: Mapping[str, str] = json.loads(SOURCE.read_text("utf-8"))


def compiled_catalogs(domain: str) -> list[Path]:
    return sorted(LOCALE.glob(f"*/LC_MESSAGES/{domain}.mo"))


def _translated(file: Path) -> Iterator[tuple[str, str]]:
    with file.open("rb") as stream:
        catalog = GNUTranslations(stream)
    for key, english in ENGLISH.items():
        # gettext's own separator of context and text, to tell what is missing.
        text = catalog.gettext(f"{key}\x04{english}")
        if text != f"{key}\x04{english}":
            yield key, text


MESSAGES: Mapping[str, Mapping[str, str]] = {
    FALLBACK: ENGLISH,
    **{
        file.parts[-3]: {**ENGLISH, **dict(_translated(file))}
        for file in compiled_catalogs(DOMAIN)
    },
}
FOR_ADULTS: Mapping[str, Mapping[str, str]] = {
    file.parts[-3]: dict(_translated(file)) for file in compiled_catalogs(ADULTS)
}


def language_for(*wanted: str) -> str:
    """Return the first wanted language that has messages, else English.

    `es-MX` matches `es`.
    """
    for code in wanted:
        for candidate in (code.lower(), base_of(code)):
            if candidate in MESSAGES:
                return candidate
    return FALLBACK


def language_accepted(header: str) -> str:
    """Choose the language for an Accept-Language header."""
    return language_for(*(code for code, _ in parse_accept_lang_header(header)))


def messages_in(language: str, role: str = Role.STUDENT) -> dict[str, str]:
    """Return a copy of the messages, which the caller may change."""
    code = language_for(language)
    formal = {} if role == Role.STUDENT else FOR_ADULTS.get(code, {})
    return {**MESSAGES[code], **formal}


def texts_of(language: str, prefix: str) -> dict[str, str]:
    """Return the messages whose keys begin with `prefix`, by the rest of the key."""
    return {
        key.removeprefix(prefix): text
        for key, text in MESSAGES[language].items()
        if key.startswith(prefix)
    }


def languages() -> list[LanguageDefinition]:
    """List the languages that have messages, with their own names, for a menu."""
    return in_menu_order(
        {
            "code": code,
            "name": words["language_name"],
            "direction": direction(code),
        }
        for code, words in MESSAGES.items()
    )


def in_menu_order(languages: Iterable[LanguageDefinition]) -> list[LanguageDefinition]:
    """Sort the languages of a menu: English, then by name; one order everywhere."""

    def key(language: LanguageDefinition) -> tuple[bool, str]:
        return base_of(language["code"]) != FALLBACK, language["name"].casefold()

    return sorted(languages, key=key)


def direction(language: str) -> Direction:
    base, *subtags = _subtags(language)
    if base in RIGHT_TO_LEFT or not RIGHT_TO_LEFT_SCRIPTS.isdisjoint(subtags):
        return "rtl"
    return "ltr"


def base_of(language: str) -> str:
    return _subtags(language)[0]


def _subtags(language: str) -> list[str]:
    return language.lower().replace("_", "-").split("-")
