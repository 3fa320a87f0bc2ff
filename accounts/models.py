"""Staff and where they work. Respondents are not users: see `survey`."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce, Lower
from django.utils import timezone


class District(models.Model):
    code = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=200)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class School(models.Model):
    district = models.ForeignKey(
        District, on_delete=models.PROTECT, related_name="schools"
    )
    code = models.CharField(max_length=64)
    name = models.CharField(max_length=200)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("district", "code"),
                name="one_school_per_code_in_a_district",
            ),
        )

    def __str__(self) -> str:
        return self.name


class UserManager(BaseUserManager["User"]):
    use_in_migrations = True

    def create_user(
        self, email: str, password: str | None = None, **fields: object
    ) -> User:
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(
        self, email: str, password: str | None = None, **fields: object
    ) -> User:
        return self.create_user(
            email, password, is_staff=True, is_superuser=True, **fields
        )


class User(AbstractUser):
    """A member of staff, who logs in by e-mail address."""

    username = None  # type: ignore[assignment]
    email = models.EmailField(unique=True)

    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = (
            models.UniqueConstraint(
                Lower("email"), name="one_user_per_email_in_any_case"
            ),
        )

    def __str__(self) -> str:
        return self.email


class MembershipQuerySet(models.QuerySet["Membership"]):
    def current(self) -> MembershipQuerySet:
        return self.filter(ended_at=None)


class Membership(models.Model):
    """What one user is, and where: in the state, one district or one school.

    It ends by `ended_at`, and is never deleted: who could see what, and when,
    is asked years later.
    """

    class Role(models.TextChoices):
        STATE = "state", "state administrator"
        DISTRICT = "district", "district administrator"
        COORDINATOR = "coordinator", "school coordinator"
        # Responses and reports, never identities; of the whole state where
        # neither district nor school is named.
        ANALYST = "analyst", "analyst"

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)
    district = models.ForeignKey(
        District,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="memberships",
    )
    school = models.ForeignKey(
        School,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="memberships",
    )
    began_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        ordering = ("user", "role")
        constraints = (
            models.CheckConstraint(
                condition=Q(role="state", district=None, school=None)
                | Q(role="district", district__isnull=False, school=None)
                | Q(role="coordinator", district=None, school__isnull=False)
                | Q(role="analyst", district=None)
                | Q(role="analyst", school=None),
                name="a_role_has_the_place_it_is_about",
            ),
            models.UniqueConstraint(
                "user",
                "role",
                Coalesce("district", 0),
                Coalesce("school", 0),
                condition=Q(ended_at=None),
                name="one_current_membership_of_a_kind_in_a_place",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_role_display()}, {self.place}"

    @property
    def place(self) -> str:
        return str(self.school or self.district or "the state")


class AuditEntry(models.Model):
    """Who did or looked at what: written once, and never changed by anybody.

    The database refuses every UPDATE and DELETE (migration 0003), so a row
    names people and things by their ids and by what they were called then.
    """

    at = models.DateTimeField(default=timezone.now)
    user_id = models.BigIntegerField(null=True)
    # An e-mail address, or the command that ran.
    by = models.CharField(max_length=254)
    # Where the request came from; empty for a command or a task.
    address = models.CharField(max_length=45, blank=True)
    action = models.CharField(max_length=64)
    # What it was done to: a model's name and a row's id.
    kind = models.CharField(max_length=64, blank=True)
    subject_id = models.BigIntegerField(null=True)
    subject = models.CharField(max_length=254, blank=True)
    # Whose administrators may read it; without both, the state's.
    district_id = models.BigIntegerField(null=True)
    school_id = models.BigIntegerField(null=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        ordering = ("-at", "-id")
        verbose_name_plural = "audit entries"
        indexes = (
            # The audit page: the newest first, of a district or a school.
            models.Index(fields=("-at", "-id"), name="audit_newest"),
            models.Index(fields=("district_id", "-at"), name="audit_of_a_district"),
            models.Index(fields=("school_id", "-at"), name="audit_of_a_school"),
            # What became of one thing.
            models.Index(fields=("kind", "subject_id", "-at"), name="audit_of_a_thing"),
        )

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.by}: {self.action} {self.subject}"
