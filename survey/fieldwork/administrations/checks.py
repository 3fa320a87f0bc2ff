"""Checks before an administration is opened or changed.

Each raises an error with a sentence that says what to do instead. What would
disrupt respondents or make answers incomparable is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import IntegrityError, OperationalError
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import District, School
from accounts.place_settings import levels_of, minimum_group_of
from survey.fieldwork.administrations.module_settings import check_limit
from survey.fieldwork.administrations.plans import AdministrationPlan, format_moment
from survey.fieldwork.administrations.queries import (
    MAX_NAMES,
    has_people,
    has_started,
    schools_offered,
)
from survey.instrument.definitions.ownership import is_offerable
from survey.models import (
    Administration,
    Denominator,
    OpenCode,
    PublishedSurvey,
    Respondent,
    Role,
    Wave,
)
from survey.taking.storage import GRACE

# A date beyond these is a typing error.
MAX_AHEAD = timedelta(days=5 * 366)
MIN_YEAR = 2000
# PostgreSQL's error code for a lock that was not granted in time.
LOCK_NOT_AVAILABLE = "55P03"


class ChangeBlocked(ValidationError):
    """The change would disrupt respondents or spoil their answers."""


class ConfirmationRequired(ValidationError):
    """The administration's short name has to be typed to confirm the change."""


class EditConflict(ValidationError):
    """Another user changed the administration since the page was loaded."""


class DatabaseBusy(ValidationError):
    """A lock was not available; nothing was changed."""


def least_minimum_group(owner: District | None) -> int | None:
    """Return the minimum group that the owner or the state requires. 1 statement."""
    least: int | None = minimum_group_of(owner, levels_of(owner)).values[
        "minimum_group"
    ]
    return least


def check_minimum_group(owner: District | None, minimum_group: int) -> None:
    least = least_minimum_group(owner)
    if least is not None and minimum_group < least:
        words = _("The settings require at least %(least)s.")
        raise ValidationError({"minimum_group": words % {"least": least}})


def check_new(
    new: Administration, districts: Collection[District], schools: Collection[School]
) -> None:
    """Check an administration before it is stored, apart from its survey."""
    check_window(new.opens_at, new.closes_at)
    check_settings(new)
    check_wave(new.district, new.wave)
    check_places(new.district, districts, schools)
    check_name(new.name)
    if new.district_pages_limit and new.district is not None:
        raise ValidationError(
            {"district_pages_limit": _("Only the state lets districts add pages.")}
        )
    new.full_clean()


def check_change(
    current: Administration,
    before: AdministrationPlan,
    to: AdministrationPlan,
    confirmed: str,
) -> None:
    """Check everything that differs between the two plans."""
    # Only changed properties are checked: a survey that was retired since
    # may stay.
    _check_stays_comparable(current, before, to)
    if to.published != before.published:
        check_survey(current.district, to.published)
    check_settings(to)
    if to.minimum_group < before.minimum_group:
        check_minimum_group(current.district, to.minimum_group)
        if has_started(current):
            raise ChangeBlocked(
                {
                    "minimum_group": _(
                        "People have started, and answered under the promise of"
                        " %(minimum_group)s. Keep it or choose a larger number."
                    )
                    % {"minimum_group": before.minimum_group}
                }
            )
    if to.joins_waves and not before.joins_waves and has_started(current):
        raise ChangeBlocked(
            {
                "joins_waves": _(
                    "People have started, and answered under the promise that"
                    " their answers are not joined with those of other seasons."
                    " Choose this in the next survey round, before anybody"
                    " starts."
                )
            }
        )
    if to.district_pages_limit != before.district_pages_limit:
        check_limit(current, to.district_pages_limit)
    if to.wave != before.wave:
        check_wave(current.district, to.wave)
    if (to.districts, to.schools) != (before.districts, before.schools):
        check_places(current.district, to.districts, to.schools)
        _check_invited_schools_stay(current, before, to)
    if (to.opens_at, to.closes_at) != (before.opens_at, before.closes_at):
        _check_window_change(current, to, confirmed)


