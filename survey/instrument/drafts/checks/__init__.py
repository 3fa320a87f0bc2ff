"""Check a draft before it is published."""

from __future__ import annotations

from collections.abc import Mapping

from survey.instrument.drafts.checks.answers import (
    check_directions,
    check_overlaps,
    check_sensitive,
)
from survey.instrument.drafts.checks.check import Audience, Check, Severity
from survey.instrument.drafts.checks.length import (
    PageLength,
    check_length,
    minutes_of,
    page_lengths,
)
from survey.instrument.drafts.checks.reading_level import (
    check_reading_level,
    reading_grade,
)
from survey.instrument.drafts.checks.structure import (
    check_long_texts,
    check_measures,
    check_names,
    check_pages,
    check_repeated,
)
from survey.instrument.drafts.checks.unfinished import (
    check_limits,
    check_made_up_names,
    check_markup,
    check_options,
)
from survey.instrument.drafts.checks.untranslated import check_translations
from survey.instrument.drafts.checks.wording import check_wording
from survey.instrument.xlsform.draft import Draft

__all__ = [
    "Audience",
    "Check",
    "PageLength",
    "Severity",
    "check_draft",
    "minutes_of",
    "page_lengths",
    "reading_grade",
]


def check_draft(
    draft: Draft,
    *,
    audience: Audience = Audience.ADULTS,
    seconds: Mapping[str, float] | None = None,
) -> list[Check]:
    """Return what to look at, problems first, each in the order of the survey.

    `seconds` are recorded ones for each item, by name, of an earlier wave.
    """
    checks = [
        *check_translations(draft),
        *check_options(draft),
        *check_directions(draft),
        *check_overlaps(draft),
        *check_sensitive(draft),
        *check_wording(draft),
        *check_reading_level(draft, audience),
        *check_length(draft, audience, seconds),
        *check_pages(draft),
        *check_long_texts(draft),
        *check_repeated(draft),
        *check_measures(draft),
        *check_limits(draft),
        *check_names(draft),
        *check_made_up_names(draft),
        *check_markup(draft),
    ]
    return sorted(
        dict.fromkeys(checks),
        key=lambda check: (check.severity != Severity.PROBLEM, check.row or 0),
    )
