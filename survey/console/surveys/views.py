"""List surveys, show one, and publish, retire, restore or delete it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from django.contrib import messages
from django.db.models import (
    BooleanField,
    Case,
    Count,
    Exists,
    ExpressionWrapper,
    F,
    IntegerField,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.language import language_to_read
from accounts.permissions import Capability, Permissions
from survey.console.administrations.open_drafts import begin_draft
from survey.console.surveys.contents import contents_of
from survey.console.surveys.places import Place, problem_places
from survey.console.surveys.questionnaire import pages_of
from survey.fieldwork.administrations import administrations_for
from survey.instrument.bank.questions import may_change_bank
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.ownership import (
    SurveyInUse,
    delete_draft,
    may_change,
    replacement_of,
    restore_survey,
    retire_survey,
    same_title_warning,
    surveys_for,
)
from survey.instrument.definitions.publishing import (
    NotPublishable,
    compile_definition,
)
from survey.instrument.definitions.schema import ANSWERABLE, SurveyDefinition
from survey.instrument.drafts.drafting import (
    is_stale,
    is_unchecked,
    publish_draft,
    refresh_rows,
)
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.workbook import ChangeConflict
from survey.instrument.xlsform.problems import Problem
from survey.models import Item, Page, PublishedSurvey, Retirement, Survey
from survey.taking.published import published_survey

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

# As an owner in a form.
STATE = "state"
# In a form that publishes: begin a survey round with it.
OPEN = "open"


def survey_or_404(request: StaffRequest, pk: int) -> Survey:
    """Return a survey that the user may see, with its owner and retirement."""
    known = surveys_for(request.permissions).select_related(
        "district", "uploaded_by", "retirement", "corrects__survey"
    )
    return get_object_or_404(known.defer("source", "corrects__definition"), pk=pk)


def own_survey_or_404(request: StaffRequest, pk: int) -> Survey:
    """Return a survey that the user may change."""
    survey = survey_or_404(request, pk)
    if not may_change(request.permissions, survey):
        raise Http404
    return survey


# The list


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_list(request: StaffRequest) -> HttpResponse:
    visible = administrations_for(request.permissions, Capability.SEE_RATES)
    answerable = Item.objects.filter(kind__in=ANSWERABLE)
    retired = Retirement.objects.filter(survey=OuterRef("pk"))
    surveys = (
        surveys_for(request.permissions)
        .select_related("district", "retirement")
        .annotate(
            page_count=_if_fresh(_count(Page.objects.all(), "survey")),
            item_count=_if_fresh(_count(answerable, "survey")),
            offered_count=_count(visible, "published__survey"),
            ended=Case(When(Exists(retired), then=Value(1)), default=Value(0)),
        )
    )
    listing = Listing(
        request,
        surveys,
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


def _if_fresh(count: Coalesce) -> Case:
    """Leave a count blank if the draft was changed since its rows were made.

    To read a list of such drafts takes too long.
    """
    return Case(When(last_change=F("compiled_change"), then=count))


def refreshed(survey: Survey) -> list[Problem]:
    """Make the rows of a draft those of its editor, and return its problems.

    With problems, the rows stay those of the last state without any.
    """
    if survey.published_at is not None or not is_stale(survey):
        return []
    try:
        problems = refresh_rows(survey, must_work=False).problems
    except ChangeConflict:
        # It was published in this moment, or deleted.
        problems = []
    survey.refresh_from_db(fields=["title", "languages", "published_at"])
    return problems


def _count(rows: QuerySet[Model], path: str) -> Coalesce:
    """Count the rows that belong to each survey by `path`."""
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
    try:
        survey = survey_or_404(request, pk)
    except Http404:
        newer = replacement_of(request.permissions, pk)
        if newer is None:
            raise
        messages.info(
            request, _("This draft was replaced by a newer upload, which you see here.")
        )
        return redirect("survey_detail", newer.pk)
    problems = refreshed(survey)
    published = survey.published.defer("definition").first()
    offered = (
        administrations_for(request.permissions, Capability.SEE_RATES)
        .filter(published__survey=survey)
        .select_related("published__survey")
        .defer("published__definition", "published__survey__source")
        .order_by("-opens_at")
    )
    versions = (
        Survey.objects.filter(name=survey.name, district=survey.district_id)
        .select_related("retirement")
        .defer("source")
        .order_by("-created_at")
    )
    definition, not_publishable = _definition_to_read(
        survey, published, has_problems=bool(problems)
    )
    measures = measures_of(survey)
    is_changeable = may_change(request.permissions, survey)
    return render(
        request,
        "survey/console/survey_detail.html",
        {
            "survey": survey,
            "state": state_of(survey),
            "published": published,
            **_page_to_read(request, definition),
            "measures": len(measures["measures"]) if measures else 0,
            "offered": list(offered),
            "versions": list(versions),
            **_latest_upload(survey),
            "problems": problems,
            "may_change": is_changeable,
            "may_change_bank": may_change_bank(request.permissions),
            "asks_to_publish": is_changeable
            and published is None
            and survey.corrects is None
            and not problems
            and not not_publishable,
            "not_publishable": not_publishable,
            "publish": PUBLISH,
        },
    )


def _latest_upload(survey: Survey) -> dict[str, object]:
    """Return its warnings, and the upload itself if it was converted. 1 statement."""
    upload = (
        survey.uploads.order_by("-pk")
        .defer("content", "report")
        .annotate(has_report=ExpressionWrapper(~Q(report=[]), BooleanField()))
        .first()
    )
    return {
        # Those of the workbook; an edited draft has them on its checking page.
        "warnings": upload.warnings if upload and not survey.last_change else [],
        "converted": upload if upload and upload.has_report else None,
    }


def _definition_to_read(
    survey: Survey, published: PublishedSurvey | None, *, has_problems: bool
) -> tuple[SurveyDefinition | None, str]:
    """Return what a survey asks, and why it is not publishable if it seemed to be."""
    if published is not None:
        return published_survey(published.pk).definition, ""
    if has_problems:
        return read_rows_of(survey).definition, ""
    try:
        return compile_definition(survey), ""
    except NotPublishable as error:
        return None, str(error)


def _page_to_read(
    request: StaffRequest, definition: SurveyDefinition | None
) -> dict[str, object]:
    """Return the pages of a survey and the one that the address asks for."""
    if definition is None or not definition["pages"]:
        return {}
    codes = [row["code"] for row in definition["languages"]]
    asked = request.GET.get("language", "")
    language = asked if asked in codes else language_to_read(codes)
    [chosen] = [row for row in definition["languages"] if row["code"] == language]
    pages = pages_of(definition, language)
    number = request.GET.get("page", "")
    # Longer numbers are of no page.
    is_number = number.isascii() and number.isdecimal() and len(number) < 6
    position = min(max(int(number), 1), len(pages)) if is_number else 1
    items = definition["items"].values()
    return {
        "pages": pages,
        "page": pages[position - 1],
        "language": chosen,
        "questions": sum(item["kind"] in ANSWERABLE for item in items),
    }


@needs(Capability.MANAGE_SURVEYS)
@require_safe
def survey_variables(request: StaffRequest, pk: int) -> HttpResponse:
    """List the names, types and rules of a survey as its author wrote them."""
    survey = survey_or_404(request, pk)
    problems = refreshed(survey)
    return render(
        request,
        "survey/console/survey_variables.html",
        {
            "survey": survey,
            "published": survey.published.defer("definition").first(),
            "contents": contents_of(survey),
            "problems": problems,
        },
    )


def state_of(survey: Survey) -> str:
    """Return "draft", "published" or "retired"."""
    if survey.published_at is None:
        return "draft"
    return "retired" if hasattr(survey, "retirement") else "published"


# Steps that change a survey; each has a page that explains and asks first


@dataclass(frozen=True, slots=True)
class Step:
    heading: StrPromise
    purpose: StrPromise
    meaning: tuple[StrPromise, ...]
    button: StrPromise
    done: StrPromise
    is_dangerous: bool = False
    # A second button, which goes on with the survey.
    and_open: StrPromise | str = ""


PUBLISH = Step(
    heading=gettext_lazy("Publish"),
    purpose=gettext_lazy("Publish this version to use it in survey rounds."),
    meaning=(
        gettext_lazy(
            "A published version can’t be changed, so that its answers"
            " keep their meaning."
        ),
        gettext_lazy("Respondents don’t see it until you open a survey round."),
        gettext_lazy(
            "You can still fix spelling mistakes with “Correct a text”."
            " Other changes need a new version."
        ),
    ),
    button=gettext_lazy("Publish version"),
    done=gettext_lazy("{survey} is published. Next, open a survey round."),
    and_open=gettext_lazy("Publish and open a survey round"),
)
RETIRE = Step(
    heading=gettext_lazy("Retire"),
    purpose=gettext_lazy("Stop using this version in new survey rounds."),
    meaning=(
        gettext_lazy("New survey rounds can’t use this version."),
        gettext_lazy("Existing survey rounds continue, and all answers are kept."),
        gettext_lazy("You can restore it later."),
    ),
    button=gettext_lazy("Retire version"),
    done=gettext_lazy("{survey} is retired."),
    is_dangerous=True,
)
BRING_BACK = Step(
    heading=gettext_lazy("Restore"),
    purpose=gettext_lazy("Allow new survey rounds to use this version again."),
    meaning=(gettext_lazy("Nothing else changes."),),
    button=gettext_lazy("Restore version"),
    done=gettext_lazy("{survey} is restored. New survey rounds can use it again."),
)
DELETE = Step(
    heading=gettext_lazy("Delete draft"),
    purpose=gettext_lazy("Delete this draft and its workbook."),
    meaning=(
        gettext_lazy("This can’t be undone."),
        gettext_lazy("The draft was never published, so it has no answers."),
    ),
    button=gettext_lazy("Delete draft"),
    done=gettext_lazy("Draft {survey} is deleted."),
    is_dangerous=True,
)


@needs(Capability.MANAGE_SURVEYS)
def survey_publish(request: StaffRequest, pk: int) -> HttpResponse:
    survey = own_survey_or_404(request, pk)
    publish = partial(publish_draft, seen=request.POST.get("seen", ""))
    return _step(request, survey, PUBLISH, publish)


@needs(Capability.MANAGE_SURVEYS)
def survey_retire(request: StaffRequest, pk: int) -> HttpResponse:
    survey = own_survey_or_404(request, pk)
    return _step(request, survey, RETIRE, retire_survey)


@needs(Capability.MANAGE_SURVEYS)
def survey_bring_back(request: StaffRequest, pk: int) -> HttpResponse:
    survey = own_survey_or_404(request, pk)
    return _step(request, survey, BRING_BACK, restore_survey)


@needs(Capability.MANAGE_SURVEYS)
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
            messages.success(request, step.done.format(survey=survey.full_title))
            if step is PUBLISH and OPEN in request.POST:
                draft = begin_draft(request.session, survey.published.only("pk").get())
                return redirect("administration_open_step", draft.key, "people")
            return (
                redirect(then) if then == "survey_list" else redirect(then, survey.pk)
            )
    problems: list[Place] = []
    if step is PUBLISH and refusal:
        survey.refresh_from_db(fields=["last_change", "published_at"])
    if step is PUBLISH and survey.published_at is None and is_unchecked(survey):
        reading = read_rows_of(survey)
        problems = problem_places(survey, reading)
        if problems and refusal:
            refusal = _("The survey was not published.")
    note = ""
    if step is PUBLISH and survey.corrects is not None:
        note = _(
            "This draft was uploaded to correct %(full_title)s. If you"
            " publish it here, it becomes a separate survey, whose"
            " answers are exported in separate columns."
        ) % {"full_title": survey.corrects.survey.full_title}
    elif step is PUBLISH and survey.published_at is None:
        note = same_title_warning(request.permissions, survey)
    return render(
        request,
        "survey/console/survey_step.html",
        {
            "survey": survey,
            "step": step,
            "refusal": refusal,
            "note": note,
            "problems": problems,
            # A link leads to where it is mended.
            "may_change": True,
            # After Back, or in another tab.
            "is_done": step is PUBLISH and survey.published_at is not None,
        },
        status=409 if refusal else 200,
    )


def owners_of(permissions: Permissions) -> list[tuple[str, str]]:
    """Return the possible owners of the user's uploads, as (value, name)."""
    districts = permissions.districts(Capability.MANAGE_SURVEYS)
    owners = [(str(district.pk), district.name) for district in districts]
    return [(STATE, _("The state")), *owners] if permissions.may_own(None) else owners
