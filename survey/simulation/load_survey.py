"""A survey and people to measure with, made by the real ways.

What a rehearsal may touch is known by its wave, which no real administration
is ever in: answers are taken back and people are added there without asking.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from django.db import connection, transaction
from django.utils import timezone
from openpyxl import Workbook

from survey.access_codes import code_for, format_code
from survey.administrations import invited_people, open_administration
from survey.definitions.publishing import publish_survey
from survey.models import Administration, PublishedSurvey, Response, Role, Survey, Wave
from survey.rosters.apply import import_roster
from survey.rosters.columns import columns_of
from survey.rosters.file_reader import RosterTable
from survey.spreadsheets.xlsx_rows import SheetRow
from survey.xlsform import import_survey, read_xlsform

WAVE = "Rehearsals"
FORM = "rehearsal"
OPTIONS = ("Strongly disagree", "Disagree", "Neither", "Agree", "Strongly agree")
WINDOW = timedelta(days=30)
MOST_PAGES, MOST_ITEMS = 100, 50

PER_SCHOOL = 500
# So many are staged at once.
BATCH = 25_000
HEADER = (
    "district,district name,school,school name,role,grade,student id,given name,"
    "family name,language"
)


class NotARehearsal(Exception):
    """The name belongs to a real administration, or to another rehearsal."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    administration: Administration
    # Everybody who is invited, or with `unstarted` who has not started.
    people: int


def open_rehearsal(
    *,
    name: str,
    respondents: int,
    pages: int,
    items: int,
    unstarted: bool = False,
    empty: bool = False,
) -> Rehearsal:
    """Offer `pages` × `items` to `respondents` people; what is there, stays.

    With `unstarted` so many who have not started yet: others are added in
    the place of those who did. With `empty` every answer is taken back first.
    Raises NotARehearsal, and ValidationError for a name that is no slug.
    """
    administration = _administration(name, pages, items)
    if empty:
        take_back_answers(administration)
    people = invited_people(administration)
    counted = people.filter(started_at=None) if unstarted else people
    missing = respondents - counted.count()
    if missing > 0:
        _invite(administration, people.count(), missing)
    return Rehearsal(administration, counted.count())


def is_rehearsal(administration: Administration) -> bool:
    return administration.wave is not None and administration.wave.name == WAVE


@transaction.atomic
def take_back_answers(administration: Administration) -> None:
    """Everybody is as if they had never come. Raises NotARehearsal."""
    if not is_rehearsal(administration):
        raise NotARehearsal(f"{administration} is real: its answers stay.")
    started = administration.respondents.exclude(started_at=None)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute(f"TRUNCATE survey_response_{int(administration.pk)}")
    else:
        Response.objects.filter(administration_id=administration.pk).delete()
    started.update(started_at=None, completed_at=None)


# The survey and its window


def _administration(name: str, pages: int, items: int) -> Administration:
    known = Administration.objects.select_related("wave", "published__survey")
    found = known.filter(name=name).first()
    if found is None:
        return _open(name, pages, items)
    if not is_rehearsal(found):
        raise NotARehearsal(f"{name} is a real administration; choose another name.")
    version = found.published.survey.version
    if version != _version(pages, items):
        raise NotARehearsal(
            f"{name} has {version.replace('x', ' pages of ')} items;"
            " choose another name for other sizes."
        )
    if found.closes_at < timezone.now() + WINDOW / 2:
        found.closes_at = timezone.now() + WINDOW
        found.save(update_fields=["closes_at"])
    return found


def _open(name: str, pages: int, items: int) -> Administration:
    now = timezone.now()
    wave, _ = Wave.objects.get_or_create(name=WAVE, district=None)
    return open_administration(
        name=name,
        published=_published(pages, items),
        role=Role.STUDENT,
        opens_at=now - timedelta(minutes=1),
        closes_at=now + WINDOW,
        wave=wave,
    )


def _version(pages: int, items: int) -> str:
    return f"{pages}x{items}"


def _published(pages: int, items: int) -> PublishedSurvey:
    version = _version(pages, items)
    survey = Survey.objects.filter(name=FORM, version=version, district=None).first()
    if survey is None or survey.published_at is None:
        reading = read_xlsform(workbook(pages, items))
        if reading.draft is None:
            raise AssertionError(reading.problems)
        survey = import_survey(
            draft=reading.draft, source_name=f"{FORM}.xlsx", source=reading.source
        )
    return publish_survey(survey=survey)


def workbook(pages: int, items: int) -> bytes:
    """An XLSForm: on each page one grid of statements to agree with."""
    book = Workbook()
    book.remove(book.active)
    for title, rows in (
        ("survey", _survey_rows(pages, items)),
        ("choices", _choices_rows()),
        ("settings", _settings_rows(pages, items)),
    ):
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _survey_rows(pages: int, items: int) -> Iterator[tuple[str, ...]]:
    yield ("type", "name", "label", "appearance")
    for page in range(1, pages + 1):
        yield ("begin_group", f"page{page}", f"My school, part {page}", "field-list")
        stem = "How much do you agree?"
        yield ("select_one agree", f"p{page}_stem", stem, "label")
        for item in range(1, items + 1):
            label = f"At this school, statement {item} of part {page} is true for me."
            yield ("select_one agree", f"p{page}_q{item}", label, "list-nolabel")
        yield ("end_group", "", "", "")


def _choices_rows() -> Iterator[tuple[str, ...]]:
    yield ("list_name", "name", "label")
    for value, label in enumerate(OPTIONS, start=1):
        yield ("agree", str(value), label)


def _settings_rows(pages: int, items: int) -> list[tuple[str, ...]]:
    return [
        ("form_title", "form_id", "version", "default_language"),
        ("A rehearsal", FORM, _version(pages, items), "English (en)"),
    ]


# The people


def _invite(administration: Administration, known: int, missing: int) -> None:
    last = known + missing
    for first in range(known, last, BATCH):
        numbers = range(first, min(first + BATCH, last))
        table = RosterTable(
            columns=columns_of(HEADER.split(",")),
            read=partial(_rows, numbers),
            description="made up",
        )
        report = import_roster(administration=administration, table=table)
        if not report.imported:
            raise AssertionError(report.rejections)


def _rows(numbers: range) -> Iterator[SheetRow]:
    return ((number + 2, _person(number)) for number in numbers)


def _person(number: int) -> list[str]:
    school = number // PER_SCHOOL
    return [
        "rehearsal",
        "Rehearsal",
        f"rehearsal-{school:05}",
        f"Rehearsal {school:05}",
        "student",
        f"{4 + number % 9:02}",
        f"R{number + 1:08}",
        "Rehearsing",
        f"Number {number + 1}",
        "en",
    ]


def write_codes(
    administration: Administration, path: Path, *, most: int, unstarted: bool = False
) -> int:
    """One code a line, for at most so many people, by age; how many."""
    people = invited_people(administration).order_by("pk")
    if unstarted:
        people = people.filter(started_at=None)
    found = people.values_list("pk", "issue", "code_key_version")[:most]
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.writelines(f"{format_code(code_for(*one))}\n" for one in found)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return len(found)
