"""System checks, which Django runs before it starts."""

from __future__ import annotations

from django.conf import settings
from django.core.checks import CheckMessage, Error


def check_second_factor(**options: object) -> list[CheckMessage]:
    """Refuse to start a production installation without the second factor."""
    if settings.SECOND_FACTOR_REQUIRED or settings.EMBEDDED:
        return []
    return [
        Error(
            "SECOND_FACTOR_REQUIRED is off, which only a demonstration may do.",
            hint="Only settings.embedded may turn it off.",
            id="accounts.E001",
        )
    ]
