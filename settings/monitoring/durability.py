"""Read with which settings this process saves pages.

`synchronous_commit` can be set for a role, a database or a session, so only a
connection that saves pages shows what holds for it.
"""

from __future__ import annotations

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

SETTINGS = ("fsync", "full_page_writes", "synchronous_commit")
CURRENT = f"SELECT {', '.join(f'current_setting({name!r})' for name in SETTINGS)}"  # noqa: S608
FLUSHED = ("on", "remote_apply")


def durability(request: HttpRequest) -> HttpResponse:
    """GET /durability: the settings with which a crash would lose saved pages.

    Only the console asks, over the socket: nginx passes this path to nobody.
    """
    return JsonResponse({"unsafe": unsafe_settings()})


def unsafe_settings() -> list[str]:
    """Read the settings of the connection that saves pages. 1 statement."""
    if connection.vendor != "postgresql":
        return []
    with connection.cursor() as cursor:
        cursor.execute(CURRENT)
        values = zip(SETTINGS, cursor.fetchone(), strict=True)
    return [f"{name} = {value}" for name, value in values if value not in FLUSHED]
