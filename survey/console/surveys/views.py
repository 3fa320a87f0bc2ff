"""The surveys of the state and of the districts: what they hold, how they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts import audit
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability, Permissions
from survey.administrations import administrations_for
from survey.console.surveys.contents import contents_of
from survey.definitions.ownership import (
    SurveyInUse,
    bring_back,
    delete_draft,
    may_change,
    retire,
    surveys_for,
)
from survey.definitions.publishing import (
    NotPublishable,
    compile_definition,
    publish_survey,
)
from survey.definitions.schema import ANSWERABLE
from survey.models import Administration, Item, Page, Retirement, Survey
from survey.spreadsheets.old_excel import is_old_excel

XLS = "application/vnd.ms-excel"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# As an owner in a form.
STATE = "state"


def survey_or_404(request: StaffRequest, pk: int) -> Survey:
    """One that the asking person sees, with what names its owner and its end."""
    known = surveys_for(request.permissions).select_related(
        "district", "uploaded_by", "retirement", "corrects__survey"
    )
    return get_object_or_404(known.defer("source", "corrects__definition"), pk=pk)


def own_survey_or_404(request: StaffRequest, pk: int) -> Survey:
    """One that the asking person may change."""
    survey = survey_or_404(request, pk)
    if not may_change(request.permissions, survey):
        raise Http404
    return survey


# The list


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_list(request: StaffRequest) -> HttpResponse:
    permissions = request.permissions
    listing = Listing(
        request,
        _listed(permissions),
        search=("name", "version", "title", "district__name"),
        sorts={
            "newest": ("-created_at",),
            "name": ("name", "version"),
            "version": ("version", "name"),
            "owner": ("district__name", "name", "version"),
            "state": ("ended", "published_at", "name"),
            "pages": ("page_count",),
            "items": ("item_count",),
            "offered": ("offered_count",),
        },
    )
    return listing.render("survey/console/survey_list.html", {})


def _listed(permissions: Permissions) -> QuerySet[Survey]:
    visible = administrations_for(permissions, Capability.SEE_RATES)
    asked = Item.objects.filter(kind__in=ANSWERABLE)
    return (
        surveys_for(permissions)
        .select_related("district", "retirement")
        .annotate(
            page_count=_count(Page.objects.all(), "survey"),
            item_count=_count(asked, "survey"),
            offered_count=_count(visible, "published__survey"),
            ended=Case(
                When(
                    Exists(Retirement.objects.filter(survey=OuterRef("pk"))),
                    then=Value(1),
                ),
                default=Value(0),
            ),
        )
    )


def _count(rows: QuerySet[Any], path: str) -> Coalesce:
    counted = (
        rows.order_by()
        .filter(**{path: OuterRef("pk")})
        .values(owner=F(path))
        .annotate(count=Count("pk"))
        .values("count")
    )
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


# One survey


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_detail(request: StaffRequest, pk: int) -> HttpResponse:
    survey = survey_or_404(request, pk)
    permissions = request.permissions
    published = survey.published.defer("definition").first()
    upload = survey.uploads.order_by("-pk").defer("content").first()
    offered = _offered(permissions, survey)
    return render(
        request,
        "survey/console/survey_detail.html",
        {
            "survey": survey,
            "state": state_of(survey),
            "published": published,
            "contents": contents_of(survey),
            "offered": offered,
            "versions": _versions(survey),
            "warnings": upload.warnings if upload else [],
            "has_source": _has_source(survey),
            "may_change": may_change(permissions, survey),
            "not_publishable": "" if published else _why_not_publishable(survey),
        },
    )


def state_of(survey: Survey) -> str:
    """draft, published or retired."""
    if survey.published_at is None:
        return "draft"
    return "retired" if is_retired(survey) else "published"


def is_retired(survey: Survey) -> bool:
    return getattr(survey, "retirement", None) is not None


def _offered(permissions: Permissions, survey: Survey) -> list[Administration]:
    visible = administrations_for(permissions, Capability.SEE_RATES)
    return list(visible.filter(published__survey=survey).order_by("-opens_at"))


def _versions(survey: Survey) -> list[Survey]:
    """The owner's others of this name, this one among them, newest first."""
    known = Survey.objects.filter(name=survey.name, district=survey.district_id)
    return list(
        known.select_related("retirement").defer("source").order_by("-created_at")
    )


def _has_source(survey: Survey) -> bool:
    return Survey.objects.filter(pk=survey.pk, source__isnull=False).exists()


def _why_not_publishable(survey: Survey) -> str:
    try:
        compile_definition(survey)
    except NotPublishable as error:
        return str(error)
    return ""


