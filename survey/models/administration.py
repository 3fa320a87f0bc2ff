"""Waves, administrations, and the respondents invited to them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Lower
from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from accounts.tables import Erasing, Reference, Table
from survey.models.instrument import PublishedSurvey


class Role(models.TextChoices):
    STUDENT = "student", gettext_lazy("Student")
    TEACHER = "teacher", gettext_lazy("Teacher")
    PARENT = "parent", gettext_lazy("Parent")


class Denominator(models.TextChoices):
    """Denominator of response rates."""

    ROSTER = "roster", gettext_lazy("Roster: people with access codes of their own")
    COUNT = "count", gettext_lazy("Count: anyone with a school's link")


# The number of people below which state report cards usually show no cell.
MINIMUM_GROUP = 10
MAX_MINIMUM_GROUP = 100
# Each page that a district adds makes the visit of all its people longer.
MAX_DISTRICT_PAGES = 20
# Long enough to remind schools on two mornings.
CLOSES_SOON = timedelta(days=2)


class Wave(Table, district=Reference.ADAPTED):
    """Administrations that are meant to be compared over time."""

    name = models.CharField(max_length=200)
    # The owner, who may rename and delete it. Null: the state; districts may
    # put their administrations into its waves.
    district = models.ForeignKey(
        "accounts.District",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="waves",
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(
                Lower("name"),
                Coalesce("district", 0),
                name="one_wave_per_name_and_owner",
            ),
        )

    def __str__(self) -> str:
        return self.name


class Administration(
    Table,
    reason="each save reads when it closes",
    on_every_node=True,
    taking="SELECT",
    district=Reference.MOVED,
    districts=Reference.ADAPTED,
    schools=Reference.ADAPTED,
):
    """One survey offered to one role in one window.

    Only the functions of `survey.fieldwork.administrations` change it.
    """

    class State(models.TextChoices):
        """State of the window at a moment; not stored."""

        PLANNED = "planned", pgettext_lazy("administration", "Planned")
        OPEN = "open", pgettext_lazy("administration", "Open")
        CLOSES_SOON = "closes soon", pgettext_lazy("administration", "Closes soon")
        CLOSED = "closed", pgettext_lazy("administration", "Closed")

    name = models.SlugField(max_length=64, unique=True)
    wave = models.ForeignKey(
        Wave,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="administrations",
    )
    published = models.ForeignKey(
        PublishedSurvey, on_delete=models.PROTECT, related_name="administrations"
    )
    role = models.CharField(max_length=16, choices=Role)
    # The owner, who may change and close it. Null: the state.
    district = models.ForeignKey(
        "accounts.District",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="administrations",
    )
    # The districts and schools invited; where both are empty, all of its owner's.
    districts = models.ManyToManyField(
        "accounts.District", blank=True, related_name="+"
    )
    schools = models.ManyToManyField("accounts.School", blank=True, related_name="+")
    # Whether coordinators see by name who has finished; never for teachers.
    coordinators_see_finished = models.BooleanField(default=False, db_default=False)
    # Whether a code shows earlier answers on a new device; see
    # `survey.taking.devices`.
    replays_answers = models.BooleanField(default=False, db_default=False)
    # Columns of rosters that are stored next to answers, and their values; see
    # `survey.fieldwork.administrations.subgroups`.
    subgroups = models.JSONField(default=dict, blank=True, db_default={})
    # Results are of at least so many people, and in exports without names so many
    # have the same place, grade, language, subgroups and dates; 1 leaves every cell as
    # it is.
    minimum_group = models.PositiveSmallIntegerField(
        default=MINIMUM_GROUP,
        db_default=MINIMUM_GROUP,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_MINIMUM_GROUP)],
    )
    # Whether exports can tell which answers are of the same person in other waves,
    # by a random ID. People answer under this promise.
    joins_waves = models.BooleanField(default=False, db_default=False)
    # Whether people of rosters can start only once their consent is recorded; fixed
    # as soon as anyone is invited. See `survey.people.opt_outs.consents`.
    requires_consent = models.BooleanField(default=False, db_default=False)
    # Whether people on a roster may say on the first page that they do not want to
    # take part; see `survey.taking.declining`.
    allows_declining = models.BooleanField(default=False, db_default=False)
    # Whether everybody may read the questions, where the state allows it and the
    # district does not hide them; see `survey.console.surveys.public_questions`.
    public_questions = models.BooleanField(default=True, db_default=True)
    # Only with COUNT, schools can hand out open codes: a person on a roster would
    # answer twice.
    denominator = models.CharField(
        max_length=16,
        choices=Denominator,
        default=Denominator.ROSTER,
        db_default=Denominator.ROSTER,
    )
    # What message platforms get besides language, school and days left. The
    # platform's staff can read both, next to each other.
    messages_have_names = models.BooleanField(default=False, db_default=False)
    messages_have_codes = models.BooleanField(default=False, db_default=False)
    opens_at = models.DateTimeField()
    closes_at = models.DateTimeField()
    # Most pages that each district may add to a round of the state, in a module of its
    # own; 0: none.
    district_pages_limit = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        validators=[MaxValueValidator(MAX_DISTRICT_PAGES)],
    )
    # The state's round whose people answer this one after it; see
    # `survey.fieldwork.administrations.modules`.
    module_of = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="modules",
    )
    # Since when the state offers this module to nobody any more.
    stopped_at = models.DateTimeField(null=True, blank=True)
    # When starts without an answer were deleted:
    # `survey.fieldwork.open_codes.empty_starts`.
    empty_starts_deleted_at = models.DateTimeField(null=True, blank=True)
    # Since when `survey.people.retention` destroys who took part, and what they
    # answered: nothing brings them back.
    identities_destroyed_at = models.DateTimeField(null=True, blank=True)
    answers_destroyed_at = models.DateTimeField(null=True, blank=True)
    # Counts the changes: a form that was filled in for an older state is refused.
    changes = models.PositiveIntegerField(default=0, db_default=0)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(closes_at__gt=F("opens_at")), name="closes_after_it_opens"
            ),
            models.CheckConstraint(
                condition=~Q(role="teacher", coordinators_see_finished=True),
                name="nobody_sees_which_teachers_have_finished",
            ),
            models.CheckConstraint(
                condition=Q(messages_have_codes=False)
                | Q(coordinators_see_finished=True),
                name="no_codes_in_messages_where_completion_is_confidential",
            ),
            models.CheckConstraint(
                condition=Q(minimum_group__gte=1),
                name="a_minimum_group_has_at_least_one_person",
            ),
            # Nobody knows who begins with an open code.
            models.CheckConstraint(
                condition=Q(requires_consent=False) | ~Q(denominator="count"),
                name="consent_is_for_people_on_a_roster",
            ),
            models.CheckConstraint(
                condition=Q(district_pages_limit=0) | Q(district=None),
                name="only_the_state_lets_districts_add_pages",
            ),
            models.CheckConstraint(
                condition=(
                    Q(identities_destroyed_at=None)
                    | Q(identities_destroyed_at__gt=F("closes_at"))
                )
                & (
                    Q(answers_destroyed_at=None)
                    | Q(answers_destroyed_at__gt=F("closes_at"))
                ),
                name="what_was_destroyed_is_not_opened_again",
            ),
            # Nobody has a name in it, and nobody is invited to it alone.
            models.CheckConstraint(
                condition=Q(module_of=None)
                | Q(
                    district__isnull=False,
                    coordinators_see_finished=False,
                    joins_waves=False,
                    requires_consent=False,
                    messages_have_names=False,
                    messages_have_codes=False,
                ),
                name="a_module_is_of_a_district_and_names_nobody",
            ),
        )

    def __str__(self) -> str:
        return self.name

    def state_at(self, now: datetime) -> Administration.State:
        if now < self.opens_at:
            return self.State.PLANNED
        if now >= self.closes_at:
            return self.State.CLOSED
        return (
            self.State.CLOSES_SOON
            if now >= self.closes_at - CLOSES_SOON
            else self.State.OPEN
        )

    @property
    def state(self) -> Administration.State:
        return self.state_at(timezone.now())

    @property
    def has_destroyed_data(self) -> bool:
        return any((self.identities_destroyed_at, self.answers_destroyed_at))

    @property
    def is_completion_confidential(self) -> bool:
        """Tell whether no page shows by name who has started and finished.

        For every role: a district needs this no more than a coordinator does.
        Then no one sees access codes next to names either.
        """
        return not self.coordinators_see_finished or self.role == Role.TEACHER

    @property
    def audience(self) -> str:
        """The role in the plural, in lower case, such as "students"."""
        return {
            Role.STUDENT: _("students"),
            Role.TEACHER: _("teachers"),
            Role.PARENT: _("parents"),
        }[Role(self.role)]

    @property
    def title(self) -> str:
        """Human title, such as "My School and Me, students, November 2026".

        Costs no query where `published__survey` is selected (the columns
        `published.definition` and `survey.source` are not needed: defer
        them). Not unique: lists show `name` in small letters as well.
        """
        month = formats.date_format(timezone.localtime(self.opens_at), _("F Y"))
        return f"{self.published.survey.title_to_read}, {self.audience}, {month}"


class RespondentQuerySet(models.QuerySet["Respondent"]):
    def on_roster(self) -> RespondentQuerySet:
        """Exclude people who began with an open code."""
        return self.filter(open_code=None)

    def not_erased(self) -> RespondentQuerySet:
        """Exclude records that are left of people who were erased."""
        return self.filter(erased_at=None)


class Respondent(
    Table,
    reason="each save locks its own row",
    key="id",
    taking="SELECT, INSERT,"
    " UPDATE (started_at, completed_at, declined_at, response_language)",
    reports="SELECT",
    erasing=Erasing.EMPTIED,
    school=Reference.PEOPLE,
):
    """One person in one administration, from a roster or an open code.

    Holds no identity. `issue` counts the access codes this person was given; only
    the newest one's digest is stored, never the code itself.
    """

    # Without constraints: a start with an open code would lock the rows of the
    # administration and the school, which all starts share.
    administration = models.ForeignKey(
        Administration,
        on_delete=models.PROTECT,
        related_name="respondents",
        db_constraint=False,
    )
    school = models.ForeignKey(
        "accounts.School",
        on_delete=models.PROTECT,
        related_name="respondents",
        db_constraint=False,
    )
    # Null for people on rosters.
    open_code = models.ForeignKey(
        "survey.OpenCode",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="respondents",
        db_constraint=False,
        db_index=False,
    )
    grade = models.CharField(max_length=16, blank=True)
    language = models.CharField(max_length=16, blank=True)
    # The school's name for the class, such as "7B": login cards are sorted by it.
    classroom = models.CharField(max_length=64, blank=True, default="", db_default="")
    # Values of the administration's subgroups.
    attributes = models.JSONField(default=dict, blank=True)
    issue = models.PositiveSmallIntegerField(default=1)
    # Serves the login: one read by code.
    code_digest = models.BinaryField(max_length=32, unique=True)
    code_key_version = models.PositiveSmallIntegerField()
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    # Set, with `completed_at`, for people who said that they do not want to take part.
    # They were invited, have not finished, and their answers are in no new output.
    declined_at = models.DateTimeField(null=True, blank=True)
    # The language in which the person finished. Kept when a survey is reopened, and
    # replaced by the next finish.
    response_language = models.CharField(
        max_length=35, blank=True, default="", db_default=""
    )
    # The one column that says who may not log in, save, finish or be written to.
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    # Set for withdrawn people whom no roster brings back: they have opted out, see
    # `OptOut`, or await consent.
    opted_out_at = models.DateTimeField(null=True, blank=True)
    # Nobody has refused: the consent that the administration requires is missing.
    awaits_consent = models.BooleanField(default=False, db_default=False)
    # Set for good where `survey.people.erasing` has left a number for figures, and no
    # person: such a record has opted out as well.
    erased_at = models.DateTimeField(null=True, blank=True)

    objects = RespondentQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(completed_at__isnull=True) | Q(started_at__isnull=False),
                name="completed_only_after_starting",
            ),
            models.CheckConstraint(
                condition=Q(declined_at__isnull=True) | Q(completed_at__isnull=False),
                name="people_who_declined_can_save_nothing_more",
            ),
            models.CheckConstraint(
                condition=Q(opted_out_at__isnull=True) | Q(withdrawn_at__isnull=False),
                name="opted_out_people_are_withdrawn",
            ),
            models.CheckConstraint(
                condition=Q(awaits_consent=False) | Q(opted_out_at__isnull=False),
                name="no_roster_lets_people_start_without_consent",
            ),
        )
        indexes = (
            # Counts the starts of each open code, for its page in the console.
            models.Index(
                fields=("open_code",),
                condition=Q(open_code__isnull=False),
                name="starts_of_each_open_code",
            ),
            # Counts these people for response rates. Starts and page saves change
            # none of its columns.
            models.Index(
                fields=("administration", "school"),
                condition=Q(awaits_consent=True),
                name="people_who_await_consent",
            ),
        )

    def __str__(self) -> str:
        return f"respondent {self.pk}"

    @property
    def has_opted_out(self) -> bool:
        return self.opted_out_at is not None and not self.awaits_consent


class Identity(
    Table,
    reason="unique by administration, district and ID; read by staff alone",
    erasing=Erasing.DELETED,
    # Deleted with the duplicate's name; the ID belongs to one person then.
    respondent=Reference.PEOPLE,
    district=Reference.PEOPLE,
):
    """Name and contact data of a respondent.

    Stored apart from the answers, so that it can be destroyed without them.
    """

    respondent = models.OneToOneField(
        Respondent, on_delete=models.CASCADE, primary_key=True
    )
    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    district = models.ForeignKey(
        "accounts.District", on_delete=models.PROTECT, related_name="+"
    )
    external_id = models.CharField(max_length=128)
    given_name = models.CharField(max_length=200, blank=True)
    family_name = models.CharField(max_length=200, blank=True)
    email = models.EmailField(max_length=254, blank=True)
    birth_date = models.DateField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "identities"
        constraints: ClassVar = [
            # Also finds a person again when a roster is uploaded once more.
            models.UniqueConstraint(
                fields=("administration", "district", "external_id"),
                name="one_respondent_per_person_in_an_administration",
            ),
        ]

    def __str__(self) -> str:
        return f"identity of {self.respondent_id}"
