"""Load a published survey as one immutable object, and keep it in memory."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS

from survey.instrument.definitions.rules import PlainItems, names_on, plain_items
from survey.instrument.definitions.schema import (
    ANSWERABLE,
    ItemDefinition,
    SurveyDefinition,
    Texts,
    load_definition,
)
from survey.models import PublishedSurvey

# A process that serves more surveys than this reads some of them again.
MOST_IN_MEMORY = 64


class SurveyTexts(NamedTuple):
    """Texts in one language, with the names of items in place of answers."""

    # By item.
    labels: Mapping[str, str]
    # By item and value.
    options: Mapping[str, Mapping[str, str]]
    # By item and answer, as a review shows them; see `survey.taking.review`.
    reviewed: Mapping[str, dict[str, Any]]


@dataclass(frozen=True)
class Published:
    """`definition` is of `survey.instrument.definitions.schema`, and never changed."""

    digest: str
    definition: SurveyDefinition
    # For each page, the items that a save of it must name, in order.
    answerable: tuple[Mapping[str, ItemDefinition], ...]
    # For each page, its items as `survey.instrument.definitions.rules.names_on` orders
    # them; empty if no rule applies when the page is saved.
    ruled: tuple[Sequence[str], ...]
    # Item id -> name.
    names: Mapping[int, str]
    # By language, prepared when the first review asks for one.
    _texts: dict[str, SurveyTexts] = field(default_factory=dict, compare=False)

    @property
    def languages(self) -> list[str]:
        return [language["code"] for language in self.definition["languages"]]

    @cached_property
    def item_ids(self) -> list[list[int]]:
        """The ids of `answerable`."""
        return [[item["id"] for item in page.values()] for page in self.answerable]

    @cached_property
    def plain(self) -> PlainItems:
        return plain_items(self.definition)

    def title_in(self, language: str) -> str:
        title = self.definition["title"]
        return title.get(language) or title.get(self.languages[0], "")

    def texts_in(self, language: str) -> SurveyTexts:
        texts = self._texts.get(language)
        if texts is None:
            texts = self._texts[language] = prepare_texts(self.definition, language)
        return texts


class SurveyNotFound(LookupError):
    """No published survey has this digest, or the replica does not have it yet."""


_in_memory: OrderedDict[str, Published] = OrderedDict()


def published_survey(digest: str) -> Published:
    """Return the survey from memory, else by 1 cache read, else by 1 statement more.

    Nothing is ever invalidated: a new version is a new digest. The digest is
    checked when a definition is loaded, and a miss is never cached. The
    statement goes to the replica where a view says so; a survey that the
    replica lacks is read from the primary, by 1 statement more.

    Raises SurveyNotFound.
    """
    published = _in_memory.get(digest)
    if published is None:
        published = _in_memory[digest] = _load(digest)
        while len(_in_memory) > MOST_IN_MEMORY:
            _in_memory.popitem(last=False)
    return published


def published_in_memory(digest: str) -> Published | None:
    return _in_memory.get(digest)


def forget_published() -> None:
    """Empty this process's cache, for tests that roll the database back."""
    _in_memory.clear()


def prepare_texts(definition: SurveyDefinition, language: str) -> SurveyTexts:
    first = definition["languages"][0]["code"]

    def text(texts: Texts, otherwise: str) -> str:
        return texts.get(language) or texts.get(first) or otherwise

    option_sets = {
        # Where two options have one value, the first one counts.
        name: {o["value"]: text(o["label"], o["value"]) for o in reversed(options)}
        for name, options in definition["option_sets"].items()
    }
    items = definition["items"].items()
    return SurveyTexts(
        labels={name: text(item.get("label", {}), name) for name, item in items},
        options={
            name: option_sets.get(item.get("option_set", ""), {})
            for name, item in items
        },
        reviewed={name: {} for name, _ in items},
    )


def _load(digest: str) -> Published:
    rows = PublishedSurvey.cached.filter(digest=digest)
    # The database is chosen once. A second call of the router could choose
    # another one, and a replica's empty answer would pass for the primary's.
    cached = rows.using(rows.db)
    text = _definition(cached)
    if not _has_digest(text, digest):
        if text is None and cached.db == DEFAULT_DB_ALIAS:
            raise SurveyNotFound(digest)
        # The cache's entry is damaged, or the replica lags: read the primary.
        if text is not None:
            cached.forget()
        primary = PublishedSurvey.objects.using(DEFAULT_DB_ALIAS)
        text = _definition(primary.filter(digest=digest))
    if text is None or not _has_digest(text, digest):
        raise SurveyNotFound(digest)
    return build_published(digest, load_definition(text))


def _definition(rows: Iterable[PublishedSurvey]) -> str | None:
    return next((row.definition for row in rows), None)


def _has_digest(text: object, digest: str) -> bool:
    return isinstance(text, str) and hashlib.sha256(text.encode()).hexdigest() == digest


def build_published(digest: str, definition: SurveyDefinition) -> Published:
    """Prepare what page saves look up, once for each survey and process."""
    items = definition["items"]
    ruled = []
    for n in range(1, len(definition["pages"]) + 1):
        names = names_on(definition, n)
        has_rules = any(items[name].get("local") for name in names)
        ruled.append(names if has_rules else [])
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
        ruled=tuple(ruled),
        names={item["id"]: name for name, item in items.items()},
    )
