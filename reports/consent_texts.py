"""Return the text of a box of consent as a person may have read it.

Nothing is stored for it when a page is saved. A box that was ticked has a row with its
time; published versions never change; and the audit log has when an administration
began to offer a correction of its texts. People keep the version of their login.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts.models import AuditEntry
from survey.instrument.definitions.schema import SurveyDefinition, load_definition
from survey.models import Administration, PublishedSurvey, Respondent, Response

CONSENT = "acknowledge"
CORRECTED = "correct texts of administration"


@dataclass(frozen=True, slots=True)
class Offer:
    """A version, and since when an administration offered it; None: at first."""

    digest: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class ConsentText:
    """One text that the person may have read."""

    # Of the published version.
    digest: str
    version: str
    # The language's own name.
    language: str
    text: str


def consent_texts(
    person: Respondent, answer: Response, name: str, offered: Sequence[Offer]
) -> Iterator[ConsentText]:
    """Yield the texts of each version that the person can have had. 1 statement.

    `offered` is from `versions_offered`. In the language in which the person
    finished; in all of them where this is unknown, for nobody stored it.
    """
    # The clocks of two hosts may differ a little.
    end = answer.saved_at
    digests = versions_between(offered, min(person.started_at or end, end), end)
    published = PublishedSurvey.objects.in_bulk(digests)
    for digest in digests:
        definition = load_definition(published[digest].definition)
        yield from _texts_of(definition, digest, name, person.response_language)


def versions_offered(administration: Administration) -> list[Offer]:
    """Return which version was offered, each until the next one. 1 statement."""
    entries = AuditEntry.objects.filter(
        action=CORRECTED, kind="survey.administration", subject_id=administration.pk
    ).order_by("at", "pk")
    changes = list(entries.values_list("at", "before", "after"))
    first = changes[0][1]["digest"] if changes else administration.published_id
    return [
        Offer(first, None),
        *(Offer(after["digest"], at) for at, _before, after in changes),
    ]


def versions_between(
    offered: Sequence[Offer], start: datetime, end: datetime
) -> list[str]:
    """Return the versions that were offered at a time in this period, each once."""
    ends = [*(offer.since for offer in offered[1:]), None]
    digests = [
        offer.digest
        for offer, until in zip(offered, ends, strict=True)
        if (offer.since is None or offer.since <= end)
        and (until is None or until >= start)
    ]
    return list(dict.fromkeys(digests))


def texts_of_versions(
    versions: Iterable[PublishedSurvey],
) -> Iterator[tuple[str, ConsentText]]:
    """Yield all texts of each box of consent, with the name of its item."""
    for published in versions:
        definition = load_definition(published.definition)
        for name, item in definition["items"].items():
            if item["kind"] == CONSENT:
                for text in _texts_of(definition, published.digest, name, ""):
                    yield name, text


def _texts_of(
    definition: SurveyDefinition, digest: str, name: str, language: str
) -> Iterator[ConsentText]:
    item = definition["items"].get(name)
    if item is None:
        return
    entries = [row for row in definition["languages"] if row["code"] == language]
    for entry in entries or definition["languages"]:
        if text := item.get("label", {}).get(entry["code"], ""):
            yield ConsentText(digest, definition["version"], entry["name"], text)
