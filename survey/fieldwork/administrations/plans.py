"""The changeable properties of an administration, and their audit entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypedDict

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone, translation
from django.utils.formats import date_format

from accounts import audit
from accounts.models import District, School, User
from survey.fieldwork.administrations.subgroups import Subgroups, format_subgroups
from survey.models import Administration, PublishedSurvey, Wave


class AdministrationSettings(TypedDict, total=False):
    """What an administration has by default unless it is given."""

    wave: Wave | None
    module_of: Administration | None
    coordinators_see_finished: bool
    joins_waves: bool
    replays_answers: bool
    denominator: str
    messages_have_names: bool
    messages_have_codes: bool
    requires_consent: bool
    allows_declining: bool
    public_questions: bool
    district_pages_limit: int


@dataclass(frozen=True, slots=True)
class AdministrationPlan:
    """All properties of an administration that can be changed."""

    published: PublishedSurvey
    role: str
    wave: Wave | None
    # Sets, so that plans are equal whatever the order of their places.
    districts: frozenset[District]
    schools: frozenset[School]
    opens_at: datetime
    closes_at: datetime
    coordinators_see_finished: bool
    subgroups: Subgroups
    minimum_group: int
    joins_waves: bool
    replays_answers: bool
    denominator: str
    messages_have_names: bool
    messages_have_codes: bool
    requires_consent: bool
    allows_declining: bool
    public_questions: bool
    district_pages_limit: int


# The properties that are columns of the administration itself.
COLUMNS = [
    field.name
    for field in fields(AdministrationPlan)
    if field.name not in ("districts", "schools")
]


def plan_of(administration: Administration) -> AdministrationPlan:
    """Return the current plan. 2 statements, for its districts and schools."""
    columns: dict[str, Any] = {name: getattr(administration, name) for name in COLUMNS}
    return AdministrationPlan(
        **columns,
        districts=frozenset(administration.districts.all()),
        schools=frozenset(administration.schools.select_related("district")),
    )


def format_moment(moment: datetime) -> str:
    """Return local time: "March 1, 2027, 8:00 AM"."""
    return date_format(timezone.localtime(moment), "DATETIME_FORMAT")


def record_change(
    action: str,
    administration: Administration,
    by: User | str,
    request: HttpRequest | None,
    *,
    before: AdministrationPlan | None,
) -> None:
    """Write an audit entry with the properties that differ from `before`."""
    old = _audit_values(before) if before else {}
    new = _audit_values(plan_of(administration))
    changed = [name for name in new if old.get(name) != new[name]]
    audit.record(
        action,
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        before={name: old[name] for name in changed if name in old},
        after={name: new[name] for name in changed},
    )


def _audit_values(plan: AdministrationPlan) -> Mapping[str, object]:
    places = [
        *sorted(district.code for district in plan.districts),
        *sorted(f"{school.district.code}/{school.code}" for school in plan.schools),
    ]
    # Stored in the audit log: a renamed key would appear as a change.
    # In English, whatever language the user reads.
    with translation.override(settings.LANGUAGE_CODE):
        opens, closes = map(format_moment, (plan.opens_at, plan.closes_at))
    return {
        "survey": str(plan.published.survey),
        "role": str(plan.role),
        "wave": str(plan.wave) if plan.wave else "none",
        "offered in": places or "all of its owner's schools",
        "opens": opens,
        "closes": closes,
        "coordinators see who has finished": plan.coordinators_see_finished,
        "codes show earlier answers on new devices": plan.replays_answers,
        "response rates by": str(plan.denominator),
        "message platforms get names": plan.messages_have_names,
        "message platforms get access codes": plan.messages_have_codes,
        "subgroups": format_subgroups(plan.subgroups) or "none",
        "minimum group in exports": plan.minimum_group,
        "answers can be joined with other waves": plan.joins_waves,
        "consent is required": plan.requires_consent,
        "people can decline on the first page": plan.allows_declining,
        "questions may be public": plan.public_questions,
        "pages that a district may add": plan.district_pages_limit,
    }
