"""For engineers. Administrators have pages of their own."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from accounts.models import AuditEntry, District, Membership, School, User

admin.site.unregister(Group)
admin.site.site_header = admin.site.site_title = "Groundswell for engineers"


@admin.register(User)
class StaffAdmin(UserAdmin):
    ordering = ("email",)
    list_display = ("email", "first_name", "last_name", "is_staff", "is_active")
    search_fields = ("email", "first_name", "last_name")
    fieldsets = (
        (None, {"fields": ("email", "password")}),
        ("Person", {"fields": ("first_name", "last_name")}),
        ("Rights", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "password1", "password2")}),)
    filter_horizontal = ()


@admin.register(District)
class DistrictAdmin(admin.ModelAdmin):
    list_display = ("name", "code")
    search_fields = ("name", "code")


@admin.register(School)
class SchoolAdmin(admin.ModelAdmin):
    list_display = ("name", "code", "district")
    list_filter = ("district",)
    list_select_related = ("district",)
    search_fields = ("name", "code")


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