def check_survey(owner: District | None, published: PublishedSurvey) -> None:
    """Check that the owner may offer this survey and that it is not retired.

    The state offers any survey; a district offers the state's and its own.
    """
    survey_owner = published.survey.district_id
    if owner is not None and survey_owner not in (None, owner.pk):
        raise ValidationError(
            {
                "published": _("%(owner)s has no such survey. Choose another.")
                % {"owner": owner}
            }
        )
    # Locks the survey, so that it cannot be retired before the commit.
    if not is_offerable(published):
        raise ValidationError(
            {
                "published": _(
                    "%(survey)s is retired, so no new survey round can use it."
                    " Choose another version, or bring it back first."
                )
                % {"survey": published.survey}
            }
        )


def _check_stays_comparable(
    current: Administration, before: AdministrationPlan, to: AdministrationPlan
) -> None:
    reasons = {}
    if to.role != before.role:
        reasons["role"] = _(
            "People in this role are already invited, so the audience"
            " can't be changed. Open another survey round for other"
            " people."
        )
    if to.published != before.published:
        reasons["published"] = _(
            "People are already invited to this survey, and answers to"
            " two surveys can't be combined. Fix its wording with a"
            " corrected version of the survey, or open another"
            " survey round for a different survey."
        )
    if to.denominator != before.denominator:
        reasons["denominator"] = _(
            "People are already invited or have school links, so this can't"
            " be changed. Open another survey round for other people."
        )
    if to.requires_consent != before.requires_consent:
        reasons["requires_consent"] = _(
            "People are already invited, so this can't be changed: they could start"
            " without consent, or were promised that they can. Open another"
            " survey round, or undo its rosters first."
        )
    # The query runs only if one of them changes.
    if reasons and (has_people(current) or current.open_codes.exists()):
        raise ChangeBlocked(reasons)


def _check_window_change(
    current: Administration, to: AdministrationPlan, confirmed: str
) -> None:
    now = timezone.now()
    if to.opens_at != current.opens_at and has_started(current):
        raise ChangeBlocked(
            {
                "opens_at": _(
                    "People have started, so the opening time stays %(opens_at)s."
                )
                % {"opens_at": format_moment(current.opens_at)}
            }
        )
    if to.closes_at != current.closes_at:
        if current.closes_at <= now:
            raise ChangeBlocked(
                {
                    "closes_at": _(
                        "It closed on %(closes_at)s. To accept answers again, reopen"
                        " it."
                    )
                    % {"closes_at": format_moment(current.closes_at)}
                }
            )
        if to.closes_at <= now:
            raise ChangeBlocked(
                {
                    "closes_at": _(
                        "This time has passed. To close it at once, use Close now,"
                        " which shows how many people are affected."
                    )
                }
            )
        # A later end never surprises people who are answering.
        is_sudden = to.closes_at < min(current.closes_at, now + GRACE)
        if is_sudden and current.opens_at <= now and confirmed != current.name:
            raise ConfirmationRequired(
                {
                    "confirmed": _(
                        "It would close within ten minutes, while people are"
                        " answering. To confirm, type its short name: %(name)s"
                    )
                    % {"name": current.name}
                }
            )
    check_window(to.opens_at, to.closes_at)


def check_window(opens_at: datetime, closes_at: datetime) -> None:
    max_year = (timezone.now() + MAX_AHEAD).year
    for name, moment in (("opens_at", opens_at), ("closes_at", closes_at)):
        if not MIN_YEAR <= moment.year <= max_year:
            raise ValidationError(
                {
                    name: _("Use a date between %(min_year)s and %(max_year)s.")
                    % {"min_year": MIN_YEAR, "max_year": max_year}
                }
            )
    if closes_at <= opens_at:
        raise ValidationError(
            {
                "closes_at": _(
                    "It has to close after it opens: it would open on"
                    " %(opens_at)s and close on %(closes_at)s."
                )
                % {
                    "opens_at": format_moment(opens_at),
                    "closes_at": format_moment(closes_at),
                }
            }
        )


def check_settings(plan: Administration | AdministrationPlan) -> None:
    # The database has the same constraints; these have a message.
    if plan.role == Role.TEACHER and plan.coordinators_see_finished:
        raise ValidationError(
            {
                "coordinators_see_finished": _(
                    "This is never allowed for teachers: they were promised that"
                    " their school does not learn who has answered."
                )
            }
        )
    if plan.messages_have_codes and not plan.coordinators_see_finished:
        raise ValidationError(
            {
                "messages_have_codes": _(
                    "This is not allowed where it is confidential who has"
                    " finished: the platform's staff would see codes next to"
                    " names."
                )
            }
        )
    if plan.requires_consent and plan.denominator == Denominator.COUNT:
        raise ValidationError(
            {
                "requires_consent": _(
                    "This is possible only for people on a roster: nobody knows who"
                    " begins with a school link."
                )
            }
        )


