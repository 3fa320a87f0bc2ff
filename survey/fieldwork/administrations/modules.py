"""Modules: pages that a district adds after those of a round of the state.

A module is an administration of the district, so its answers, results, exports and
releases are apart from the state's. Nobody is invited to it: people who finish the
state's round go on to it in the same visit, as respondents without a name; see
`survey.taking.next_part`.
"""

from __future__ import annotations

from dataclasses import replace

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import District, User
from accounts.permissions import Capability, Permissions
from survey.fieldwork.administrations import checks
from survey.fieldwork.administrations.changes import (
    change_administration,
    open_administration,
)
from survey.fieldwork.administrations.checks import ChangeBlocked
from survey.fieldwork.administrations.module_settings import (
    FOLLOWED,
    check_pages,
    is_offered_in,
    schools_of_module,
)
from survey.fieldwork.administrations.plans import plan_of
from survey.fieldwork.administrations.queries import surveys_to_offer
from survey.fieldwork.administrations.suggestions import suggest_name
from survey.models import Administration, PublishedSurvey

State = Administration.State


def add_module(
    *,
    state_round: Administration,
    district: District,
    published: PublishedSurvey,
    by: User | str,
    request: HttpRequest | None = None,
) -> Administration:
    """Add the pages of a published survey after those of a round of the state.

    Raises PermissionDenied, ChangeBlocked, ValidationError and DatabaseBusy.
    """
    if isinstance(by, User) and not may_add_in(Permissions(by), district):
        raise PermissionDenied
    with checks.refuse_lock_timeouts(), transaction.atomic():
        # Two users of a district wait for each other, and add one module.
        rows = Administration.objects.select_related("published", "wave")
        current = rows.select_for_update(of=("self",), no_key=True).get(
            pk=state_round.pk
        )
        _check_takes_module(current, district)
        check_pages(published, current.district_pages_limit)
        least = checks.least_minimum_group(district) or 1
        return open_administration(
            name=suggest_name(role="", wave=f"{current.name} pages", district=district),
            published=published,
            district=district,
            schools=schools_of_module(current, district.pk),
            minimum_group=max(least, current.minimum_group),
            module_of=current,
            by=by,
            request=request,
            **{name: getattr(current, name) for name in FOLLOWED},
        )


def _check_takes_module(state_round: Administration, district: District) -> None:
    if state_round.district_id is not None or not state_round.district_pages_limit:
        raise ChangeBlocked(_("Districts can't add pages to this survey round."))
    if state_round.state == State.CLOSED:
        raise ChangeBlocked(_("This survey round is closed."))
    if not is_offered_in(state_round, district):
        raise ChangeBlocked(
            _("This survey round is not offered in %(district)s.")
            % {"district": district}
        )
    if state_round.modules.filter(district=district).exists():
        raise ChangeBlocked(
            _("%(district)s has added its questions already.") % {"district": district}
        )


def change_questions(
    *,
    module: Administration,
    published: PublishedSurvey,
    by: User | str,
    request: HttpRequest | None = None,
) -> Administration:
    """Ask another survey in a module, as long as nobody has come to it.

    Raises PermissionDenied, ChangeBlocked, ValidationError and DatabaseBusy.
    """
    state_round = module.module_of
    if state_round is None:
        raise ValidationError(_("This survey round is no module."))
    check_pages(published, state_round.district_pages_limit)
    return change_administration(
        administration=module,
        to=replace(plan_of(module), published=published),
        seen=None,
        by=by,
        request=request,
    )


@transaction.atomic
def set_stopped(
    *,
    module: Administration,
    is_stopped: bool,
    by: User,
    request: HttpRequest | None = None,
) -> None:
    """Let nobody go on to a module any more, or allow it again; for the state.

    People who have come to it may finish. Raises PermissionDenied.
    """
    if not Permissions(by).may_own(None):
        raise PermissionDenied
    rows = Administration.objects.filter(pk=module.pk, stopped_at__isnull=is_stopped)
    # A second click changes nothing, and has no entry.
    if rows.update(stopped_at=timezone.now() if is_stopped else None):
        audit.record(
            "stop module" if is_stopped else "allow module",
            by=by,
            request=request,
            subject=module,
            district=module.district,
        )


def may_add_in(permissions: Permissions, district: District) -> bool:
    """Return whether the user asks questions for a district; the state does not."""
    return district.pk in permissions.places(Capability.MANAGE_SURVEYS).districts


def districts_to_add_in(
    permissions: Permissions, state_round: Administration
) -> list[District]:
    """Return the user's districts that may add pages to a round. 4 statements."""
    if state_round.district_id is not None or not state_round.district_pages_limit:
        return []
    places = permissions.places(Capability.MANAGE_SURVEYS)
    districts = District.objects.filter(pk__in=places.districts, closed_at=None)
    return [
        district
        for district in districts.order_by("name")
        if is_offered_in(state_round, district)
    ]


def surveys_of_modules(
    permissions: Permissions, state_round: Administration, district: District
) -> QuerySet[PublishedSurvey]:
    """Return the district's surveys that are short enough, newest first."""
    return (
        surveys_to_offer(permissions)
        .filter(survey__district=district)
        .annotate(pages=Count("survey__pages"))
        .filter(pages__lte=state_round.district_pages_limit)
    )


def modules_with_pages(
    state_round: Administration, districts: QuerySet[District] | None = None
) -> QuerySet[Administration]:
    """Return the modules of a round, of some districts or all, by district."""
    is_chosen = Q() if districts is None else Q(district__in=districts)
    return (
        state_round.modules.filter(is_chosen)
        .select_related("published__survey", "district")
        .defer("published__definition", "published__survey__source")
        .annotate(pages=Count("published__survey__pages"))
        .order_by("district__name", "pk")
    )
