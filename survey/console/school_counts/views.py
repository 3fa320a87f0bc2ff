"""The console's pages for the numbers of families or students of schools."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import F, FilteredRelation, Q
from django.db.models.functions import Coalesce
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest, csv_response
from accounts.permissions import Capability
from survey.console.checked_files import FilePages, check_file
from survey.console.school_counts.forms import CountFileForm, CountForm
from survey.fieldwork.administrations.queries import administration_or_404
from survey.fieldwork.school_counts.changes import (
    NewCount,
    current_counts,
    import_counts,
    schools_to_count,
    supply_count,
)
from survey.fieldwork.school_counts.count_file import (
    COUNT_HEADER,
    check_counts,
    template_rows,
)
from survey.models import Administration, Denominator, SchoolCount

MANAGE = Capability.MANAGE_ROSTERS
PAGES = FilePages(
    upload="count_upload",
    under="count_list",
    under_name=gettext_lazy("Counts of families or students"),
    title=gettext_lazy("Upload counts of families or students"),
    checked_title=gettext_lazy("Check counts"),
)
# The history on the page of a school.
MOST_CHANGES = 50


@needs(MANAGE)
@require_safe
def count_list(request: StaffRequest, pk: int) -> HttpResponse:
    """List the user's schools with their numbers. 5 statements."""
    administration = _administration_or_404(request, pk)
    rows = schools_to_count(request.permissions, administration).annotate(
        current=FilteredRelation(
            "counts",
            condition=Q(counts__administration=pk, counts__replaced_at=None),
        ),
        number=F("current__count"),
        # Not NULL, which PostgreSQL and SQLite sort to different ends.
        number_order=Coalesce("current__count", 0),
        unit=F("current__unit"),
        changed_by=F("current__by"),
        changed_at=F("current__at"),
    )
    if request.GET.get("show") == "missing":
        rows = rows.filter(current__isnull=True)
    listing = Listing(
        request,
        rows.select_related("district"),
        search=("name", "code", "district__name"),
        sorts={
            "name": ("name",),
            "district": ("district__name", "name"),
            "number": ("number_order", "name"),
        },
    )
    return listing.render(
        "survey/console/count_list.html",
        {
            "administration": administration,
            "shows_missing": request.GET.get("show") == "missing",
        },
    )


@needs(MANAGE)
def count_change(request: StaffRequest, pk: int, school_id: int) -> HttpResponse:
    """Change the number of one school, and show its history."""
    administration = _administration_or_404(request, pk)
    schools = schools_to_count(request.permissions, administration)
    school = get_object_or_404(schools.select_related("district"), pk=school_id)
    history = SchoolCount.objects.filter(administration=administration, school=school)
    shown = list(history.order_by("-pk")[:MOST_CHANGES])
    current = next((row for row in shown if row.replaced_at is None), None)
    before = (
        {"count": current.count, "unit": current.unit, "seen": current.pk}
        if current
        else None
    )
    form = CountForm(request.POST or None, initial=before)
    if request.method == "POST" and form.is_valid():
        try:
            changed = supply_count(
                administration=administration,
                school=school,
                unit=form.cleaned_data["unit"],
                count=form.cleaned_data["count"],
                seen=form.cleaned_data["seen"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            form.add_error(None, error.messages)
        else:
            done = _("Count saved.") if changed else _("Nothing was changed.")
            messages.success(request, f"{school}: {done}")
            return redirect("count_list", pk)
    return render(
        request,
        "survey/console/count_change.html",
        {
            "administration": administration,
            "school": school,
            "form": form,
            "history": shown,
        },
    )


@needs(MANAGE)
def count_upload(request: StaffRequest, pk: int) -> HttpResponse:
    """Check a file, and show what it would change; nothing is stored."""
    administration = _administration_or_404(request, pk)
    form = CountFileForm(request.POST or None, request.FILES or None)
    report = check_file(
        form,
        COUNT_HEADER,
        lambda table: check_counts(
            table,
            schools_to_count(request.permissions, administration),
            current_counts(administration),
            unit=form.cleaned_data["unit"],
        ),
    )
    if report is None:
        return PAGES.render_form(request, administration, form)
    changes = report.changes
    counts = [
        [row.school.pk, row.unit, row.count, row.before.pk if row.before else None]
        for row in changes
    ]
    return PAGES.render_checked(
        request,
        administration,
        report,
        changes=changes,
        problems=report.rejections,
        content={"counts": counts},
        unchanged=len(report.valid) - len(changes),
    )


@needs(MANAGE)
@require_POST
def count_upload_save(request: StaffRequest, pk: int) -> HttpResponse:
    """Store the numbers of a file that was checked, all or none of them."""
    administration = _administration_or_404(request, pk)
    checked = PAGES.confirmed_content(request, administration)
    if checked is None:
        return redirect(PAGES.upload, pk)
    counts = [NewCount(*row) for row in checked["counts"]]
    try:
        changed = import_counts(
            administration=administration,
            counts=counts,
            by=request.user,
            request=request,
        )
    except ValidationError as error:
        reasons = " ".join(error.messages)
        refusal = _("Nothing was saved. %(reasons)s") % {"reasons": reasons}
    except PermissionDenied:
        refusal = _(
            "Nothing was saved: a school of the file is no longer yours or in this"
            " survey. Upload the file again."
        )
    else:
        saved = ngettext(
            "Count of %(schools)s school saved.",
            "Counts of %(schools)s schools saved.",
            changed,
        )
        messages.success(request, saved % {"schools": f"{changed:,}"})
        return redirect("count_list", pk)
    messages.error(request, refusal)
    return redirect(PAGES.upload, pk)


@needs(MANAGE)
@require_safe
def count_template(request: StaffRequest, pk: int) -> HttpResponse:
    """Download the user's schools as a file to fill in."""
    administration = _administration_or_404(request, pk)
    schools = schools_to_count(request.permissions, administration)
    ordered = schools.select_related("district").order_by("district__code", "code")
    rows = template_rows(ordered.iterator(chunk_size=2000))
    return csv_response(rows, filename=f"counts-{administration.name}.csv")


def _administration_or_404(request: StaffRequest, pk: int) -> Administration:
    """Return an administration without a roster, in one of the user's places."""
    administration = administration_or_404(request.permissions, pk, MANAGE)
    if administration.denominator != Denominator.COUNT:
        raise Http404
    return administration
