"""Tell whether a text has something of a person in it: marks that nobody else has.

Drawn before people are erased, because afterwards nobody knows them.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from survey.models import Identity
from survey.people.access_codes import code_of, format_code

# As JSON writes letters that are not ASCII.
ESCAPE = re.compile(r"\\u([0-9a-f]{4})")
# A shorter one is in too many texts by chance, such as a number of two digits.
SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Mark:
    """All of these words are in one row, value or line, where the person is."""

    kind: str
    words: tuple[str, ...]


@dataclass(slots=True)
class Searched:
    """What was read of a store, and where traces are: place -> how many."""

    read: int = 0
    traces: Counter[str] = field(default_factory=Counter)
    # What could not be read, and why.
    unread: list[str] = field(default_factory=list)

    def described(self) -> dict[str, Any]:
        traces = dict(sorted(self.traces.items()))
        return {"read": self.read, "traces": traces, "unread": self.unread}


class Marks:
    """The marks of some people; a text is compared with all of them at once."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        self.marks = sorted(
            {Mark(m.kind, tuple(map(_folded, m.words))) for m in marks},
            key=lambda mark: (mark.kind, mark.words),
        )
        # The longest first, because a shorter one may be its beginning.
        words = sorted(
            {word for mark in self.marks for word in mark.words},
            key=lambda word: (-len(word), word),
        )
        # Whole words: the ID 10045 is not in 2100457.
        self._pattern = re.compile(
            rf"(?<![^\W_])(?:{'|'.join(map(re.escape, words)) or '(?!)'})(?![^\W_])"
        )
        self.words = words

    def kinds_in(self, text: str) -> set[str]:
        """Return the kinds of marks that a text has."""
        text = _folded(text)
        if "&" in text:
            # As XML and HTML write letters.
            text += " " + _folded(html.unescape(text))
        if "\\u" in text:
            text += " " + ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
        words = set(self._pattern.findall(text))
        if not words:
            return set()
        # What was matched as a part of a longer word.
        words |= {each for each in self.words for word in words if each in word}
        return {mark.kind for mark in self.marks if words.issuperset(mark.words)}

    def note(self, searched: Searched, place: str, text: str) -> None:
        """Count the traces in a text."""
        for kind in self.kinds_in(text):
            searched.traces[f"{place}: {kind}"] += 1


def _folded(text: str) -> str:
    return text.casefold()


def text_of(values: Iterable[object]) -> str:
    """Return a row as a text; bytes as hexadecimal and as what they may spell."""
    parts = []
    for value in values:
        if isinstance(value, bytes | memoryview):
            content = bytes(value)
            parts += [content.hex(), content.decode("utf-8", "replace")]
        elif value is not None:
            parts.append(str(value))
    return "\n".join(parts)


def draw_marks(people: QuerySet[Identity]) -> list[Mark]:
    """Return marks of people: ID, name, e-mail address, code and its digest.

    Without those that another person has, or that are too short. 2 statements, and 3
    for each person.
    """
    marks = []
    for identity in people.select_related("respondent").order_by("pk"):
        respondent = identity.respondent
        same_ids = Identity.objects.filter(external_id=identity.external_id).exclude(
            district=identity.district
        )
        if len(identity.external_id) >= SHORTEST and not same_ids.exists():
            marks.append(Mark("ID", (identity.external_id,)))
        name = (identity.given_name, identity.family_name)
        same_names = Identity.objects.filter(
            given_name__iexact=name[0], family_name__iexact=name[1]
        ).exclude(district=identity.district, external_id=identity.external_id)
        if all(name) and not same_names.exists():
            marks.append(Mark("name", name))
        same_emails = Identity.objects.filter(email__iexact=identity.email).exclude(
            district=identity.district, external_id=identity.external_id
        )
        if identity.email and not same_emails.exists():
            marks.append(Mark("e-mail address", (identity.email,)))
        marks += _marks_of_code(respondent)
    return marks


def _marks_of_code(respondent: Any) -> Sequence[Mark]:
    code = code_of(respondent)
    return (
        Mark("access code", (code,)),
        Mark("access code", (format_code(code),)),
        Mark("digest of the code", (bytes(respondent.code_digest).hex(),)),
    )
