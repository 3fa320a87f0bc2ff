"""The pages to print login cards, and to issue new codes to a school."""

from __future__ import annotations

from typing import TypedDict, Unpack

from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Q
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Capability as C
from survey.console.login_cards.forms import (
    EXCEL,
    CardsForm,
    ManySchoolsForm,
    ReissueForm,
)
from survey.console.people.codes import refuses_code, refuses_email
from survey.console.people.scope import (
    groups_of,
    may_choose_school,
    record_look,
    respondent_or_404,
    schools_for,
    schools_listing,
    selected_school,
)
from survey.fieldwork.administrations.queries import (
    administration_or_404,
    invited_people,
)
from survey.fieldwork.login_cards.card_sets import (
    card_sets_for,
    cards_of_many_schools,
    order_cards,
    people_in,
)
from survey.fieldwork.login_cards.card_text import card_languages
from survey.fieldwork.login_cards.code_emails import with_email
from survey.fieldwork.login_cards.refusals import (
    WITHHELD,
    count_small_schools,
    reason_not_made,
)
from survey.models import Administration, CardSet, Respondent
from survey.work.job_turns import TooManyJobs
from survey.work.requested_files import has_file, order_again, record, send

MAX_LISTS_SHOWN = 10


class FormatOptions(TypedDict, total=False):
    format: str
    marked: bool


class CardOptions(FormatOptions, total=False):
    """Options of `order_cards` that the pages offer."""

    school: School
    district: District | None
    grade: str
    classroom: str
    respondent: Respondent
    language: str
    with_ids: bool
    unfinished: bool
    reissue: bool


