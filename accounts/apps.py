from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.core import checks


class AccountsConfig(AppConfig):
    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts.checks import check_replaced_migrations, check_second_factor
        from accounts.release_migrations import check_oldest_releases

        checks.register(check_second_factor, checks.Tags.security)
        # `migrate` asks it too.
        checks.register(check_replaced_migrations, checks.Tags.database)
        # Before a release is made, not at each start: it imports all migrations.
        checks.register(check_oldest_releases, deploy=True)
        # Registers the lookup `folded`.
        import_module("accounts.folded_text")
        # Registers the tasks, which `email_outbox` sends by name. The
        # respondents' pool sends no e-mails.
        if settings.LOADS_TASKS:
            import_module("accounts.tasks")
