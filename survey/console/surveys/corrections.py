"""Correct texts of a published survey: upload, compare, publish."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts import forms
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.upload import WorkbookForm
from survey.console.surveys.views import own_survey_or_404, refreshed
from survey.instrument.definitions.comparison import Comparison, compare
from survey.instrument.definitions.corrections import (
    NotACorrection,
    WrongSurvey,
    administrations_to_correct,
    corrected_definition,
    publish_correction,
    use_correction,
)
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import NotPublishable
from survey.instrument.definitions.schema import load_definition
from survey.instrument.definitions.uploads import receive_upload
from survey.instrument.drafts.drafting import is_unchecked, refresh_rows
from survey.models import Administration, PublishedSurvey, Survey


class UseForm(forms.Form):
    """Choose the administrations that will use a correction."""

    def __init__(
        self, offering: list[Administration], data: QueryDict | None = None
    ) -> None:
        super().__init__(data)
        self.offering = {str(row.pk): row for row in offering}
        self.initial["administrations"] = list(self.offering)
        self.fields["administrations"] = forms.MultipleChoiceField(
            required=False,
            widget=forms.CheckboxSelectMultiple,
            label=_("Use the correction in"),
            choices=[
                (
                    pk,
                    _("%(title)s (%(name)s), now with version %(version)s")
                    % {
                        "title": row.title,
                        "name": row.name,
                        "version": row.published.survey.version,
                    },
                )
                for pk, row in self.offering.items()
            ],
        )

    @property
    def chosen(self) -> list[Administration]:
        return [self.offering[pk] for pk in self.cleaned_data["administrations"]]


@needs(Capability.MANAGE_SURVEYS)
def survey_correct(request: StaffRequest, pk: int) -> HttpResponse:
    """Upload the corrected workbook of a published survey."""
    survey = own_survey_or_404(request, pk)
    published = survey.published.first()
    if published is None:
        raise Http404
    form = WorkbookForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        upload = receive_upload(
            name=file.name,
            content=file.read(),
            district=survey.district,
            corrects=published,
            by=request.user,
            request=request,
        )
        return redirect("survey_uploaded", upload.pk)
    return render(
        request, "survey/console/survey_correct.html", {"survey": survey, "form": form}
    )


@needs(Capability.MANAGE_SURVEYS)
def survey_correction(request: StaffRequest, pk: int) -> HttpResponse:
    """Compare old and new texts, publish them, and choose where they are used."""
    survey = own_survey_or_404(request, pk)
    corrects = survey.corrects
    if corrects is None:
        raise Http404
    problems = refreshed(survey)
    published = survey.published.first()
    refusal = ""
    earlier = load_definition(corrects.definition)
    measures = measures_of(corrects.survey), measures_of(survey)
    if published is not None:
        definition = load_definition(published.definition)
        comparison = compare(earlier, definition, measures)
    else:
        try:
            if is_unchecked(survey):
                refresh_rows(survey)
                measures = measures_of(corrects.survey), measures_of(survey)
            definition = corrected_definition(survey, earlier, corrects.digest)
            comparison = compare(earlier, definition, measures)
        except NotPublishable as error:
            comparison, refusal = Comparison(), str(error)
    if problems:
        refusal = _("This draft has problems. Check it first.")
    offering = [
        administration
        for administration in administrations_to_correct(request.permissions, corrects)
        if published is None or administration.published != published
    ]
    form = UseForm(offering, request.POST if request.method == "POST" else None)
    if request.method == "POST" and not refusal and form.is_valid():
        try:
            return _publish_and_use(request, survey, corrects, form.chosen)
        except NotACorrection:
            # The page lists each difference.
            return redirect("survey_correction", survey.pk)
        except (NotPublishable, WrongSurvey) as error:
            refusal = str(error)
        except PermissionDenied:
            raise Http404 from None
    return render(
        request,
        "survey/console/survey_correction.html",
        {
            "survey": survey,
            "corrected": corrects.survey,
            "published": published,
            "made_here": not survey.source_name,
            "comparison": comparison,
            "refusal": refusal,
            "offering": offering,
            "form": form,
        },
        status=409 if request.method == "POST" and refusal else 200,
    )


@transaction.atomic
def _publish_and_use(
    request: StaffRequest,
    survey: Survey,
    corrects: PublishedSurvey,
    chosen: list[Administration],
) -> HttpResponse:
    """Use the correction in all chosen administrations, or in none."""
    published = publish_correction(
        survey=survey,
        corrects=corrects,
        seen=request.POST.get("seen", ""),
        by=request.user,
        request=request,
    )
    for administration in chosen:
        use_correction(
            administration=administration,
            published=published,
            by=request.user,
            request=request,
        )
    message = _("%(full_title)s is published. No survey round uses it yet.") % {
        "full_title": survey.full_title
    }
    if chosen:
        titles = "; ".join(f"{row.title} ({row.name})" for row in chosen)
        message = _(
            "%(full_title)s is published and used in %(titles)s."
            " Respondents see the corrected texts from their next login"
            " on."
        ) % {"full_title": survey.full_title, "titles": titles}
    messages.success(request, message)
    return redirect("survey_detail", survey.pk)
