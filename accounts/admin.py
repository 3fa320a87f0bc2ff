"""Django's admin, for engineers only. Staff use the console."""

from __future__ import annotations

from typing import Any, cast

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.views.generic import RedirectView

from accounts import audit
from accounts.forms import RefusesControlCharacters
from accounts.models import (
    AuditEntry,
    District,
    Membership,
    School,
    SchoolListing,
    User,
)

# The console's forms replace those of the admin, so that every login passes the
# throttling and the second factor. The access rule has already checked both.
admin.site.login = RedirectView.as_view(  # type: ignore[assignment]
    pattern_name="admin:index"
)
admin.site.password_change = RedirectView.as_view(  # type: ignore[assignment]
    pattern_name="account_change_password"
)
admin.site.unregister(Group)
# A second e-mail address would be a second way to log in; secrets and sessions
# are private.
for _model in (EmailAddress, Authenticator, UserSession):
    admin.site.unregister(_model)
admin.site.site_header = admin.site.site_title = "Groundswell for engineers"


class AuditedAdmin(admin.ModelAdmin):
    """Record each change in the audit log; refuse control characters."""

    def get_form(
        self,
        request: HttpRequest,
        obj: Model | None = None,
        change: bool = False,
        **kwargs: Any,
    ) -> type[ModelForm]:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type(form.__name__, (RefusesControlCharacters, form), {})

    def save_model(
        self, request: HttpRequest, obj: Model, form: ModelForm, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        changed = [
            name for name in form.changed_data if not name.startswith("password")
        ]
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

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Model]) -> None:
        # Unlike its other pages, the admin runs this action without a transaction.
        with transaction.atomic():
            for obj in queryset:
                self._record("delete", request, obj)
            super().delete_queryset(request, queryset)

    def _record(
        self,
        verb: str,
        request: HttpRequest,
        obj: Model,
        before: dict[str, str] | None = None,
        after: dict[str, str] | None = None,
    ) -> None:
        audit.record(
            f"{verb} {obj._meta.verbose_name}",
            by=cast(User, request.user),
            request=request,
            subject=obj,
            before=before,
            after=after,
        )


@admin.register(User)
class StaffAdmin(AuditedAdmin, UserAdmin):
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
        # Engineers do not set passwords of others: users get a link by e-mail.
        return [
            pattern
            for pattern in super().get_urls()
            if pattern.name != "auth_user_password_change"
        ]


@admin.register(District)
class DistrictAdmin(AuditedAdmin):
    list_display = ("name", "code")
    search_fields = ("name", "code")


@admin.register(School)
class SchoolAdmin(AuditedAdmin):
    list_display = ("name", "code", "district")
    list_filter = ("district",)
    list_select_related = ("district",)
    search_fields = ("name", "code")

    def get_readonly_fields(
        self, request: HttpRequest, obj: School | None = None
    ) -> tuple[str, ...]:
        # People are identified by district and ID. In another district they would
        # become visible there, and its next roster would not recognise them.
        return ("district",) if obj else ()


class ReadOnlyAdmin(admin.ModelAdmin):
    """Show rows without changing them."""

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


@admin.register(SchoolListing)
class SchoolListingAdmin(AuditedAdmin):
    """Public addresses and contacts. The database adds and deletes the rows."""

    list_display = ("name", "city", "state", "contact_name", "contact_phone")
    search_fields = ("name", "city")
    actions = None
    fields = (
        *("street", "city", "state", "postal_code", "latitude", "longitude"),
        *("contact_name", "contact_phone", "contact_email"),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    # Not by `has_delete_permission`, without which no school could be deleted.
    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        raise PermissionDenied


@admin.register(Membership)
class MembershipAdmin(ReadOnlyAdmin):
    list_display = ("user", "role", "district", "school", "began_at", "ended_at")
    list_filter = ("role",)
    list_select_related = ("user", "district", "school")
    search_fields = ("user__email",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "by", "action", "kind", "subject", "address")
    list_filter = ("action",)
    search_fields = ("by", "subject")
    date_hierarchy = "at"
