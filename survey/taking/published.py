"""A published survey as one immutable object, found without asking twice."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import DEFAULT_DB_ALIAS

from survey.definitions.rules import names_on
from survey.definitions.schema import ANSWERABLE, ItemDefinition, SurveyDefinition
from survey.models import PublishedSurvey
from survey.models.cached import FrozenQuerySet

# A process that serves more surveys at once than this reads some again.
KEPT = 64


@dataclass(frozen=True)
class Published:
    """`definition` as described in `survey.definitions.schema`; never changed."""

    digest: str
    definition: SurveyDefinition
    # For each page, the items that a save of it must name, in order.
    answerable: tuple[Mapping[str, ItemDefinition], ...]
    # For each page, its items as `survey.definitions.rules.names_on` orders them; none
    # where nothing is to be applied when the page is saved.
    ruled: tuple[Sequence[str], ...]
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
    checked on the way in, and a miss is not remembered. The statement goes to
    the replica where a view says so; what that one does not have (yet), the
    primary is asked for, by 1 statement more.
    """
    found = _kept.get(digest)
    if found is None:
        found = _kept[digest] = _load(digest)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found


def published_already(digest: str) -> Published | None:
    """From this process only."""
    return _kept.get(digest)


def forget_published() -> None:
    """For tests that roll the database back."""
    _kept.clear()


def _load(digest: str) -> Published:
    rows = PublishedSurvey.cached.filter(digest=digest)
    # Decided here once: asked again later, the router may say something else,
    # and a replica's empty answer would be taken for the primary's.
    cached = rows.using(rows.db)
    text = _definition(cached)
    if not _is_of(text, digest):
        text = _asked_again(cached, digest, text)
    if text is None:
        raise SurveyNotFound(digest)
    return understand(digest, json.loads(text))


def _asked_again(cached: FrozenQuerySet, digest: str, found: str | None) -> str | None:
    """Of the primary: an entry was not whole, or the replica lags."""
    if found is not None:
        cached.forget()
    elif cached.db == DEFAULT_DB_ALIAS:
        return None
    rows = PublishedSurvey.objects.using(DEFAULT_DB_ALIAS).filter(digest=digest)
    text = _definition(rows)
    return text if _is_of(text, digest) else None


def _definition(rows: Iterable[PublishedSurvey]) -> str | None:
    return next((row.definition for row in rows), None)


def _is_of(text: object, digest: str) -> bool:
    return isinstance(text, str) and hashlib.sha256(text.encode()).hexdigest() == digest


def understand(digest: str, definition: SurveyDefinition) -> Published:
    items = definition["items"]
    return Published(
        digest=digest,
        definition=definition,
        answerable=tuple(
            {
                name: items[name]
                for block in page["blocks"]
                for name in block["items"]
                if items[name]["kind"] in ANSWERABLE
            }
            for page in definition["pages"]
        ),
        ruled=tuple(
            _ruled(definition, n) for n in range(1, len(definition["pages"]) + 1)
        ),
        names={item["id"]: name for name, item in items.items()},
    )


def _ruled(definition: SurveyDefinition, n: int) -> list[str]:
    items = definition["items"]
    names = names_on(definition, n)
    return names if any(items[name].get("local") for name in names) else []
