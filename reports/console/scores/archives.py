"""Order the reports of all schools as one ZIP file, and download it."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from accounts import forms
from accounts.access import needs
from accounts.console.widgets import LanguageSelect
from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.models import District
from accounts.permissions import Capability, Permissions
from accounts.templatetags.console import own_language_name
from reports.console.scores.access import districts_with_scores, places_with_scores
from reports.models import ReportArchive
from reports.results.access import administration_or_404
from reports.school_report.archives import (
    NO_REPORTS,
    allowed_archives,
    has_reports,
    request_archive,
)
from survey.models import Administration
from survey.taking.published import published_survey
from survey.work.requested_files import (
    QuotaExceeded,
    delete_file,
    own_file_or_404,
    send,
)

MOST_SHOWN = 20


class ArchiveForm(forms.Form):
    """Offers districts that the user sees as a whole, and the survey's languages."""

    district = forms.ModelChoiceField(
        label=gettext_lazy("District"),
        queryset=District.objects.none(),
        required=False,
        empty_label=gettext_lazy("All districts"),
    )
    language = forms.ChoiceField(
        label=gettext_lazy("Language of the reports"), widget=LanguageSelect
    )

    def __init__(
        self,
        *args: Any,
        permissions: Permissions,
        administration: Administration,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.permissions = permissions
        self.administration = administration
        places = places_with_scores(permissions, administration)
        seen = districts_with_scores(permissions, administration)
        district = cast(forms.ModelChoiceField, self.fields["district"])
        district.queryset = seen.order_by("name")
        if not places.state:
            district.required = True
            district.empty_label = None
        languages = published_survey(administration.published_id).languages
        language = cast(forms.ChoiceField, self.fields["language"])
        language.choices = [(code, own_language_name(code)) for code in languages]
        language.initial = language_to_read(languages)

    def clean(self) -> dict[str, object]:
        cleaned: dict[str, object] = super().clean() or {}
        if not self.errors and not has_reports(
            self.permissions, self.administration, self.cleaned_data["district"]
        ):
            raise forms.ValidationError(NO_REPORTS)
        return cleaned


@needs(Capability.SEE_RESULTS)
def scores_reports(request: StaffRequest, pk: int) -> HttpResponse:
    """Order an archive, and list those that the user ordered."""
    administration = _administration_or_404(request, pk)
    form = ArchiveForm(
        request.POST if request.method == "POST" else None,
        initial={"district": request.GET.get("district")},
        permissions=request.permissions,
        administration=administration,
    )
    if request.method == "POST" and form.is_valid():
        try:
            request_archive(
                administration=administration,
                district=form.cleaned_data["district"],
                language=form.cleaned_data["language"],
                by=request.user,
                request=request,
            )
        except QuotaExceeded as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("scores_reports", pk)
    archives = list(_own_archives(request, administration)[:MOST_SHOWN])
    context = {
        "administration": administration,
        "form": form,
        "archives": archives,
        "allowed": allowed_archives(request.permissions, archives),
    }
    return render(request, "reports/scores_reports.html", context)


@needs(Capability.SEE_RESULTS)
@require_GET
def scores_reports_file(
    request: StaffRequest, pk: int, archive: int
) -> HttpResponseBase:
    administration = _administration_or_404(request, pk)
    report_archive = own_file_or_404(
        _own_archives(request, administration),
        request,
        archive,
        is_allowed=lambda archive: bool(
            allowed_archives(request.permissions, [archive])
        ),
    )
    place = report_archive.district.name if report_archive.district else "all"
    name = slugify(
        f"reports {administration.name} {place[:60]} {report_archive.language}"
    )
    action = "download school reports"
    return send(report_archive, request, action=action, as_name=name)


@needs(Capability.SEE_RESULTS)
@require_POST
def scores_reports_delete(request: StaffRequest, pk: int, archive: int) -> HttpResponse:
    administration = _administration_or_404(request, pk)
    with_file = _own_archives(request, administration).exclude(file_name="")
    report_archive = get_object_or_404(with_file, pk=archive)
    delete_file(report_archive, by=request.user, request=request)
    messages.success(request, _("File deleted."))
    return redirect("scores_reports", pk)


def _administration_or_404(request: StaffRequest, pk: int) -> Administration:
    """Return the administration if the user sees a whole district of it."""
    administration = administration_or_404(request.permissions, pk)
    places = places_with_scores(request.permissions, administration)
    if not (places.state or places.districts):
        raise Http404
    return administration


def _own_archives(
    request: StaffRequest, administration: Administration
) -> QuerySet[ReportArchive]:
    # From the primary: the worker may have finished a moment ago.
    return (
        ReportArchive.objects.using(DEFAULT_DB_ALIAS)
        .filter(by=request.user, administration=administration)
        .select_related("job", "district", "administration")
    )
