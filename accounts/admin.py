"""For engineers. Administrators have pages of their own."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern

from accounts import audit
from accounts.models import AuditEntry, District, Membership, School, User


def _console_login(request: HttpRequest, **context: object) -> HttpResponse:
    # Whoever comes this far is logged in: the rule has seen to it.
    return redirect("admin:index")


def _console_password(request: HttpRequest, **context: object) -> HttpResponse:
    return redirect("account_change_password")


# Instead of the admin's own forms: one door, with its delay and second factor.
admin.site.login = _console_login  # type: ignore[assignment]
admin.site.password_change = _console_password  # type: ignore[assignment]
admin.site.unregister(Group)
# allauth's own: a second address would be a second way in, and secrets and
# sessions are nobody's to look at.
for _theirs in (EmailAddress, Authenticator, UserSession):
    admin.site.unregister(_theirs)
admin.site.site_header = admin.site.site_title = "Groundswell for engineers"


class Audited(admin.ModelAdmin):
    """What is changed here is written down as everywhere, by the same words."""

    def save_model(
        self, request: HttpRequest, obj: Model, form: Any, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        changed = [one for one in form.changed_data if not one.startswith("password")]
        self._record(
            "change" if change else "add",
            request,
            obj,
            before={name: str(form.initial.get(name, "")) for name in changed},
            after={name: str(form.cleaned_data[name]) for name in changed},
        )

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        self._record("delete", request, obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        # A page of the admin is one transaction, but for this action.
        with transaction.atomic():
            for one in queryset:
                self._record("delete", request, one)
            super().delete_queryset(request, queryset)

    def _record(
        self, verb: str, request: HttpRequest, obj: Model, **changes: Any
    ) -> None:
        audit.record(
            f"{verb} {obj._meta.verbose_name}",
            by=request.user,  # type: ignore[arg-type]
            request=request,
            subject=obj,
            **changes,
        )


@admin.register(User)
class StaffAdmin(Audited, UserAdmin):
    ordering = ("email",)
    list_display = ("email", "first_name", "last_name", "is_staff", "is_active")
    search_fields = ("email", "first_name", "last_name")
    fieldsets = (
        (None, {"fields": ("email",)}),
        ("Person", {"fields": ("first_name", "last_name")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "password1", "password2")}),)
    filter_horizontal = ()

    def get_urls(self) -> list[URLPattern]:
        # Nobody sets another's password: there is a link by mail for that.
        return [
            one for one in super().get_urls() if one.name != "auth_user_password_change"
        ]


@admin.register(District)
class DistrictAdmin(Audited):
    list_display = ("name", "code")
    search_fields = ("name", "code")


@admin.register(School)
class SchoolAdmin(Audited):
    list_display = ("name", "code", "district")
    list_filter = ("district",)
    list_select_related = ("district",)
    search_fields = ("name", "code")

    def get_readonly_fields(
        self, request: HttpRequest, obj: School | None = None
    ) -> tuple[str, ...]:
        # Its people are known by their district and ID: under another district
        # they would be seen there, and be strangers to its next roster.
        return ("district",) if obj else ()


class ReadOnly(admin.ModelAdmin):
    """To look at: what changes it has rules of its own."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: object | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: object | None = None
    ) -> bool:
        return False


@admin.register(Membership)
class MembershipAdmin(ReadOnly):
    list_display = ("user", "role", "district", "school", "began_at", "ended_at")
    list_filter = ("role",)
    list_select_related = ("user", "district", "school")
    search_fields = ("user__email",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("at", "by", "action", "kind", "subject", "address")
    list_filter = ("action",)
    search_fields = ("by", "subject")
    date_hierarchy = "at"
