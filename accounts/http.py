"""Request and response helpers that the views of all apps share."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django_htmx.middleware import HtmxDetails

from accounts.csv_injection import escape_formula
from accounts.models import User
from accounts.permissions import Permissions

CSV = "text/csv; charset=utf-8"
Cell = str | int | float | None


class StaffRequest(HttpRequest):
    """The type of a request to a view with an access rule, for annotations."""

    user: User
    # Read from the database when first used.
    permissions: Permissions
    htmx: HtmxDetails


def attachment(content: bytes, *, filename: str, content_type: str) -> HttpResponse:
    """Return a file for the browser to save under `filename` (plain ASCII)."""
    response = HttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def csv_response(rows: Iterable[Iterable[Cell]], *, filename: str) -> HttpResponse:
    """Return these rows as a CSV file in which no cell can run as a formula."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    for row in rows:
        writer.writerow(
            escape_formula(cell) if isinstance(cell, str) else cell for cell in row
        )
    # With a byte order mark, so that Excel shows accents correctly.
    content = file.getvalue().encode("utf-8-sig")
    return attachment(content, filename=filename, content_type=CSV)
