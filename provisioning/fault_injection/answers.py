"""What is sent: a function of seed, respondent, page and revision.

So the log needs no values, and whatever stands in the database can be told
from what should: the text of a text item names its respondent, page and
revision; the choices of a page are drawn from all four.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a survey: how it is named on the wire and in the database."""

    id: int
    name: str
    kind: str
    # What a choice offers, in the survey's order.
    values: Sequence[str] = ()


Answers = Mapping[str, Any]
Pages = Mapping[int, Sequence[Item]]


def answers_for(
    *, seed: int, respondent: int, page: int, revision: int, items: Sequence[Item]
) -> dict[str, Any]:
    """An answer to every item of the page, as it goes over the wire."""
    key = f"{seed}:{respondent}:{page}:{revision}"
    draws = hashlib.shake_128(key.encode()).digest(4 * len(items))
    drawn = [int.from_bytes(draws[n : n + 4], "big") for n in range(0, len(draws), 4)]
    return {
        item.name: _answer(item, number, f"{respondent} on {page} at {revision}")
        for item, number in zip(items, drawn, strict=True)
    }


def _answer(item: Item, number: int, who: str) -> str | list[str] | None:
    if item.kind == "text":
        return f"{who}: {number:08x}"
    if item.kind == "select_one":
        return item.values[number % len(item.values)]
    if item.kind == "select_multiple":
        return [value for n, value in enumerate(item.values) if number >> n & 1]
    if item.kind in ("integer", "decimal"):
        return str(number)
    # A blank is a row of its own, and has to be there as well.
    return None


def as_stored(answer: str | list[str] | None) -> tuple[str, str | None]:
    """State and value of the row that this answer becomes."""
    if not answer:
        return ("s", None)
    return ("a", answer if isinstance(answer, str) else " ".join(answer))


def fingerprint(answers: Answers) -> str:
    text = json.dumps(answers, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
