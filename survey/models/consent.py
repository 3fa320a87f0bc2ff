"""Consents of parents or people, where an administration requires them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Respondent


class Consent(
    Table,
    reason="a bigint key of its own; written by staff",
    erasing=Erasing.DELETED,
    # Counts for the record that stays.
    respondent=Reference.PEOPLE,
):
    """One consent, with who gave it.

    It counts until a later opt-out: `Respondent.awaits_consent` and `opted_out_at`
    decide, see `survey.people.opt_outs.consents`.
    """

    class GivenBy(models.TextChoices):
        PARENT = "parent", _("A parent or guardian")
        PERSON = "person", _("The person")

    respondent = models.ForeignKey(
        Respondent, on_delete=models.CASCADE, related_name="consents"
    )
    # The date of the consent, such as that of a signed form.
    given_on = models.DateField()
    given_by = models.CharField(max_length=16, choices=GivenBy)
    note = models.CharField(max_length=200, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    recorded_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("-pk",)

    def __str__(self) -> str:
        return f"consent of respondent {self.respondent_id}"
