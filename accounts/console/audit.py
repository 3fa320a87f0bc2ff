"""The audit log, on a page and as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import MAXYEAR, MINYEAR, date, datetime, time, timedelta
from operator import itemgetter

from django.contrib import messages
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts import audit, forms
from accounts.access import needs
from accounts.console.audit_sentences import SAW_NAMES, action_label, lines_of
from accounts.console.listing import LONGEST_SEARCH, Listing
from accounts.csv_injection import escape_formula
from accounts.http import CSV, StaffRequest
from accounts.models import AuditEntry, District, School
from accounts.permissions import Capability

# Paging counts no further. Older entries are found by date.
MOST_COUNTED = 10_000
# As many rows as one request can send before it times out.
MOST_DOWNLOADED = 50_000
AT_ONCE = 2_000
# Schools whose names begin with what was typed.
MOST_SCHOOLS = 100
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
    # Label and key of a model, such as "survey.respondent:12".
    about = forms.RegexField(
        r"^([a-z_]+\.[a-z_]+:[0-9]{1,18})?$",
        required=False,
        strip=True,
        widget=forms.HiddenInput(),
    )
    by = forms.CharField(
        label=gettext_lazy("Person (e-mail address)"),
        required=False,
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "off", "size": 24}),
    )
    school = forms.CharField(
        label=gettext_lazy("School (start of its name)"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"autocomplete": "off", "size": 24}),
    )
    since = forms.DateField(
        label=gettext_lazy("From"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )
    until = forms.DateField(
        label=gettext_lazy("To"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data)
        # Read the actions once, for checking as well as for the list.
        actions = [(action, action_label(action)) for action in known_actions()]
        actions.sort(key=itemgetter(1))
        self.fields["action"] = forms.ChoiceField(
            label=_("Action"),
            required=False,
            choices=[("", _("All actions")), *actions],
        )
        self.order_fields(("about", "by", "school", "action", "since", "until"))

    def clean_by(self) -> str:
        return self.cleaned_data["by"].strip().lower()

    def clean_school(self) -> str:
        return self.cleaned_data["school"].strip()

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        for name in ("since", "until"):
            day = cleaned.get(name)
            # Python cannot compute the day before year 1 or after year 9999.
            if day and not MINYEAR < day.year < MAXYEAR:
                self.add_error(name, _("There are no entries from that year."))
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and until < since:
            self.add_error("until", _("This date is before “From”."))
        return cleaned


@needs(Capability.SEE_AUDIT)
@require_safe
def audit_list(request: StaffRequest) -> HttpResponse:
    filters = FilterForm(request.GET)
    rows = filtered_entries(request, filters)
    listing = Listing(request, rows, most=MOST_COUNTED)
    entries = listing.page.object_list
    districts, schools = _places_of(entries)
    lines = lines_of(
        entries,
        request.permissions,
        lambda entry: (
            schools.get(entry.school_id) or districts.get(entry.district_id, "")
        ),
    )
    if named := {line.subject.url for line in lines if line.subject.is_name}:
        audit.record(
            SAW_NAMES,
            by=request.user,
            request=request,
            after={"people": len(named)},
            **audit.place_of(request.user),
        )
    return listing.render(
        "accounts/audit_list.html",
        {
            "lines": lines,
            "filter_form": filters,
            "download": f"{reverse('audit_csv')}{listing.address(page=None)}",
            "is_filtered": any(request.GET.values()),
            "is_about_one": bool(request.GET.get("about")),
        },
    )


@needs(Capability.SEE_AUDIT)
@require_safe
def audit_csv(request: StaffRequest) -> HttpResponseBase:
    """Download the entries that match the filters, and record the download."""
    filters = FilterForm(request.GET)
    rows = filtered_entries(request, filters).filter(at__lte=timezone.now())
    query = _query(request)
    count = rows.order_by()[: MOST_DOWNLOADED + 1].count()
    if not filters.is_valid() or count > MOST_DOWNLOADED:
        messages.error(
            request,
            _(
                "A file can hold %(number)s entries. Choose a shorter period, and"
                " download several files."
            )
            % {"number": f"{MOST_DOWNLOADED:,}"}
            if filters.is_valid()
            else _("Nothing was downloaded. Correct the filters below."),
        )
        return redirect(f"{reverse('audit_list')}?{request.GET.urlencode()}")
    used = {name: str(value) for name, value in filters.cleaned_data.items() if value}
    audit.record(
        "download audit",
        by=request.user,
        request=request,
        after={**used, **({"what": query} if query else {}), "entries": count},
        **audit.place_of(request.user),
    )
    response = StreamingHttpResponse(csv_chunks(rows), content_type=CSV)
    response["Content-Disposition"] = 'attachment; filename="audit.csv"'
    return response


def filtered_entries(
    request: StaffRequest, filters: FilterForm
) -> QuerySet[AuditEntry]:
    """Return the entries that match. An index serves each filter."""
    rows = audit.entries_for(request.permissions)
    if not filters.is_valid():
        return rows.none()
    wanted = filters.cleaned_data
    if wanted["about"]:
        kind, _colon, key = wanted["about"].partition(":")
        rows = rows.filter(kind=kind, subject_id=int(key))
    if wanted["by"]:
        rows = rows.filter(by=wanted["by"])
    if wanted["action"]:
        rows = rows.filter(action=wanted["action"])
    if wanted["school"]:
        schools = School.objects.filter(name__istartswith=wanted["school"])
        some = schools.values_list("pk", flat=True)[:MOST_SCHOOLS]
        rows = rows.filter(school_id__in=list(some))
    if wanted["since"]:
        rows = rows.filter(at__gte=_midnight(wanted["since"]))
    if wanted["until"]:
        rows = rows.filter(at__lt=_midnight(wanted["until"] + timedelta(days=1)))
    if query := _query(request):
        rows = rows.filter(subject__istartswith=query)
    return rows


def _query(request: StaffRequest) -> str:
    return request.GET.get("q", "")[:LONGEST_SEARCH].replace("\x00", "").strip()


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def known_actions() -> list[str]:
    """Return all actions by jumping through the index. 1 statement."""
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
    districts = {entry.district_id or 0 for entry in entries}
    schools = {entry.school_id or 0 for entry in entries}
    return (
        dict(District.objects.filter(pk__in=districts).values_list("pk", "name")),
        dict(School.objects.filter(pk__in=schools).values_list("pk", "name")),
    )


def csv_chunks(rows: QuerySet[AuditEntry]) -> Iterator[str]:
    """Yield the CSV file in chunks of rows.

    Each chunk continues after the key of the previous one, because a server
    side cursor would not survive the pooler's transaction.
    """
    yield "\ufeff" + ",".join(COLUMNS) + "\r\n"
    chunk = list(rows[:AT_ONCE])
    while chunk:
        file = io.StringIO()
        writer = csv.writer(file)
        districts, schools = _places_of(chunk)
        for entry in chunk:
            cells = (
                entry.by,
                entry.address,
                entry.action,
                entry.kind,
                entry.subject,
                districts.get(entry.district_id, ""),
                schools.get(entry.school_id, ""),
                json.dumps(entry.before, ensure_ascii=False) if entry.before else "",
                json.dumps(entry.after, ensure_ascii=False) if entry.after else "",
            )
            at = timezone.localtime(entry.at).isoformat(timespec="seconds")
            writer.writerow([at, *map(escape_formula, cells)])
        yield file.getvalue()
        last = chunk[-1]
        rest = rows.filter(at__lte=last.at).exclude(at=last.at, pk__gte=last.pk)
        chunk = list(rest[:AT_ONCE])
