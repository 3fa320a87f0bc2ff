"""The devices on which access codes were used."""

from __future__ import annotations

from django.db import models

from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Administration, Respondent


class DeviceLogin(
    Table,
    reason="a login writes it",
    key="respondent_id",
    taking="SELECT, INSERT, UPDATE",
    erasing=Erasing.DELETED,
    respondent=Reference.STAYS,
):
    """A code that was used on a device; see `survey.taking.devices`."""

    pk = models.CompositePrimaryKey("respondent_id", "device")
    # Without constraints: each login would lock the administration's row, which all
    # respondents share. The primary key serves look-ups by respondent.
    respondent = models.ForeignKey(
        Respondent,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    # Digest of the id in the device's cookie.
    device = models.CharField(max_length=32)
    administration = models.ForeignKey(
        Administration,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    first_at = models.DateTimeField()
    # No answers were given on it: the person had finished before.
    after_finishing = models.BooleanField(default=False)
    # The person stopped for now on it: earlier answers are not shown there again.
    forgets = models.BooleanField(default=False, db_default=False)

    class Meta:
        indexes = (
            # Counts the codes of each device, for its page in the console.
            models.Index(
                fields=("administration", "device"), name="codes_of_each_device"
            ),
        )

    def __str__(self) -> str:
        return f"device {self.device[:8]}"
