"""Django admin for engineers, read-only: waves, administrations, surveys.

Only the console changes these: it checks rules and writes the audit (see
`survey.fieldwork.administrations`). Answers are not shown here.
"""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest
from django.utils.timesince import timesince

from survey.models import Administration, BackupRun, PublishedSurvey, Wave


class ReadOnlyAdmin(admin.ModelAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Wave)
class WaveAdmin(ReadOnlyAdmin):
    list_display = ("name", "district")
    list_select_related = ("district",)


@admin.register(Administration)
class AdministrationAdmin(ReadOnlyAdmin):
    list_display = ("name", "published", "role", "opens_at", "closes_at", "wave")
    list_filter = ("role", "wave")
    list_select_related = ("published", "wave")


@admin.register(PublishedSurvey)
class PublishedSurveyAdmin(ReadOnlyAdmin):
    list_display = ("survey", "digest", "published_at")
    list_select_related = ("survey",)


@admin.register(BackupRun)
class BackupRunAdmin(ReadOnlyAdmin):
    list_display = ("kind", "verdict", "age", "details")
    list_filter = ("kind", "ok")

    @admin.display(boolean=True)
    def verdict(self, run: BackupRun) -> bool:
        return run.ok

    @admin.display(ordering="ended_at")
    def age(self, run: BackupRun) -> str:
        return f"{timesince(run.ended_at)} ago"
