"""A published survey as one immutable object, found without asking twice."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache

from survey.models import PublishedSurvey

UNANSWERABLE = frozenset(("note", "calculate", "hidden"))
# A process that serves more surveys at once than this reads some again.
KEPT = 64


@dataclass(frozen=True)
class Published:
    """`definition` as described in `survey.publishing`; never changed."""

    digest: str
    definition: Mapping[str, Any]
    # For each page, the items that a save of it must name, in order.
    answerable: tuple[Mapping[str, Mapping[str, Any]], ...]
    # Item id -> name.
    names: Mapping[int, str]

    @property
    def languages(self) -> list[str]:
        return [language["code"] for language in self.definition["languages"]]

    def title_in(self, language: str) -> str:
        title = self.definition["title"]
        return title.get(language) or title.get(self.languages[0], "")


class SurveyNotFound(LookupError):
    """No published survey has this digest (yet: a replica may lag)."""


_kept: OrderedDict[str, Published] = OrderedDict()


def published_survey(digest: str) -> Published:
    """From this process, else 1 cache read, else 1 statement more.

    Nothing is ever invalidated: a new version is a new digest. The digest is
    checked on the way in, and a miss is not remembered.
    """
    found = _kept.get(digest)
    if found is None:
        found = _kept[digest] = _load(digest)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found


def forget_published() -> None:
    """For tests that roll the database back."""
    _kept.clear()


def _load(digest: str) -> Published:
    key = f"published:{digest}"
    text = cache.get(key)
    if text is None or not _is_of(text, digest):
        text = (
            PublishedSurvey.objects.filter(digest=digest)
            .values_list("definition", flat=True)
            .first()
        )
        if text is None or not _is_of(text, digest):
            raise SurveyNotFound(digest)
        cache.set(key, text, timeout=None)
    return understand(digest, json.loads(text))


def _is_of(text: str, digest: str) -> bool:
    return hashlib.sha256(text.encode()).hexdigest() == digest


def understand(digest: str, definition: Mapping[str, Any]) -> Published:
    items = definition["items"]
    return Published(
        digest=digest,
        definition=definition,
        answerable=tuple(
            {
                name: items[name]
                for block in page["blocks"]
                for name in block["items"]
                if items[name]["kind"] not in UNANSWERABLE
            }
            for page in definition["pages"]
        ),
        names={item["id"]: name for name, item in items.items()},
    )
