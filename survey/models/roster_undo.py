"""What applied rosters changed, so that they can be undone."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts.tables import Erasing, Reference, Table
from survey.models.administration import Respondent
from survey.models.roster import RosterUpload


class RosterUndo(Table):
    """What must be known to undo one upload, and how that went.

    Made when applying begins. An upload without one cannot be undone.
    """

    upload = models.OneToOneField(
        RosterUpload, on_delete=models.CASCADE, primary_key=True, related_name="undo"
    )
    began_at = models.DateTimeField(default=timezone.now)
    # Primary keys of all schools that the file names or takes people from, and of
    # the districts and schools that it created.
    schools = models.JSONField(default=list)
    new_districts = models.JSONField(default=list)
    new_schools = models.JSONField(default=list)
    # Who asked to undo it.
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    ended_at = models.DateTimeField(null=True)
    # People whom undoing has removed, withdrawn because they were sent their code,
    # given back their earlier data, and left alone because they had started.
    removed = models.PositiveIntegerField(default=0)
    withdrawn = models.PositiveIntegerField(default=0)
    restored = models.PositiveIntegerField(default=0)
    kept = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"undo of {self.upload_id}"


class RosterChange(
    Table,
    reason="keyed by upload; deleted after 30 days",
    erasing=Erasing.DELETED,
    respondent=Reference.STAYS,
    school=Reference.MOVED,
):
    """What an upload did to one person, and the person's data before.

    Written in the transaction that changes the person, and deleted when that is
    undone or after 30 days, with the upload's file.
    """

    class Change(models.TextChoices):
        """The values of `roster_match.change`, and one more."""

        ADDED = "a"
        CHANGED = "c"
        MOVED = "m"
        BACK = "b"
        WITHDRAWN = "w"

    pk = models.CompositePrimaryKey("upload_id", "respondent_id")
    # Without constraints and more indexes, which would slow down every roster.
    upload = models.ForeignKey(
        RosterUpload,
        on_delete=models.CASCADE,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    respondent = models.ForeignKey(
        Respondent,
        on_delete=models.CASCADE,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    change = models.CharField(max_length=1, choices=Change)
    # The rest is empty for people who were added or withdrawn.
    school = models.ForeignKey(
        "accounts.School",
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    grade = models.CharField(max_length=16, blank=True, db_default="")
    classroom = models.CharField(max_length=64, blank=True, db_default="")
    language = models.CharField(max_length=16, blank=True, db_default="")
    attributes = models.JSONField(null=True)
    external_id = models.CharField(max_length=128, blank=True, db_default="")
    given_name = models.CharField(max_length=200, blank=True, db_default="")
    family_name = models.CharField(max_length=200, blank=True, db_default="")
    email = models.EmailField(max_length=254, blank=True, db_default="")
    birth_date = models.DateField(null=True)
    withdrawn_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.get_change_display()} by {self.upload_id}"
