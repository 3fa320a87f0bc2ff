"""Join two records of one person: choose the other record, compare, confirm."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.access import needs
from accounts.console.listing import LONGEST_SEARCH, Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.people.scope import record_look, respondent_or_404, set_choices
from survey.console.people.search import MAX_FOUND, find_people
from survey.console.people.views import BY_NAME, record_view
from survey.fieldwork.administrations.queries import administration_or_404
from survey.models import Respondent
from survey.people.merging.joins import NEEDED, reason_not_to_join, request_join

# Digits of a primary key in an address.
LONGEST_KEY = 18


class JoinForm(forms.Form):
    """Choose the record that stays, unless only one has been started."""

    kept = forms.ChoiceField(
        label=gettext_lazy("Which record stays?"), widget=forms.RadioSelect
    )
    typed = forms.CharField(
        max_length=128, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    # Who had started when the page was shown.
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(
        self,
        *args: Any,
        records: tuple[Respondent, Respondent],
        started: Collection[int],
    ) -> None:
        seen = " ".join(map(str, sorted(started)))
        super().__init__(*args)
        self.fields["seen"].initial = seen
        self.records = {record.pk: record for record in records}
        self.has_changed_since = self.is_bound and self.data.get("seen") != seen
        self.fixed = next(iter(started)) if len(started) == 1 else None
        typed = self.fields["typed"]
        if self.fixed:
            del self.fields["kept"]
            typed.label = _("ID of the record that is withdrawn")
            typed.help_text = _("To confirm, type: %(other_id)s") % {
                "other_id": self._other_id(self.fixed)
            }
        else:
            choices = [
                (
                    str(pk),
                    _("The record with the ID %(external_id)s")
                    % {"external_id": record.identity.external_id},
                )
                for pk, record in self.records.items()
            ]
            set_choices(self, "kept", choices)
            if not started:
                self.fields["kept"].initial = str(records[0].pk)
            typed.label = _("ID of the other record")
            typed.help_text = _(
                "To confirm, type the ID of the record that is withdrawn."
            )

    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or {}
        stays = self.kept_key
        if stays and (typed := str(cleaned.get("typed", ""))):
            other_id = self._other_id(stays)
            if typed.casefold() != other_id.casefold():
                self.add_error(
                    "typed",
                    _("Type the ID of the record that is withdrawn: %(other_id)s")
                    % {"other_id": other_id},
                )
        return cleaned

    @property
    def kept_key(self) -> int | None:
        chosen = self.cleaned_data.get("kept")
        return self.fixed or (int(chosen) if chosen else None)

    @property
    def in_order(self) -> tuple[Respondent, Respondent]:
        """Return the record that stays, and the other one."""
        [stays] = [row for pk, row in self.records.items() if pk == self.kept_key]
        [withdrawn] = [row for pk, row in self.records.items() if pk != self.kept_key]
        return stays, withdrawn

    def _other_id(self, stays: int) -> str:
        [withdrawn] = [row for pk, row in self.records.items() if pk != stays]
        return withdrawn.identity.external_id


@needs(Capability.MANAGE_ROSTERS)
def people_join(request: StaffRequest, pk: int, respondent: int) -> HttpResponse:
    """Search another record of a person, or with `?other=` compare and join the two."""
    administration = administration_or_404(
        request.permissions, pk, Capability.SEE_IDENTITIES
    )
    person = respondent_or_404(request, administration, respondent)
    places = request.permissions.places(*NEEDED)
    if not (hasattr(person, "identity") and places.has_school(person.school)):
        raise Http404
    # With its title.
    person.administration = administration
    district = person.identity.district_id
    if reason := reason_not_to_join(administration, district, request.permissions):
        context = {"administration": administration, "person": person, "reason": reason}
        return render(request, "survey/console/people_join_refused.html", context)
    if key := request.GET.get("other", ""):
        if not key.isascii() or not key.isdecimal() or len(key) > LONGEST_KEY:
            raise Http404
        candidate = get_object_or_404(_records_beside(request, person), pk=int(key))
        return _compare(request, person, candidate)
    return _search(request, person)


def _records_beside(request: StaffRequest, person: Respondent) -> QuerySet[Respondent]:
    """Return other people of the district whom the user may see and change.

    IDs of two districts have nothing to do with each other.
    """
    people = (
        Respondent.objects.on_roster()
        .not_erased()
        .filter(
            administration=person.administration_id,
            identity__district=person.identity.district_id,
            school__in=request.permissions.schools(*NEEDED),
        )
    )
    return people.exclude(pk=person.pk).select_related("identity", "school__district")


def _search(request: StaffRequest, person: Respondent) -> HttpResponse:
    """Show people with the same name, or those who match the search."""
    administration, identity = person.administration, person.identity
    query = request.GET.get("q", "")[:LONGEST_SEARCH].replace("\x00", "").strip()
    searched = query or f"{identity.given_name} {identity.family_name}"
    people, more = find_people(request.permissions, administration, searched)
    listing: Listing[Respondent] = Listing(
        request,
        _records_beside(request, person).filter(pk__in=people.values("pk")),
        sorts={
            "name": BY_NAME,
            "school": ("school__name", *BY_NAME),
            "id": ("identity__external_id",),
        },
    )
    record_view(request, administration, listing, school=None, filters={})
    return listing.render(
        "survey/console/people_join.html",
        {
            "administration": administration,
            "person": person,
            "identity": identity,
            "more": more,
            "most": MAX_FOUND,
            "shows_progress": not administration.is_completion_confidential,
        },
    )


def _compare(
    request: StaffRequest, person: Respondent, candidate: Respondent
) -> HttpResponse:
    """Show both records side by side; join them when that is confirmed."""
    administration, records = person.administration, (person, candidate)
    # Where this is confidential, records are joined before anybody can start.
    shows_progress = not administration.is_completion_confidential
    started = [record.pk for record in records if shows_progress and record.started_at]
    data = request.POST if request.method == "POST" else None
    form = JoinForm(data, records=records, started=started)
    if form.has_changed_since:
        messages.error(
            request,
            _(
                "Nothing was changed: one of the records has been started in the"
                " meantime. Check both again."
            ),
        )
        return redirect(f"{request.path}?other={candidate.pk}")
    if form.is_bound and form.is_valid():
        survivor, withdrawn = form.in_order
        request_join(
            survivor,
            withdrawn,
            by=request.user,
            is_chosen=len(started) == 2,
            request=request,
        )
        return redirect("people_detail", administration.pk, survivor.pk)
    record_look(request, candidate, administration)
    births = {record.identity.birth_date for record in records} - {None}
    return render(
        request,
        "survey/console/people_join_compare.html",
        {
            "administration": administration,
            "person": person,
            "other": candidate,
            "records": records,
            "form": form,
            "started": len(started),
            "shows_progress": shows_progress,
            "has_other_birth_date": len(births) == 2,
            "has_opted_out": any(record.has_opted_out for record in records),
        },
    )
