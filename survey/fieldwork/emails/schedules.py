"""Create, change, confirm, pause and resume the e-mails of an administration."""

from __future__ import annotations

from collections.abc import Collection

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.audit import record_owned
from accounts.models import User
from accounts.permissions import Permissions
from survey.fieldwork.administrations import invited_people, may_manage
from survey.fieldwork.emails.templates import add_default_templates, check_template
from survey.instrument.definitions.schema import load_definition
from survey.models import Administration, EmailSchedule, EmailStep, EmailTemplate
from survey.models.email_schedule import MAX_RATE

Kind = EmailStep.Kind

MAX_REMINDERS = 10
MAX_DAYS = 180
# From here on the number of recipients has to be typed.
MANY = 1000


@transaction.atomic
def plan_emails(
    *,
    administration: Administration,
    reminder_days: Collection[int],
    thanks: bool,
    rate_per_minute: int,
    by: User,
    request: HttpRequest | None = None,
) -> EmailSchedule:
    """Create the schedule of an administration, or change it; keep its texts.

    Raises PermissionDenied, and ValidationError with a message for each field.
    """
    check_may_manage(administration, by)
    check_plan(administration, reminder_days, rate_per_minute)
    schedule, created = EmailSchedule.objects.get_or_create(
        administration=administration
    )
    schedule = EmailSchedule.objects.select_for_update().get(pk=schedule.pk)
    if schedule.is_active:
        raise ValidationError(_("Pause the e-mails before you change their schedule."))
    before = {} if created else describe(schedule)
    schedule.rate_per_minute = rate_per_minute
    schedule.save(update_fields=["rate_per_minute"])
    wanted = {(Kind.INVITATION, 0), *((Kind.REMINDER, n) for n in reminder_days)}
    wanted |= {(Kind.THANKS, 0)} if thanks else set()
    steps = {(step.kind, step.days): step for step in schedule.steps.all()}
    for key in steps.keys() - wanted:
        if steps[key].deliveries.exists():
            raise ValidationError(
                _("%(step)s can't be removed: it was sent to people already.")
                % {"step": steps[key].label}
            )
        steps[key].delete()
    definition = load_definition(administration.published.definition)
    languages = [language["code"] for language in definition["languages"]]
    for kind, days in sorted(wanted - steps.keys()):
        step = EmailStep.objects.create(schedule=schedule, kind=kind, days=days)
        add_default_templates(step, languages)
    record_owned(
        "plan e-mails",
        administration,
        by,
        request,
        before=before,
        after=describe(schedule),
    )
    return schedule


def check_plan(
    administration: Administration,
    reminder_days: Collection[int],
    rate_per_minute: int,
) -> None:
    errors = {}
    open_days = (administration.closes_at - administration.opens_at).days
    if len(set(reminder_days)) > MAX_REMINDERS:
        errors["reminder_days"] = _("Plan at most %(max_reminders)s reminders.") % {
            "max_reminders": MAX_REMINDERS
        }
    elif not all(1 <= days <= MAX_DAYS for days in reminder_days):
        errors["reminder_days"] = _("Write numbers of days from 1 to %(max_days)s.") % {
            "max_days": MAX_DAYS
        }
    elif any(days > open_days for days in reminder_days):
        errors["reminder_days"] = ngettext(
            "The survey is open for %(days)s day: later reminders would never be sent.",
            "The survey is open for %(days)s days: later reminders would"
            " never be sent.",
            open_days,
        ) % {"days": open_days}
    if not 1 <= rate_per_minute <= MAX_RATE:
        errors["rate_per_minute"] = _("Write a number from 1 to %(max_rate)s.") % {
            "max_rate": f"{MAX_RATE:,}"
        }
    if errors:
        raise ValidationError(errors)


