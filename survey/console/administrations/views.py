"""The list of administrations, and the page of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts import forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from accounts.permissions import Permissions
from survey.console.administrations.fields import survey_in_words
from survey.fieldwork.administrations import (
    administrations_for,
    has_people,
    may_manage,
    subgroup_label,
)
from survey.fieldwork.administrations.queries import administration_or_404, with_titles
from survey.fieldwork.emails.figures import Figures, read_figures
from survey.models import Administration, Denominator, EmailSchedule
from survey.models.administration import CLOSES_SOON

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

State = Administration.State
# Districts and schools on the page of an administration.
MAX_PLACES_SHOWN = 50


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


@needs(C.SEE_RATES)
@require_safe
def administration_detail(request: StaffRequest, pk: int) -> HttpResponse:
    permissions = request.permissions
    administration = administration_or_404(permissions, pk, C.SEE_RATES)
    districts = list(
        administration.districts.filter(
            pk__in=permissions.districts(C.SEE_RATES).values("pk")
        )
    )
    schools = list(
        administration.schools.filter(
            pk__in=permissions.schools(C.SEE_RATES).values("pk")
        ).select_related("district")
    )
    # Places of other districts are counted, and not named.
    all_places = administration.districts.count() + administration.schools.count()
    # Coordinators and analysts have no pages about surveys.
    survey_address = ""
    if permissions.has(C.MANAGE_SURVEYS):
        survey_id = administration.published.survey_id
        survey_address = reverse("survey_detail", args=[survey_id])
    manages = may_manage(permissions, administration)
    step, links = _split_off_next_step(
        administration, _links(permissions, administration)
    )
    return render(
        request,
        "survey/console/administration_detail.html",
        {
            "administration": administration,
            "survey": survey_in_words(administration.published),
            "subgroups": [subgroup_label(name) for name in administration.subgroups],
            "survey_address": survey_address,
            "districts": districts[:MAX_PLACES_SHOWN],
            "schools": schools[:MAX_PLACES_SHOWN],
            "elsewhere": all_places - len(districts) - len(schools),
            "may_manage": manages,
            "emails": _email_figures(administration) if manages else None,
            "step": step,
            "links": links,
        },
    )


def _email_figures(administration: Administration) -> Figures | None:
    """Return the figures of the administration's e-mails, if there are any."""
    schedule = EmailSchedule.objects.filter(administration=administration).first()
    if schedule is None:
        return None
    schedule.administration = administration
    return read_figures(schedule).total


class PageLink(NamedTuple):
    """A page about one administration, and the capability that opens it."""

    capability: C
    # With "?parameter=" where the address has the administration's key at its end.
    route: str
    name: StrOrPromise
    purpose: StrOrPromise
    # Only for administrations with this denominator; empty: for all.
    denominator: str = ""
    is_for_closed: bool = False
    is_for_waves: bool = False
    address: str = ""


