"""The texts that respondents read besides the survey itself, by language.

One flat JSON object per language in `messages/`, with the same keys in each.
Places such as `{n}` are filled here or in the browser. Adults are addressed
more formally in some languages: `messages/adults/` has only the texts that
differ. Texts that are shown before the role is known, or in pages that are
cached for everyone, must suit all roles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from django.utils.translation.trans_real import parse_accept_lang_header

from survey.models import Role

FOLDER = Path(__file__).with_name("messages")
FALLBACK = "en"
# The keys of the page of an open code begin like this; a tab does not need them.
START_PAGE = "start_"
# Surveys come in more languages than there are messages for, so this lists
# the right-to-left languages that a school is likely to have.
RIGHT_TO_LEFT = frozenset(
    ("ar", "ckb", "dv", "fa", "he", "ks", "nqo", "prs", "ps", "sd", "syr", "ug")
    + ("ur", "yi")
)
RIGHT_TO_LEFT_SCRIPTS = frozenset(("arab", "hebr", "nkoo", "syrc", "thaa"))


def _read_messages(folder: Path) -> dict[str, dict[str, str]]:
    return {
        path.stem: json.loads(path.read_text("utf-8"))
        for path in sorted(folder.glob("*.json"))
    }


MESSAGES: Mapping[str, Mapping[str, str]] = _read_messages(FOLDER)
FOR_ADULTS: Mapping[str, Mapping[str, str]] = _read_messages(FOLDER / "adults")


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
