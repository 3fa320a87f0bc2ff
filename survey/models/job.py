"""Background jobs, with the progress that their pages show."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import pgettext_lazy

from accounts.tables import Table
from survey.work.job_kinds import JOB_KINDS


class Job(Table):
    """One background job, such as a roster or an export; see `survey.work.jobs`.

    This row is authoritative: the message in RabbitMQ only wakes a worker, and
    a lost message is sent again.
    """

    class State(models.TextChoices):
        WAITING = "waiting", pgettext_lazy("job", "Waiting")
        RUNNING = "running", pgettext_lazy("job", "Running")
        DONE = "done", pgettext_lazy("job", "Done")
        FAILED = "failed", pgettext_lazy("job", "not finished")
        CANCELLED = "cancelled", pgettext_lazy("job", "Cancelled")

    # Names the function, in `survey.work.job_kinds`.
    kind = models.CharField(max_length=64)
    # Primary key of the row that the job is about; its model follows from `kind`.
    subject_id = models.BigIntegerField(null=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    done = models.BigIntegerField(default=0)
    # Null until it is known.
    total = models.BigIntegerField(null=True)
    # The current step, or why the job ended: a sentence for its user.
    message = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    # Set by the worker; an old one means that the worker died, or that the pause
    # before the next attempt is over.
    heartbeat_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    cancel_asked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(
                    state__in=("done", "failed", "cancelled"), ended_at__isnull=False
                )
                | Q(state__in=("waiting", "running"), ended_at=None),
                name="a_job_that_ended_says_when",
            ),
        )
        indexes = (
            # Workers look for jobs that have not ended.
            models.Index(
                fields=("created_at",),
                condition=Q(ended_at=None),
                name="jobs_not_ended",
            ),
            # Pages look for the latest job of a roster or an export.
            models.Index(fields=("kind", "subject_id"), name="jobs_of_a_subject"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id or ''}: {self.state}"

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def is_stoppable(self) -> bool:
        kind = JOB_KINDS.get(self.kind)
        return not self.is_over and (kind is None or kind.is_stoppable)

    @property
    def waits_for_survey_day(self) -> bool:
        """Whether it waits as long as a survey day is on."""
        kind = JOB_KINDS.get(self.kind)
        return self.state == self.State.WAITING and kind is not None and kind.waits