PAGE_LINKS = (
    PageLink(
        C.SEE_RATES,
        "rates_board?administration=",
        gettext_lazy("Response rates"),
        gettext_lazy("See how many have started and finished, school by school."),
    ),
    PageLink(
        C.SEE_IDENTITIES,
        "people_list",
        gettext_lazy("People"),
        gettext_lazy("Find a person, print a lost card again, or issue a new code."),
        Denominator.ROSTER,
    ),
    PageLink(
        C.SEE_IDENTITIES,
        "cards_list",
        gettext_lazy("Login cards"),
        gettext_lazy("Print the cards with the access codes."),
        Denominator.ROSTER,
    ),
    PageLink(
        C.MANAGE_ROSTERS,
        "open_codes_list",
        gettext_lazy("Open codes"),
        gettext_lazy(
            "Create codes that anyone can begin with, and print posters and letters."
        ),
        Denominator.COUNT,
    ),
    PageLink(
        C.MANAGE_ROSTERS,
        "count_list",
        gettext_lazy("Counts of families or students"),
        gettext_lazy("Supply the counts from which response rates are counted."),
        Denominator.COUNT,
    ),
    PageLink(
        C.SEE_RATES,
        "administration_test_link",
        gettext_lazy("Test link"),
        gettext_lazy("Try the survey here or on a phone. Nothing is stored."),
    ),
    PageLink(
        C.SEE_RATES,
        "administration_questionnaire",
        gettext_lazy("Questionnaire"),
        gettext_lazy("Read or print all questions, options and rules."),
    ),
    PageLink(
        C.SEE_AUDIT,
        "administration_devices",
        gettext_lazy("Devices"),
        gettext_lazy("See devices on which many access codes were used."),
    ),
    PageLink(
        C.MANAGE_ROSTERS,
        "roster_upload",
        gettext_lazy("Upload a roster"),
        gettext_lazy("Invite people, or update the people of a school."),
        Denominator.ROSTER,
    ),
    PageLink(
        C.MANAGE_ROSTERS,
        "roster_list?administration=",
        gettext_lazy("Rosters"),
        gettext_lazy("See the roster files uploaded so far, and their results."),
        Denominator.ROSTER,
    ),
    PageLink(
        C.SEE_RESPONSES,
        "results_page",
        gettext_lazy("Results"),
        gettext_lazy("See how people answered, by place and group."),
        is_for_closed=True,
    ),
    PageLink(
        C.SEE_RESPONSES,
        "export_new?administrations=",
        gettext_lazy("Export"),
        gettext_lazy("Download the responses."),
    ),
    PageLink(
        C.SEE_RESPONSES,
        "export_panel?administrations=",
        gettext_lazy("Join waves (panel)"),
        gettext_lazy("Follow the same people through several waves, without names."),
        Denominator.ROSTER,
        is_for_waves=True,
    ),
    PageLink(
        C.MANAGE_SURVEYS,
        "emails_detail",
        gettext_lazy("E-mails"),
        gettext_lazy(
            "Send invitations and reminders to people with an e-mail address."
        ),
    ),
)


def _links(permissions: Permissions, administration: Administration) -> list[PageLink]:
    """Return the pages about this administration that the user may open."""
    is_closed = administration.state_at(timezone.now()) == State.CLOSED
    manages = may_manage(permissions, administration)
    links = []
    for link in PAGE_LINKS:
        may_open = (
            manages
            if link.capability is C.MANAGE_SURVEYS
            else permissions.has(link.capability)
        )
        if (
            may_open
            and (is_closed or not link.is_for_closed)
            and (administration.joins_waves or not link.is_for_waves)
            and link.denominator in ("", administration.denominator)
        ):
            route, _question_mark, parameter = link.route.partition("?")
            if parameter:
                address = f"{reverse(route)}?{parameter}{administration.pk}"
            else:
                address = reverse(route, args=[administration.pk])
            links.append(link._replace(address=address))
    return links


def _split_off_next_step(
    administration: Administration, links: list[PageLink]
) -> tuple[PageLink, list[PageLink]]:
    """Return the page to go on with, named like a button, and the other pages.

    1 statement.
    """
    step = _next_step(administration)
    for link in links:
        if step and link.address.startswith(step[0]):
            rest = [candidate for candidate in links if candidate != link]
            return link._replace(name=step[1]), rest
    # The first page is that of the response rates, which everyone may open.
    return links[0]._replace(name=_("See response rates")), links[1:]


def _next_step(administration: Administration) -> tuple[str, str] | None:
    """Return an address and the words of a button; None for the response rates."""
    pk = administration.pk
    if administration.state == State.CLOSED:
        return reverse("export_new"), _("Export responses")
    if administration.denominator == Denominator.COUNT:
        if administration.open_codes.exists():
            return None
        return reverse("open_codes_list", args=[pk]), _("Create open codes")
    if not has_people(administration):
        return reverse("roster_upload", args=[pk]), _("Upload a roster")
    if administration.state == State.PLANNED:
        return reverse("cards_list", args=[pk]), _("Print login cards")
    return None
