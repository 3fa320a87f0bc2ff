"""Open, change, close and reopen administrations.

A page save reads the window in its own statement, so a change applies to the
very next save.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Unpack

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import AuditEntry, District, School, User
from accounts.permissions import Permissions
from survey.database import advisory_locks
from survey.fieldwork.administrations import checks
from survey.fieldwork.administrations.checks import ChangeBlocked, EditConflict
from survey.fieldwork.administrations.module_settings import follow_round
from survey.fieldwork.administrations.plans import (
    COLUMNS,
    AdministrationPlan,
    AdministrationSettings,
    format_moment,
    plan_of,
    record_change,
)
from survey.fieldwork.administrations.queries import may_manage
from survey.fieldwork.administrations.subgroups import Subgroups, default_subgroups
from survey.fieldwork.message_platforms.hooks import administration_changed
from survey.fieldwork.message_platforms.rebuild import start_rebuild
from survey.models import (
    Administration,
    PublishedSurvey,
    Retention,
)
from survey.models.administration import MINIMUM_GROUP

# A roster that is being applied was compared with these.
FIXED_BY_ROSTERS = ("published", "role", "districts", "schools", "requires_consent")

# The properties that message platforms read next to each person.
IN_HASHES = ("messages_have_names", "messages_have_codes", "closes_at")


def open_administration(
    *,
    name: str,
    published: PublishedSurvey,
    role: str,
    opens_at: datetime,
    closes_at: datetime,
    district: District | None = None,
    districts: Collection[District] = (),
    schools: Collection[School] = (),
    subgroups: Subgroups | None = None,
    minimum_group: int | None = None,
    by: User | str | None = None,
    request: HttpRequest | None = None,
    **settings: Unpack[AdministrationSettings],
) -> Administration:
    """Offer a published survey to one role from `opens_at` to `closes_at`.

    `district` owns it, or the state (None). It is offered in `districts` and
    `schools`; if both are empty, in all schools of its owner. `subgroups` are the
    standard ones if left out, and `minimum_group` is that of the owner's settings.
    `by` is a user or the name of a command; simulations pass None and are not audited.

    Raises PermissionDenied; ValidationError with a message for each field;
    DatabaseBusy if the database cannot add a partition at this moment.
    """
    owner_id = district.pk if district else None
    if isinstance(by, User) and not Permissions(by).may_own(owner_id):
        raise PermissionDenied
    smallest = minimum_group or checks.least_minimum_group(district) or MINIMUM_GROUP
    administration = Administration(
        name=name,
        published=published,
        role=role,
        opens_at=opens_at,
        closes_at=closes_at,
        district=district,
        subgroups=default_subgroups() if subgroups is None else subgroups,
        minimum_group=smallest,
        **settings,
    )
    # The survey is checked later, under its lock.
    checks.check_new(administration, districts, schools)
    if minimum_group is not None:
        checks.check_minimum_group(district, minimum_group)
    with (
        checks.refuse_lock_timeouts(),
        checks.refuse_simultaneous_name(name),
        transaction.atomic(),
    ):
        checks.check_survey(district, published)
        administration.save(force_insert=True)
        administration.districts.set(districts)
        administration.schools.set(schools)
        if by is not None:
            record_change(
                "open administration", administration, by, request, before=None
            )
        administration_changed(administration)
        # Last, because its locks are held until the end of the transaction.
        add_partition(administration)
    return administration


def add_partition(administration: Administration) -> None:
    """Make the place for an administration's responses, where tables are divided."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # A function that runs as the tables' owner: migration 0002.
            cursor.execute("SELECT survey_add_partition(%s)", [administration.pk])


def change_administration(
    *,
    administration: Administration,
    to: AdministrationPlan,
    seen: int | None,
    by: User | str,
    request: HttpRequest | None = None,
    confirmed: str = "",
) -> Administration:
    """Change everything that differs from `to`; return the changed row.

    `seen` is the number of changes that the user's page had loaded; None skips
    the check. `confirmed` is the short name, if the user typed it.

    Raises PermissionDenied, and with a message for each field ChangeBlocked,
    ConfirmationRequired, EditConflict, DatabaseBusy and ValidationError.
    """
    with checks.refuse_lock_timeouts(), transaction.atomic():
        current = lock_administration(administration, by=by, seen=seen)
        before = plan_of(current)
        # Nothing to save, and no audit entry.
        if to == before:
            return current
        # Changing the dates or the wave need not wait.
        if any(getattr(to, name) != getattr(before, name) for name in FIXED_BY_ROSTERS):
            # Otherwise a roster could invite people after the check that there are
            # none. It is the lock that rosters take: see `rosters.staging`.
            advisory_locks.lock(advisory_locks.ROSTER, current.pk)
        checks.check_change(current, before, to, confirmed)
        for name in COLUMNS:
            setattr(current, name, getattr(to, name))
        current.districts.set(to.districts)
        current.schools.set(to.schools)
        _save(current, "change administration", by, request, before)
        follow_round(current, before)
    return current


