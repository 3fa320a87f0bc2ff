"""Staff and where they work. Respondents are not users: see `survey`."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce, Lower
from django.utils import timezone
from django.utils.crypto import salted_hmac


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

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        """In lower case throughout: `a_user_logs_in_by_a_lower_case_email`."""
        return (email or "").strip().lower()

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=self.normalize_email(username))

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
    # In lower case; an address is typed in any.
    email = models.EmailField(unique=True)
    # Part of what each session proves: one more, and all of them are over.
    session_series = models.PositiveIntegerField(default=0, db_default=0)

    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = (
            models.UniqueConstraint(
                Lower("email"), name="one_user_per_email_in_any_case"
            ),
            models.CheckConstraint(
                condition=Q(email=Lower("email")),
                name="a_user_logs_in_by_a_lower_case_email",
            ),
        )

    def __str__(self) -> str:
        return self.email

    @property
    def name(self) -> str:
        return self.get_full_name() or self.email

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        # Django's own, which a new password ends, and the series besides.
        return salted_hmac(
            "accounts.User.session",
            f"{self.session_series}:{self.password}",
            secret=secret,
            algorithm="sha256",
        ).hexdigest()


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


class Invitation(models.Model):
    """A link on its way to somebody who has no password yet.

    Once a password is set, it is over; one that was withdrawn is deleted.
    """

    LASTS = timedelta(days=7)

    user = models.OneToOneField(
        User, on_delete=models.CASCADE, related_name="invitation"
    )
    # Stands in the link: only the one that was sent last is good.
    number = models.PositiveIntegerField(default=1)
    sent_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"invitation of {self.user}"

    @property
    def is_over(self) -> bool:
        return timezone.now() >= self.sent_at + self.LASTS


class FailedTries(models.Model):
    """How often in a row somebody failed to log in, under an address as typed.

    There is a row whether or not there is such a user; see `accounts.login_throttle`.
    """

    # A keyed hash: addresses that nobody has are not kept in clear.
    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "failed tries"
        indexes = (
            # Which to forget: the oldest.
            models.Index(fields=("last_at",), name="failed_tries_oldest"),
        )

    def __str__(self) -> str:
        return f"{self.failures} failures, the last {self.last_at:%Y-%m-%d %H:%M}"


class Letter(models.Model):
    """A mail to be written and sent; see `accounts.email_outbox`. Gone once it is.

    No link stands in it: what it proves is made when it is sent.
    """

    kind = models.CharField(max_length=64)
    to = models.EmailField()
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    # Whoever sends it pushes this ahead first, so that it goes out once.
    due_at = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes = (
            # What a worker looks for.
            models.Index(fields=("due_at",), name="letters_due"),
        )

    def __str__(self) -> str:
        return f"{self.kind} to {self.to}"


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
            # What one person did, and all of one kind.
            models.Index(fields=("by", "-at"), name="audit_by_a_person"),
            models.Index(fields=("action", "-at"), name="audit_of_an_action"),
        )

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.by}: {self.action} {self.subject}"

    @property
    def changes(self) -> list[tuple[str, object, object]]:
        """What, before, after; None where it was or is not there."""
        names = dict.fromkeys([*self.before, *self.after])
        return [(name, self.before.get(name), self.after.get(name)) for name in names]