@needs(Capability.MANAGE_SURVEYS)
@never_cache
@require_safe
def survey_original(request: StaffRequest, pk: int) -> HttpResponse:
    """The workbook as it was uploaded."""
    survey = survey_or_404(request, pk)
    source = Survey.objects.values_list("source", flat=True).get(pk=survey.pk)
    if source is None:
        raise Http404
    audit.record(
        "download survey",
        by=request.user,
        request=request,
        subject=survey,
        district=survey.district,
    )
    is_xls = is_old_excel(bytes(source[:8]))
    response = HttpResponse(bytes(source), content_type=XLS if is_xls else XLSX)
    ending = "xls" if is_xls else "xlsx"
    name = f"{survey.name} {survey.version}.{ending}".replace("/", "-")
    response["Content-Disposition"] = (
        content_disposition_header(True, name) or "attachment"
    )
    return response


# What can be done to it: each asks first, and says what it will mean


@dataclass(frozen=True, slots=True)
class Step:
    heading: str
    purpose: str
    meaning: tuple[str, ...]
    button: str
    done: str
    is_dangerous: bool = False


PUBLISH = Step(
    heading="Publish",
    purpose="Make this version ready to be offered. Read what that means first.",
    meaning=(
        "From then on nobody can change it, not even an engineer: answers are"
        " understood by what was asked.",
        "It can be offered in administrations. Nobody is asked anything before you"
        " open one.",
        "A typing mistake can still be mended, with “Correct a text”. Anything else"
        " needs a new version.",
    ),
    button="Publish this version",
    done="{survey} is published. Next, offer it in an administration.",
)
RETIRE = Step(
    heading="Retire",
    purpose="Take this version out of use. Read what that means first.",
    meaning=(
        "No new administration can offer it.",
        "Administrations that offer it now go on to their end, and every answer stays.",
        "You can bring it back.",
    ),
    button="Retire this version",
    done="{survey} is retired.",
    is_dangerous=True,
)
BRING_BACK = Step(
    heading="Bring back",
    purpose="Let new administrations offer this version again.",
    meaning=("Nothing else changes.",),
    button="Bring this version back",
    done="{survey} can be offered again.",
)
DELETE = Step(
    heading="Delete the draft",
    purpose="Remove this draft. Read what that means first.",
    meaning=(
        "The draft and its workbook are gone for good.",
        "Nobody has answered it: it was never published.",
    ),
    button="Delete this draft",
    done="The draft {survey} is deleted.",
    is_dangerous=True,
)


@needs(Capability.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def survey_publish(request: StaffRequest, pk: int) -> HttpResponse:
    survey = own_survey_or_404(request, pk)
    return _step(request, survey, PUBLISH, publish_survey)


@needs(Capability.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def survey_retire(request: StaffRequest, pk: int) -> HttpResponse:
    survey = own_survey_or_404(request, pk)
    return _step(request, survey, RETIRE, retire)


@needs(Capability.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def survey_bring_back(request: StaffRequest, pk: int) -> HttpResponse:
    survey = own_survey_or_404(request, pk)
    return _step(request, survey, BRING_BACK, bring_back)


@needs(Capability.MANAGE_SURVEYS)
@require_http_methods(["GET", "HEAD", "POST"])
def survey_delete(request: StaffRequest, pk: int) -> HttpResponse:
    survey = own_survey_or_404(request, pk)
    return _step(request, survey, DELETE, delete_draft, then="survey_list")


def _step(
    request: StaffRequest,
    survey: Survey,
    step: Step,
    do: Callable[..., object],
    then: str = "survey_detail",
) -> HttpResponse:
    refusal = ""
    if request.method == "POST":
        try:
            do(survey=survey, by=request.user, request=request)
        except (NotPublishable, SurveyInUse) as error:
            refusal = str(error)
        else:
            messages.success(request, step.done.format(survey=survey))
            return (
                redirect(then) if then == "survey_list" else redirect(then, survey.pk)
            )
    return render(
        request,
        "survey/console/survey_step.html",
        {
            "survey": survey,
            "step": step,
            "refusal": refusal,
            "note": _note(survey) if step is PUBLISH else "",
        },
        status=409 if refusal else 200,
    )


def _note(survey: Survey) -> str:
    if survey.corrects is None:
        return ""
    return (
        f"This draft was uploaded to correct {survey.corrects.survey}. Published here,"
        " it is a survey of its own, whose answers stand in columns of their own."
    )


def owners_of(permissions: Permissions) -> list[tuple[str, str]]:
    """(value, name) of whom the asking person may upload a survey for."""
    districts = permissions.districts(Capability.MANAGE_SURVEYS)
    owners = [(str(one.pk), one.name) for one in districts]
    return [(STATE, "The state"), *owners] if permissions.may_own(None) else owners
