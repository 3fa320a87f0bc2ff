"""The list of administrations."""

from __future__ import annotations

from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.fieldwork.administrations import administrations_for
from survey.fieldwork.administrations.queries import with_titles
from survey.models import Administration
from survey.models.administration import CLOSES_SOON

State = Administration.State


class FilterForm(forms.Form):
    state = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Status"),
        choices=[
            ("", gettext_lazy("Any")),
            *((state.value, state.label) for state in State),
        ],
    )


@needs(C.SEE_RATES)
@require_safe
def administration_list(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    administrations = with_titles(administrations_for(permissions, C.SEE_RATES))
    listing = Listing(
        request,
        _filter_by_state(administrations, request.GET.get("state", "")).annotate(
            district_count=_count_rows(Administration.districts.through),
            school_count=_count_rows(Administration.schools.through),
        ),
        search=(
            "name",
            "wave__name",
            "published__survey__name",
            "published__survey__title",
        ),
        sorts={
            # Not the order of a column: the newest are first.
            "newest": ("-opens_at",),
            "name": ("name",),
            "wave": ("wave__name", "name"),
            "survey": ("published__survey__name", "name"),
            "role": ("role", "name"),
            "opens": ("opens_at",),
            "closes": ("closes_at",),
        },
    )
    return listing.render(
        "survey/console/administration_list.html",
        {
            "filter_form": FilterForm(request.GET),
            "filtered": bool(request.GET.get("state")),
            "may_open": permissions.has(C.MANAGE_SURVEYS),
        },
    )


def _count_rows(through: type[Model]) -> Coalesce:
    counts = (
        through._default_manager.filter(administration=OuterRef("pk"))
        .order_by()
        .values("administration")
        .annotate(n=Count("pk"))
        .values("n")
    )
    return Coalesce(Subquery(counts), 0)


def _filter_by_state(
    administrations: QuerySet[Administration], state: str
) -> QuerySet[Administration]:
    # The same rules as in `Administration.state_at`.
    now = timezone.now()
    if state == State.PLANNED:
        return administrations.filter(opens_at__gt=now)
    if state == State.CLOSED:
        return administrations.filter(closes_at__lte=now)
    opened = administrations.filter(opens_at__lte=now)
    if state == State.CLOSES_SOON:
        return opened.filter(closes_at__gt=now, closes_at__lte=now + CLOSES_SOON)
    if state == State.OPEN:
        return opened.filter(closes_at__gt=now + CLOSES_SOON)
    return administrations
