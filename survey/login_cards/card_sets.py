"""A set of login cards: asked for, made by a job, deleted after a week."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, TextIO

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts import audit
from accounts.models import District, School, User
from accounts.permissions import Capability, Permissions
from survey import access_codes
from survey.files import new_name, path_of, sweep
from survey.jobs import JobRefused, Progress, job, start
from survey.login_cards.cards import class_by_class, invited, write_access_codes
from survey.models import Administration, CardSet, Job, Respondent

FOLDER = "cards"
KEPT = timedelta(days=7)
# All of a file's pages are in memory until it is written.
MOST_CARDS = 5_000
TOO_MANY = (
    f"These are more than {MOST_CARDS:,} cards, which is too many for one file."
    " Make them class by class, or grade by grade."
)
NOBODY = "Nobody was found here, so there is nothing to print."


# Whose cards, and who may have them -----------------------------------------


def people_of(card_set: CardSet) -> QuerySet[Respondent]:
    people = invited(card_set.administration)
    if card_set.respondent_id:
        return people.filter(pk=card_set.respondent_id, school=card_set.school_id)
    if card_set.school_id:
        people = people.filter(school=card_set.school_id)
    elif card_set.district_id:
        people = people.filter(school__district=card_set.district_id)
    if card_set.grade:
        people = people.filter(grade=card_set.grade)
    if card_set.classroom:
        people = people.filter(classroom=card_set.classroom)
    return people


def card_sets_for(
    permissions: Permissions, administration: Administration
) -> QuerySet[CardSet]:
    """Those whose people somebody may all see."""
    places = permissions.places(Capability.SEE_IDENTITIES)
    known = CardSet.objects.filter(administration=administration)
    if places.state:
        return known
    of_schools = Q(school__in=places.schools) | Q(school__district__in=places.districts)
    return known.filter(of_schools | Q(school=None, district__in=places.districts))


# Making them ----------------------------------------------------------------


@transaction.atomic
def order_cards(
    *,
    administration: Administration,
    by: User,
    school: School | None = None,
    district: District | None = None,
    grade: str = "",
    classroom: str = "",
    respondent: Respondent | None = None,
    format: str = CardSet.Format.PDF,
    language: str = "",
    with_ids: bool = False,
    marked: bool = False,
    reissue: bool = False,
) -> CardSet:
    """A set of cards, and the job that makes it."""
    card_set = CardSet.objects.create(
        administration=administration,
        school=school,
        district=district,
        grade=grade,
        classroom=classroom,
        respondent=respondent,
        format=format,
        language=language,
        with_ids=with_ids,
        marked=marked,
        reissue=reissue,
        file=new_name(FOLDER, f".{format}"),
        by=by,
    )
    make_again(card_set, by=by)
    return card_set


@transaction.atomic
def make_again(card_set: CardSet, *, by: User) -> None:
    """Start the job, also of a set whose last one came to nothing."""
    card_set.job = start(make_cards, subject_id=card_set.pk, by=by)
    card_set.save(update_fields=["job"])


@job("cards.make", long=True)
def make_cards(job: Job, progress: Progress) -> None:
    """Give new codes where that was asked for, then draw the cards.

    The codes change once, whatever becomes of the worker: in one transaction
    with the mark that says so. Everything behind it can be done again.
    """
    card_set = CardSet.objects.select_related(
        "administration__published", "school", "district", "by"
    ).get(pk=job.subject_id or 0)
    people = people_of(card_set)
    number = people.count()
    if not number:
        raise JobRefused(NOBODY)
    if card_set.format == CardSet.Format.PDF and number > MOST_CARDS:
        raise JobRefused(TOO_MANY)
    if card_set.reissue and card_set.reissued_at is None:
        progress.begin_step("Giving new codes")
        reissue_once(card_set)
    progress.begin_step("Drawing the cards", total=number)
    # Under a name of this attempt's: a worker that was taken for dead may
    # still be writing.
    path = path_of(card_set.file)
    draft = path.with_name(f".{path.name}.{job.pk}.{job.attempts}")
    try:
        if card_set.format == CardSet.Format.PDF:
            _draw(card_set, people, draft, progress)
        else:
            _list(card_set, people, draft, progress)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    CardSet.objects.filter(pk=card_set.pk).update(made_at=timezone.now(), people=number)


@transaction.atomic
def reissue_once(card_set: CardSet) -> int:
    """Give everybody of a set a new code, the first time that this is called."""
    now = timezone.now()
    mine = CardSet.objects.filter(pk=card_set.pk, reissued_at=None)
    if not mine.update(reissued_at=now):
        return 0
    number = access_codes.reissue_all(people_of(card_set))
    _mark_outdated(
        _holding(card_set.administration_id, card_set.school).exclude(pk=card_set.pk)
    )
    audit.record(
        "reissue access codes",
        by=card_set.by,
        subject=card_set,
        school=card_set.school,
        after={"administration": str(card_set.administration), "people": number},
    )
    return number


def sets_of_person_are_outdated(respondent: Respondent) -> None:
    """Call it where one person's code was replaced."""
    _mark_outdated(
        _holding(respondent.administration_id, respondent.school).filter(
            Q(respondent=None) | Q(respondent=respondent),
            grade__in=("", respondent.grade),
            classroom__in=("", respondent.classroom),
        )
    )


