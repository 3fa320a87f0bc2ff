"""The people of an administration: lists, search, and the page of one person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.db.models import Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts import audit, forms
from accounts.access import needs
from accounts.console.listing import LONGEST_SEARCH, Listing
from accounts.http import StaffRequest
from accounts.models import School
from accounts.permissions import Capability as C
from survey.console.people.codes import SHOW_CODE_ONCE, may_reissue
from survey.console.people.scope import (
    groups_of,
    may_choose_school,
    record_look,
    respondent_or_404,
    schools_for,
    schools_listing,
    selected_school,
    set_choices,
    set_group_choices,
)
from survey.console.people.search import (
    MAX_FOUND,
    OTHER_ID,
    find_by_code,
    find_people,
)
from survey.fieldwork.administrations import administrations_for
from survey.fieldwork.administrations.queries import administration_or_404
from survey.fieldwork.emails.suppression import is_suppressed
from survey.models import Administration, Denominator, OptOut, Respondent
from survey.models.erasure import ERASES
from survey.people import access_codes
from survey.people.merging.joins import joins_of
from survey.people.opt_outs.consents import latest_consent

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

BY_NAME = ("identity__family_name", "identity__given_name")
NAME_FIELDS = (
    "identity__given_name__folded",
    "identity__family_name__folded",
    "identity__external_id",
    "other_id",
    "identity__email",
)
MAX_SCHOOLS_FOUND = 10
MAX_OTHERS = 6

# Value in the address -> label and condition.
StatusFilters = Mapping[str, tuple["StrOrPromise", Q]]
PROGRESS: StatusFilters = {
    "not-finished": (
        gettext_lazy("Not finished"),
        Q(completed_at=None, withdrawn_at=None),
    ),
    "not-started": (gettext_lazy("Not started"), Q(started_at=None, withdrawn_at=None)),
    "started": (
        gettext_lazy("Started, not finished"),
        Q(started_at__isnull=False, completed_at=None, withdrawn_at=None),
    ),
    "finished": (
        gettext_lazy("Finished"),
        Q(completed_at__isnull=False, declined_at=None, withdrawn_at=None),
    ),
    "declined": (
        gettext_lazy("Declined"),
        Q(declined_at__isnull=False, withdrawn_at=None),
    ),
}
INVITATION: StatusFilters = {
    "invited": (gettext_lazy("Invited"), Q(withdrawn_at=None)),
    "withdrawn": (
        gettext_lazy("Withdrawn"),
        Q(withdrawn_at__isnull=False, opted_out_at=None),
    ),
    "opted-out": (
        gettext_lazy("Opted out"),
        Q(opted_out_at__isnull=False, awaits_consent=False),
    ),
}


class PeopleFilter(forms.Form):
    """Filters for the people of one school."""

    school = forms.ChoiceField(required=False, label=gettext_lazy("School"))
    grade = forms.ChoiceField(required=False, label=gettext_lazy("Grade"))
    classroom = forms.ChoiceField(required=False, label=gettext_lazy("Class"))
    state = forms.ChoiceField(required=False, label=gettext_lazy("Status"))

    def __init__(
        self,
        data: QueryDict,
        *,
        school: School | None,
        groups: Sequence[tuple[str, str]],
        statuses: StatusFilters,
    ) -> None:
        super().__init__(data)
        labels = [(value, label) for value, (label, _where) in statuses.items()]
        set_choices(self, "state", [("", _("All statuses")), *labels])
        set_group_choices(self, groups)
        if school:
            choices = [(school.pk, school.name), ("", _("All my schools"))]
            set_choices(self, "school", choices)
        else:
            del self.fields["school"]


@needs(C.SEE_IDENTITIES)
@require_safe
def people_list(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the people of a school; without one, search or choose a school."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    school = selected_school(request)
    if school:
        return _people_of_school(request, administration, school)
    if request.GET.get("q", "").strip():
        return _search_people(request, administration)
    listing = schools_listing(request, administration)
    return listing.render(
        "survey/console/people_schools.html",
        {"administration": administration, "route": "people_list"},
    )


def _people_of_school(
    request: StaffRequest, administration: Administration, school: School
) -> HttpResponse:
    with_progress = not administration.is_completion_confidential
    # A progress filter would reveal what the list hides.
    statuses = {**(PROGRESS if with_progress else {}), **INVITATION}
    if administration.requires_consent:
        label = _("Awaiting consent")
        statuses["awaiting-consent"] = (label, Q(awaits_consent=True))
    form = PeopleFilter(
        request.GET,
        school=school if may_choose_school(request) else None,
        groups=groups_of(administration, school),
        statuses=statuses,
    )
    people = (
        Respondent.objects.on_roster()
        .not_erased()
        .filter(administration=administration, school=school)
    )
    if administration.identities_destroyed_at is not None:
        # Numbers without names, which lead to nobody.
        people = people.none()
    filters: dict[str, str] = {}
    if form.is_valid():
        for name in ("grade", "classroom", "state"):
            if value := form.cleaned_data.get(name, ""):
                filters[name] = value
                is_status = name == "state"
                people = people.filter(
                    statuses[value][1] if is_status else Q(**{name: value})
                )
    else:
        people, filters = people.none(), {"filter": "invalid"}
    # Only the people of one school are searched, so that no index is needed.
    listing = _listing_of_school(request, people, NAME_FIELDS)
    ends_code = False
    # Where progress is hidden, nobody sees codes next to names.
    may_find = with_progress and listing.query and not listing.page.object_list
    if may_find and (with_code := find_by_code(people, listing.query)):
        ends_code = True
        listing = _listing_of_school(request, people.filter(pk__in=with_code), ())
    record_view(request, administration, listing, school=school, filters=filters)
    return listing.render(
        "survey/console/people_list.html",
        {
            "administration": administration,
            "school": school,
            "filter_form": form,
            "shows_progress": with_progress,
            "narrowed": bool(filters) or bool(listing.query),
            "others": _other_administrations(request, administration, listing),
            "ends_code": ends_code,
            "may_erase": bool(request.permissions.places(*ERASES)),
        },
    )


def _listing_of_school(
    request: StaffRequest, people: QuerySet[Respondent], search: Sequence[str]
) -> Listing[Respondent]:
    return Listing(
        request,
        people.select_related("identity").annotate(other_id=OTHER_ID),
        search=search,
        sorts={
            "name": BY_NAME,
            "id": ("identity__external_id",),
            "grade": ("grade", "classroom", *BY_NAME),
            "class": ("classroom", *BY_NAME),
        },
    )


def _search_people(
    request: StaffRequest, administration: Administration
) -> HttpResponse:
    """Show people and schools that match, in all of the user's schools."""
    query = request.GET["q"][:LONGEST_SEARCH].replace("\x00", "").strip()
    people, more = find_people(request.permissions, administration, query)
    listing: Listing[Respondent] = Listing(
        request,
        people.select_related("identity", "school__district"),
        sorts={
            "name": BY_NAME,
            "school": ("school__name", *BY_NAME),
            "id": ("identity__external_id",),
        },
    )
    record_view(request, administration, listing, school=None, filters={})
    schools = schools_for(request, administration).select_related("district")
    return listing.render(
        "survey/console/people_list.html",
        {
            "administration": administration,
            "school": None,
            "schools": schools.filter(name__icontains=query)[:MAX_SCHOOLS_FOUND],
            "more": more,
            "most": MAX_FOUND,
            "shows_progress": not administration.is_completion_confidential,
            "narrowed": True,
            "others": _other_administrations(request, administration, listing),
        },
    )


