"""Whose a survey is, who may use and change it, and how it ends."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts import audit
from accounts.models import District, User
from accounts.permissions import Capability, Permissions
from survey.models import Administration, PublishedSurvey, Retirement, Survey

MOST_NAMED = 3


class SurveyInUse(Exception):
    """It would harm; says whom, to the person who asked for it."""


def surveys_for(permissions: Permissions) -> QuerySet[Survey]:
    """The state's, which everybody who manages surveys sees, and one's own.

    Without the workbook, which nobody reads to make a list.
    """
    places = permissions.places(Capability.MANAGE_SURVEYS)
    known = Survey.objects.defer("source")
    if places.state:
        return known
    if not places:
        return known.none()
    return known.filter(Q(district=None) | Q(district__in=places.districts))


def offerable_for(permissions: Permissions) -> QuerySet[PublishedSurvey]:
    """What a new administration may offer: published, and not retired."""
    return PublishedSurvey.objects.filter(
        survey__in=surveys_for(permissions).order_by().values("pk"),
    ).exclude(survey__in=Retirement.objects.values("survey"))


def is_offerable(published: PublishedSurvey) -> bool:
    """Whether a new administration may still offer it. 1 statement.

    Inside the transaction that makes the administration: until that ends,
    nobody retires the survey.
    """
    rows = Survey.objects.select_for_update(no_key=True)
    rows.values_list("pk").get(pk=published.survey_id)
    return not Retirement.objects.filter(survey=published.survey_id).exists()


def may_change(permissions: Permissions, survey: Survey) -> bool:
    """Publish, correct, retire or delete it."""
    return permissions.may_own(survey.district_id)


def owner_of(survey: Survey) -> str:
    return survey.district.name if survey.district else "the state"


def owner_called(code: str) -> District | None:
    """For commands: "" is the state. Raises District.DoesNotExist."""
    return District.objects.get(code=code) if code else None


@transaction.atomic
def delete_draft(
    *, survey: Survey, by: User, request: HttpRequest | None = None
) -> None:
    """Raises SurveyInUse for what is published by now."""
    locked = _locked(survey)
    if locked.published_at is not None:
        raise SurveyInUse(
            f"{locked} is published, and what is published stays: answers are"
            " understood by it. You can retire it instead."
        )
    audit.record(
        "delete survey",
        by=by,
        request=request,
        subject=locked,
        district=locked.district,
        before={"name": locked.name, "version": locked.version},
    )
    locked.delete()


@transaction.atomic
def retire(*, survey: Survey, by: User, request: HttpRequest | None = None) -> None:
    """No further administration may offer it; those that began go on.

    A second time changes nothing. Raises SurveyInUse for a draft, and where
    an administration that has not begun is about to offer it.
    """
    locked = _locked(survey)
    if locked.published_at is None:
        raise SurveyInUse(f"{locked} is a draft: delete it instead.")
    if waiting := _about_to_offer(locked):
        raise SurveyInUse(
            f"{locked} is about to be offered by {waiting}. Give that another survey,"
            " or wait until it has opened."
        )
    _, is_new = Retirement.objects.get_or_create(survey=locked, defaults={"by": by})
    if is_new:
        _record("retire survey", locked, by, request)


@transaction.atomic
def bring_back(*, survey: Survey, by: User, request: HttpRequest | None = None) -> None:
    """It may be offered again; a second time changes nothing."""
    locked = _locked(survey)
    ended, _ = Retirement.objects.filter(survey=locked).delete()
    if ended:
        _record("bring back survey", locked, by, request)


def _locked(survey: Survey) -> Survey:
    # Locking is no change, so the triggers that freeze the row let it pass.
    rows = Survey.objects.select_related("district").defer("source")
    return rows.select_for_update(of=("self",)).get(pk=survey.pk)


def _about_to_offer(survey: Survey) -> str:
    names = list(
        Administration.objects.filter(
            published__survey=survey, opens_at__gt=timezone.now()
        )
        .order_by("opens_at")
        .values_list("name", flat=True)[: MOST_NAMED + 1]
    )
    if len(names) > MOST_NAMED:
        names[MOST_NAMED:] = ["others"]
    return ", ".join(names)


def _record(action: str, survey: Survey, by: User, request: HttpRequest | None) -> None:
    audit.record(
        action, by=by, request=request, subject=survey, district=survey.district
    )