def check_wave(owner: District | None, wave: Wave | None) -> None:
    # The state's waves are open to all districts.
    if wave is not None and wave.district_id not in (None, owner and owner.pk):
        raise ValidationError(
            {"wave": _("This season belongs to another owner. Choose another season.")}
        )


def check_places(
    owner: District | None,
    districts: Collection[District],
    schools: Collection[School],
) -> None:
    """Check that a district offers its administration in its own schools."""
    if owner is None:
        return
    outside = [str(district) for district in districts if district.pk != owner.pk]
    outside += [str(school) for school in schools if school.district_id != owner.pk]
    if outside:
        raise ValidationError(
            {
                "places": _(
                    "%(owner)s can offer its surveys only in its own schools, not"
                    " in %(outside)s."
                )
                % {"owner": owner, "outside": _list_names(outside)}
            }
        )


def _check_invited_schools_stay(
    current: Administration, before: AdministrationPlan, to: AdministrationPlan
) -> None:
    # Only in removed schools, because there may be two million respondents.
    # Who awaits consent is invited as soon as it is recorded.
    invited = Respondent.objects.filter(
        Q(withdrawn_at=None) | Q(awaits_consent=True),
        administration=current,
    )
    remaining = schools_offered(
        current.district, to.districts, to.schools, with_closed=True
    )
    removed = (
        schools_offered(
            current.district, before.districts, before.schools, with_closed=True
        )
        .exclude(pk__in=remaining.values("pk"))
        .order_by("name")
    )
    codes = OpenCode.objects.filter(
        administration=current, school=OuterRef("pk"), revoked_at=None
    )
    names = [str(school) for school in removed.filter(Exists(codes))[: MAX_NAMES + 1]]
    if names:
        raise ChangeBlocked(
            {
                "places": _("School links of %(names)s are in use. Revoke them first.")
                % {"names": _list_names(names)}
            }
        )
    # In a statement of their own: a Citus cluster asks no shards school by school.
    in_removed = invited.filter(school__in=list(removed.values_list("pk", flat=True)))
    with_people = in_removed.order_by().values_list("school", flat=True).distinct()
    removed = removed.filter(pk__in=list(with_people))
    names = [str(school) for school in removed[: MAX_NAMES + 1]]
    if names:
        raise ChangeBlocked(
            {
                "places": ngettext(
                    "People of %(names)s are invited, so it can't be removed. Withdraw"
                    " them with a roster first.",
                    "People of %(names)s are invited, so they can't be removed."
                    " Withdraw them with a roster first.",
                    len(names),
                )
                % {"names": _list_names(names)}
            }
        )


def _list_names(names: list[str]) -> str:
    if len(names) > MAX_NAMES:
        return _("%(names)s and others") % {"names": ", ".join(names[:MAX_NAMES])}
    return _(" and ").join((", ".join(names[:-1]), names[-1]) if names[1:] else names)


def check_name(name: str) -> None:
    # The unique constraint decides in the end; this check has a message.
    if Administration.objects.filter(name=name).exists():
        raise ValidationError(
            {
                "name": _(
                    "A survey round named %(name)s already exists. Choose another name."
                )
                % {"name": name}
            }
        )


@contextmanager
def refuse_simultaneous_name(name: str) -> Iterator[None]:
    """Turn an IntegrityError of two simultaneous requests into a sentence."""
    try:
        yield
    except IntegrityError as error:
        check_name(name)
        raise DatabaseBusy(
            _(
                "The survey, the season or a place was deleted in the meantime."
                " Reload this page and try again."
            )
        ) from error


@contextmanager
def refuse_lock_timeouts() -> Iterator[None]:
    """Turn a lock timeout into a sentence.

    The database role's timeout ends the wait, or that of the function which
    makes the partition.
    """
    try:
        yield
    except OperationalError as error:
        if getattr(error.__cause__, "pgcode", None) != LOCK_NOT_AVAILABLE:
            raise
        raise DatabaseBusy(
            _(
                "The database is busy, for example with a roster that is being applied."
                " Nothing was changed. Try again in a minute."
            )
        ) from error
