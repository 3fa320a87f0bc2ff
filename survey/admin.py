"""For engineers: what is published and offered. Answers are not shown here."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from survey.models import Administration, PublishedSurvey, Wave


@admin.register(Wave)
class WaveAdmin(admin.ModelAdmin):
    list_display = ("name",)


@admin.register(Administration)
class AdministrationAdmin(admin.ModelAdmin):
    list_display = ("name", "published", "role", "opens_at", "closes_at", "wave")
    list_filter = ("role", "wave")
    list_select_related = ("published", "wave")
    readonly_fields = ("name", "published", "role")

    def has_add_permission(self, request: HttpRequest) -> bool:
        # Opening one also makes the place for its responses: see
        # `manage.py open_administration`.
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(PublishedSurvey)
class PublishedSurveyAdmin(admin.ModelAdmin):
    list_display = ("survey", "digest", "published_at")
    list_select_related = ("survey",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