def sets_of_people_are_outdated(people: QuerySet[Respondent]) -> None:
    """Of all their schools, of whatever grade: 1 statement for each of them."""
    groups = people.order_by().values_list("administration", "school").distinct()
    schools = School.objects.in_bulk({school for _, school in groups})
    for administration, school in groups:
        _mark_outdated(_holding(administration, schools[school]))


def _holding(administration_id: int, school: School | None) -> QuerySet[CardSet]:
    """Sets that may hold codes of this school's: its own, its district's, all's."""
    district = school.district_id if school else None
    of_many = Q(school=None) & (Q(district=None) | Q(district=district))
    return CardSet.objects.filter(
        Q(school=school) | of_many, administration=administration_id
    )


def _mark_outdated(card_sets: QuerySet[CardSet]) -> None:
    card_sets.filter(outdated_at=None, deleted_at=None).update(
        outdated_at=timezone.now()
    )


def _draw(
    card_set: CardSet, people: QuerySet[Respondent], path: Path, progress: Progress
) -> None:
    # Only a worker needs what draws: not every process is to load it.
    from survey.login_cards.layout import card_of, sheet_of
    from survey.login_cards.pdf import draw_cards

    role = card_set.administration.role
    sheet = sheet_of(card_set)
    cards = (
        card_of(respondent, card_set, sheet)
        for respondent in class_by_class(people, role)
    )
    with _private(path) as file:
        file.write(draw_cards(cards, sheet, progress.advance))


def _list(
    card_set: CardSet, people: QuerySet[Respondent], path: Path, progress: Progress
) -> None:
    with _private(path) as file, _as_text(file, marked=card_set.marked) as text:
        write_access_codes(
            people=people,
            file=text,
            base_url=settings.PUBLIC_ADDRESS,
            written=progress.advance,
        )


@contextmanager
def _private(path: Path) -> Iterator[BinaryIO]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file


@contextmanager
def _as_text(file: BinaryIO, *, marked: bool) -> Iterator[TextIO]:
    encoding = "utf-8-sig" if marked else "utf-8"
    with open(file.fileno(), "w", encoding=encoding, newline="", closefd=False) as text:
        yield text


def languages_of(administration: Administration) -> list[tuple[str, str]]:
    """(code, name) of the survey's languages, its first one first."""
    definition = json.loads(administration.published.definition)
    return [(one["code"], one["name"]) for one in definition["languages"]]


# Afterwards -----------------------------------------------------------------


def delete_old_cards() -> None:
    """For the time table: codes do not lie about for longer than a week."""
    old = timezone.now() - KEPT
    for card_set in CardSet.objects.filter(created_at__lt=old, deleted_at=None):
        delete_file(card_set)
    # And what a worker wrote when it was deleted already.
    sweep(FOLDER, _named)


def _named() -> set[str]:
    return set(CardSet.objects.filter(deleted_at=None).values_list("file", flat=True))


def delete_file(card_set: CardSet) -> None:
    path = path_of(card_set.file)
    path.unlink(missing_ok=True)
    # What a worker left that was killed while it wrote.
    for draft in path.parent.glob(f".{path.name}.*"):
        draft.unlink(missing_ok=True)
    CardSet.objects.filter(pk=card_set.pk, deleted_at=None).update(
        deleted_at=timezone.now()
    )
