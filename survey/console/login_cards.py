"""Login cards: asked for, watched, downloaded; and new codes for many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Q
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts import audit
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, School
from accounts.permissions import Capability
from survey.console.people.scope import (
    administration_or_404,
    asked_school,
    groups_of,
    may_choose_school,
    offer,
    respondent_or_404,
    schools_listing,
    shows_progress,
)
from survey.files import download, path_of
from survey.login_cards.card_sets import (
    card_sets_for,
    order_cards,
    people_in,
    start_making,
)
from survey.login_cards.card_text import CARD_WORDS, first_card_language
from survey.models import Administration, CardSet

C = Capability
CONTENT_TYPES = {"pdf": "application/pdf", "csv": "text/csv; charset=utf-8"}
# What is asked for; the last one has a mark by which Excel knows accents.
PDF = (CardSet.Format.PDF.value, "Login cards to print (PDF)")
LISTS = (
    (CardSet.Format.CSV.value, "A list for mail merge (CSV)"),
    ("excel", "A list to open in Excel (CSV)"),
)
NAMES = {"en": "English", "es": "Español", "ar": "العربية"}


class CardsForm(forms.Form):
    """Whose cards of a school, and as what."""

    grade = forms.ChoiceField(required=False)
    classroom = forms.ChoiceField(required=False, label="Class")
    format = forms.ChoiceField(choices=[PDF, *LISTS], label="As", initial=PDF[0])
    language = forms.ChoiceField(
        required=False,
        label="Second language on the cards",
        help_text="The first is the survey's own.",
    )

    shown = forms.ChoiceField(
        required=False,
        choices=(("", "Name"), ("id", "Name and ID")),
        label="On each card",
        help_text="The ID helps where two of a class have the same name.",
    )

    def __init__(
        self,
        *args: Any,
        groups: Sequence[tuple[str, str]],
        first_language: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.groups = set(groups)
        rooms = sorted({room for _, room in groups if room})
        grades = sorted({grade for grade, _ in groups if grade})
        for name, options in (("grade", grades), ("classroom", rooms)):
            if options:
                offer(self, name, [("", "All"), *((one, one) for one in options)])
            else:
                del self.fields[name]
        others = [(one, NAMES[one]) for one in CARD_WORDS if one != first_language]
        offer(
            self,
            "language",
            [("", "Each person's own"), *others, (first_language, "None")],
        )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        grade, room = cleaned.get("grade", ""), cleaned.get("classroom", "")
        if grade and room and (grade, room) not in self.groups:
            raise forms.ValidationError(
                f"Nobody of grade {grade} is in class {room}."
                " Choose another class, or all grades."
            )
        return cleaned


class ListForm(forms.Form):
    """Of all schools at once there is only the list."""

    format = forms.ChoiceField(choices=LISTS, label="As")


class ReissueForm(forms.Form):
    """The school's name is typed: it ends cards that are in people's hands."""

    typed = forms.CharField(
        label="Type the name of the school", max_length=200, strip=True
    )

    def __init__(self, *args: Any, school: School, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.school = school
        self.fields["typed"].widget.attrs["autocomplete"] = "off"
        self.fields["typed"].help_text = f"It is: {school.name}"

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if " ".join(typed.split()).casefold() != self.school.name.casefold():
            raise forms.ValidationError(
                f"That is not {self.school.name}. Nothing was changed."
            )
        return typed


@needs(C.SEE_IDENTITIES)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def cards_list(request: StaffRequest, pk: int) -> HttpResponse:
    """Ask for cards of a school; the sets that were made. Without one, choose."""
    administration = administration_or_404(request, pk)
    school = asked_school(request, request.GET.get("school"))
    if school is None:
        return _choose_school(request, administration)
    form = _cards_form(request, administration, school)
    if request.method == "POST" and form.is_valid():
        asked = form.cleaned_data
        return _ordered(
            request,
            administration,
            school=school,
            grade=asked.get("grade", ""),
            classroom=asked.get("classroom", ""),
            language=asked["language"],
            with_ids=asked["shown"] == "id",
            **_as_what(asked["format"]),
        )
    sets = card_sets_for(request.permissions, administration)
    listing = Listing(
        request,
        sets.filter(school=school).select_related("school", "by", "job"),
        sorts={"created": ("-created_at",)},
        per_page=20,
    )
    return listing.render(
        "survey/console/cards_list.html",
        {
            "administration": administration,
            "school": school,
            "form": form,
            "may_choose_school": may_choose_school(request),
            "may_reissue": _may_reissue(request, school),
        },
    )


def _cards_form(
    request: StaffRequest, administration: Administration, school: School
) -> CardsForm:
    return CardsForm(
        request.POST if request.method == "POST" else None,
        groups=groups_of(administration, school),
        first_language=first_card_language(administration),
    )


def _choose_school(
    request: StaffRequest, administration: Administration
) -> HttpResponse:
    """One of many; or the list of everybody in one's district or the state."""
    permissions = request.permissions
    places = permissions.places(C.SEE_IDENTITIES)
    # Of all that somebody may see there is a list where it has one name.
    district: District | None = None
    if not places.state and len(places.districts) == 1 and not places.schools:
        district = permissions.districts(C.SEE_IDENTITIES).get()
    may_list = places.state or district is not None
    form = ListForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        if not may_list or not form.is_valid():
            raise Http404
        return _ordered(
            request,
            administration,
            district=district,
            **_as_what(form.cleaned_data["format"]),
        )
    sets = card_sets_for(permissions, administration).filter(school=None)
    listing = schools_listing(request, administration)
    return listing.render(
        "survey/console/cards_schools.html",
        {
            "administration": administration,
            "form": form,
            "may_list": may_list,
            "everybody": district or "the state",
            "card_sets": sets.select_related("by", "district")[:10] if may_list else (),
        },
    )


