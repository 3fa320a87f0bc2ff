"""For engineers: what is published and offered. Answers are not shown here.

To look at only: the console changes these, by rules that are held and with an
audit of who did; see survey.administrations.
"""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from survey.models import Administration, PublishedSurvey, Wave


class ToLookAt(admin.ModelAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Wave)
class WaveAdmin(ToLookAt):
    list_display = ("name", "district")
    list_select_related = ("district",)


@admin.register(Administration)
class AdministrationAdmin(ToLookAt):
    list_display = ("name", "published", "role", "opens_at", "closes_at", "wave")
    list_filter = ("role", "wave")
    list_select_related = ("published", "wave")


@admin.register(PublishedSurvey)
class PublishedSurveyAdmin(ToLookAt):
    list_display = ("survey", "digest", "published_at")
    list_select_related = ("survey",)
