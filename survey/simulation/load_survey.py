"""Create a survey and people for load tests, by the functions that users call.

Answers are deleted and people added without asking, so a rehearsal is marked
by its wave, to which no real administration ever belongs.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from django.db import connection, transaction
from django.utils import timezone
from openpyxl import Workbook

from survey.fieldwork.administrations import invited_people, open_administration
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.spreadsheets.xlsx_rows import SheetRow
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import (
    Administration,
    CountedGroup,
    Denominator,
    DeviceLogin,
    PublishedSurvey,
    Response,
    Role,
    Survey,
    Wave,
)
from survey.people.access_codes import code_for, format_code
from survey.people.rosters.apply import import_roster
from survey.people.rosters.columns import columns_of
from survey.people.rosters.layouts import RosterLayout
from survey.people.rosters.table import RosterTable

WAVE = "Rehearsals"
FORM = "rehearsal"


class Words(NamedTuple):
    """A language's name, and its words in a made-up survey."""

    name: str
    heading: str
    stem: str
    statement: str
    options: tuple[str, str, str, str, str]


ENGLISH = {
    "en": Words(
        "English",
        "My school, part {page}",
        "How much do you agree?",
        "At this school, statement {item} of part {page} is true for me.",
        ("Strongly disagree", "Disagree", "Neither", "Agree", "Strongly agree"),
    )
}
WORDS = ENGLISH | {
    "es": Words(
        "Español",
        "Mi escuela, parte {page}",
        "¿Qué tan de acuerdo está usted?",
        "En esta escuela, la afirmación {item} de la parte {page} es cierta para mí.",
        (
            "Muy en desacuerdo",
            "En desacuerdo",
            "Ni de acuerdo ni en desacuerdo",
            "De acuerdo",
            "Muy de acuerdo",
        ),
    ),
    "ar": Words(
        "العربية",
        "مدرستي، الجزء {page}",
        "إلى أي مدى توافق؟",
        "في هذه المدرسة، العبارة {item} من الجزء {page} صحيحة بالنسبة لي.",
        ("لا أوافق بشدة", "لا أوافق", "محايد", "أوافق", "أوافق بشدة"),
    ),
}
WINDOW = timedelta(days=30)
MOST_PAGES, MOST_ITEMS = 100, 50

PER_SCHOOL = 500
# So many people are imported at once.
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
    # The people invited, or with `unstarted` those who have not started.
    people: int


def open_rehearsal(
    *,
    name: str,
    respondents: int,
    pages: int,
    items: int,
    multilingual: bool = False,
    unstarted: bool = False,
    empty: bool = False,
) -> Rehearsal:
    """Offer a survey of `pages` × `items` to `respondents` people, or find it.

    With `unstarted` only people who have not started count, so that others are
    added for those who have. With `empty` every answer is deleted first. With
    `multilingual` the survey is in three languages, and people read each of them.
    Raises NotARehearsal, and ValidationError for a name that is not a slug.
    """
    administration = find_or_open(name, pages, items, multilingual=multilingual)
    languages = list(WORDS if multilingual else ENGLISH)
    if empty:
        delete_answers(administration)
    people = invited_people(administration)
    counted = people.filter(started_at=None) if unstarted else people
    missing = respondents - counted.count()
    if missing > 0:
        known = people.count()
        for first in range(known, known + missing, BATCH):
            numbers = range(first, min(first + BATCH, known + missing))
            table = RosterTable(
                columns=columns_of(HEADER.split(",")),
                read=partial(made_up_rows, numbers, languages),
                description="made up",
            )
            report = import_roster(administration=administration, table=table)
            if not report.imported:
                raise AssertionError(report.rejections)
        # Otherwise those of a school that grew would count tomorrow.
        CountedGroup.objects.filter(administration=administration).delete()
    return Rehearsal(administration, counted.count())


def is_rehearsal(administration: Administration) -> bool:
    return administration.wave is not None and administration.wave.name == WAVE


@transaction.atomic
def delete_answers(administration: Administration) -> None:
    """Reset everybody to not started. Raises NotARehearsal."""
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
    DeviceLogin.objects.filter(administration=administration).delete()


# The survey and its window


