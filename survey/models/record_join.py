"""Two records of one person in an administration, and their joining."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Administration, Respondent


class RecordJoin(
    Table,
    reason="names two respondents, who lie in two shards",
    erasing=Erasing.DELETED,
    # Leads to the record that stays from then on.
    kept=Reference.PEOPLE,
    other=Reference.STAYS,
    district=Reference.ADAPTED,
):
    """A request to join two records, and what became of it.

    Once joined, rosters with the ID of the withdrawn record find the one that stays.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("being joined")
        REFUSED = "refused", _("not joined")
        JOINED = "joined", _("joined")

    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    # As chosen on the page; once joined, the record that stays.
    kept = models.ForeignKey(Respondent, on_delete=models.CASCADE, related_name="+")
    # Once joined, the record that was withdrawn.
    other = models.ForeignKey(Respondent, on_delete=models.CASCADE, related_name="+")
    # Whether a person chose between two records that have both been started.
    is_chosen = models.BooleanField(default=False)
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    # Why they were not joined.
    message = models.CharField(max_length=500, blank=True)
    # Once joined, the ID of the record that was withdrawn.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    external_id = models.CharField(max_length=128, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    requested_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.CheckConstraint(
                condition=~Q(kept=F("other")),
                name="a_record_is_not_joined_with_itself",
            ),
            # Rosters look IDs up in it.
            models.UniqueConstraint(
                fields=("administration", "district", "external_id"),
                condition=Q(state="joined"),
                name="the_id_of_a_joined_record_leads_to_one_person",
            ),
        )

    def __str__(self) -> str:
        return f"respondents {self.kept_id} and {self.other_id}"
