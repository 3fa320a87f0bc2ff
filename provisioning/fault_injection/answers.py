"""Derive the answers sent from seed, respondent, page and revision.

So the log needs no values, and each stored value can be compared with what
was sent: a text names its respondent, page and revision, and the choices of a
page are drawn from all four.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Answer = str | list[str] | None
Answers = Mapping[str, Answer]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a survey: its ID in the database, and its name on the wire."""

    id: int
    name: str
    kind: str
    # What a choice offers, in the survey's order.
    values: Sequence[str] = ()


Pages = Mapping[int, Sequence[Item]]


def pages_of(described: Mapping[str, Any]) -> Pages:
    """Return the pages that `manage.py open_rehearsal --json` describes."""
    return {
        page["n"]: [
            Item(item["id"], item["name"], item["kind"], tuple(item["values"]))
            for item in page["items"]
        ]
        for page in described["pages"]
    }


def answers_for(
    *, seed: int, respondent: int, page: int, revision: int, items: Sequence[Item]
) -> dict[str, Answer]:
    """Return an answer to every item of the page, as it is sent."""
    key = f"{seed}:{respondent}:{page}:{revision}"
    draws = hashlib.shake_128(key.encode()).digest(4 * len(items))
    answers: dict[str, Answer] = {}
    for n, item in enumerate(items):
        number = int.from_bytes(draws[4 * n : 4 * n + 4], "big")
        if item.kind == "text":
            text = f"{respondent} on {page} at {revision}: {number:08x}"
            answers[item.name] = text
        elif item.kind == "select_one":
            answers[item.name] = item.values[number % len(item.values)]
        elif item.kind == "select_multiple":
            answers[item.name] = [
                value for n, value in enumerate(item.values) if number >> n & 1
            ]
        elif item.kind in ("integer", "decimal"):
            answers[item.name] = str(number)
        else:
            # A blank is stored as a row too, and has to be there.
            answers[item.name] = None
    return answers


def as_stored(answer: Answer) -> tuple[str, str | None]:
    """Return the state and value of the row that this answer becomes."""
    if not answer:
        return ("s", None)
    return ("a", answer if isinstance(answer, str) else " ".join(answer))


def fingerprint(answers: Answers) -> str:
    text = json.dumps(answers, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