def find_or_open(
    name: str,
    pages: int,
    items: int,
    *,
    multilingual: bool = False,
    role: str = Role.STUDENT,
    denominator: str = Denominator.ROSTER,
) -> Administration:
    now = timezone.now()
    words = WORDS if multilingual else ENGLISH
    version = f"{pages}x{items}" + ("-multilingual" if multilingual else "")
    known = Administration.objects.select_related("wave", "published__survey")
    administration = known.filter(name=name).first()
    if administration is None:
        wave, _ = Wave.objects.get_or_create(name=WAVE, district=None)
        return open_administration(
            name=name,
            published=publish_version(version, pages, items, words),
            role=role,
            opens_at=now - timedelta(minutes=1),
            closes_at=now + WINDOW,
            wave=wave,
            denominator=denominator,
        )
    if not is_rehearsal(administration):
        raise NotARehearsal(f"{name} is a real administration; choose another name.")
    if administration.published.survey.version != version:
        sizes, _, languages = administration.published.survey.version.partition("-")
        raise NotARehearsal(
            f"{name} has {sizes.replace('x', ' pages of ')} items"
            f"{languages and f', {languages}'}; choose another name for other sizes."
        )
    if administration.closes_at < now + WINDOW / 2:
        administration.closes_at = now + WINDOW
        administration.save(update_fields=["closes_at"])
    return administration


def publish_version(
    version: str, pages: int, items: int, words: Mapping[str, Words] = ENGLISH
) -> PublishedSurvey:
    survey = Survey.objects.filter(name=FORM, version=version, district=None).first()
    if survey is None or survey.published_at is None:
        reading = read_xlsform(workbook(pages, items, version, words))
        if reading.draft is None:
            raise AssertionError(reading.problems)
        survey = import_survey(
            draft=reading.draft, source_name=f"{FORM}.xlsx", source=reading.source
        )
    return publish_survey(survey=survey)


def workbook(
    pages: int, items: int, version: str = "", words: Mapping[str, Words] = ENGLISH
) -> bytes:
    """Write an XLSForm with one grid of statements to agree with on each page."""
    labels = [f"label::{word.name} ({code})" for code, word in words.items()]
    sheets: dict[str, list[tuple[str, ...]]] = {
        "survey": [("type", "name", "appearance", *labels)],
        "choices": [("list_name", "name", *labels)],
        "settings": [
            ("form_title", "form_id", "version", "default_language"),
            ("A rehearsal", FORM, version or f"{pages}x{items}", "English (en)"),
        ],
    }
    survey = sheets["survey"]

    def texts(name: str, **numbers: int) -> list[str]:
        return [getattr(word, name).format(**numbers) for word in words.values()]

    for page in range(1, pages + 1):
        heading = texts("heading", page=page)
        survey.append(("begin_group", f"page{page}", "field-list", *heading))
        survey.append(("select_one agree", f"p{page}_stem", "label", *texts("stem")))
        for item in range(1, items + 1):
            label = texts("statement", item=item, page=page)
            name = f"p{page}_q{item}"
            survey.append(("select_one agree", name, "list-nolabel", *label))
        survey.append(("end_group", "", ""))
    options = zip(*(word.options for word in words.values()), strict=True)
    for value, option in enumerate(options, start=1):
        sheets["choices"].append(("agree", str(value), *option))
    book = Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


# The people


def made_up_rows(
    numbers: range, languages: Sequence[str], _layout: RosterLayout
) -> Iterator[SheetRow]:
    for number in numbers:
        school = number // PER_SCHOOL
        cells = [
            "rehearsal",
            "Rehearsal",
            f"rehearsal-{school:05}",
            f"Rehearsal {school:05}",
            "student",
            f"{4 + number % 9:02}",
            f"R{number + 1:08}",
            "Rehearsing",
            f"Number {number + 1}",
            languages[number % len(languages)],
        ]
        yield number + 2, cells


def write_codes(
    administration: Administration, path: Path, *, most: int, unstarted: bool = False
) -> int:
    """Write one code per line for at most `most` people; return their number."""
    people = invited_people(administration).order_by("pk")
    if unstarted:
        people = people.filter(started_at=None)
    rows = people.values_list("pk", "issue", "code_key_version")[:most]
    write_privately(path, (format_code(code_for(*person)) for person in rows))
    return len(rows)


def write_privately(path: Path, lines: Iterable[str]) -> None:
    """Replace a file by one that only its owner may read."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in lines)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
