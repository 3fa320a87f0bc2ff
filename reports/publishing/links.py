"""Links between public pages, and between the same pages in a preview."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlencode

from babel import Locale, UnknownLocaleError
from django.urls import reverse


class Links(Protocol):
    def state(self) -> str: ...
    def district(self, key: int) -> str: ...
    def school(self, key: int) -> str: ...


@dataclass(frozen=True, slots=True)
class PublicLinks:
    pk: int
    # "?language=es", or "" for the language of the browser.
    chosen: str = ""

    def state(self) -> str:
        return reverse("published_state", args=[self.pk]) + self.chosen

    def district(self, key: int) -> str:
        return reverse("published_district", args=[self.pk, key]) + self.chosen

    def school(self, key: int) -> str:
        return reverse("published_school", args=[self.pk, key]) + self.chosen


@dataclass(frozen=True, slots=True)
class PreviewLinks:
    pk: int
    language: str

    def state(self) -> str:
        return self.to()

    def district(self, key: int) -> str:
        return self.to(district=key)

    def school(self, key: int) -> str:
        return self.to(school=key)

    def to(self, **query: int | str) -> str:
        address = reverse("publishing_preview", args=[self.pk])
        return f"{address}?{urlencode({**query, 'language': self.language})}"


def own_name(code: str) -> str:
    """Return the name of a language in this language."""
    try:
        name = Locale.parse(code, sep="-").get_display_name() or code
    except (ValueError, UnknownLocaleError):
        name = code
    return name[:1].upper() + name[1:]
