"""What other apps say about destroying: what has to end before, and what goes along."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from django.db.models import QuerySet

from accounts.tables import Table
from survey.models import Administration

# Returns why data of a kind cannot be destroyed yet, or "".
Blocker = Callable[[Administration, str], str]
_blockers: list[Blocker] = []


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """Rows that were made of single people's answers."""

    rows: QuerySet[Table]
    # What the columns get that are about single people; without, rows are deleted.
    emptied: Mapping[str, object] = field(default_factory=dict)


Derived = Callable[[int], Iterator[DerivedRows]]
_derived: list[Derived] = []


def blocks_destroying(blocker: Blocker) -> Blocker:
    """Register a function that says what has to end before."""
    _blockers.append(blocker)
    return blocker


def derived_from_answers(derived: Derived) -> Derived:
    """Register a function that yields what is destroyed with a round's answers."""
    _derived.append(derived)
    return derived


def reason_to_wait(administration: Administration, kind: str) -> str:
    return next(
        filter(None, (blocker(administration, kind) for blocker in _blockers)), ""
    )


def derived_rows(administration: int) -> Iterator[DerivedRows]:
    for derived in _derived:
        yield from derived(administration)
