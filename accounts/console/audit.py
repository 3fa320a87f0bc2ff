"""Who did or looked at what, and the same as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import MAXYEAR, MINYEAR, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts import audit
from accounts.access import needs
from accounts.console.listing import LONGEST_SEARCH, Listing
from accounts.csv_injection import escape_formula
from accounts.http import StaffRequest
from accounts.models import AuditEntry, District, School
from accounts.permissions import Capability

# Millions are there; further back one gets by the dates.
MOST_COUNTED = 10_000
# What a worker sends within the time that a request may take.
MOST_DOWNLOADED = 50_000
AT_ONCE = 2_000
COLUMNS = (
    "at",
    "by",
    "address",
    "action",
    "kind",
    "subject",
    "district",
    "school",
    "before",
    "after",
)


class FilterForm(forms.Form):
    by = forms.CharField(
        label="Who (e-mail address)",
        required=False,
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "off", "size": 24}),
    )
    action = forms.ChoiceField(label="Action", required=False)
    since = forms.DateField(
        label="From", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        label="To", required=False, widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = [(one, one) for one in _actions()]
        self.fields["action"].choices = [("", "every action"), *known]  # type: ignore[attr-defined]

    def clean_by(self) -> str:
        return self.cleaned_data["by"].strip().lower()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name in ("since", "until"):
            day = cleaned.get(name)
            # The first and the last day of the calendar have no neighbour, or
            # begin outside of it in another time zone.
            if day and not MINYEAR < day.year < MAXYEAR:
                self.add_error(name, "There are no entries of that year.")
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and until < since:
            self.add_error("until", "This is before the first day.")
        return cleaned


@needs(Capability.SEE_AUDIT)
@require_safe
def audit_list(request: StaffRequest) -> HttpResponse:
    filters = FilterForm(request.GET)
    rows = _asked(request, filters)
    listing = Listing(request, rows, most=MOST_COUNTED)
    districts, schools = _places_of(listing.page.object_list)
    for one in listing.page.object_list:
        one.place = schools.get(one.school_id) or districts.get(one.district_id, "")  # type: ignore[attr-defined]
    return listing.render(
        "accounts/audit_list.html",
        {
            "filter_form": filters,
            "download": f"{reverse('audit_csv')}{listing.address(page=None)}",
            "is_filtered": any(request.GET.values()),
        },
    )


@needs(Capability.SEE_AUDIT)
@require_safe
def audit_csv(request: StaffRequest) -> HttpResponseBase:
    """What the page shows, all of it; the download is an entry itself."""
    filters = FilterForm(request.GET)
    rows = _asked(request, filters).filter(at__lte=timezone.now())
    query = _query(request)
    count = rows.order_by()[: MOST_DOWNLOADED + 1].count()
    if not filters.is_valid() or count > MOST_DOWNLOADED:
        messages.error(
            request,
            f"More than {MOST_DOWNLOADED:,} entries are too many for one file."
            " Choose fewer days, and download one part after the other."
            if filters.is_valid()
            else "Nothing was downloaded: a filter below is not right.",
        )
        return redirect(f"{reverse('audit_list')}?{request.GET.urlencode()}")
    asked = {name: str(value) for name, value in filters.cleaned_data.items() if value}
    audit.record(
        "download audit",
        by=request.user,
        request=request,
        after={**asked, **({"what": query} if query else {}), "entries": count},
        **audit.place_of(request.user),
    )
    response = StreamingHttpResponse(_csv(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="audit.csv"'
    return response


def _asked(request: StaffRequest, filters: FilterForm) -> QuerySet[AuditEntry]:
    """Each filter alone has an index for it: there are millions of rows."""
    rows = audit.entries_for(request.permissions)
    if not filters.is_valid():
        return rows.none()
    asked = filters.cleaned_data
    if asked["by"]:
        rows = rows.filter(by=asked["by"])
    if asked["action"]:
        rows = rows.filter(action=asked["action"])
    if asked["since"]:
        rows = rows.filter(at__gte=_midnight(asked["since"]))
    if asked["until"]:
        rows = rows.filter(at__lt=_midnight(asked["until"] + timedelta(days=1)))
    if query := _query(request):
        rows = rows.filter(subject__istartswith=query)
    return rows


def _query(request: StaffRequest) -> str:
    return request.GET.get("q", "")[:LONGEST_SEARCH].replace("\x00", "").strip()


def _midnight(day: Any) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _actions() -> list[str]:
    """Each name there is, one step on the index for each: 1 statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH RECURSIVE known (action) AS (
                SELECT min(action) FROM accounts_auditentry
                UNION ALL
                SELECT (
                    SELECT min(action) FROM accounts_auditentry
                    WHERE action > known.action
                )
                FROM known WHERE known.action IS NOT NULL
            )
            SELECT action FROM known WHERE action IS NOT NULL
            """
        )
        return [action for (action,) in cursor.fetchall()]


def _places_of(
    entries: Iterable[AuditEntry],
) -> tuple[dict[int | None, str], dict[int | None, str]]:
    districts = {one.district_id or 0 for one in entries}
    schools = {one.school_id or 0 for one in entries}
    return (
        dict(District.objects.filter(pk__in=districts).values_list("pk", "name")),
        dict(School.objects.filter(pk__in=schools).values_list("pk", "name")),
    )


def _csv(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    """In pieces, by key: a cursor would not outlive the pooler's transaction."""
    yield "\ufeff" + ",".join(COLUMNS) + "\r\n"
    piece = list(rows[:AT_ONCE])
    while piece:
        written = io.StringIO()
        csv.writer(written).writerows(_lines(piece))
        yield written.getvalue()
        last = piece[-1]
        after = rows.filter(at__lte=last.at).exclude(at=last.at, pk__gte=last.pk)
        piece = list(after[:AT_ONCE])


def _lines(piece: Iterable[AuditEntry]) -> Iterator[list[str]]:
    districts, schools = _places_of(piece)
    for one in piece:
        cells = (
            one.by,
            one.address,
            one.action,
            one.kind,
            one.subject,
            districts.get(one.district_id, ""),
            schools.get(one.school_id, ""),
            json.dumps(one.before, ensure_ascii=False) if one.before else "",
            json.dumps(one.after, ensure_ascii=False) if one.after else "",
        )
        at = timezone.localtime(one.at).isoformat(timespec="seconds")
        yield [at, *map(escape_formula, cells)]
