from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "reports"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Registers the export job.
        import_module("reports.tasks")
        from reports.console import audit_sentences

        audit_sentences.register()
