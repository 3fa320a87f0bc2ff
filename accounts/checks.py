"""What Django looks at before it starts anything."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error


def check_second_factor(**about: Any) -> list[CheckMessage]:
    """Names and answers of real people are behind both factors, always."""
    if settings.SECOND_FACTOR_REQUIRED or settings.EMBEDDED:
        return []
    return [
        Error(
            "SECOND_FACTOR_REQUIRED is off, which is for a demonstration only.",
            hint="Only settings.embedded may turn it off.",
            id="accounts.E001",
        )
    ]