@needs(C.SEE_IDENTITIES)
def cards_list(request: StaffRequest, pk: int) -> HttpResponse:
    """Order cards of a school and list its sets; without a school, choose one."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    school = selected_school(request)
    if school is None:
        return _choose_school(request, administration)
    form = CardsForm(
        request.POST if request.method == "POST" else None,
        groups=groups_of(administration, school),
        languages=card_languages(administration),
        confidential=administration.is_completion_confidential,
    )
    if request.method == "POST" and form.is_valid():
        cleaned = form.cleaned_data
        return _order_cards(
            request,
            administration,
            school=school,
            grade=cleaned.get("grade", ""),
            classroom=cleaned.get("classroom", ""),
            language=cleaned.get("language", ""),
            with_ids=cleaned.get("shown") == "id",
            unfinished=cleaned.get("unfinished", False),
            **_format_options(cleaned["format"]),
        )
    card_sets = card_sets_for(request.permissions, administration)
    listing = Listing(
        request,
        card_sets.filter(school=school).select_related("school", "by", "job"),
        sorts={"created": ("-created_at",)},
        per_page=20,
    )
    made_with_others = _made_with_others(administration, school)
    return listing.render(
        "survey/console/cards_list.html",
        {
            "administration": administration,
            "school": school,
            "form": form,
            "may_choose_school": may_choose_school(request),
            "may_reissue": _may_reissue(request, school),
            "made_with_others": made_with_others,
        },
    )


def _made_with_others(administration: Administration, school: School) -> CardSet | None:
    """Return the newest cards of many schools with this one. Up to 2 statements."""
    card_sets = cards_of_many_schools([school.district_id])
    card_sets = card_sets.filter(administration=administration)
    newest = card_sets.select_related("district").first()
    if newest is not None and newest.anonymous:
        people = invited_people(administration).filter(school=school)
        # They were left out, if they were so few then.
        if people.count() < CardSet.MIN_DRAWN:
            return None
    return newest


def _choose_school(
    request: StaffRequest, administration: Administration
) -> HttpResponse:
    """Show the schools; offer cards and lists of a whole district or the state."""
    permissions = request.permissions
    places = permissions.places(C.SEE_IDENTITIES)
    districts = permissions.districts(C.SEE_IDENTITIES).order_by("name")
    if administration.district_id is not None:
        districts = districts.filter(pk=administration.district_id)
    whole_state = places.state and administration.district_id is None
    form = ManySchoolsForm(
        request.POST if request.method == "POST" else None,
        districts=districts,
        whole_state=whole_state,
        confidential=administration.is_completion_confidential,
    )
    may_list = whole_state or bool(form.districts)
    if request.method == "POST":
        if not may_list:
            return _order_for_each_school(request, administration)
        if not form.is_valid():
            raise Http404
        return _order_cards(
            request,
            administration,
            district=form.chosen_district(),
            unfinished=form.cleaned_data.get("unfinished", False),
            **_format_options(form.cleaned_data["format"]),
        )
    lists = card_sets_for(permissions, administration).filter(school=None)
    lists = lists.select_related("by", "district", "job")[:MAX_LISTS_SHOWN]
    listing = schools_listing(request, administration)
    small_schools = 0
    # Not of the state: with two million people, the job counts them once.
    counts_small_schools = may_list and not whole_state and not listing.is_part
    if counts_small_schools and administration.is_completion_confidential:
        people = invited_people(administration).filter(
            school__district__in=form.districts.values()
        )
        small_schools = count_small_schools(people)
    return listing.render(
        "survey/console/cards_schools.html",
        {
            "administration": administration,
            "form": form,
            "may_list": may_list,
            "card_sets": lists if may_list else (),
            "small_schools": small_schools,
            "fewest": CardSet.MIN_DRAWN,
        },
    )


def _order_for_each_school(
    request: StaffRequest, administration: Administration
) -> HttpResponse:
    """Order cards of each school of a user who has several, and no whole district."""
    people = invited_people(administration)
    schools = schools_for(request, administration).filter(
        pk__in=people.order_by().values("school")
    )
    made = 0
    try:
        with transaction.atomic():
            for school in schools.select_related("district"):
                card_set = order_cards(
                    administration=administration, by=request.user, school=school
                )
                record("ask for cards", card_set, request)
                made += 1
    except TooManyJobs as refused:
        messages.error(request, str(refused))
        return redirect("cards_list", administration.pk)
    messages.success(
        request,
        ngettext(
            "Cards for %(n)s school are being made. Choose it below to download them.",
            "Cards for %(n)s schools are being made. Choose one below to download its"
            " cards.",
            made,
        )
        % {"n": made},
    )
    return redirect("cards_list", administration.pk)


def _format_options(format: str) -> FormatOptions:
    if format == EXCEL:
        return {"format": CardSet.Format.CSV, "marked": True}
    return {"format": format}


def _order_cards(
    request: StaffRequest,
    administration: Administration,
    **options: Unpack[CardOptions],
) -> HttpResponse:
    try:
        with transaction.atomic():
            card_set = order_cards(
                administration=administration, by=request.user, **options
            )
            action = "ask for new access codes" if card_set.reissue else "ask for cards"
            if card_set.format == CardSet.Format.EMAIL:
                action = "e-mail access codes"
            record(action, card_set, request)
    except TooManyJobs as refused:
        messages.error(request, str(refused))
        return redirect("cards_list", administration.pk)
    return redirect("cards_detail", administration.pk, card_set.pk)


@needs(C.SEE_IDENTITIES)
@require_POST
def cards_of_one(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Print one person's card again, or e-mail the code.

    Where completion is confidential, always by e-mail. Printing the card of a
    person who has started issues a new code: staff could use the old one.
    """
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    person = respondent_or_404(request, administration, respondent)
    if refuses_code(request, person):
        return redirect("people_detail", pk, person.pk)
    confidential = administration.is_completion_confidential
    if confidential or request.POST.get("format") == CardSet.Format.EMAIL:
        if not with_email(Respondent.objects.filter(pk=person.pk)).exists():
            raise Http404
        if refuses_email(request, person):
            return redirect("people_detail", pk, person.pk)
        options = CardOptions(format=CardSet.Format.EMAIL)
    else:
        options = CardOptions(reissue=person.started_at is not None)
        if options["reissue"] and not _may_reissue(request, person.school):
            raise Http404
    options |= {"school": person.school, "respondent": person}
    return _order_cards(request, administration, **options)


