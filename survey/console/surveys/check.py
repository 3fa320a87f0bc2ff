"""Check a draft before it is published: problems, hints and minutes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.starting import address_of_editor
from survey.console.surveys.views import survey_or_404
from survey.instrument.definitions.ownership import may_change
from survey.instrument.drafts.checks import Audience, Severity, check_draft, minutes_of
from survey.instrument.drafts.reading import DraftReading, read_rows_of
from survey.instrument.xlsform.problems import Problem
from survey.models import Survey

AUDIENCES = {
    Audience.STUDENTS: gettext_lazy("Students"),
    Audience.ADULTS: gettext_lazy("Adults"),
}


@dataclass(slots=True)
class Place:
    """A question, or the whole survey, with what was noticed there."""

    name: str
    address: str
    # (language code or "", sentence)
    sentences: list[tuple[str, str]] = field(default_factory=list)


@needs(Capability.MANAGE_SURVEYS)
@never_cache
@require_safe
def survey_check(request: StaffRequest, pk: int) -> HttpResponse:
    """Show what keeps a draft from being published, and what to look at."""
    survey = survey_or_404(request, pk)
    if survey.published_at is not None:
        return redirect("survey_detail", pk)
    reading = read_rows_of(survey)
    asked = request.GET.get("audience", "")
    audience = Audience(asked) if asked in set(Audience) else Audience.STUDENTS
    problems = _places(
        survey,
        reading,
        ((_key_of(reading, row), "", row.reason) for row in reading.problems),
    )
    hints: list[Place] = []
    minutes = 0
    if reading.draft is not None and not reading.problems:
        checks = check_draft(reading.draft, audience=audience)
        minutes = minutes_of(reading.draft, audience)
        hints = _places(
            survey,
            reading,
            (
                (_key_at(reading, check.row), check.language, check.message)
                for check in sorted(
                    checks, key=lambda check: check.severity != Severity.PROBLEM
                )
            ),
        )
    return render(
        request,
        "survey/console/survey_check.html",
        {
            "survey": survey,
            "problems": problems,
            "problem_count": len(reading.problems),
            "hints": hints,
            "hint_count": sum(len(place.sentences) for place in hints),
            "minutes": minutes,
            "audiences": [(row.value, words) for row, words in AUDIENCES.items()],
            "audience": audience.value,
            "may_change": may_change(request.permissions, survey),
        },
    )


# A sheet and the key of a row in it; no row for the sheet or survey as a whole.
Key = tuple[str, str]


def _places(
    survey: Survey, reading: DraftReading, noticed: Iterator[tuple[Key, str, str]]
) -> list[Place]:
    """Gather what was noticed by rows, in the order in which they come."""
    places: dict[Key, Place] = {}
    for key, language, sentence in noticed:
        if key not in places:
            at = key[1] if key[0] == "survey" else ""
            address = address_of_editor(survey, at)
            places[key] = Place(_name_of(reading, key), address)
        places[key].sentences.append((language, sentence))
    return list(places.values())


def _key_of(reading: DraftReading, problem: Problem) -> Key:
    return problem.sheet, reading.key_of(problem)


def _key_at(reading: DraftReading, number: int | None) -> Key:
    row = reading.rows.get(number or 0)
    return "survey", row.key if row else ""


def _name_of(reading: DraftReading, key: Key) -> str:
    """Return the text of a row, or its name; of no row, that it is the survey."""
    sheet = reading.book.sheets.get(key[0])
    if sheet is None or not key[1] or sheet.name == "settings":
        return _("The whole survey")
    row = sheet.row(key[1])
    labels = [
        row.cells[number]
        for number, column in sheet.known.known.items()
        if column.key == "label" and row.cells.get(number)
    ]
    name = (labels or [sheet.value(row, "name")])[0]
    return name or _("A question without a text")
