"""People who do not take part: a parent, or the person, has refused."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Respondent


class OptOut(
    Table,
    reason="a bigint key of its own; a few for each school",
    reports="SELECT (respondent_id, ended_at)",
    erasing=Erasing.DELETED,
    # A refusal counts for the record that stays.
    respondent=Reference.PEOPLE,
):
    """One refusal, with who asked for it, and when it was taken back.

    While it stands, `Respondent.opted_out_at` is set: see `survey.people.opt_outs`.
    """

    class RequestedBy(models.TextChoices):
        PARENT = "parent", _("A parent or guardian")
        PERSON = "person", _("The person")
        SCHOOL = "school", _("The school or district")

    respondent = models.ForeignKey(
        Respondent, on_delete=models.CASCADE, related_name="opt_outs"
    )
    # The date of the request, such as that of a signed form.
    requested_on = models.DateField()
    requested_by = models.CharField(max_length=16, choices=RequestedBy)
    reason = models.CharField(max_length=200, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    recorded_at = models.DateTimeField(default=timezone.now)
    # Set for people who were withdrawn before: they stay so once it is taken back.
    was_withdrawn_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("respondent",),
                condition=Q(ended_at=None),
                name="a_person_opts_out_once_at_a_time",
            ),
        )

    def __str__(self) -> str:
        return f"opt-out of respondent {self.respondent_id}"