@needs(C.SEE_IDENTITIES)
@require_safe
def cards_detail(request: StaffRequest, pk: int, card_set: int) -> HttpResponse:
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    cards = _card_set_or_404(request, administration, card_set)
    person = _person_of(cards)
    if person:
        record_look(request, person, administration)
    return render(
        request,
        "survey/console/cards_detail.html",
        {
            "administration": administration,
            "card_set": cards,
            "person": person,
            "job": cards.job,
            "refusal": _reason_not_made_again(cards),
            "is_mine": cards.job is not None and cards.job.by_id == request.user.pk,
        },
    )


def _reason_not_made_again(card_set: CardSet) -> str:
    """Return why a set without a file would fail again, if that is known."""
    is_running = card_set.job is not None and not card_set.job.is_over
    if card_set.made_at or card_set.deleted_at or is_running:
        return ""
    return reason_not_made(card_set, people_in(card_set))


@needs(C.SEE_IDENTITIES)
@require_POST
def cards_again(request: StaffRequest, pk: int, card_set: int) -> HttpResponse:
    """Start the job again after it was cancelled or failed."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    cards = _card_set_or_404(request, administration, card_set)
    # The job may still have to replace the codes.
    if cards.reissue and not _may_reissue(request, cards.school):
        raise Http404
    order_again(cards, request=request, action="ask for cards again")
    return redirect("cards_detail", pk, cards.pk)


@needs(C.SEE_IDENTITIES)
@require_safe
def cards_download(request: StaffRequest, pk: int, card_set: int) -> HttpResponseBase:
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    cards = _card_set_or_404(request, administration, card_set)
    if cards.is_withheld:
        messages.error(request, _(WITHHELD))
        return redirect("cards_detail", pk, cards.pk)
    if not has_file(cards):
        messages.error(request, _("This file no longer exists. Make a new one."))
        return redirect("cards_detail", pk, cards.pk)
    name = f"{_file_stem(cards)}-{cards.pk}"
    return send(cards, request, action="download cards", as_name=name)


def _person_of(card_set: CardSet) -> Respondent | None:
    """Return whose card it is, unless the person is at another school by now."""
    person = card_set.respondent
    return person if person and person.school_id == card_set.school_id else None


def _file_stem(card_set: CardSet) -> str:
    # Never a name: downloads often lie in folders that several people share.
    identity = getattr(_person_of(card_set), "identity", None)
    if identity and identity.external_id:
        return slugify(f"{card_set.school} {identity.external_id}")
    return slugify(card_set.scope) or "cards"


@needs(C.MANAGE_ROSTERS)
def cards_reissue(request: StaffRequest, pk: int) -> HttpResponse:
    """Issue new codes and cards to a school, a grade or a class."""
    administration = administration_or_404(request.permissions, pk, C.SEE_IDENTITIES)
    school = selected_school(request)
    if school is None or not _may_reissue(request, school):
        raise Http404
    # As long as the columns. PostgreSQL refuses null characters in a text.
    grade, classroom = (
        request.GET.get(name, "")[:64].replace("\x00", "")
        for name in ("grade", "classroom")
    )
    form = ReissueForm(
        request.POST if request.method == "POST" else None, school=school
    )
    if request.method == "POST" and form.is_valid():
        return _order_cards(
            request,
            administration,
            school=school,
            grade=grade,
            classroom=classroom,
            reissue=True,
        )
    group = CardSet(
        administration=administration, school=school, grade=grade, classroom=classroom
    )
    counts = people_in(group).aggregate(
        invited=Count("pk"), started=Count("pk", filter=Q(started_at__isnull=False))
    )
    return render(
        request,
        "survey/console/cards_reissue.html",
        {
            "administration": administration,
            "school": school,
            "form": form,
            "invited": counts["invited"],
            # In a class of three the number would reveal individual progress.
            "started": (
                None if administration.is_completion_confidential else counts["started"]
            ),
            "scope": group.scope,
            "back": f"{reverse('cards_list', args=[pk])}?school={school.pk}",
        },
    )


def _may_reissue(request: StaffRequest, school: School | None) -> bool:
    places = request.permissions.places(C.MANAGE_ROSTERS)
    return school is not None and places.has_school(school)


def _card_set_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> CardSet:
    card_sets = card_sets_for(request.permissions, administration)
    related = ("school", "district", "by", "job", "administration")
    card_sets = card_sets.select_related(*related, "respondent__identity")
    return get_object_or_404(card_sets, pk=pk)
