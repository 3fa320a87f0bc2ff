"""Who may use and change a survey; delete, retire and restore it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import AuditEntry, District, User
from accounts.permissions import Capability, Permissions
from survey.models import Administration, PublishedSurvey, Retirement, Survey

MOST_NAMED = 3


class SurveyInUse(Exception):
    """The survey is in use; the message says where."""


def surveys_for(permissions: Permissions) -> QuerySet[Survey]:
    """Return the surveys of the state and of the user's districts.

    Without the workbook, which no list needs.
    """
    places = permissions.places(Capability.MANAGE_SURVEYS)
    known = Survey.objects.defer("source")
    if places.state:
        return known
    if not places:
        return known.none()
    return known.filter(Q(district=None) | Q(district__in=places.districts))


def surveys_titled(permissions: Permissions, survey: Survey) -> list[Survey]:
    """Return other surveys with the title of this one. 1 statement.

    Its other versions and retired surveys are left out.
    """
    titles = {title.strip().casefold() for title in survey.title.values()} - {""}
    known = surveys_for(permissions).filter(retirement=None).select_related("district")
    known = known.exclude(name=survey.name, district=survey.district_id)
    return [
        row
        for row in known.order_by("-pk")
        if titles & {title.strip().casefold() for title in row.title.values()}
    ]


def same_title_warning(permissions: Permissions, survey: Survey) -> str:
    """Name the other surveys with the title of this one; "" if there are none."""
    twins = surveys_titled(permissions, survey)
    if not twins:
        return ""
    named = [
        _("version %(version)s (%(owner)s)")
        % {"version": row.version, "owner": row.district or _("The state")}
        for row in twins[:MOST_NAMED]
    ]
    return _(
        "Another survey is called “%(title)s” too: %(surveys)s. Change the title if"
        " people could mix them up."
    ) % {"title": survey.default_title, "surveys": ", ".join(named)}


def offerable_for(permissions: Permissions) -> QuerySet[PublishedSurvey]:
    """Return the published surveys that a new administration may offer."""
    return PublishedSurvey.objects.filter(
        survey__in=surveys_for(permissions).order_by().values("pk"),
    ).exclude(survey__in=Retirement.objects.values("survey"))


def is_offerable(published: PublishedSurvey) -> bool:
    """Return whether a new administration may still offer it. 2 statements.

    Call it in the transaction that creates the administration: the lock keeps
    the survey from being retired until that ends.
    """
    rows = Survey.objects.select_for_update(no_key=True)
    rows.values_list("pk").get(pk=published.survey_id)
    return not Retirement.objects.filter(survey=published.survey_id).exists()


def replacement_of(permissions: Permissions, pk: int) -> Survey | None:
    """Return the draft that a later upload put in place of a draft, if any.

    The audit log knows. 1 statement for each replacement, and 2 more.
    """
    uploads = AuditEntry.objects.filter(action="upload survey")
    newest = pk
    while later := uploads.filter(before__draft=newest).first():
        newest = later.subject_id or pk
    return None if newest == pk else surveys_for(permissions).filter(pk=newest).first()


def replaced_draft_date(survey: Survey) -> datetime | None:
    """Return when the draft was uploaded in whose place this one came."""
    uploads = AuditEntry.objects.filter(
        kind=Survey._meta.label_lower, action="upload survey"
    )
    entry = uploads.filter(subject_id=survey.pk).first()
    replaced = entry.before.get("draft") if entry else None
    earlier = uploads.filter(subject_id=replaced).first() if replaced else None
    return earlier.at if earlier else None


def may_change(permissions: Permissions, survey: Survey) -> bool:
    """Return whether the user may publish, correct, retire or delete it."""
    return permissions.may_own(survey.district_id)


def owner_with_code(code: str) -> District | None:
    """Return the district with this code, or None for "", the state.

    Raises District.DoesNotExist.
    """
    return District.objects.get(code=code) if code else None


@transaction.atomic
def delete_draft(
    *, survey: Survey, by: User, request: HttpRequest | None = None
) -> None:
    """Delete a draft. Raises SurveyInUse where it is published by now."""
    locked = _locked(survey)
    if locked.published_at is not None:
        raise SurveyInUse(
            _(
                "%(full_title)s is published and can’t be deleted, because"
                " its answers need it. You can retire it instead."
            )
            % {"full_title": locked.full_title}
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
def retire_survey(
    *, survey: Survey, by: User, request: HttpRequest | None = None
) -> None:
    """Keep new administrations from offering the survey; a second time is a no-op.

    Raises SurveyInUse for a draft, and where a planned administration offers
    the survey.
    """
    locked = _locked(survey)
    if locked.published_at is None:
        raise SurveyInUse(
            _("%(full_title)s is a draft. Delete it instead.")
            % {"full_title": locked.full_title}
        )
    planned = (
        Administration.objects.filter(
            published__survey=survey, opens_at__gt=timezone.now()
        )
        .select_related("published__survey")
        .defer("published__definition", "published__survey__source")
        .order_by("opens_at")[: MOST_NAMED + 1]
    )
    names = [f"{row.title} ({row.name})" for row in planned]
    if names:
        if len(names) > MOST_NAMED:
            names[MOST_NAMED:] = ["others"]
        raise SurveyInUse(
            _(
                "%(full_title)s is used in planned survey rounds:"
                " %(names)s. Choose another survey for them, or wait until"
                " they have opened."
            )
            % {"full_title": locked.full_title, "names": "; ".join(names)}
        )
    retirement, is_new = Retirement.objects.get_or_create(
        survey=locked, defaults={"by": by}
    )
    # A second click changed nothing, so the audit log has one entry.
    if is_new:
        _record("retire survey", locked, by, request)


@transaction.atomic
def restore_survey(
    *, survey: Survey, by: User, request: HttpRequest | None = None
) -> None:
    """Allow new administrations to offer the survey; a second time is a no-op."""
    locked = _locked(survey)
    ended, by_model = Retirement.objects.filter(survey=locked).delete()
    if ended:
        _record("bring back survey", locked, by, request)


def _locked(survey: Survey) -> Survey:
    # Locking is no change, so the triggers that freeze the row let it pass.
    rows = Survey.objects.select_related("district").defer("source")
    return rows.select_for_update(of=("self",)).get(pk=survey.pk)


def _record(action: str, survey: Survey, by: User, request: HttpRequest | None) -> None:
    audit.record(
        action, by=by, request=request, subject=survey, district=survey.district
    )
