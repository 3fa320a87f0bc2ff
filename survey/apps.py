from __future__ import annotations

from django.apps import AppConfig
from django.core import checks


class SurveyConfig(AppConfig):
    name = "survey"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from survey.access_codes import check_access_code_keys

        checks.register(check_access_code_keys, checks.Tags.security, deploy=True)
