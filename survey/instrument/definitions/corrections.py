"""Publish and use corrections: versions that change a survey's texts only.

Answers are stored under the ids of items, so a correction keeps those of the
version that it corrects: people who started before and people who log in
after it write rows that line up, in one administration. That holds only as
long as a row means the same under both, so any difference beyond texts
refuses the correction.
"""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.permissions import Capability, Permissions
from survey.fieldwork.administrations import administrations_for, may_manage
from survey.instrument.definitions.comparison import Difference, compare, summary
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import (
    NotPublishable,
    compile_definition,
    freeze,
    lock_survey,
)
from survey.instrument.definitions.schema import SurveyDefinition, load_definition
from survey.models import Administration, PublishedSurvey, Survey


class NotACorrection(NotPublishable):
    """More than texts differ, or nothing does; `differences` lists them."""

    def __init__(self, message: str, differences: list[Difference]) -> None:
        super().__init__(message)
        self.differences = differences


class WrongSurvey(Exception):
    """The administration offers a survey with other items; the message says so."""


@transaction.atomic
def publish_correction(
    *,
    survey: Survey,
    corrects: PublishedSurvey,
    seen: str | None = None,
    by: User | str,
    request: HttpRequest | None = None,
) -> PublishedSurvey:
    """Publish a draft with the item ids of the version that it corrects.

    Publishing again returns what is published already. `seen` is the number of
    the last change whose texts were compared. Raises NotACorrection with every
    difference beyond texts, and NotPublishable.
    """
    survey = lock_survey(survey)
    if survey.published_at is not None:
        if survey.corrects_id != corrects.digest:
            raise NotACorrection(
                _("%(survey)s is published as a survey of its own.")
                % {"survey": survey},
                [],
            )
        return survey.published.get()
    if survey.district_id != corrects.survey.district_id:
        raise NotACorrection(_("The two versions do not belong to the same owner."), [])
    is_unseen = seen is not None and seen != str(survey.last_change)
    if is_unseen or survey.last_change != survey.compiled_change:
        raise NotPublishable(_("It was changed meanwhile. Compare it again."))
    earlier = load_definition(corrects.definition)
    definition = corrected_definition(survey, earlier, corrects.digest)
    comparison = compare(
        earlier, definition, (measures_of(corrects.survey), measures_of(survey))
    )
    if comparison.differences:
        raise NotACorrection(
            _("This is more than a correction of texts: %(differences)s.")
            % {"differences": summary(comparison.differences)},
            comparison.differences,
        )
    if not comparison.texts:
        raise NotACorrection(_("No text differs: there is nothing to correct."), [])
    return freeze(survey, definition, corrects=corrects, by=by, request=request)


def corrected_definition(
    survey: Survey, earlier: SurveyDefinition, digest: str
) -> SurveyDefinition:
    """Compile a draft with the item ids of an earlier version.

    Raises NotPublishable.
    """
    ids = {name: item["id"] for name, item in earlier["items"].items()}
    definition = compile_definition(survey, ids)
    # Of a chain, the first: under it a browser keeps answers that wait.
    definition["corrects"] = earlier.get("corrects", digest)
    return definition


def root_of(published: PublishedSurvey) -> str:
    """Return the digest of the first version that had these item ids."""
    definition = load_definition(published.definition)
    return definition.get("corrects", published.digest)


@transaction.atomic
def use_correction(
    *,
    administration: Administration,
    published: PublishedSurvey,
    by: User,
    request: HttpRequest | None = None,
) -> None:
    """Offer this version from the next login on; a second time changes nothing.

    People in the middle of the survey keep the texts they have until they log
    in again. An administration can go back to an earlier version in the same
    way. Raises PermissionDenied, and WrongSurvey where the items differ.
    """
    administration = (
        Administration.objects.select_related("published__survey", "district")
        .select_for_update(of=("self",), no_key=True)
        .get(pk=administration.pk)
    )
    if not may_manage(Permissions(by), administration):
        raise PermissionDenied
    earlier = administration.published
    if earlier.digest == published.digest:
        return
    if root_of(earlier) != root_of(published):
        raise WrongSurvey(
            _(
                "%(title)s (%(name)s) offers %(survey)s, whose questions are"
                " not those of %(other)s."
            )
            % {
                "title": administration.title,
                "name": administration.name,
                "survey": earlier.survey,
                "other": published.survey,
            }
        )
    administration.published = published
    administration.changes += 1
    administration.save(update_fields=["published", "changes"])
    audit.record(
        "correct texts of administration",
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        before={"survey": str(earlier.survey), "digest": earlier.digest},
        after={"survey": str(published.survey), "digest": published.digest},
    )


def administrations_to_correct(
    permissions: Permissions, corrects: PublishedSurvey
) -> list[Administration]:
    """Return open and planned administrations that can use the correction.

    They offer the survey or another correction of it, and the user may change
    them.
    """
    root = root_of(corrects)
    versions = {root}
    newest = [root]
    while newest:
        newest = list(
            PublishedSurvey.objects.filter(survey__corrects__in=newest)
            .exclude(digest__in=versions)
            .values_list("digest", flat=True)
        )
        versions.update(newest)
    offering = (
        administrations_for(permissions, Capability.MANAGE_SURVEYS)
        .filter(published__in=versions, closes_at__gt=timezone.now())
        .select_related("published__survey", "district")
        .order_by("closes_at", "pk")
    )
    return [row for row in offering if may_manage(permissions, row)]