def _as_what(chosen: str) -> dict[str, Any]:
    if chosen == "excel":
        return {"format": CardSet.Format.CSV, "marked": True}
    return {"format": chosen}


def _ordered(
    request: StaffRequest, administration: Administration, **asked: Any
) -> HttpResponse:
    with transaction.atomic():
        card_set = order_cards(
            administration=administration,
            by=request.user,
            **asked,
        )
        action = "ask for new access codes" if card_set.reissue else "ask for cards"
        _record(action, request, card_set)
    return redirect("cards_detail", administration.pk, card_set.pk)


def _record(action: str, request: StaffRequest, card_set: CardSet) -> None:
    audit.record(
        action,
        by=request.user,
        request=request,
        subject=card_set,
        school=card_set.school,
        district=card_set.district,
        after={
            "administration": str(card_set.administration),
            "format": card_set.format,
            "respondent": card_set.respondent_id,
            "people": card_set.people,
        },
    )


@needs(C.SEE_IDENTITIES)
@never_cache
@require_POST
def cards_of_one(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """One person's card, printed again."""
    administration = administration_or_404(request, pk)
    person = respondent_or_404(request, administration, respondent)
    if person.withdrawn_at:
        raise Http404
    return _ordered(request, administration, school=person.school, respondent=person)


@needs(C.SEE_IDENTITIES)
@never_cache
@require_safe
def cards_detail(request: StaffRequest, pk: int, card_set: int) -> HttpResponse:
    administration = administration_or_404(request, pk)
    found = _card_set_or_404(request, administration, card_set)
    return render(
        request,
        "survey/console/cards_detail.html",
        {
            "administration": administration,
            "card_set": found,
            "job": found.job,
            "is_mine": found.job is not None and found.job.by_id == request.user.pk,
        },
    )


@needs(C.SEE_IDENTITIES)
@never_cache
@require_POST
def cards_again(request: StaffRequest, pk: int, card_set: int) -> HttpResponse:
    """Once more, where the work was stopped or failed."""
    administration = administration_or_404(request, pk)
    found = _card_set_or_404(request, administration, card_set)
    if found.reissue and not _may_reissue(request, found.school):
        raise Http404
    if found.deleted_at is None and (found.job is None or found.job.is_over):
        with transaction.atomic():
            start_making(found, by=request.user)
            _record("ask for cards again", request, found)
    return redirect("cards_detail", pk, found.pk)


@needs(C.SEE_IDENTITIES)
@require_safe
def cards_download(request: StaffRequest, pk: int, card_set: int) -> HttpResponseBase:
    administration = administration_or_404(request, pk)
    found = _card_set_or_404(request, administration, card_set)
    if not found.is_ready or not path_of(found.file).exists():
        messages.error(request, "This file is no longer there. Make it again.")
        return redirect("cards_detail", pk, found.pk)
    _record("download cards", request, found)
    return download(
        found.file,
        as_name=f"{slugify(found.whose) or 'cards'}-{found.pk}.{found.format}",
        content_type=CONTENT_TYPES[found.format],
    )


@needs(C.MANAGE_ROSTERS)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def cards_reissue(request: StaffRequest, pk: int) -> HttpResponse:
    """New codes and new cards for a school, a grade or a class."""
    administration = administration_or_404(request, pk)
    school = asked_school(request, request.GET.get("school"))
    if school is None or not _may_reissue(request, school):
        raise Http404
    asked = {name: _group(request, name) for name in ("grade", "classroom")}
    people = people_in(CardSet(administration=administration, school=school, **asked))
    form = ReissueForm(
        request.POST if request.method == "POST" else None, school=school
    )
    if request.method == "POST" and form.is_valid():
        return _ordered(request, administration, school=school, reissue=True, **asked)
    counts = people.aggregate(
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
            # In a class of three the number would name somebody.
            "started": counts["started"] if shows_progress(administration) else None,
            "whose": CardSet(school=school, **asked).whose,
            "back": f"{reverse('cards_list', args=[pk])}?school={school.pk}",
        },
    )


def _group(request: StaffRequest, name: str) -> str:
    return request.GET.get(name, "")[:64].replace("\x00", "")


def _may_reissue(request: StaffRequest, school: School | None) -> bool:
    places = request.permissions.places(C.MANAGE_ROSTERS)
    return school is not None and places.has_school(school)


def _card_set_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> CardSet:
    sets = card_sets_for(request.permissions, administration)
    related = ("school", "district", "by", "job", "administration", "respondent")
    return get_object_or_404(sets.select_related(*related), pk=pk)
