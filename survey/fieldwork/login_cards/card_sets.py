"""Sets of login cards: ordered by staff, made by a job, deleted after a week."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from accounts import audit
from accounts.models import District, School, User
from accounts.permissions import Capability, Permissions
from accounts.place_settings import Brands
from survey.fieldwork.administrations import invited_people
from survey.fieldwork.login_cards.code_emails import send_codes
from survey.fieldwork.login_cards.code_list import write_access_codes
from survey.fieldwork.login_cards.refusals import (
    MAX_CARDS,
    reason_not_made,
    schools_left_out,
)
from survey.models import Administration, CardSet, Respondent
from survey.people.new_codes import let_in_again, reissue_all
from survey.work.job_turns import refuse_many
from survey.work.jobs import JobRefused, Progress
from survey.work.requested_files import keep_files, makes, order

# Of a folder or a PDF in a ZIP file, without the suffix: some systems allow 255
# bytes, and letters take up to four.
LONGEST_FILE_NAME = 50
MISSING_FONTS = gettext_noop(
    "Ask the person who runs the server to install the packages fonts-noto-core and"
    " fonts-noto-cjk, and make the cards again."
)


def people_in(card_set: CardSet) -> QuerySet[Respondent]:
    """Return the invited people whose codes the set holds."""
    people = invited_people(card_set.administration)
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
    if card_set.unfinished:
        people = people.filter(completed_at=None)
    return people


def card_sets_for(
    permissions: Permissions, administration: Administration
) -> QuerySet[CardSet]:
    """Return the sets in which this user may see every person."""
    places = permissions.places(Capability.SEE_IDENTITIES)
    return CardSet.objects.filter(CardSet.within(places), administration=administration)


def cards_of_many_schools(districts: Collection[int]) -> QuerySet[CardSet]:
    """Return ready cards of all schools, of the state or of one of these districts.

    Whoever is to see them, they tell the other users of those schools that the codes
    were printed.
    """
    return CardSet.objects.filter(
        Q(district=None) | Q(district__in=districts),
        school=None,
        format=CardSet.Format.ZIP,
        unfinished=False,
        made_at__isnull=False,
        outdated_at=None,
    )


def administrations_with_cards(
    permissions: Permissions, administrations: Collection[int]
) -> set[int]:
    """Return those in which cards of whole schools of the user were made already.

    1 statement, or none without administrations.
    """
    if not administrations:
        return set()
    places = permissions.places(Capability.SEE_IDENTITIES)
    schools = permissions.schools(Capability.SEE_IDENTITIES)
    is_mine = CardSet.within(places) | Q(school=None) & (
        Q(district=None) | Q(district__in=schools.order_by().values("district"))
    )
    made = CardSet.objects.filter(
        is_mine,
        administration__in=administrations,
        format__in=(CardSet.Format.PDF, CardSet.Format.ZIP),
        grade="",
        classroom="",
        respondent=None,
        unfinished=False,
        made_at__isnull=False,
        outdated_at=None,
    )
    return set(made.order_by().values_list("administration", flat=True))


# Making cards ---------------------------------------------------------------


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
    unfinished: bool = False,
    marked: bool = False,
    reissue: bool = False,
) -> CardSet:
    """Create a set of cards and start the job that makes it.

    Raises TooManyJobs of `survey.work.job_turns`.
    """
    refuse_many(by)
    is_drawn = administration.is_completion_confidential
    card_set = CardSet(
        administration=administration,
        school=school,
        district=district,
        grade=grade,
        classroom=classroom,
        respondent=respondent,
        format=format,
        language=language,
        anonymous=is_drawn and format in (CardSet.Format.PDF, CardSet.Format.ZIP),
        with_ids=with_ids,
        unfinished=unfinished,
        marked=marked,
        reissue=reissue,
        by=by,
    )
    return order(card_set)


@makes(CardSet, "administration__published", "school__district", "district", "by")
def make_cards(card_set: CardSet, folder: Path, progress: Progress) -> None:
    """Reissue codes if that was ordered, then write the file or send the e-mails.

    Codes are replaced in one transaction with the mark that says so, and so
    only once, even if the worker dies. The rest can be repeated.
    """
    people = people_in(card_set)
    if reason := reason_not_made(card_set, people):
        raise JobRefused(reason)
    if card_set.reissue and card_set.reissued_at is None:
        progress.begin_step(_("Issuing new codes"))
        reissue_once(card_set)
    if card_set.format == CardSet.Format.EMAIL:
        progress.begin_step(_("Preparing the e-mails"))
        progress.message = send_codes(card_set, people)
        return
    progress.begin_step(_("Preparing the file"), total=people.count())
    writers = {CardSet.Format.ZIP.value: write_zip, CardSet.Format.CSV.value: write_csv}
    write = writers.get(card_set.format, write_pdf)
    path = folder / "codes"
    made = write(card_set, people, path, progress)
    suffix = f".{card_set.format}"
    keep_files(card_set, {"file_name": (path, suffix)}, progress, people=made)


def write_pdf(
    card_set: CardSet,
    people: QuerySet[Respondent],
    path: Path,
    progress: Progress,
) -> int:
    # Only workers draw: the other processes save the memory of these libraries.
    from survey.fieldwork.login_cards.layout import cards_of, sheet_of
    from survey.fieldwork.login_cards.pdf import draw_cards

    sheet = sheet_of(card_set)
    cards = cards_of(card_set, people, sheet)
    path.write_bytes(draw_cards(cards, sheet, progress.advance))
    progress.message = _named_by_id(sum(card.is_named_by_id for card in cards))
    return len(cards)


def _named_by_id(cards: int) -> str:
    """Return a message on cards with an ID in place of the name, if there are any."""
    if not cards:
        return ""
    return ngettext(
        "%(count)s card shows the ID in place of a name, because this server has no"
        " font with the letters of that name. %(fonts)s",
        "%(count)s cards show the ID in place of a name, because this server has no"
        " font with the letters of those names. %(fonts)s",
        cards,
    ) % {"count": f"{cards:,}", "fonts": _(MISSING_FONTS)}


def write_zip(
    card_set: CardSet,
    people: QuerySet[Respondent],
    path: Path,
    progress: Progress,
) -> int:
    """Write a PDF for each school, and return the number of cards.

    At most MAX_CARDS are in memory at a time. Schools with too few people to draw
    cards from are left out, and named in the message. 2 statements, 1 for each school
    and 1 for each logo; a core draws some 50 cards in a second.
    """
    from survey.fieldwork.login_cards.layout import cards_of, sheet_of
    from survey.fieldwork.login_cards.pdf import draw_cards

    schools = School.objects.filter(pk__in=people.order_by().values("school"))
    schools = schools.select_related("district").order_by(
        "district__name", "name", "pk"
    )
    brands = Brands()
    made = left_out = named_by_id = 0
    too_small: list[School] = []
    names: set[str] = set()
    # PDFs are compressed already.
    with ZipFile(path, "w", ZIP_STORED) as archive:
        for school in schools:
            # Never stored.
            of_school = CardSet(
                administration=card_set.administration,
                school=school,
                language=card_set.language,
                anonymous=card_set.anonymous,
                with_ids=card_set.with_ids,
                unfinished=card_set.unfinished,
            )
            sheet = sheet_of(of_school, brands)
            cards = cards_of(of_school, people_in(of_school), sheet)
            if card_set.anonymous and len(cards) < CardSet.MIN_DRAWN:
                too_small.append(school)
                left_out += len(cards)
                progress.advance(len(cards))
                continue
            for start in range(0, len(cards), MAX_CARDS):
                part = cards[start : start + MAX_CARDS]
                name = _unused(names, _path_in_zip(card_set, school))
                archive.writestr(name, draw_cards(part, sheet, progress.advance))
            made += len(cards)
            named_by_id += sum(card.is_named_by_id for card in cards)
    messages = [_named_by_id(named_by_id)]
    if too_small:
        role = card_set.administration.role
        messages += _without_cards(role, too_small, people, left_out)
    progress.message = " ".join(filter(None, messages))
    # As after people were withdrawn in the meantime.
    if not made:
        raise JobRefused(progress.message)
    return made


def _without_cards(
    role: str, schools: list[School], people: QuerySet[Respondent], count: int
) -> list[str]:
    """Return sentences on schools that have too few people for cards. 1 statement."""
    no_card = ngettext(
        "%(count)s person has no card.", "%(count)s people have no card.", count
    ) % {"count": f"{count:,}"}
    names = [str(school) for school in schools]
    of_schools = people.filter(school__in=schools)
    return [no_card, schools_left_out(role, names, of_schools)]


def _path_in_zip(card_set: CardSet, school: School) -> str:
    """Return "riverside/lincoln-middle-school-101", in the folder of the district."""
    # Letters of any language, and none that a file system could refuse.
    name, code = (
        slugify(text, allow_unicode=True) for text in (school.name, school.code)
    )
    if code not in name:
        name = f"{name[:LONGEST_FILE_NAME]}-{code}".strip("-")
    name = name[: 2 * LONGEST_FILE_NAME]
    if card_set.district_id:
        return name
    folder = slugify(str(school.district), allow_unicode=True)[:LONGEST_FILE_NAME]
    return f"{folder or school.district_id}/{name or school.pk}"


def _unused(names: set[str], name: str) -> str:
    """Return a file name that is not in the archive yet, and remember it."""
    numbers = (f"{name}-{n}.pdf" if n > 1 else f"{name}.pdf" for n in count(1))
    unused = next(numbered for numbered in numbers if numbered not in names)
    names.add(unused)
    return unused


def write_csv(
    card_set: CardSet,
    people: QuerySet[Respondent],
    path: Path,
    progress: Progress,
) -> int:
    with path.open("w", encoding=card_set.encoding, newline="") as text:
        return write_access_codes(
            people=people,
            file=text,
            base_url=settings.PUBLIC_ADDRESS,
            advance=progress.advance,
        )


# New codes ------------------------------------------------------------------


@transaction.atomic
def reissue_once(card_set: CardSet) -> int:
    """Give each person of a set a new code, unless it was done before."""
    unissued = CardSet.objects.filter(pk=card_set.pk, reissued_at=None)
    if not unissued.update(reissued_at=timezone.now()):
        return 0
    # Rolled back together with the mark if the worker dies.
    if card_set.respondent_id:
        # Asked for by the person, while new cards for everybody change no decision.
        let_in_again(people_in(card_set))
    count = reissue_all(people_in(card_set))
    administration_id, school = card_set.administration_id, card_set.school
    outdated = _sets_with_codes_of(administration_id, school).exclude(pk=card_set.pk)
    outdated.update(outdated_at=timezone.now())
    audit.record(
        "reissue access codes",
        by=card_set.by,
        subject=card_set,
        school=school,
        after={"administration": str(card_set.administration), "people": count},
    )
    return count


def mark_sets_of_person_outdated(respondent: Respondent) -> None:
    """Mark the card sets that hold a person's replaced code."""
    _sets_with_codes_of(respondent.administration_id, respondent.school).filter(
        Q(respondent=None) | Q(respondent=respondent),
        grade__in=("", respondent.grade),
        classroom__in=("", respondent.classroom),
    ).update(outdated_at=timezone.now())


def mark_sets_of_people_outdated(people: QuerySet[Respondent]) -> None:
    """Mark all card sets of these people's schools. 1 statement per school."""
    groups = people.order_by().values_list("administration", "school").distinct()
    schools = School.objects.in_bulk({school for _, school in groups})
    for administration, school in groups:
        _sets_with_codes_of(administration, schools[school]).update(
            outdated_at=timezone.now()
        )


def _sets_with_codes_of(
    administration_id: int, school: School | None
) -> QuerySet[CardSet]:
    """Return current sets of the school, of its district and of all schools."""
    district = school.district_id if school else None
    of_many = Q(school=None) & (Q(district=None) | Q(district=district))
    return CardSet.objects.filter(
        Q(school=school) | of_many,
        administration=administration_id,
        outdated_at=None,
        deleted_at=None,
    )
