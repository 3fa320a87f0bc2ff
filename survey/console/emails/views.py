"""The e-mails of an administration: planning, confirming, pausing, progress."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.administrations.forms import show_errors
from survey.console.emails.forms import LANGUAGES, ConfirmForm, PlanForm
from survey.fieldwork.administrations.queries import own_administration_or_404
from survey.fieldwork.emails import schedules
from survey.fieldwork.emails.figures import Figures, no_figures, read_figures
from survey.fieldwork.emails.sending import pause_reason
from survey.models import Administration, EmailSchedule, EmailStep

DEFAULT_DAYS, DEFAULT_RATE = [3, 7], 600


class StepRow(NamedTuple):
    """One e-mail of the schedule, as a row of the page's table."""

    step: EmailStep
    when: str
    # Of a reminder: the first day on which somebody may get it.
    earliest: datetime | None
    is_too_late: bool
    figures: Figures
    # The languages that it is written in, with their names.
    languages: list[tuple[str, str]]


@needs(C.MANAGE_SURVEYS)
@require_safe
def emails_detail(request: StaffRequest, pk: int) -> HttpResponse:
    administration = own_administration_or_404(request.permissions, pk)
    schedule = find_schedule(administration)
    context: dict[str, object] = {
        "administration": administration,
        "schedule": schedule,
        **(_progress(schedule) if schedule else {}),
    }
    return render(request, "survey/console/emails_detail.html", context)


@needs(C.MANAGE_SURVEYS)
@require_safe
def emails_progress(request: StaffRequest, pk: int) -> HttpResponse:
    """Return the figures alone; htmx requests them while e-mails may be sent."""
    administration = own_administration_or_404(request.permissions, pk)
    schedule = schedule_or_404(administration)
    context = {"administration": administration, "schedule": schedule}
    return render(
        request,
        "survey/console/_emails_progress.html",
        {**context, **_progress(schedule)},
    )


def find_schedule(administration: Administration) -> EmailSchedule | None:
    schedules = EmailSchedule.objects.select_related("confirmed_by")
    schedule = schedules.filter(administration=administration).first()
    if schedule is not None:
        # With the survey's title, which the pages show.
        schedule.administration = administration
    return schedule


def schedule_or_404(administration: Administration) -> EmailSchedule:
    schedule = find_schedule(administration)
    if schedule is None:
        raise Http404
    return schedule


def _progress(schedule: EmailSchedule) -> dict[str, object]:
    administration = schedule.administration
    figures = read_figures(schedule)
    nothing = no_figures(is_rounded=administration.is_completion_confidential)
    rows = []
    for step in schedule.steps.prefetch_related("templates").order_by("kind", "days"):
        earliest = None
        when = _("after the closing")
        if step.kind == EmailStep.Kind.INVITATION:
            when = _("at the opening, or when a person is added later")
        elif step.kind == EmailStep.Kind.REMINDER:
            when = _("to people who have not finished")
            earliest = administration.opens_at + timedelta(days=step.days)
        rows.append(
            StepRow(
                step,
                when,
                earliest,
                earliest is not None and earliest >= administration.closes_at,
                figures.by_step.get(step.pk, nothing),
                _languages_of(step),
            )
        )
    return {
        "rows": rows,
        "total": figures.total,
        "pause_reason": pause_reason(schedule),
        "recipients": schedules.count_recipients(schedule),
        "is_over": administration.state == Administration.State.CLOSED,
    }


def _languages_of(step: EmailStep) -> list[tuple[str, str]]:
    written = {template.language for template in step.templates.all()}
    unknown = sorted(written - LANGUAGES.keys())
    known = [(code, name) for code, name in LANGUAGES.items() if code in written]
    return [*known, *((code, code) for code in unknown)]