def _other_administrations(
    request: StaffRequest,
    administration: Administration,
    listing: Listing[Respondent],
) -> QuerySet[Administration]:
    """Return where else to search for a name that nobody here has. 1 statement."""
    if listing.page.object_list or not listing.query:
        return Administration.objects.none()
    now = timezone.now()
    elsewhere = administrations_for(request.permissions, C.SEE_IDENTITIES).exclude(
        pk=administration.pk
    )
    return (
        elsewhere.filter(
            opens_at__lte=now, closes_at__gt=now, denominator=Denominator.ROSTER
        )
        .select_related("published__survey")
        .defer("published__definition", "published__survey__source")
        .order_by("opens_at", "name")[:MAX_OTHERS]
    )


def record_view(
    request: StaffRequest,
    administration: Administration,
    listing: Listing[Respondent],
    *,
    school: School | None,
    filters: Mapping[str, str],
) -> None:
    # One entry for each page of names. The search text is left out, because
    # it may be a name.
    places = request.permissions.places(C.SEE_IDENTITIES)
    district = None
    if school is None and not places.state and len(places.districts) == 1:
        district = request.permissions.districts(C.SEE_IDENTITIES).first()
    audit.record(
        "look at people",
        by=request.user,
        request=request,
        subject=administration,
        school=school,
        district=district,
        after={
            **filters,
            "searched": bool(listing.query),
            "page": listing.page.number,
            "people": len(listing.page.object_list),
        },
    )


@needs(C.SEE_IDENTITIES)
@require_safe
def people_detail(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = respondent_or_404(request, administration, respondent)
    identity = getattr(person, "identity", None)
    # A reload does not show the code again.
    code = ""
    if request.session.pop(SHOW_CODE_ONCE, None) == [person.pk, person.issue]:
        code = access_codes.format_code(access_codes.code_of(person))
    record_look(request, person, administration)
    return render(
        request,
        "survey/console/people_detail.html",
        {
            "administration": administration,
            "person": person,
            "identity": identity,
            "code": code,
            "shows_progress": not administration.is_completion_confidential,
            "may_reissue": may_reissue(request, person),
            "joins": joins_of(person),
            "may_erase": identity is not None
            and request.permissions.places(*ERASES).has_district(identity.district_id),
            "opt_out": _current_opt_out(person),
            "consent": latest_consent(administration, person),
            "sees_audit": request.permissions.has(C.SEE_AUDIT),
            "wants_no_email": bool(
                identity and identity.email and is_suppressed(identity.email)
            ),
        },
    )


def _current_opt_out(person: Respondent) -> OptOut | None:
    """Return the opt-out that stands. 1 statement for people who have opted out."""
    if not person.has_opted_out:
        return None
    current = OptOut.objects.filter(respondent=person, ended_at=None)
    return current.select_related("by").first()