def close_administration(
    *,
    administration: Administration,
    seen: int | None,
    by: User | str,
    request: HttpRequest | None = None,
) -> Administration:
    """Close it now. Pages already started can be submitted for ten more minutes."""
    with checks.refuse_lock_timeouts(), transaction.atomic():
        current = lock_administration(administration, by=by, seen=seen)
        now = timezone.now()
        state = current.state_at(now)
        if state == Administration.State.PLANNED:
            raise ChangeBlocked(
                _(
                    "It has not opened yet: it opens on %(opens_at)s. Change its"
                    " dates instead."
                )
                % {"opens_at": format_moment(current.opens_at)}
            )
        if state == Administration.State.CLOSED:
            raise ChangeBlocked(
                _("It closed on %(closes_at)s.")
                % {"closes_at": format_moment(current.closes_at)}
            )
        before = plan_of(current)
        # The ten minutes of grace are part of the statement that saves a page.
        current.closes_at = now
        _save(current, "close administration", by, request, before)
        follow_round(current, before)
    return current


def reopen_administration(
    *,
    administration: Administration,
    closes_at: datetime,
    seen: int | None,
    by: User | str,
    request: HttpRequest | None = None,
) -> Administration:
    """Accept answers again until `closes_at`, from people who have not finished."""
    with checks.refuse_lock_timeouts(), transaction.atomic():
        current = lock_administration(administration, by=by, seen=seen)
        now = timezone.now()
        if current.state_at(now) != Administration.State.CLOSED:
            raise ChangeBlocked(
                _("It is not closed: it accepts answers until %(closes_at)s.")
                % {"closes_at": format_moment(current.closes_at)}
            )
        # Its modules of which data were destroyed stay closed.
        if current.has_destroyed_data:
            raise ChangeBlocked(
                _(
                    "Data of it were destroyed at the end of their retention period, so"
                    " it can't be opened again. Open another survey round."
                )
            )
        if closes_at <= now:
            raise ValidationError(
                {"closes_at": _("This time has passed. Choose a later one.")}
            )
        checks.check_window(current.opens_at, closes_at)
        before = plan_of(current)
        current.closes_at = closes_at
        _save(current, "reopen administration", by, request, before)
        follow_round(current, before)
    return current


def lock_administration(
    administration: Administration,
    *,
    by: User | str,
    seen: int | None,
    no_key: bool = True,
) -> Administration:
    """Return the row as it is now, locked against other changes.

    Page saves and rosters read the row without this lock, and do not wait. With
    `no_key=False`, new rows that refer to it wait.
    """
    administrations = Administration.objects.select_related(
        "published__survey", "wave", "district"
    ).defer("published__definition", "published__survey__source")
    current = administrations.select_for_update(of=("self",), no_key=no_key).get(
        pk=administration.pk
    )
    # Checked with the locked row, because its owner decides.
    if isinstance(by, User) and not may_manage(Permissions(by), current):
        raise PermissionDenied
    if seen is not None and seen != current.changes:
        raise EditConflict(_describe_last_change(current))
    return current


def _describe_last_change(administration: Administration) -> str:
    last = AuditEntry.objects.filter(
        kind=administration._meta.label_lower, subject_id=administration.pk
    ).first()
    if last is None:
        return _(
            "Another user changed it while you had this page open. Your change was not"
            " saved. Check the current settings and try again."
        )
    changed = "; ".join(
        _("%(name)s: %(before)s became %(after)s")
        % {"name": name, "before": last.before.get(name, _("nothing")), "after": value}
        for name, value in last.after.items()
    )
    return _(
        "%(user)s changed it on %(moment)s, while you had this page open (%(changes)s)."
        " Your change was not saved. Check the current settings and try again."
    ) % {"user": last.by, "moment": format_moment(last.at), "changes": changed}


def _save(
    administration: Administration,
    action: str,
    by: User | str,
    request: HttpRequest | None,
    before: AdministrationPlan,
) -> None:
    # The row is locked, so no increment is lost.
    administration.changes += 1
    administration.full_clean()
    administration.save(update_fields=[*COLUMNS, "changes"])
    record_change(action, administration, by, request, before=before)
    administration_changed(administration)
    after = plan_of(administration)
    if after.closes_at > before.closes_at:
        # They were of data that may change now, or of a date that does not hold.
        Retention.objects.of_round_and_modules(administration).forget_warnings()
    # What is in the hashes of people; the rest is in the administration's entry.
    if any(getattr(after, name) != getattr(before, name) for name in IN_HASHES):
        start_rebuild(administration.pk)
