"""Find a district or school by its code or name, tolerating other spellings."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

_ABBREVIATIONS = {
    "acad": "academy",
    "ctr": "center",
    "elem": "elementary",
    "es": "elementary",
    "hs": "high",
    "isd": "independent",
    "jr": "junior",
    "ms": "middle",
    "mt": "mount",
    "sr": "senior",
    "st": "saint",
    "usd": "unified",
}
# They tell no school from another.
_GENERAL = frozenset(
    ("the", "and", "of", "public", "school", "schools", "sch", "district", "districts")
)
# A name with and without one of these can be the same place ...
_OFTEN_LEFT_OUT = frozenset(("elementary", "unified", "independent"))
# ... unless other places differ in such words only.
_KINDS = _OFTEN_LEFT_OUT | frozenset(
    ["middle", "high", "junior", "senior", "intermediate", "primary", "union"]
)
# Short words that are no misspellings of each other.
_DISTINCT = frozenset(("north", "south", "east", "west", "i", "ii", "iii", "iv", "v"))
# So many unknown names of a file are compared with all known ones.
MOST_COMPARED = 50


class NameKeys(NamedTuple):
    """Forms of a name, from exact to tolerant; equal forms can be one place.

    Forms without any word are blank, and equal to none.
    """

    # Without case, accents, spaces and punctuation.
    exact: str
    # With abbreviations spelt out, and without words such as "School".
    usual: str
    # Also without words such as "Elementary".
    short: str
    # Without any word for a kind of school.
    bare: str


def _split(name: str) -> list[str]:
    """Return the words of a name, without case, accents and punctuation."""
    text = unicodedata.normalize("NFKD", name).casefold()
    text = "".join(sign for sign in text if not unicodedata.combining(sign))
    return re.findall(r"[^\W_]+", re.sub(r"[.'’]", "", text))  # noqa: RUF001


@lru_cache(maxsize=50_000)
def _usual_words(name: str) -> tuple[str, ...]:
    spelt = (_ABBREVIATIONS.get(word, word) for word in _split(name))
    return tuple(word for word in spelt if word not in _GENERAL)


@lru_cache(maxsize=50_000)
def name_keys(name: str) -> NameKeys:
    usual = _usual_words(name)
    return NameKeys(
        "".join(_split(name)),
        "".join(usual),
        "".join(word for word in usual if word not in _OFTEN_LEFT_OUT),
        "".join(word for word in usual if word not in _KINDS),
    )


def is_same_name(name: str, candidate: str) -> bool:
    """Tell whether two names are spellings of one name."""
    left, right = name_keys(name), name_keys(candidate)
    if left.exact == right.exact:
        return True
    # Not both short: "Oak Unified" and "Oak Elementary" are two districts.
    pairs = (
        (left.usual, right.usual),
        (left.usual, right.short),
        (left.short, right.usual),
    )
    return any(a and a == b for a, b in pairs)


def is_near_name(name: str, candidate: str) -> bool:
    """Tell whether a name is probably a misspelling of another one.

    One or two letters differ, or the same words have another order. School 12 and
    School 13 are two schools, and so are Lincoln East and Lincoln West.
    """
    left, right = _usual_words(name), _usual_words(candidate)
    if _distinctions(left) != _distinctions(right):
        return False
    pairs = [(left, right)]
    # "Lincon" is also near Lincoln Middle, but Lincon High is not.
    if not (_KINDS.intersection(left) and _KINDS.intersection(right)):
        pairs.append((_without_kind(left), _without_kind(right)))
    return any(
        sorted(ours) == sorted(theirs) or _few_edits("".join(ours), "".join(theirs))
        for ours, theirs in pairs
        if ours and theirs
    )


def _without_kind(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in _KINDS)


def _distinctions(words: Iterable[str]) -> list[str]:
    return sorted(
        word for word in words if word in _DISTINCT or any(map(str.isdigit, word))
    )


def _few_edits(text: str, candidate: str) -> bool:
    """Tell whether two letters differ at most, or one in a short text."""
    shorter = min(len(text), len(candidate))
    most = min(2, shorter // 3)
    # Many names of a large district are compared: this leaves few of them.
    if shorter < 4 or abs(len(text) - len(candidate)) > most:
        return False
    changes = SequenceMatcher(None, text, candidate, autojunk=False).get_opcodes()
    edits = sum(
        max(end - start, other_end - other_start)
        for kind, start, end, other_start, other_end in changes
        if kind != "equal"
    )
    return edits <= most


class FoundBy(Enum):
    CODE = "code"
    NAME = "name"
    NOTHING = "nothing"
    # It could be one of several places, or of two that contradict each other.
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class FoundPlace:
    by: FoundBy
    # One, none, or for UNCLEAR several.
    keys: tuple[int, ...] = ()


NOT_FOUND = FoundPlace(FoundBy.NOTHING)


class PlaceDirectory:
    """Districts, or the schools of one district, by primary key."""

    def __init__(self, places: Iterable[tuple[int, str, str]]) -> None:
        """Take rows of primary key, code and name."""
        self.code_of: dict[int, str] = {}
        self.name_of: dict[int, str] = {}
        # Places that are found, and take no people any more.
        self.closed: set[int] = set()
        self._by_code: dict[str, list[int]] = defaultdict(list)
        self._without_zeros: dict[str, list[int]] = defaultdict(list)
        self._by_name: dict[str, list[int]] = defaultdict(list)
        self._by_bare_name: dict[str, list[int]] = defaultdict(list)
        for pk, code, name in places:
            self.code_of[pk], self.name_of[pk] = code, name
            code = code.casefold()
            self._by_code[code].append(pk)
            self._without_zeros[code.lstrip("0")].append(pk)
            keys = name_keys(name)
            if keys.exact:
                self._by_name[keys.exact].append(pk)
            if keys.bare:
                self._by_bare_name[keys.bare].append(pk)

    def near_names(self, name: str) -> list[str]:
        """Return the names that `name` is probably a misspelling of, in order."""
        names = sorted(set(self.name_of.values()))
        return [known for known in names if is_near_name(name, known)]

    def add_alias(self, pk: int, code: str, name: str) -> None:
        """Let a place be found by an earlier code and name that no other has."""
        code, exact = code.casefold(), name_keys(name).exact
        if code not in self._by_code:
            self._by_code[code] = [pk]
        if exact and exact not in self._by_name:
            self._by_name[exact] = [pk]

    def find(self, code: str, name: str) -> FoundPlace:
        """Find a place by its code; where that is unknown, by its name.

        Without a code the name can be one: files have codes in a column of names.
        """
        if code:
            place = self._find_by_code(code, name)
            return place if place.keys else self.find_by_name(name)
        exact = {
            *self._by_name.get(name_keys(name).exact, ()),
            *self._by_code.get(name.casefold(), ()),
        }
        if exact:
            return self._found(sorted(exact), FoundBy.NAME)
        place = self._find_by_code(name, "")
        return place if place.keys else self.find_by_name(name)

    def _find_by_code(self, code: str, name: str) -> FoundPlace:
        code = code.casefold()
        if exact := self._by_code.get(code):
            # Codes that differ in case only.
            if name and len(exact) > 1:
                named = [pk for pk in exact if is_same_name(name, self.name_of[pk])]
                exact = named or exact
            return self._found(exact, FoundBy.CODE)
        # Excel drops leading zeros.
        short = self._without_zeros.get(code.lstrip("0") or code)
        by_code = self._found(short, FoundBy.CODE)
        if by_code.by == FoundBy.CODE and name:
            by_name = self.find_by_name(name)
            if by_name.keys and not set(by_code.keys) & set(by_name.keys):
                return FoundPlace(FoundBy.UNCLEAR, (*by_code.keys, *by_name.keys))
        return by_code

    def find_by_name(self, name: str) -> FoundPlace:
        keys = name_keys(name)
        if exact := self._by_name.get(keys.exact):
            return self._found(exact, FoundBy.NAME)
        similar = self._by_bare_name.get(keys.bare, [])
        usual = [
            pk for pk in similar if name_keys(self.name_of[pk]).usual == keys.usual
        ]
        if usual:
            return self._found(usual, FoundBy.NAME)
        same = [pk for pk in similar if is_same_name(name, self.name_of[pk])]
        # "Oak" is not Oak Elementary where there is an Oak High too.
        return self._found(similar if same else None, FoundBy.NAME)

    @staticmethod
    def _found(keys: list[int] | None, by: FoundBy) -> FoundPlace:
        if not keys:
            return NOT_FOUND
        return FoundPlace(by if len(keys) == 1 else FoundBy.UNCLEAR, tuple(keys))