@needs(C.MANAGE_SURVEYS)
def emails_plan(request: StaffRequest, pk: int) -> HttpResponse:
    administration = own_administration_or_404(request.permissions, pk)
    schedule = find_schedule(administration)
    form = PlanForm(request.POST or None, initial=_planned(schedule))
    if form.is_bound and form.is_valid():
        try:
            schedules.plan_emails(
                administration=administration,
                reminder_days=form.cleaned_data["reminder_days"],
                thanks=form.cleaned_data["thanks"],
                rate_per_minute=form.cleaned_data["rate_per_minute"],
                by=request.user,
                request=request,
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(request, _("The schedule was saved."))
            return redirect("emails_detail", pk)
    return render(
        request,
        "survey/console/emails_plan.html",
        {"administration": administration, "schedule": schedule, "form": form},
    )


def _planned(schedule: EmailSchedule | None) -> dict[str, object]:
    days, thanks, rate = DEFAULT_DAYS, True, DEFAULT_RATE
    if schedule is not None:
        steps = list(schedule.steps.order_by("days"))
        days = [step.days for step in steps if step.kind == EmailStep.Kind.REMINDER]
        thanks = any(step.kind == EmailStep.Kind.THANKS for step in steps)
        rate = schedule.rate_per_minute
    return {
        "reminder_days": ", ".join(map(str, days)),
        "thanks": thanks,
        "rate_per_minute": rate,
    }


@needs(C.MANAGE_SURVEYS)
def emails_confirm(request: StaffRequest, pk: int) -> HttpResponse:
    administration = own_administration_or_404(request.permissions, pk)
    schedule = schedule_or_404(administration)
    if schedule.confirmed_at:
        # A second click on the button comes here too.
        messages.info(request, _("These e-mails are confirmed."))
        return redirect("emails_detail", pk)
    form = ConfirmForm(request.POST or None)
    # The form may be empty: without many recipients nothing is typed.
    if request.method == "POST":
        form = ConfirmForm(request.POST)
        if form.is_valid():
            try:
                count = schedules.confirm(
                    schedule=schedule,
                    typed=form.cleaned_data["typed"],
                    by=request.user,
                    request=request,
                )
            except ValidationError as error:
                form.add_error("typed", error)
            else:
                messages.success(request, _confirmed(administration, count))
                return redirect("emails_detail", pk)
    recipients = schedules.count_recipients(schedule)
    return render(
        request,
        "survey/console/emails_confirm.html",
        {
            "administration": administration,
            "schedule": schedule,
            "form": form,
            "recipients": recipients,
            "must_be_typed": recipients > schedules.MANY,
            "minutes": -(-recipients // schedule.rate_per_minute),
        },
    )


def _confirmed(administration: Administration, count: int) -> str:
    if administration.state == Administration.State.PLANNED:
        words = ngettext(
            "The e-mails to %(people)s person will be sent from the opening on.",
            "The e-mails to %(people)s people will be sent from the opening on.",
            count,
        )
    else:
        words = ngettext(
            "The e-mails to %(people)s person are being sent. The first leave within a"
            " minute.",
            "The e-mails to %(people)s people are being sent. The first leave within a"
            " minute.",
            count,
        )
    return words % {"people": f"{count:,}"}


@needs(C.MANAGE_SURVEYS)
@require_POST
def emails_pause(request: StaffRequest, pk: int) -> HttpResponse:
    return _act(
        request, pk, schedules.pause, _("Paused. No e-mail is sent until you resume.")
    )


@needs(C.MANAGE_SURVEYS)
@require_POST
def emails_resume(request: StaffRequest, pk: int) -> HttpResponse:
    return _act(
        request, pk, schedules.resume, _("Resumed. Sending starts within a minute.")
    )


@needs(C.MANAGE_SURVEYS)
@require_POST
def emails_cancel(request: StaffRequest, pk: int) -> HttpResponse:
    return _act(
        request,
        pk,
        schedules.cancel,
        _("Cancelled. No e-mail is sent unless you confirm again."),
    )


def _act(
    request: StaffRequest, pk: int, act: Callable[..., None], done: str
) -> HttpResponse:
    administration = own_administration_or_404(request.permissions, pk)
    act(schedule=schedule_or_404(administration), by=request.user, request=request)
    messages.success(request, done)
    return redirect("emails_detail", pk)