@transaction.atomic
def write_template(
    *,
    step: EmailStep,
    language: str,
    subject: str,
    body: str,
    by: User,
    request: HttpRequest | None = None,
) -> EmailTemplate:
    """Store the text of a step in a language. The next e-mail already has it.

    Raises PermissionDenied, and ValidationError with a message for each field.
    """
    check_may_manage(step.schedule.administration, by)
    check_template(kind=step.kind, subject=subject, body=body)
    template, created = EmailTemplate.objects.update_or_create(
        step=step, language=language, defaults={"subject": subject, "body": body}
    )
    after = {"email": str(step), "language": language}
    record_owned(
        "write an e-mail", step.schedule.administration, by, request, after=after
    )
    return template


def count_recipients(schedule: EmailSchedule) -> int:
    """Count the invited people with an address. 1 statement.

    The same before and after somebody finishes, which is nobody's business; so
    opted-out and finished people are in it, who get nothing.
    """
    people = invited_people(schedule.administration)
    return people.filter(identity__email__gt="").count()


@transaction.atomic
def confirm(
    *,
    schedule: EmailSchedule,
    typed: str = "",
    by: User,
    request: HttpRequest | None = None,
) -> int:
    """Let the e-mails be sent when they are due; return the number of recipients.

    Above MANY the number must have been typed, as it is now.

    Raises PermissionDenied and ValidationError.
    """
    check_may_manage(schedule.administration, by)
    if schedule.administration.state == Administration.State.CLOSED:
        raise ValidationError(
            _("This survey is closed, so no e-mail would be sent. Reopen it first.")
        )
    count = count_recipients(schedule)
    digits = "".join(filter(str.isdecimal, typed))
    if not count:
        raise ValidationError(_("No one on the roster has an e-mail address."))
    if count > MANY and digits != str(count):
        raise ValidationError(
            _("Type %(count)s to confirm the number of recipients.")
            % {"count": f"{count:,}"}
        )
    unconfirmed = EmailSchedule.objects.filter(pk=schedule.pk, confirmed_at=None)
    if not unconfirmed.update(confirmed_at=timezone.now(), confirmed_by=by):
        raise ValidationError(_("These e-mails were confirmed before."))
    record_owned(
        "confirm e-mails",
        schedule.administration,
        by,
        request,
        after={"recipients": count},
    )
    return count


@transaction.atomic
def pause(
    *, schedule: EmailSchedule, by: User, request: HttpRequest | None = None
) -> None:
    """Send nothing from now on: the e-mail being sent at this moment is the last."""
    check_may_manage(schedule.administration, by)
    running = EmailSchedule.objects.filter(pk=schedule.pk, paused_at=None)
    if running.update(paused_at=timezone.now(), pause_reason=""):
        record_owned("pause e-mails", schedule.administration, by, request)


@transaction.atomic
def resume(
    *, schedule: EmailSchedule, by: User, request: HttpRequest | None = None
) -> None:
    check_may_manage(schedule.administration, by)
    paused = EmailSchedule.objects.filter(pk=schedule.pk).exclude(paused_at=None)
    if paused.update(paused_at=None, pause_reason="", trouble=""):
        schedule.steps.update(rests_until=None)
        record_owned("resume e-mails", schedule.administration, by, request)


@transaction.atomic
def cancel(
    *, schedule: EmailSchedule, by: User, request: HttpRequest | None = None
) -> None:
    """Send nothing more until the e-mails are confirmed again.

    The ledger stays, so nobody gets an e-mail again that was sent before.
    """
    check_may_manage(schedule.administration, by)
    confirmed = EmailSchedule.objects.filter(pk=schedule.pk, confirmed_at__isnull=False)
    if confirmed.update(
        confirmed_at=None,
        confirmed_by=None,
        paused_at=None,
        pause_reason="",
        trouble="",
    ):
        schedule.steps.update(rests_until=None)
        record_owned("cancel e-mails", schedule.administration, by, request)


def check_may_manage(administration: Administration, by: User) -> None:
    if not may_manage(Permissions(by), administration):
        raise PermissionDenied


def describe(schedule: EmailSchedule) -> dict[str, object]:
    return {
        "e-mails": ", ".join(map(str, schedule.steps.all())),
        "a minute": schedule.rate_per_minute,
    }
