"""The texts that respondents read besides the survey itself, by language.

One flat JSON object per language in `messages/`, with the same keys in each.
Places such as `{n}` are filled here or in the browser.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from django.utils.translation.trans_real import parse_accept_lang_header

FOLDER = Path(__file__).with_name("messages")
FALLBACK = "en"
# Surveys come in more languages than there are messages for, so this lists
# the right-to-left languages that a school is likely to have.
RIGHT_TO_LEFT = frozenset(
    ("ar", "ckb", "dv", "fa", "he", "ks", "nqo", "prs", "ps", "sd", "syr", "ug")
    + ("ur", "yi")
)
RIGHT_TO_LEFT_SCRIPTS = frozenset(("arab", "hebr", "nkoo", "syrc", "thaa"))

MESSAGES: Mapping[str, Mapping[str, str]] = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted(FOLDER.glob("*.json"))
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


def messages_in(language: str) -> dict[str, str]:
    """Return a copy of the messages, which the caller may change."""
    return dict(MESSAGES[language_for(language)])


def languages() -> list[tuple[str, str]]:
    """List the languages that have messages, as (code, name in that language)."""
    order = sorted(MESSAGES, key=lambda code: (code != FALLBACK, code))
    return [(code, MESSAGES[code]["language_name"]) for code in order]


def direction(language: str) -> str:
    base, *subtags = _subtags(language)
    if base in RIGHT_TO_LEFT or not RIGHT_TO_LEFT_SCRIPTS.isdisjoint(subtags):
        return "rtl"
    return "ltr"


def base_of(language: str) -> str:
    return _subtags(language)[0]


def _subtags(language: str) -> list[str]:
    return language.lower().replace("_", "-").split("-")
