"""Districts, schools, staff and the audit log. Respondents are in `survey`."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.db import models
from django.db.models import Q
from django.db.models.functions import Coalesce, Lower, Now
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.tables import Erasing, Reference, Table


class District(Table, taking="SELECT (id, name, time_zone)"):
    code = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    # As "America/Denver"; empty: the state's. See `accounts.time_zones`.
    time_zone = models.CharField(max_length=64, blank=True, default="", db_default="")
    # A closed district or school keeps its people, and is not offered any more.
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class School(
    Table,
    reason="a trigger writes the listing of each school",
    taking="SELECT (id, name, district_id)",
    reports="SELECT",
    district=Reference.SCHOOLS,
):
    district = models.ForeignKey(
        District, on_delete=models.PROTECT, related_name="schools"
    )
    code = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    closed_at = models.DateTimeField(null=True, blank=True)
    # By a roster. It does not belong to administrations that had opened before.
    added_at = models.DateTimeField(null=True, blank=True, editable=False)

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

    @property
    def distinct_code(self) -> str:
        """Return the code; blank where a roster without codes made it of the name."""
        return "" if self.code == self.name.casefold() else self.code


class DistrictAlias(Table, district=Reference.MOVED):
    """The code and name of a district that was merged into another one.

    Rosters that still use them find the other one.
    """

    district = models.ForeignKey(
        District, on_delete=models.CASCADE, related_name="aliases"
    )
    code = models.CharField(max_length=64)
    name = models.CharField(max_length=200)

    class Meta:
        verbose_name_plural = "district aliases"

    def __str__(self) -> str:
        return f"{self.code}: {self.district}"


class SchoolAlias(Table, school=Reference.MOVED):
    """The code and name of a school that was merged into another one."""

    school = models.ForeignKey(School, on_delete=models.CASCADE, related_name="aliases")
    code = models.CharField(max_length=64)
    name = models.CharField(max_length=200)

    class Meta:
        verbose_name_plural = "school aliases"

    def __str__(self) -> str:
        return f"{self.code}: {self.school}"


class SchoolListing(
    Table,
    reason="written by that trigger",
    taking="SELECT",
    school=Reference.ADAPTED,
    # By the database, with their schools.
    district=Reference.SCHOOLS,
):
    """One school in the public directory, with all that a search reads.

    The database adds, renames and deletes listings with their schools, and
    writes `search`, the name and address in the form of
    `accounts.school_directory.search_text` (triggers, migration 0003).
    """

    school = models.OneToOneField(
        School, on_delete=models.CASCADE, primary_key=True, related_name="listing"
    )
    # Which open surveys a school has, depends on its district too.
    district = models.ForeignKey(
        District, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    name = models.CharField(max_length=200)
    street = models.CharField(max_length=200, blank=True, default="", db_default="")
    city = models.CharField(max_length=100, blank=True, default="", db_default="")
    state = models.CharField(max_length=32, blank=True, default="", db_default="")
    postal_code = models.CharField(max_length=16, blank=True, default="", db_default="")
    latitude = models.FloatField(null=True, blank=True)
    longitude = models.FloatField(null=True, blank=True)
    # For questions about a survey, on the school's public page.
    contact_name = models.CharField(
        max_length=100, blank=True, default="", db_default=""
    )
    contact_phone = models.CharField(
        max_length=40, blank=True, default="", db_default=""
    )
    contact_email = models.EmailField(blank=True, default="", db_default="")
    # As `School.closed_at` says, because searches read this table alone.
    closed = models.BooleanField(default=False, db_default=False, editable=False)
    # Begins with a space, so that " linc" finds beginnings of words.
    search = models.TextField(blank=True, default="", db_default="", editable=False)

    class Meta:
        indexes = (
            # The public list of a district's schools.
            models.Index(fields=("district", "search"), name="schools_of_a_district"),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(latitude__isnull=True, longitude__isnull=True)
                | Q(
                    latitude__isnull=False,
                    longitude__isnull=False,
                    latitude__range=(-90, 90),
                    longitude__range=(-180, 180),
                ),
                name="a_listed_school_is_on_the_earth",
            ),
        )

    def __str__(self) -> str:
        return self.name


class SchoolWord(Table, taking="SELECT"):
    """A word of the directory, by which a typing error is corrected."""

    word = models.CharField(max_length=64, primary_key=True)
    # An error in the first half of a word leaves the second half.
    reverse = models.CharField(max_length=64)
    schools = models.PositiveIntegerField()

    def __str__(self) -> str:
        return self.word


class Logo(Table, taking="SELECT"):
    """A picture, as PNG. Never changed, so that browsers keep it for ever."""

    # The beginning of its digest, and its size: "3f0c…-240x64".
    name = models.CharField(max_length=64, primary_key=True)
    content = models.BinaryField()

    def __str__(self) -> str:
        return self.name


class PublicText(Table, reason="a few texts of the installation"):
    """The text of one of the state's public pages, in one language.

    See `survey.console.settings.public_texts`.
    """

    class Kind(models.TextChoices):
        PRIVACY = "privacy", _("Privacy")
        ACCESSIBILITY = "accessibility", _("Accessibility")

    kind = models.CharField(max_length=16, choices=Kind)
    language = models.CharField(max_length=16)
    text = models.TextField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("kind", "language"), name="one_public_text_per_language"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} ({self.language})"


# The place that stays has its own.
class PlaceSettings(
    Table, taking="SELECT", district=Reference.DELETED, school=Reference.DELETED
):
    """What the state (without both), a district or a school has set.

    Empty values are inherited: see `accounts.place_settings`. A school's contact
    person is in its listing, because the public directory shows it too.
    """

    district = models.ForeignKey(
        District,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="settings",
    )
    school = models.ForeignKey(
        School, on_delete=models.CASCADE, null=True, blank=True, related_name="settings"
    )
    # What respondents and staff see at the top of their pages.
    name = models.CharField(max_length=60, blank=True)
    logo = models.ForeignKey(
        Logo, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    # As "#0a6375"; see `accounts.accent_color`.
    accent = models.CharField(max_length=7, blank=True, default="", db_default="")
    # Shown to respondents who need help.
    contact_name = models.CharField(max_length=100, blank=True)
    contact_phone = models.CharField(max_length=40, blank=True)
    contact_email = models.EmailField(blank=True)
    # Response rate thresholds; see `reports.rates.thresholds`.
    student_percent = models.PositiveSmallIntegerField(null=True, blank=True)
    teacher_percent = models.PositiveSmallIntegerField(null=True, blank=True)
    parent_percent = models.PositiveSmallIntegerField(null=True, blank=True)
    # Of exports without names, in administrations that the place opens.
    minimum_group = models.PositiveSmallIntegerField(null=True, blank=True)
    # Of the state alone, in percent: results show "under 5 %" below it.
    coding_threshold = models.PositiveSmallIntegerField(null=True, blank=True)
    # Days after the closing, for administrations of the state or district; null: they
    # are kept. See `survey.people.retention`.
    identities_days = models.PositiveIntegerField(null=True, blank=True)
    answers_days = models.PositiveIntegerField(null=True, blank=True)
    # Of the state alone: the shortest and longest periods.
    identities_least_days = models.PositiveIntegerField(null=True, blank=True)
    identities_most_days = models.PositiveIntegerField(null=True, blank=True)
    answers_least_days = models.PositiveIntegerField(null=True, blank=True)
    answers_most_days = models.PositiveIntegerField(null=True, blank=True)
    # Of the state alone: the help site is open to everyone.
    public_help = models.BooleanField(default=False, db_default=False)
    # Of the state alone: families can read the questions of surveys.
    public_questions = models.BooleanField(default=False, db_default=False)
    # Of districts alone: but not those of their own survey rounds.
    hides_questions = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name_plural = "place settings"
        constraints = (
            models.CheckConstraint(
                condition=Q(district=None) | Q(school=None),
                name="settings_belong_to_one_place",
            ),
            # Also finds the state's row.
            models.UniqueConstraint(
                Coalesce("district", 0),
                Coalesce("school", 0),
                name="one_row_of_settings_per_place",
            ),
            models.CheckConstraint(
                condition=(Q(student_percent=None) | Q(student_percent__range=(1, 100)))
                & (Q(teacher_percent=None) | Q(teacher_percent__range=(1, 100)))
                & (Q(parent_percent=None) | Q(parent_percent__range=(1, 100))),
                name="a_threshold_is_1_to_100_percent",
            ),
            models.CheckConstraint(
                condition=Q(accent="") | Q(accent__regex="^#[0-9a-f]{6}$"),
                name="an_accent_color_is_hexadecimal",
            ),
            models.CheckConstraint(
                condition=Q(minimum_group=None) | Q(minimum_group__range=(1, 100)),
                name="a_minimum_group_of_a_place_is_1_to_100",
            ),
            models.CheckConstraint(
                condition=Q(coding_threshold=None)
                | Q(coding_threshold__range=(1, 20), district=None, school=None),
                name="a_coding_threshold_is_1_to_20_percent_of_the_state",
            ),
            models.CheckConstraint(
                condition=Q(
                    identities_least_days=None,
                    identities_most_days=None,
                    answers_least_days=None,
                    answers_most_days=None,
                )
                | Q(district=None, school=None),
                name="only_the_state_limits_retention",
            ),
            models.CheckConstraint(
                condition=Q(identities_days=None, answers_days=None) | Q(school=None),
                name="retention_is_of_the_state_or_a_district",
            ),
            models.CheckConstraint(
                condition=Q(public_help=False) | Q(district=None, school=None),
                name="only_the_state_opens_the_help",
            ),
            models.CheckConstraint(
                condition=Q(public_questions=False) | Q(district=None, school=None),
                name="only_the_state_makes_questions_public",
            ),
            models.CheckConstraint(
                condition=Q(hides_questions=False) | Q(district__isnull=False),
                name="only_districts_hide_their_questions",
            ),
        )

    def __str__(self) -> str:
        return f"settings of {self.school or self.district or 'the state'}"


class UserManager(BaseUserManager["User"]):
    use_in_migrations = True

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        """Return the whole address in lower case, as a constraint requires."""
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


class User(AbstractUser, Table):
    """A member of staff. Logs in with an e-mail address."""

    username = None  # type: ignore[assignment]
    # In lower case, however it is typed.
    email = models.EmailField(unique=True)
    # Part of each session's hash: increasing it ends all sessions.
    session_series = models.PositiveIntegerField(default=0, db_default=0)
    # Of the console and of e-mails to the user, such as "es". Empty: the console
    # follows the browser, and e-mails are in English.
    language = models.CharField(max_length=10, blank=True, default="", db_default="")

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
        # Like Django's own hash, which changes with the password, plus the series.
        return salted_hmac(
            "accounts.User.session",
            f"{self.session_series}:{self.password}",
            secret=secret,
            algorithm="sha256",
        ).hexdigest()


class MembershipQuerySet(models.QuerySet["Membership"]):
    def current(self) -> MembershipQuerySet:
        return self.filter(ended_at=None)


class Membership(Table, district=Reference.ADAPTED, school=Reference.ADAPTED):
    """A user's role in the state, in one district or in one school.

    Ends by `ended_at` and is never deleted, because audits ask years later who
    had access at a given time.
    """

    class Role(models.TextChoices):
        STATE = "state", _("state administrator")
        DISTRICT = "district", _("district administrator")
        COORDINATOR = "coordinator", _("school coordinator")
        # Sees responses and reports, never identities. Without district and
        # school, of the whole state.
        ANALYST = "analyst", _("analyst")

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
        return str(self.school or self.district or gettext("the state"))


class Invitation(Table):
    """A link that was sent to a user without a password.

    Deleted when the password is set or the invitation is withdrawn.
    """

    LASTS = timedelta(days=7)

    user = models.OneToOneField(
        User, on_delete=models.CASCADE, related_name="invitation"
    )
    # Part of the link, so that only the last link sent is valid.
    number = models.PositiveIntegerField(default=1)
    sent_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"invitation of {self.user}"

    @property
    def is_over(self) -> bool:
        return timezone.now() >= self.sent_at + self.LASTS


class FailedTries(Table):
    """Consecutive failed logins for one typed address; see `login_throttle`.

    Rows also exist for addresses without a user.
    """

    # A keyed hash, so that typed texts are not stored.
    key = models.CharField(max_length=64, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(default=timezone.now)
    # The last attempt is being checked, and counts as failed meanwhile.
    in_progress = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name_plural = "failed tries"
        indexes = (
            # Deletes the oldest.
            models.Index(fields=("last_at",), name="failed_tries_oldest"),
        )

    def __str__(self) -> str:
        return f"{self.failures} failures, the last {self.last_at:%Y-%m-%d %H:%M}"


class QueuedEmail(Table):
    """An e-mail that waits to be sent, and is then deleted; see `email_outbox`.

    It contains no link, because links with a proof are made on sending.
    """

    kind = models.CharField(max_length=64)
    to = models.EmailField()
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)
    # By the clock of the database: when the lease of a worker ends, or the delay
    # after a failed attempt.
    due_at = models.DateTimeField(db_default=Now())
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        # Code of the release before knows the table by this name.
        db_table = "accounts_letter"
        indexes = (
            # Finds e-mails that are due.
            models.Index(fields=("due_at",), name="queued_emails_due"),
        )

    def __str__(self) -> str:
        return f"{self.kind} to {self.to}"


class AuditEntry(Table, erasing=Erasing.STAYS):
    """One recorded action: who did what to which object, when and from where.

    The database refuses every UPDATE and DELETE (migration 0002), so a row
    stores the ids and the names of that moment, without foreign keys.
    """

    at = models.DateTimeField(default=timezone.now)
    user_id = models.BigIntegerField(null=True)
    # An e-mail address, or the command that ran.
    by = models.CharField(max_length=254)
    # The client's network address. Empty for commands and tasks.
    address = models.CharField(max_length=45, blank=True)
    action = models.CharField(max_length=64)
    # The object: label of the model and primary key.
    kind = models.CharField(max_length=64, blank=True)
    subject_id = models.BigIntegerField(null=True)
    subject = models.CharField(max_length=254, blank=True)
    # Administrators of this place may read it. Without both, those of the state.
    district_id = models.BigIntegerField(null=True)
    school_id = models.BigIntegerField(null=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        ordering = ("-at", "-id")
        verbose_name_plural = "audit entries"
        indexes = (
            # The audit page, newest first, of the state, a district or a school.
            models.Index(fields=("-at", "-id"), name="audit_newest"),
            models.Index(fields=("district_id", "-at"), name="audit_of_a_district"),
            models.Index(fields=("school_id", "-at"), name="audit_of_a_school"),
            # The history of one object.
            models.Index(fields=("kind", "subject_id", "-at"), name="audit_of_a_thing"),
            # All actions of one person, and all of one kind.
            models.Index(fields=("by", "-at"), name="audit_by_a_person"),
            models.Index(fields=("action", "-at"), name="audit_of_an_action"),
        )

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.by}: {self.action} {self.subject}"

    @property
    def changes(self) -> list[tuple[str, object, object]]:
        """Return (name, before, after), with None for a missing value."""
        names = dict.fromkeys([*self.before, *self.after])
        return [(name, self.before.get(name), self.after.get(name)) for name in names]
