"""Staff and where they work. Respondents are not users: see `survey`."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower


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
