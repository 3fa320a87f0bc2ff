"""Mending a text of a published survey: upload, compare, confirm."""

from __future__ import annotations

import json

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability
from survey.console.surveys.upload import WorkbookForm
from survey.console.surveys.views import own_survey_or_404
from survey.definitions.comparison import Comparison, compare
from survey.definitions.corrections import (
    NotACorrection,
    WrongSurvey,
    administrations_to_correct,
    corrected_definition,
    publish_correction,
    use_correction,
)
from survey.definitions.publishing import NotPublishable
from survey.definitions.uploads import receive
from survey.models import Administration, PublishedSurvey, Survey


class UseForm(forms.Form):
    administrations = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Use the correction in",
    )

    def __init__(self, offering: list[Administration], *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.offering = {str(one.pk): one for one in offering}
        self.initial["administrations"] = list(self.offering)
        self.fields["administrations"].choices = [  # type: ignore[attr-defined]
            (pk, _described(one)) for pk, one in self.offering.items()
        ]

    @property
    def chosen(self) -> list[Administration]:
        return [self.offering[pk] for pk in self.cleaned_data["administrations"]]


def _described(administration: Administration) -> str:
    return f"{administration.name} (offers {administration.published.survey})"


@needs(Capability.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def survey_correct(request: StaffRequest, pk: int) -> HttpResponse:
    """Upload the mended workbook of a published survey."""
    survey = own_survey_or_404(request, pk)
    published = survey.published.first()
    if published is None:
        raise Http404
    form = WorkbookForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        file = form.cleaned_data["file"]
        upload = receive(
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
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def survey_correction(request: StaffRequest, pk: int) -> HttpResponse:
    """Old and new texts side by side; publishing, and who gets them."""
    survey = own_survey_or_404(request, pk)
    corrects = survey.corrects
    if corrects is None:
        raise Http404
    comparison, refusal = _compared(survey, corrects)
    offering = administrations_to_correct(request.permissions, corrects)
    published = survey.published.first()
    offering = [
        one for one in offering if published is None or one.published != published
    ]
    form = UseForm(offering, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            # All that was chosen, or nothing.
            with transaction.atomic():
                return _confirmed(request, survey, corrects, form.chosen)
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
            "comparison": comparison,
            "refusal": refusal,
            "offering": offering,
            "form": form,
        },
        status=409 if request.method == "POST" and refusal else 200,
    )


def _compared(survey: Survey, corrects: PublishedSurvey) -> tuple[Comparison, str]:
    """And what keeps the draft from being published at all, if anything."""
    earlier = json.loads(corrects.definition)
    published = survey.published.first()
    if published is not None:
        return compare(earlier, json.loads(published.definition)), ""
    try:
        definition = corrected_definition(survey, earlier, corrects.digest)
    except NotPublishable as error:
        return Comparison(), str(error)
    return compare(earlier, definition), ""


def _confirmed(
    request: StaffRequest,
    survey: Survey,
    corrects: PublishedSurvey,
    chosen: list[Administration],
) -> HttpResponse:
    by = request.user
    try:
        published = publish_correction(
            survey=survey,
            corrects=corrects,
            by=by,  # type: ignore[arg-type]
            request=request,
        )
    except NotACorrection:
        # The page lists each difference.
        return redirect("survey_correction", survey.pk)
    for administration in chosen:
        use_correction(
            administration=administration,
            published=published,
            by=by,  # type: ignore[arg-type]
            request=request,
        )
    messages.success(request, _said(survey, chosen))
    return redirect("survey_detail", survey.pk)


def _said(survey: Survey, chosen: list[Administration]) -> str | SafeString:
    if not chosen:
        return f"{survey} is published. No administration uses it yet."
    names = ", ".join(one.name for one in chosen)
    return (
        f"{survey} is published and used in {names}. Whoever is in the middle of the"
        " survey reads the old texts until the next login."
    )
