"""Read and change the installation's own texts on privacy and accessibility.

A text is plain: paragraphs with blank lines between them, and headings on lines that
begin with "# ". What stands in [brackets] is still to fill in, and as long as there is
some, the text is not public.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.db import transaction
from django.http import HttpRequest

from accounts import audit
from accounts.models import PublicText, User
from survey.taking import messages

DRAFTS = Path(__file__).with_name("page_drafts")
# Also one that is closed in another line, or not at all.
BLANK = re.compile(r"\[[^\]]*\]?|\]")
HEADING = "# "


@dataclass(frozen=True, slots=True)
class Part:
    """A heading or a paragraph."""

    text: str
    is_heading: bool = False


@cache
def draft_of(kind: str, language: str) -> str:
    """Return the text to begin with; in English where there is none."""
    file = DRAFTS / f"{kind}.{language}.txt"
    if not file.exists():
        file = DRAFTS / f"{kind}.{messages.FALLBACK}.txt"
    return file.read_text("utf-8")


def blanks_of(text: str) -> list[str]:
    """Return what is still to fill in, each once."""
    return list(dict.fromkeys(BLANK.findall(text)))


def parts_of(text: str) -> list[Part]:
    parts = []
    for paragraph in re.split(r"\n\s*\n|\n(?=# )|(?<=\n)(?=# )", text.strip()):
        first, _newline, rest = paragraph.strip().partition("\n")
        if first.startswith(HEADING):
            parts.append(Part(first.removeprefix(HEADING).strip(), is_heading=True))
            first = ""
        if body := "\n".join(filter(None, (first, rest))).strip():
            parts.append(Part(body))
    return parts


def public_texts(kind: str) -> dict[str, str]:
    """Return the texts without blanks, by language. 1 statement."""
    rows = PublicText.objects.filter(kind=kind).values_list("language", "text")
    texts = {language: text for language, text in rows if not blanks_of(text)}
    order = [entry["code"] for entry in messages.languages()]
    return {code: texts[code] for code in order if code in texts}


def texts_by_kind() -> dict[tuple[str, str], str]:
    """Return all texts, by kind and language. 1 statement."""
    rows = PublicText.objects.values_list("kind", "language", "text")
    return {(kind, language): text for kind, language, text in rows}


@transaction.atomic
def change_text(
    kind: str, language: str, text: str, *, by: User, request: HttpRequest | None = None
) -> bool:
    """Store a text, or remove it if it is empty; return whether it differs."""
    rows = PublicText.objects.filter(kind=kind, language=language)
    before = rows.select_for_update().values_list("text", flat=True).first() or ""
    if before == text:
        return False
    if text:
        PublicText.objects.update_or_create(
            kind=kind, language=language, defaults={"text": text}
        )
    else:
        rows.delete()
    audit.record(
        "change a public page",
        by=by,
        request=request,
        before={"page": kind, "language": language, "public": _is_public(before)},
        after={"page": kind, "language": language, "public": _is_public(text)},
    )
    return True


def _is_public(text: str) -> bool:
    return bool(text) and not blanks_of(text)


def choose_language(offered: Sequence[str], *wanted: str) -> str:
    """Return the first wanted language that is offered, or else the first one."""
    bases = {messages.base_of(code): code for code in reversed(offered)}
    matches = (bases[base] for base in map(messages.base_of, wanted) if base in bases)
    return next(matches, offered[0])
