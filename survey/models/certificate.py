"""Signed certificates of data that were destroyed."""

from __future__ import annotations

import hashlib
import uuid

from django.db import models
from django.db.models import QuerySet

from accounts.permissions import Permissions
from accounts.tables import Reference, Table
from survey.models.erasure import ERASES, Erasure
from survey.models.retention import Destruction


class CertificateQuerySet(models.QuerySet["DestructionCertificate"]):
    def visible_to(self, permissions: Permissions) -> QuerySet[DestructionCertificate]:
        places = permissions.places(*ERASES)
        if places.state:
            return self
        return self.filter(district__in=places.districts)


class DestructionCertificate(Table, district=Reference.MOVED):
    """What was destroyed, when and by whom; see `survey.people.certificates`.

    Has no name, ID or code of anybody whose data were destroyed.
    """

    class Kind(models.TextChoices):
        PEOPLE = "people"
        IDENTITIES = "identities"
        ANSWERS = "answers"

    # In the signed text: keys of rows begin anew in a restored database.
    number = models.UUIDField(default=uuid.uuid4, unique=True)
    kind = models.CharField(max_length=10, choices=Kind)
    # None: of several districts, for the state alone.
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, null=True, related_name="+"
    )
    erasure = models.OneToOneField(
        Erasure, on_delete=models.SET_NULL, null=True, related_name="certificate"
    )
    # Null: of an erasure.
    destruction = models.OneToOneField(
        Destruction, on_delete=models.SET_NULL, null=True, related_name="certificate"
    )
    issued_at = models.DateTimeField()
    # The signed JSON and the signed PDF, as they are downloaded.
    document = models.BinaryField()
    pdf = models.BinaryField()
    # It stays known after the installation has a newer key.
    public_key = models.BinaryField(max_length=32)
    # None: nobody knows when the last backup with these data ends.
    backups_end = models.DateTimeField(null=True)
    # When the journal of destructions has it, which restores read.
    journaled_at = models.DateTimeField(null=True)

    objects = CertificateQuerySet.as_manager()

    class Meta:
        ordering = ("-issued_at", "-pk")

    def __str__(self) -> str:
        return f"certificate {self.number}"

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the public key, as `keys.fingerprint`."""
        return hashlib.sha256(self.public_key).hexdigest()
