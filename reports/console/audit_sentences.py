"""What the audit log says about exports and response rates."""

from __future__ import annotations

from django.utils.translation import gettext_lazy, gettext_noop

from accounts.console.audit_sentences import add_sentences, add_words

SENTENCES = {
    "download response rates": gettext_noop("{who} downloaded response rates"),
    "remind coordinators": gettext_noop(
        "{who} reminded coordinators of schools below their threshold: {subject}"
    ),
    "download scores": gettext_noop("{who} downloaded scores: {subject}"),
    "download school report": gettext_noop(
        "{who} downloaded a school's report: {subject}"
    ),
    "ask for school reports": gettext_noop(
        "{who} asked for the reports of all schools: {subject}"
    ),
    "make school reports": gettext_noop(
        "The reports that {who} asked for were made: {subject}"
    ),
    "download school reports": gettext_noop(
        "{who} downloaded the reports of all schools: {subject}"
    ),
    "delete school reports": gettext_noop(
        "{who} deleted a file with reports of schools: {subject}"
    ),
    "ask for export": gettext_noop("{who} asked for an export: {subject}"),
    "ask for export with names": gettext_noop("{who} asked for names in {subject}"),
    "ask for key table": gettext_noop(
        "{who} asked for the key table of a research project: {subject}"
    ),
    "download key table": gettext_noop(
        "{who} downloaded the key table of a research project: {subject}"
    ),
    "download data for a district": gettext_noop(
        "{who} downloaded the data of a district, with names: {subject}"
    ),
    "approve research project": gettext_noop(
        "{who} approved a research project: {subject}"
    ),
    "end research project": gettext_noop("{who} ended a research project: {subject}"),
    "ask for technical report": gettext_noop(
        "{who} asked for a technical report: {subject}"
    ),
    "make export": gettext_noop("The export that {who} asked for was made: {subject}"),
    "download results": gettext_noop("{who} downloaded results: {subject}"),
    "share results": gettext_noop("{who} shared results with schools: {subject}"),
    "release sentence": gettext_noop("{who} released a sentence: {subject}"),
    "withdraw sentence": gettext_noop("{who} withdrew a released sentence: {subject}"),
    "request new results": gettext_noop(
        "{who} had the results counted again: {subject}"
    ),
    "stop sharing results": gettext_noop(
        "{who} stopped sharing results with schools: {subject}"
    ),
    "publish results": gettext_noop("{who} published results for everybody: {subject}"),
    "withdraw published results": gettext_noop(
        "{who} withdrew published results: {subject}"
    ),
    "download export": gettext_noop("{who} downloaded an export: {subject}"),
    "release item of measure": gettext_noop(
        "{who} released an item from comparisons between seasons: {subject}"
    ),
    "anchor item of measure": gettext_noop(
        "{who} used an item for comparisons between seasons again: {subject}"
    ),
    "choose benchmark": gettext_noop(
        "{who} chose the benchmark that scores are compared with: {subject}"
    ),
    "import benchmark": gettext_noop(
        "{who} imported a published benchmark that scores are compared with: {subject}"
    ),
    "withdraw imported benchmark": gettext_noop(
        "{who} undid the import of a benchmark that scores are compared with: {subject}"
    ),
    "calculate scores again": gettext_noop(
        "{who} started calculating scores again: {subject}"
    ),
    "delete export": gettext_noop("{who} deleted an export: {subject}"),
}
WORDS = {
    "question": gettext_lazy("question"),
    "released_sentence": gettext_lazy("number of the sentence"),
    "sentence_digest": gettext_lazy("digest of the sentence"),
}


def register() -> None:
    add_sentences(SENTENCES)
    add_words(WORDS)
