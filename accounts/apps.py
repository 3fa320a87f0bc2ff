from __future__ import annotations

from django.apps import AppConfig
from django.core import checks


class AccountsConfig(AppConfig):
    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts.checks import check_second_factor

        checks.register(check_second_factor, checks.Tags.security)
