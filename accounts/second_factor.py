"""Whether somebody has shown a second factor since they logged in."""

from __future__ import annotations

from allauth.account.authentication import get_authentication_records
from django.http import HttpRequest


def has_second_factor(request: HttpRequest) -> bool:
    """By what the session remembers: 0 statements."""
    records = get_authentication_records(request, request.user)  # type: ignore[arg-type]
    return any(record["method"] == "mfa" for record in records)
