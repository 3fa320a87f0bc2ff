"""Derive the answers sent from seed, respondent, page and revision.

So the log needs no values, and each stored value can be compared with what
was sent. Every item is a choice, as in the survey of a rehearsal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Response.State.ANSWERED, which can't be imported without Django's settings.
ANSWERED = "a"

# Item's name -> value.
Answers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a survey: its ID in the database, and its name on the wire."""

    id: int
    name: str
    values: Sequence[str]


Pages = Mapping[int, Sequence[Item]]


@dataclass(frozen=True, slots=True)
class AnswerSource:
    seed: int
    pages: Pages

    @classmethod
    def of(cls, seed: int, described: Mapping[str, Any]) -> AnswerSource:
        """Use the pages that `manage.py open_rehearsal --json` describes."""
        pages = {
            page["n"]: [
                Item(item["id"], item["name"], item["values"]) for item in page["items"]
            ]
            for page in described["pages"]
        }
        return cls(seed, pages)

    def answers(self, respondent: int, page: int, revision: int) -> Answers:
        """Return an answer to every item of the page, as it is sent."""
        items = self.pages[page]
        key = f"{self.seed}:{respondent}:{page}:{revision}"
        drawn = hashlib.shake_128(key.encode()).digest(len(items))
        return {
            item.name: item.values[number % len(item.values)]
            for item, number in zip(items, drawn, strict=True)
        }

    def stored(self, respondent: int, page: int, revision: int) -> dict[int, str]:
        """Return the same by the IDs of the items, as it is stored."""
        answers = self.answers(respondent, page, revision)
        return {item.id: answers[item.name] for item in self.pages[page]}


def fingerprint(answers: Answers) -> str:
    text = json.dumps(answers, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
