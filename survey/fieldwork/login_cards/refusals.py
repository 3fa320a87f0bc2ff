"""Say why login cards cannot be made, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from accounts.models import School
from survey.fieldwork.administrations import invited_people
from survey.fieldwork.login_cards.code_emails import with_email
from survey.models import CardSet, Respondent, Role

# All pages of a PDF are in memory until it is written.
MAX_CARDS = 5_000
# Of schools in a message.
MOST_NAMED = 4
TOO_MANY = gettext_noop(
    "There are more than %(most)s cards, which is too many for one file. Print them"
    " class by class, or grade by grade."
)
NO_PEOPLE = gettext_noop("No one is invited here, so there is nothing to print.")
NO_PERSON = gettext_noop(
    "This person is no longer invited at this school, so there is no card to print."
    " See the person's page."
)
ALL_FINISHED = gettext_noop(
    "Everyone who is invited here has finished, or no one is invited."
)
WITHHELD = gettext_noop(
    "Who has finished is confidential in this survey round, so codes can't"
    " be listed next to names. Send them by e-mail, or print cards to draw"
    " from."
)
DESTROYED = gettext_noop(
    "The access codes of this survey round were destroyed at the end of their retention"
    " period, so there is nothing to print."
)
TOO_FEW = gettext_noop(
    "Cards to draw from need at least %(fewest)s people. Print them for all classes."
)


def reason_not_made(card_set: CardSet, people: QuerySet[Respondent]) -> str:
    """Return why the set's people get no file now, or an empty string.

    1 statement, and up to 3 for cards to draw from.
    """
    if card_set.administration.identities_destroyed_at is not None:
        return _(DESTROYED)
    invited = people.count()
    if not invited:
        nobody = NO_PERSON if card_set.respondent_id else NO_PEOPLE
        return _(ALL_FINISHED if card_set.unfinished else nobody)
    if card_set.is_withheld:
        return _(WITHHELD)
    role = card_set.administration.role
    is_pdf = card_set.format == CardSet.Format.PDF
    if card_set.anonymous and is_pdf and invited < CardSet.MIN_DRAWN:
        of_school = invited_people(card_set.administration)
        of_school = of_school.filter(school=card_set.school_id)
        if of_school.count() >= CardSet.MIN_DRAWN:
            return _(TOO_FEW) % {"fewest": CardSet.MIN_DRAWN}
        return schools_left_out(role, [str(card_set.school)], of_school)
    if card_set.anonymous and not is_pdf:
        by_size = _schools_by_size(people)
        if all(size < CardSet.MIN_DRAWN for _pk, size in by_size):
            schools = School.objects.filter(pk__in=[pk for pk, _size in by_size])
            names = [str(school) for school in schools.order_by("name", "pk")]
            return schools_left_out(role, names, people)
    if is_pdf and invited > MAX_CARDS:
        return _(TOO_MANY) % {"most": f"{MAX_CARDS:,}"}
    return ""


def schools_left_out(
    role: str, schools: Sequence[str], people: QuerySet[Respondent]
) -> str:
    """Say which schools have too few people to draw cards from, and what to do.

    1 statement. `people` are those of the role who could be sent their codes instead.
    """
    sentence = ngettext(
        "%(count)s school has fewer than %(fewest)s people, too few to draw cards from:"
        " %(names)s.",
        "%(count)s schools have fewer than %(fewest)s people, too few to draw cards"
        " from: %(names)s.",
        len(schools),
    ) % {
        "count": f"{len(schools):,}",
        "fewest": CardSet.MIN_DRAWN,
        "names": ", ".join(name[:60] for name in schools[:MOST_NAMED])
        + (" …" if schools[MOST_NAMED:] else ""),
    }
    return f"{sentence} {_advice(role, has_addresses=with_email(people).exists())}"


def _advice(role: str, *, has_addresses: bool) -> str:
    if has_addresses:
        return _("Send these codes by e-mail.")
    # Who has finished is always confidential for them.
    if role == Role.TEACHER:
        return _("Add people to the roster.")
    return _(
        "Add people to the roster, or let coordinators see who has finished: cards"
        " then have names."
    )


def count_small_schools(people: QuerySet[Respondent]) -> int:
    """Return the number of schools with too few people to draw cards. 1 statement."""
    return sum(size < CardSet.MIN_DRAWN for _pk, size in _schools_by_size(people))


def _schools_by_size(people: QuerySet[Respondent]) -> list[tuple[int, int]]:
    """Return primary keys of schools with the number of these people."""
    of_schools = people.order_by().values("school").annotate(size=Count("pk"))
    return list(of_schools.values_list("school", "size"))
