"""Login cards and mail merge files."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.tables import Erasing, Reference
from survey.models.administration import Administration, Respondent
from survey.models.grades import grade_name
from survey.models.requested_file import FileWithCodes


class CardSet(
    FileWithCodes,
    district=Reference.MOVED,
    school=Reference.MOVED,
    erasing=Erasing.WITH_FILES,
    respondent=Reference.STAYS,
):
    """A file with access codes for a school, a class or one person."""

    FOLDER, JOB = "cards", "cards.make"

    # With fewer cards to draw from, the holder of a card is known.
    MIN_DRAWN = 5

    class Format(models.TextChoices):
        PDF = "pdf", gettext_lazy("Login cards to print (PDF)")
        # Of many schools: a PDF for each.
        ZIP = "zip", gettext_lazy("Login cards of many schools (ZIP)")
        CSV = "csv", gettext_lazy("A list for mail merge (CSV)")
        # No file: each person is sent their own code.
        EMAIL = "email", gettext_lazy("E-mails with access codes")

    administration = models.ForeignKey(
        Administration, on_delete=models.CASCADE, related_name="card_sets"
    )
    grade = models.CharField(max_length=16, blank=True)
    classroom = models.CharField(max_length=64, blank=True)
    respondent = models.ForeignKey(
        Respondent, on_delete=models.CASCADE, null=True, related_name="+"
    )
    format = models.CharField(max_length=8, choices=Format, default=Format.PDF)
    # Without names, to draw from: nobody can tell who holds which card. Always
    # so where completion is confidential.
    anonymous = models.BooleanField(default=False, db_default=False)
    # Print the ID on each card, for classes with two people of one name.
    with_ids = models.BooleanField(default=False)
    # Leave out people who have finished; never where that is confidential.
    unfinished = models.BooleanField(default=False, db_default=False)
    # Give everyone a new code first, and when that was done.
    reissue = models.BooleanField(default=False)
    reissued_at = models.DateTimeField(null=True)
    people = models.IntegerField(null=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                condition=Q(school__isnull=False)
                | Q(
                    format__in=("csv", "email", "zip"),
                    grade="",
                    classroom="",
                    respondent=None,
                    reissue=False,
                ),
                name="cards_and_new_codes_are_of_one_school",
            ),
            models.CheckConstraint(
                condition=Q(reissued_at=None) | Q(reissue=True),
                name="new_codes_only_where_they_were_asked_for",
            ),
        )
        indexes = (
            # The daily deletion of old files.
            models.Index(
                fields=("created_at",),
                condition=Q(deleted_at=None),
                name="card_sets_with_a_file",
            ),
        )

    @property
    def has_cards(self) -> bool:
        """Tell whether it is to be printed and cut apart."""
        return self.format in (self.Format.PDF, self.Format.ZIP)

    def __str__(self) -> str:
        return f"{self.get_format_display()}: {self.scope}"

    @property
    def scope(self) -> str:
        """Describe the people without names, because the audit stores it."""
        if self.respondent_id:
            return _("1 person of %(school)s") % {"school": self.school}
        parts = [str(self.school or self.district or _("all schools"))]
        if self.grade:
            parts.append(_("grade %(grade)s") % {"grade": grade_name(self.grade)})
        if self.classroom:
            parts.append(_("class %(classroom)s") % {"classroom": self.classroom})
        if self.unfinished:
            parts.append(_("people who have not finished"))
        return ", ".join(parts)

    def audit_facts(self) -> dict[str, object]:
        return {
            "administration": str(self.administration),
            "format": self.format,
            "respondent": self.respondent_id,
            "people": self.people,
        }

    @property
    def is_withheld(self) -> bool:
        """Tell whether it would show codes next to names, or who has finished."""
        has_names = not self.anonymous and self.format != self.Format.EMAIL
        is_confidential = self.administration.is_completion_confidential
        return is_confidential and (has_names or self.unfinished)
