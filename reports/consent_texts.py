"""Return the text of a box of consent as a person may have read it.

Nothing is stored for it when a page is saved. A box that was ticked has a row with its
time; published versions never change; and the audit log has when an administration
began to offer a correction of its texts. People keep the version of their login.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reports.exports.offered_versions import OfferedVersions
from survey.instrument.definitions.schema import SurveyDefinition, load_definition
from survey.models import PublishedSurvey, Respondent, Response

CONSENT = "acknowledge"


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
    person: Respondent, answer: Response, name: str, offered: OfferedVersions
) -> Iterator[ConsentText]:
    """Yield the texts of each version that the person can have had.

    In the language in which the person finished; in all of them where this is
    unknown, for nobody stored it.
    """
    # The clocks of two hosts may differ a little.
    end = answer.saved_at
    for published in offered.between(min(person.started_at or end, end), end):
        definition = load_definition(published.definition)
        yield from _texts_of(
            definition, published.digest, name, person.response_language
        )


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
