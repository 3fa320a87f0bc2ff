"""Work behind the scenes, as the person who asked for it sees it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from survey.job_kinds import JOB_KINDS


class Job(models.Model):
    """One roster, export or set of cards on its way; see `survey.jobs`.

    This row is the truth: the message in RabbitMQ only wakes a worker, and
    one that is lost is sent again.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed", "not finished"
        CANCELLED = "cancelled"

    # Names the function, in `survey.job_kinds`.
    kind = models.CharField(max_length=64)
    # The row that it is about; which model, the kind says.
    subject_id = models.BigIntegerField(null=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    done = models.BigIntegerField(default=0)
    # Null where nobody knows yet.
    total = models.BigIntegerField(null=True)
    # What it is doing now, or why it ended: a sentence for the person.
    message = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    # Of the worker that runs it; an old one means that it died.
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
            # What a worker looks for: jobs that nobody has ended.
            models.Index(
                fields=("created_at",),
                condition=Q(ended_at=None),
                name="jobs_not_ended",
            ),
            # The jobs of one roster or export, the newest first.
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
