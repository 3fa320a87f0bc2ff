"""Who works in the places that somebody administers: inviting, dismissing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts import invitations, second_factor
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, Membership, School
from accounts.permissions import APPOINTS, Capability, Permissions
from accounts.staff import dismiss, may_appoint_all, members_for

Role = Membership.Role
MANAGE = Capability.MANAGE_STAFF


class FilterForm(forms.Form):
    role = forms.ChoiceField(
        label="Role", required=False, choices=[("", "every role"), *Role.choices]
    )


@needs(MANAGE)
@require_safe
def staff_list(request: StaffRequest) -> HttpResponse:
    """2 statements, and those that ask who one is."""
    filters = FilterForm(request.GET)
    rows = members_for(request.permissions)
    if filters.is_valid() and filters.cleaned_data["role"]:
        rows = rows.filter(role=filters.cleaned_data["role"])
    listing = Listing(
        request,
        rows,
        search=(
            "user__email",
            "user__first_name",
            "user__last_name",
            "district__name",
            "school__name",
        ),
        sorts={
            "name": ("user__last_name", "user__first_name", "user__email"),
            "role": ("role", "user__email"),
            "place": ("school__district__name", "district__name", "school__name"),
            "since": ("-began_at",),
            "login": ("-user__last_login",),
        },
    )
    return listing.render("accounts/staff_list.html", {"filter_form": filters})


@needs(MANAGE)
@require_safe
def membership_detail(request: StaffRequest, pk: int) -> HttpResponse:
    membership = _member(request, pk)
    user = membership.user
    return render(
        request,
        "accounts/membership_detail.html",
        {
            "membership": membership,
            "member": user,
            "is_me": user.pk == request.user.pk,
            "invitation": getattr(user, "invitation", None),
            "may_reset": may_appoint_all(request.user, user),
        },
    )


@needs(MANAGE)
@require_POST
def membership_dismiss(request: StaffRequest, pk: int) -> HttpResponse:
    return _act(request, pk, dismiss, "{user} is dismissed as {membership}.")


@needs(MANAGE)
@require_POST
def membership_withdraw(request: StaffRequest, pk: int) -> HttpResponse:
    return _act(
        request, pk, invitations.withdraw, "The invitation of {user} is withdrawn."
    )


@needs(MANAGE)
@require_POST
def membership_resend(request: StaffRequest, pk: int) -> HttpResponse:
    return _act(
        request,
        pk,
        invitations.resend,
        "A new link is on its way to {user}; the one before is no good any more.",
        stay=True,
    )


@needs(MANAGE)
@require_POST
def membership_reset_second_factor(request: StaffRequest, pk: int) -> HttpResponse:
    def reset(*, membership: Membership, **by: Any) -> None:
        second_factor.reset(user=membership.user, **by)

    return _act(
        request,
        pk,
        reset,
        "{user} is logged out, and sets up a new second factor with the next log-in.",
        stay=True,
    )


@needs(MANAGE)
@require_http_methods(["GET", "HEAD", "POST"])
def staff_invite(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    if request.htmx:
        # Another district was chosen: its schools.
        form = InvitationForm(permissions, initial=request.GET.dict())
        return render(request, "accounts/_staff_school.html", {"form": form})
    form = InvitationForm(permissions, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            membership = invitations.invite(
                **form.person(),
                **form.place(),
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            form.add_error(None, _in_words(error))
        else:
            messages.success(
                request,
                f"A mail is on its way to {membership.user}: {membership}.",
            )
            return redirect("staff_list")
    return render(request, "accounts/staff_invite.html", {"form": form})


class InvitationForm(forms.Form):
    """Offers what the asking person may give, and no more."""

    email = forms.EmailField(
        label="E-mail address",
        max_length=254,
        help_text="The invitation goes there, and it is what they log in with.",
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    first_name = forms.CharField(label="First name", max_length=150, required=False)
    last_name = forms.CharField(label="Last name", max_length=150, required=False)
    role = forms.ChoiceField(label="Role", widget=forms.RadioSelect)
    district = forms.ModelChoiceField(
        label="District", queryset=District.objects.none(), required=False
    )
    school = forms.ModelChoiceField(
        label="School", queryset=School.objects.none(), required=False
    )

    def __init__(self, permissions: Permissions, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.permissions = permissions
        self.fields["role"].choices = _roles(permissions)  # type: ignore[attr-defined]
        districts = permissions.districts(MANAGE)
        district = self.fields["district"]
        district.queryset = districts  # type: ignore[attr-defined]
        district.empty_label = "the whole state"  # type: ignore[attr-defined]
        if not permissions.places(MANAGE).state:
            district.empty_label = "choose one"  # type: ignore[attr-defined]
            if len(districts) == 1:
                district.initial = districts[0].pk
        schools = permissions.schools(MANAGE).filter(
            district_id__in=self._district_ids()
        )
        self.fields["school"].queryset = schools  # type: ignore[attr-defined]
        self.fields["school"].empty_label = (  # type: ignore[attr-defined]
            "the whole district" if schools else "choose a district first"
        )

    def person(self) -> dict[str, Any]:
        names = ("email", "first_name", "last_name")
        return {name: self.cleaned_data[name] for name in names}

    def place(self) -> dict[str, Any]:
        school = self.cleaned_data["school"]
        return {
            "role": self.cleaned_data["role"],
            "school": school,
            "district": None if school else self.cleaned_data["district"],
        }

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        role: str = cleaned["role"]
        district, school = cleaned.get("district"), cleaned.get("school")
        if role == Role.STATE and (district or school):
            self.add_error(
                "district",
                "A state administrator is of the whole state: leave the district out.",
            )
        elif role == Role.DISTRICT and not district:
            self.add_error("district", "Choose the district that they administer.")
        elif role == Role.DISTRICT and school:
            self.add_error(
                "school", "A district administrator has all schools: leave it out."
            )
        elif role == Role.COORDINATOR and not school:
            self.add_error(
                "school" if district else "district",
                "Choose the district, then the school that they coordinate.",
            )
        elif not self.errors and not self.permissions.may_appoint(
            role, district=None if school else district, school=school
        ):
            self.add_error("district", "Choose one of your districts.")
        return cleaned

    def _district_ids(self) -> list[int]:
        asked = str(self["district"].value())
        # No longer than a key can be.
        good = asked.isascii() and asked.isdecimal() and len(asked) < 19
        return [int(asked)] if good else []


def _roles(permissions: Permissions) -> list[tuple[str, str]]:
    mine = {
        role for one in permissions.memberships for role in APPOINTS.get(one.role, ())
    }
    what = {
        Role.STATE: "everything, in every district",
        Role.DISTRICT: "everything, in one district",
        Role.COORDINATOR: "the roster, the login cards and the rates of one school",
        Role.ANALYST: "responses and reports, never names",
    }
    return [
        (role.value, f"{role.label}: {what[role]}") for role in Role if role in mine
    ]


def _act(
    request: StaffRequest,
    pk: int,
    act: Callable[..., Any],
    done: str,
    *,
    stay: bool = False,
) -> HttpResponse:
    membership = _member(request, pk)
    try:
        act(membership=membership, by=request.user, request=request)
    except PermissionDenied:
        raise Http404 from None
    except ValidationError as error:
        messages.error(request, _in_words(error))
        return redirect("membership_detail", pk)
    messages.success(request, done.format(user=membership.user, membership=membership))
    return redirect("membership_detail", pk) if stay else redirect("staff_list")


def _member(request: StaffRequest, pk: int) -> Membership:
    return get_object_or_404(members_for(request.permissions), pk=pk)


def _in_words(error: ValidationError) -> str:
    if "one_current_membership" in str(error):
        return "This person has this role there already."
    return " ".join(error.messages)
