from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.core import checks


class SurveyConfig(AppConfig):
    name = "survey"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from survey.people.access_codes import check_access_code_keys

        checks.register(check_access_code_keys, checks.Tags.security, deploy=True)
        # Registers the tasks and jobs. The respondents' pool sends none, and
        # does not spend memory on them.
        if settings.LOADS_TASKS:
            import_module("survey.tasks")
            from survey.console import audit_sentences
            from survey.people.certificates.keys import check_certificate_keys
            from survey.people.rosters.feeds.credentials import check_feed_keys
            from survey.people.rosters.feeds.outgoing import check_feed_networks

            audit_sentences.register()
            for check in (
                check_certificate_keys,
                check_feed_keys,
                check_feed_networks,
            ):
                checks.register(check, checks.Tags.security, deploy=True)
