"""Choose which record stays of people who have started with both of theirs."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import audit
from accounts.access import needs
from accounts.console.listing import PER_PAGE, Listing
from accounts.http import StaffRequest
from survey.console.merging.views import LONGEST_KEY, MANAGE, merge_or_404
from survey.models import PlaceMerge, Respondent
from survey.people.merging import merges
from survey.people.merging.choices import choices_of, other_records, people_to_decide

BY_NAME = ("identity__family_name", "identity__given_name")
# Before a respondent's key, in the names of the fields.
PREFIX = "keep-"
CHOICES = (
    ("", gettext_lazy("As chosen for all")),
    (PlaceMerge.Keep.KEPT.value, PlaceMerge.Keep.KEPT.label),
    (PlaceMerge.Keep.DUPLICATE.value, PlaceMerge.Keep.DUPLICATE.label),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A person: both records, and the one that was chosen."""

    duplicate: Respondent
    target: Respondent
    chosen: str

    @property
    def field(self) -> str:
        return f"{PREFIX}{self.duplicate.pk}"

    @property
    def records(self) -> tuple[Respondent, Respondent]:
        return self.duplicate, self.target


@needs(MANAGE)
def merge_people(request: StaffRequest, pk: int) -> HttpResponse:
    """List people with two records that have been started, or store what was chosen."""
    merge = merge_or_404(request, pk)
    # Only the state sees merges of districts; those of schools have no such people.
    if request.method == "POST":
        try:
            merges.choose_records(
                merge, _choices_in(request.POST), by=request.user, request=request
            )
            messages.success(request, _("Choices saved. Nothing is merged yet."))
        except merges.MergeConflict as conflict:
            messages.error(request, str(conflict))
        return redirect(request.get_full_path())
    return _list(request, merge)


def _list(request: StaffRequest, merge: PlaceMerge) -> HttpResponse:
    listing: Listing[Respondent] = Listing(
        request,
        people_to_decide(merge).select_related("identity", "school", "administration"),
        search=(*(f"{name}__folded" for name in BY_NAME), "identity__external_id"),
        sorts={"name": BY_NAME, "id": ("identity__external_id",)},
    )
    people = list(listing.page)
    targets, chosen = other_records(merge, people), choices_of(merge)
    audit.record(
        "look at people",
        by=request.user,
        request=request,
        subject=merge,
        district=merge.district,
        after={"page": listing.page.number, "people": len(people)},
    )
    rows = [
        Row(person, targets[key], chosen.get(person.pk, ""))
        for person in people
        # It may have moved since the statement before.
        if (key := (person.administration_id, person.identity.external_id)) in targets
    ]
    return listing.render(
        "survey/console/merge_people.html",
        {"merge": merge, "pairs": rows, "choices": CHOICES},
    )


def _choices_in(data: QueryDict) -> dict[int, str]:
    """Return the choices of a page; what is none of them is left out."""
    allowed = {value for value, _ in CHOICES}
    choices = {}
    for name, value in data.items():
        key = name.removeprefix(PREFIX)
        is_key = key.isascii() and key.isdecimal() and len(key) <= LONGEST_KEY
        if name.startswith(PREFIX) and is_key and value in allowed:
            choices[int(key)] = str(value)
    return dict(list(choices.items())[:PER_PAGE])
