"""Decide which known or new place each code and name of a roster stands for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from django.utils.translation import gettext_noop

from survey.people.rosters.place_names import (
    FoundBy,
    FoundPlace,
    PlaceDirectory,
    is_same_name,
    name_keys,
)

UNCLEAR = gettext_noop(
    "could be one of several here. Use the code of the place and its own name"
)
TWO_CODES = gettext_noop(
    "has several codes in this file for one name. Use one code for each name,"
    " or a different name for each code"
)


class WrittenPlace(NamedTuple):
    """A code and a name as the file writes them; one of them can be blank."""

    code: str
    name: str

    @classmethod
    def of(cls, code: str, name: str) -> WrittenPlace:
        """Take a single text, which the parser gives as both, for what it can be.

        Digits are a code. Anything else can be a name or a code.
        """
        if name and name.casefold() != code:
            return cls(code, name)
        has_letters = any(sign.isalpha() for sign in code)
        return cls("", name or code) if has_letters else cls(code, "")


@dataclass
class PlaceResolution:
    """The places of one level: all districts, or the schools of one district."""

    known: dict[WrittenPlace, FoundPlace] = field(default_factory=dict)
    # New places are numbered from 0; several spellings can mean one.
    new: dict[WrittenPlace, int] = field(default_factory=dict)
    new_places: list[WrittenPlace] = field(default_factory=list)
    # Places that cannot be told apart: the reason, and the known ones they may be.
    unclear: dict[WrittenPlace, tuple[str, tuple[int, ...]]] = field(
        default_factory=dict
    )
    # Spellings of one name count once.
    names_of_code: dict[str, list[str]] = field(default_factory=dict)


def resolve_places(
    directory: PlaceDirectory, places: Iterable[WrittenPlace]
) -> PlaceResolution:
    """Find each place in the directory, or number it among the new ones.

    A place with an unknown code is found by its name only if the file has no other
    code for it. Two codes for one name could be two schools, and could be one that
    would then exist twice, so they stay unclear.
    """
    resolution = PlaceResolution()
    # Codes first, so that a name without a code finds the new place of its code.
    written = sorted(set(places), key=lambda place: (not place.code, place))
    matches = {place: directory.find(*place) for place in written}
    codes: dict[object, set[str]] = defaultdict(set)
    for place in filter(lambda place: place.code, written):
        for key in matches[place].keys or _keys_of_unknown(place):
            codes[key].add(place.code)
        if place.name:
            codes[name_keys(place.name).exact].add(place.code)
            names = resolution.names_of_code.setdefault(place.code, [])
            if not any(is_same_name(place.name, name) for name in names):
                names.append(place.name)
    for place in written:
        by, keys = matches[place].by, matches[place].keys
        if by == FoundBy.UNCLEAR:
            resolution.unclear[place] = UNCLEAR, keys
        elif (
            place.code
            and by != FoundBy.CODE
            and any(len(codes[key]) > 1 for key in (*keys, *_keys_of_unknown(place)))
        ):
            resolution.unclear[place] = TWO_CODES, keys
        elif keys:
            resolution.known[place] = matches[place]
    number_new_places(resolution, written)
    return resolution


def _keys_of_unknown(place: WrittenPlace) -> tuple[str]:
    """Return what tells a new place from others: its name, else its code."""
    return (name_keys(place.name).exact or f"code {place.code.lstrip('0')}",)


def number_new_places(
    resolution: PlaceResolution, written: Iterable[WrittenPlace]
) -> None:
    """Give places with one code, or with one name and no other code, one number."""
    numbers: dict[str, int] = {}
    for place in written:
        if place in resolution.known or place in resolution.unclear:
            continue
        usual = name_keys(place.name).usual or place.name
        key = f"code {place.code or place.name.casefold()}"
        if not place.code and key not in numbers:
            key = usual
        if key not in numbers:
            numbers[key] = len(resolution.new_places)
            resolution.new_places.append(place)
        numbers.setdefault(usual, numbers[key])
        resolution.new[place] = numbers[key]
