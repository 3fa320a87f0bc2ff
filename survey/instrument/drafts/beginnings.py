"""Make the sheets that a new draft begins with, and its name and version."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from accounts.models import District
from survey.instrument.drafts.commands import add_page
from survey.instrument.drafts.names import free_name, name_from_text
from survey.instrument.drafts.workbook import (
    FIRST_ROW,
    DraftBook,
    Row,
    Sheet,
    first_key,
)
from survey.instrument.xlsform.languages import Language
from survey.instrument.xlsform.reading import LONGEST_SETTING
from survey.models import Survey


def empty_book(title: str, languages: Sequence[Language]) -> DraftBook:
    """Make the sheets of a survey with one page and one question without a text."""
    headers = [f"{language.name} ({language.code})" for language in languages]
    labels = [f"label::{header}" for header in headers]
    book = book_of_sheets(
        {
            "settings": [
                [
                    *(f"form_title::{header}" for header in headers[:1]),
                    *("form_id", "version", "default_language", "style"),
                ],
                [title, "", "", headers[0], "pages"],
            ],
            "survey": [["type", "name", *labels]],
            "choices": [["list_name", "name", *labels]],
        }
    )
    add_page(book, after="")
    return book


def book_of_sheets(sheets: Mapping[str, Sequence[Sequence[str]]]) -> DraftBook:
    """Make sheets of rows of texts, the first of which are headers."""
    return DraftBook(
        {
            name: Sheet(
                name,
                [*headers],
                [
                    Row(
                        first_key(name, place),
                        {n: text for n, text in enumerate(row, 1) if text},
                    )
                    for place, row in enumerate(rows, FIRST_ROW)
                ],
            )
            for name, (headers, *rows) in sheets.items()
        }
    )


def name_for(title: str, district: District | None) -> str:
    """Return a short name, made from a title, that no survey of the owner has."""
    taken = set(Survey.objects.filter(district=district).values_list("name", flat=True))
    return free_name(name_from_text(title) or "survey", taken)


def next_version(version: str, taken: Collection[str]) -> str:
    """Return the version with its last number counted on: 2027.1 becomes 2027.2."""
    match = re.fullmatch(r"(.*?)(\d{1,9})", version)
    base, digits = (match[1], match[2]) if match else (f"{version}.", "1")
    number = int(digits)
    while True:
        number += 1
        # Of a date, such as 2026010901, also the zeros count.
        counted = f"{base[: LONGEST_SETTING - 10]}{number:0{len(digits)}}"
        if counted not in taken:
            return counted


def versions_of(survey: Survey, district: District | None) -> set[str]:
    versions = Survey.objects.filter(name=survey.name, district=district)
    return {survey.version, *versions.values_list("version", flat=True)}
