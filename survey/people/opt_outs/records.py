"""Record that people opt out of an administration, and take it back.

Who has opted out is withdrawn: nothing else decides who may log in, save, finish or
be written to. In addition, no roster brings them back, and exports leave them out.
People who await consent are kept out in the same way: see `consents`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts import audit
from accounts.models import School, User
from survey.database.respondent_locks import lock_respondents
from survey.fieldwork.login_cards.card_sets import (
    mark_sets_of_people_outdated,
    mark_sets_of_person_outdated,
)
from survey.fieldwork.message_platforms.hooks import people_changed
from survey.models import (
    Administration,
    Consent,
    Identity,
    ListedId,
    OptOut,
    Respondent,
)
from survey.people.changes import changes_person
from survey.people.opt_outs.modules import return_to_modules, withdraw_from_modules
from survey.people.rosters.counted_groups import (
    Writer,
    keep_groups_of_returning,
    keep_groups_of_withdrawn,
)

ALREADY = gettext_noop("This person has opted out already. Nothing was changed.")
NOT_OPTED_OUT = gettext_noop(
    "This person has not opted out, or no longer. Nothing was changed."
)
STARTED_SINCE = gettext_noop(
    "Nothing was changed: this person has started in the meantime. Read what"
    " opting out means now, and confirm again."
)
NOT_YOURS = gettext_noop(
    "Nothing was changed: somebody of this list is no longer in one of your"
    " schools. Upload the file again."
)
LIST_STARTED_SINCE = gettext_noop(
    "Nothing was changed: somebody of this list has started in the meantime."
    " Upload the file again, and read what opting out means now."
)
# Rows in one statement.
BATCH = 1000


class OptOutConflict(Exception):
    """The person is not as the page showed. The text says so; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked for, and when."""

    requested_on: date
    requested_by: str
    reason: str = ""


@changes_person
def opt_out(
    current: Respondent,
    asked: Request,
    *,
    by: User,
    expects_start: bool | None = None,
    request: HttpRequest | None = None,
) -> OptOut:
    """Withdraw a person for good, whether or not the survey has been started.

    `expects_start` is whether it had been when the page was shown; None where this
    is hidden. Raises OptOutConflict.
    """
    if current.has_opted_out:
        raise OptOutConflict(_(ALREADY))
    has_started = current.started_at is not None
    if expects_start is not None and has_started != expects_start:
        raise OptOutConflict(_(STARTED_SINCE))
    with connection.cursor() as cursor:
        _withdraw(cursor, current, timezone.now())
    created = new_opt_out(current.pk, asked, by, current.withdrawn_at)
    created.save(force_insert=True)
    # Their cards must not be handed out.
    mark_sets_of_person_outdated(current)
    audit.record(
        "opt out a person",
        by=by,
        request=request,
        subject=current,
        school=current.school,
        # Not the reason, which may name somebody.
        after={"administration": str(current.administration), **opt_out_facts(asked)},
    )
    return created


@transaction.atomic
def opt_out_list(
    people: Mapping[int, bool | None],
    asked: Request,
    *,
    administration: Administration,
    schools: QuerySet[School],
    by: User,
    request: HttpRequest | None = None,
) -> int:
    """Opt out the people of a list that was shown, all or none; return how many.

    `people` has, by key, whether each had started when the list was shown, or None
    where this is hidden. All have to be in `schools`. Page saves of these people wait,
    up to a second for 5,000. Raises OptOutConflict.
    """
    chosen = lock_people(
        people, administration, schools, only=lambda person: not person.has_opted_out
    )
    if any(person.started_at and people[person.pk] is False for person in chosen):
        raise OptOutConflict(_(LIST_STARTED_SINCE))
    if not chosen:
        return 0
    with connection.cursor() as cursor:
        write_opt_outs(
            cursor,
            [new_opt_out(row.pk, asked, by, row.withdrawn_at) for row in chosen],
        )
    record_list(
        "opt out people of a list",
        chosen,
        administration,
        about=opt_out_facts(asked),
        by=by,
        request=request,
    )
    return len(chosen)


def opt_out_facts(asked: Request) -> dict[str, str]:
    """Return what the audit log has of an opt-out."""
    return {
        "requested on": asked.requested_on.isoformat(),
        "requested by": asked.requested_by,
    }


def new_opt_out(
    respondent: int,
    asked: Request | ListedId,
    by: User,
    was_withdrawn_at: datetime | None,
) -> OptOut:
    return OptOut(
        respondent_id=respondent,
        requested_on=asked.requested_on,
        requested_by=asked.requested_by,
        reason=asked.reason,
        by=by,
        was_withdrawn_at=was_withdrawn_at,
    )


def write_opt_outs(
    writer: Writer, outs: Sequence[OptOut], *, are_new: bool = False
) -> None:
    """Withdraw the people of these opt-outs, and store them."""
    ids, now = sorted(out.respondent_id for out in outs), timezone.now()
    # New people have never counted, and have no cards.
    if not are_new:
        keep_groups_of_withdrawn(writer, ids)
    people = Respondent.objects.filter(pk__in=ids)
    people.update(
        opted_out_at=now,
        awaits_consent=False,
        withdrawn_at=Coalesce("withdrawn_at", Value(now)),
    )
    OptOut.objects.bulk_create(outs, batch_size=BATCH)
    if not are_new:
        withdraw_from_modules(writer, ids, now)
        mark_sets_of_people_outdated(people)


def record_list(
    action: str,
    people: Sequence[Respondent],
    administration: Administration,
    *,
    about: Mapping[str, str],
    by: User,
    request: HttpRequest | None,
) -> None:
    """Write one entry for each district, whose administrators read it."""
    by_district = defaultdict(list)
    for person in people:
        by_district[person.school.district].append(person.school)
    for district, schools in by_district.items():
        is_one_school = len(set(schools)) == 1
        audit.record(
            action,
            by=by,
            request=request,
            subject=administration,
            school=schools[0] if is_one_school else None,
            district=district,
            after={"people": len(schools), **about},
        )


@changes_person
def take_back(
    current: Respondent, *, by: User, request: HttpRequest | None = None
) -> None:
    """Let a person take part again, unless withdrawn before. Raises OptOutConflict.

    Where consent is required, the person awaits it: nobody has given it since.
    """
    ended = OptOut.objects.filter(respondent=current, ended_at=None).first()
    if not current.has_opted_out or ended is None:
        raise OptOutConflict(_(NOT_OPTED_OUT))
    rows = Respondent.objects.filter(pk=current.pk)
    if current.administration.requires_consent:
        rows.update(awaits_consent=True)
    else:
        with connection.cursor() as cursor:
            keep_groups_of_returning(cursor, [current.pk])
            return_to_modules(cursor, [current.pk])
        rows.update(opted_out_at=None, withdrawn_at=ended.was_withdrawn_at)
    ended.ended_at, ended.ended_by = timezone.now(), by
    ended.save(update_fields=["ended_at", "ended_by"])
    # No later roster opts the person out again, or counts an earlier consent.
    same_id = Identity.objects.filter(
        pk=current.pk,
        district=OuterRef("district"),
        external_id=OuterRef("external_id"),
    )
    listed = ListedId.objects.filter(administration=current.administration_id)
    listed.filter(Exists(same_id)).delete()
    audit.record(
        "take back an opt-out",
        by=by,
        request=request,
        subject=current,
        school=current.school,
        before={"requested on": ended.requested_on.isoformat()},
        after={"administration": str(current.administration)},
    )


def carry_over(writer: Writer, withdrawn: Respondent, survivor: Respondent) -> None:
    """Let the opt-out of either record of a person count for the one that stays.

    Without one, the consent of either record counts. Both are as they were before
    the join, with their rows locked.
    """
    if not survivor.has_opted_out and not withdrawn.has_opted_out:
        _carry_over_consent(writer, withdrawn, survivor)
        return
    outs = OptOut.objects.filter(respondent=withdrawn, ended_at=None)
    if survivor.has_opted_out:
        outs.update(ended_at=timezone.now())
        if withdrawn.withdrawn_at is None:
            # The person could still take part, with the other record.
            current = OptOut.objects.filter(respondent=survivor, ended_at=None)
            current.update(was_withdrawn_at=None)
        # Exports leave out what was answered with either record.
        rows = Respondent.objects.filter(pk=withdrawn.pk)
        rows.update(opted_out_at=survivor.opted_out_at, awaits_consent=False)
        withdraw_from_modules(writer, [withdrawn.pk], timezone.now())
    elif withdrawn.opted_out_at:
        _withdraw(writer, survivor, withdrawn.opted_out_at)
        outs.update(respondent=survivor, was_withdrawn_at=survivor.withdrawn_at)


def _carry_over_consent(
    writer: Writer, withdrawn: Respondent, survivor: Respondent
) -> None:
    rows = Respondent.objects.filter(pk=withdrawn.pk)
    if not withdrawn.awaits_consent:
        Consent.objects.filter(respondent=withdrawn).update(respondent=survivor)
        admit(writer, [survivor.pk])
    elif survivor.awaits_consent:
        # The person counts once.
        rows.update(awaits_consent=False)
    else:
        rows.update(awaits_consent=False, opted_out_at=None)


def admit(writer: Writer, people: Sequence[int], *, are_new: bool = False) -> None:
    """Let people take part who have awaited consent."""
    # For new people it is known already how they count.
    if not are_new:
        keep_groups_of_returning(writer, people)
    Respondent.objects.filter(pk__in=people).update(
        awaits_consent=False, opted_out_at=None, withdrawn_at=None
    )


def lock_people(
    people: Collection[int],
    administration: Administration,
    schools: QuerySet[School],
    *,
    only: Callable[[Respondent], bool],
) -> list[Respondent]:
    """Lock the people of a list, all of whom are in these schools, to change some.

    Returns the people to change, of whom message platforms are told after the commit.
    Raises OptOutConflict.
    """
    rows = Respondent.objects.on_roster().filter(
        pk__in=people, administration=administration, school__in=schools
    )
    current = lock_respondents(rows.select_related("school__district"), of=("self",))
    if len(current) < len(people):
        raise OptOutConflict(_(NOT_YOURS))
    chosen = [person for person in current if only(person)]
    if chosen:
        people_changed([person.pk for person in chosen])
    return chosen


def _withdraw(writer: Writer, person: Respondent, at: datetime) -> None:
    keep_groups_of_withdrawn(writer, [person.pk])
    Respondent.objects.filter(pk=person.pk).update(
        opted_out_at=at,
        awaits_consent=False,
        withdrawn_at=person.withdrawn_at or timezone.now(),
    )
    withdraw_from_modules(writer, [person.pk], at)
