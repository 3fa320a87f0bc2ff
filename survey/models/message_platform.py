"""Platforms that send messages to people, and their API keys."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.permissions import Capability, Permissions
from accounts.tables import Reference, Table


def new_person_secret() -> bytes:
    return secrets.token_bytes(32)


class MessagePlatformQuerySet(models.QuerySet["MessagePlatform"]):
    def visible_to(self, permissions: Permissions) -> MessagePlatformQuerySet:
        """Return the platforms of places whose surveys the user manages."""
        places = permissions.places(Capability.MANAGE_SURVEYS)
        if places.state:
            return self
        return self.filter(district__in=places.districts)


class MessagePlatform(Table, taking="SELECT", district=Reference.MOVED):
    """A service of a district or the state that sends e-mails, texts or push messages.

    Only the functions of `survey.fieldwork.message_platforms.platforms` change it.
    """

    name = models.CharField(max_length=100)
    # Whose people it may ask about. Null: the state's, everybody.
    district = models.ForeignKey(
        "accounts.District",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
    )
    # Makes the keys of people that only this platform has.
    person_secret = models.BinaryField(max_length=32, default=new_person_secret)
    created_at = models.DateTimeField(default=timezone.now)
    # Null for those of a command.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = MessagePlatformQuerySet.as_manager()

    class Meta:
        ordering = ("name", "pk")

    def __str__(self) -> str:
        return self.name


class MessagePlatformKey(Table, taking="SELECT"):
    """An API key of a platform. The key itself is shown once and not stored."""

    platform = models.ForeignKey(
        MessagePlatform, on_delete=models.CASCADE, related_name="keys"
    )
    # Two slots: the new key works while the old one is still in use.
    slot = models.PositiveSmallIntegerField()
    # SHA-256; the keys are random and long, so that nothing slower is needed.
    digest = models.BinaryField(max_length=32, unique=True)
    # The last characters, to tell two keys apart.
    ending = models.CharField(max_length=4)
    created_at = models.DateTimeField(default=timezone.now)
    # Null for those of a command.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
    )
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("created_at", "pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(slot__in=(1, 2)), name="a_platform_has_two_key_slots"
            ),
            models.UniqueConstraint(
                fields=("platform", "slot"),
                condition=Q(revoked_at=None),
                name="two_keys_of_a_platform_are_valid_at_a_time",
            ),
        )

    def __str__(self) -> str:
        return f"API key …{self.ending} of {self.platform_id}"
