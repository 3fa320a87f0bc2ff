"""Pages to list, invite and dismiss staff in the user's own places."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, cast

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from accounts import forms, invitations, second_factor
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District, Membership, School, User
from accounts.permissions import APPOINTS, Capability, Permissions
from accounts.staff import dismiss, may_appoint_all, members_for

Role = Membership.Role
MANAGE = Capability.MANAGE_STAFF
DUTIES = {
    Role.STATE: gettext_lazy("everything, in all districts"),
    Role.DISTRICT: gettext_lazy("everything, in one district"),
    Role.COORDINATOR: gettext_lazy(
        "roster, login cards and response rates of one school"
    ),
    Role.ANALYST: gettext_lazy("responses and reports, never names"),
}


class FilterForm(forms.Form):
    role = forms.ChoiceField(
        label=gettext_lazy("Role"),
        required=False,
        choices=[("", gettext_lazy("All roles")), *Role.choices],
    )


@needs(MANAGE)
@require_safe
def staff_list(request: StaffRequest) -> HttpResponse:
    """List staff. 3 statements, besides those that identify the user."""
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
            "login": ("-last_login",),
        },
    )
    # One with several roles has several rows.
    people = listing.matching.order_by().values("user").distinct().count()
    context = {"filter_form": filters, "people": people}
    return listing.render("accounts/staff_list.html", context)


@needs(MANAGE)
@require_safe
def membership_detail(request: StaffRequest, pk: int) -> HttpResponse:
    membership = get_object_or_404(members_for(request.permissions), pk=pk)
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
    return _perform(request, pk, dismiss, _("Dismissed {user} as {membership}."))


@needs(MANAGE)
@require_POST
def membership_withdraw(request: StaffRequest, pk: int) -> HttpResponse:
    return _perform(
        request, pk, invitations.withdraw, _("Withdrew the invitation of {user}.")
    )


@needs(MANAGE)
@require_POST
def membership_resend(request: StaffRequest, pk: int) -> HttpResponse:
    return _perform(
        request,
        pk,
        invitations.resend,
        _("Sent a new link to {user}. The previous link no longer works."),
        stay=True,
    )


@needs(MANAGE)
@require_POST
def membership_reset_second_factor(request: StaffRequest, pk: int) -> HttpResponse:
    def reset(*, membership: Membership, by: User, request: StaffRequest) -> None:
        second_factor.reset(user=membership.user, by=by, request=request)

    return _perform(
        request,
        pk,
        reset,
        _("{user} is logged out and sets up a new second factor at the next login."),
        stay=True,
    )


@needs(MANAGE)
def staff_invite(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    if request.htmx:
        # The schools and the label without one depend on the district and the role.
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
            form.add_error("email", _message_of(error))
        else:
            messages.success(
                request,
                _("Sent an invitation to %(user)s: %(role)s.")
                % {"user": membership.user, "role": membership},
            )
            return redirect("staff_list")
    return render(request, "accounts/staff_invite.html", {"form": form})


class PersonFields(TypedDict):
    email: str
    first_name: str
    last_name: str


class MembershipFields(TypedDict):
    role: str
    district: District | None
    school: School | None


class InvitationForm(forms.Form):
    """Invite a colleague to a role that the user may give."""

    email = forms.EmailField(
        label=gettext_lazy("E-mail address"),
        max_length=254,
        help_text=gettext_lazy(
            "The invitation is sent here. It is also the login name."
        ),
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
        error_messages={
            "required": gettext_lazy("Enter an e-mail address."),
            "invalid": gettext_lazy(
                "Enter a complete e-mail address, such as name@example.org."
            ),
        },
    )
    first_name = forms.CharField(
        label=gettext_lazy("First name"), max_length=150, required=False
    )
    last_name = forms.CharField(
        label=gettext_lazy("Last name"), max_length=150, required=False
    )
    role = forms.ChoiceField(
        label=gettext_lazy("Role"),
        help_text=gettext_lazy("What the person may see and do."),
        widget=forms.RadioSelect,
        error_messages={
            "required": gettext_lazy("Choose a role."),
            "invalid_choice": gettext_lazy("Choose a role from the list."),
        },
    )
    district = forms.ModelChoiceField(
        label=gettext_lazy("District"),
        help_text=gettext_lazy(
            "Where the person works. District administrators and school coordinators"
            " need one."
        ),
        queryset=District.objects.none(),
        required=False,
        error_messages={
            "invalid_choice": gettext_lazy("Choose a district from the list.")
        },
    )
    school = forms.ModelChoiceField(
        label=gettext_lazy("School"),
        help_text=gettext_lazy(
            "School coordinators need one. Analysts without one see the whole district."
        ),
        queryset=School.objects.none(),
        required=False,
        error_messages={
            "invalid_choice": gettext_lazy("Choose a school of this district.")
        },
    )

    def __init__(
        self,
        permissions: Permissions,
        data: QueryDict | None = None,
        *,
        initial: dict[str, str] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        self.permissions = permissions
        allowed = {
            role
            for membership in permissions.memberships
            for role in APPOINTS.get(membership.role, ())
        }
        role_field, district, school = (
            cast(forms.ChoiceField, self.fields["role"]),
            cast("forms.ModelChoiceField[District]", self.fields["district"]),
            cast("forms.ModelChoiceField[School]", self.fields["school"]),
        )
        role_field.choices = [
            (role.value, f"{capfirst(role.label)}: {DUTIES[role]}")
            for role in Role
            if role in allowed
        ]
        districts = permissions.districts(MANAGE).filter(closed_at=None)
        district.queryset = districts
        district.empty_label = _("Whole state")
        if not permissions.places(MANAGE).state:
            district.empty_label = _("Choose a district")
            if len(districts) == 1:
                district.initial = districts[0].pk
        chosen = str(self["district"].value())
        # No longer than a primary key can be.
        is_key = chosen.isascii() and chosen.isdecimal() and len(chosen) < 19
        schools = permissions.schools(MANAGE).filter(
            district_id__in=[int(chosen)] if is_key else [], closed_at=None
        )
        school.queryset = schools
        if not schools:
            school.empty_label = _("Choose a district first")
        elif self["role"].value() == Role.COORDINATOR:
            school.empty_label = _("Choose a school")
        else:
            school.empty_label = _("Whole district")

    def person(self) -> PersonFields:
        return {
            "email": self.cleaned_data["email"],
            "first_name": self.cleaned_data["first_name"],
            "last_name": self.cleaned_data["last_name"],
        }

    def place(self) -> MembershipFields:
        school = self.cleaned_data["school"]
        return {
            "role": self.cleaned_data["role"],
            "school": school,
            "district": None if school else self.cleaned_data["district"],
        }

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        # With a wrong address, the place is checked all the same.
        if not self.errors.keys().isdisjoint({"role", "district", "school"}):
            return cleaned
        role: str = cleaned["role"]
        district, school = cleaned.get("district"), cleaned.get("school")
        if role == Role.STATE and (district or school):
            self.add_error(
                "district",
                _(
                    "A state administrator works for the whole state. Choose no"
                    " district."
                ),
            )
        elif role == Role.DISTRICT and not district:
            self.add_error("district", _("Choose the district to administer."))
        elif role == Role.DISTRICT and school:
            self.add_error(
                "school",
                _("A district administrator works for all schools. Choose none."),
            )
        elif role == Role.COORDINATOR and not district:
            self.add_error(
                "district", _("Choose a district, then the school to coordinate.")
            )
        elif role == Role.COORDINATOR and not school:
            self.add_error("school", _("Choose the school."))
        elif not self.permissions.may_appoint(
            role, district=None if school else district, school=school
        ):
            self.add_error("district", _("Choose one of your districts."))
        return cleaned


def _perform(
    request: StaffRequest,
    pk: int,
    action: Callable[..., None],
    success: str,
    *,
    stay: bool = False,
) -> HttpResponse:
    membership = get_object_or_404(members_for(request.permissions), pk=pk)
    try:
        action(membership=membership, by=request.user, request=request)
    except PermissionDenied:
        raise Http404 from None
    except ValidationError as error:
        messages.error(request, _message_of(error))
        return redirect("membership_detail", pk)
    text = success.format(user=membership.user, membership=membership)
    messages.success(request, text)
    return redirect("membership_detail", pk) if stay else redirect("staff_list")


def _message_of(error: ValidationError) -> str:
    if "one_current_membership" in str(error):
        return _("This person already has this role there.")
    return " ".join(error.messages)
