"""All that can be changed of an administration, and how that is written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format

from accounts import audit
from accounts.models import District, School, User
from survey.models import Administration, PublishedSurvey, Wave


@dataclass(frozen=True, slots=True)
class Plan:
    """All that can be changed of an administration."""

    published: PublishedSurvey
    role: str
    wave: Wave | None
    districts: frozenset[District]
    schools: frozenset[School]
    opens_at: datetime
    closes_at: datetime
    coordinators_see_finished: bool


def plan_of(administration: Administration) -> Plan:
    """As it stands. 2 statements, for its places."""
    return Plan(
        published=administration.published,
        role=administration.role,
        wave=administration.wave,
        districts=frozenset(administration.districts.all()),
        schools=frozenset(administration.schools.select_related("district")),
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
        coordinators_see_finished=administration.coordinators_see_finished,
    )


def said(moment: datetime) -> str:
    """In local time, with the name of its zone: "Mar 1, 2027, 08:00 CST"."""
    local = timezone.localtime(moment)
    return f"{date_format(local, 'M j, Y, H:i')} {local.tzname()}"


def record(
    action: str,
    administration: Administration,
    by: User | str,
    request: HttpRequest | None,
    *,
    before: Plan | None,
) -> None:
    old = _written(before) if before else {}
    new = _written(plan_of(administration))
    differs = [name for name in new if old.get(name) != new[name]]
    audit.record(
        action,
        by=by,
        request=request,
        subject=administration,
        district=administration.district,
        before={name: old[name] for name in differs if name in old},
        after={name: new[name] for name in differs},
    )


def _written(plan: Plan) -> Mapping[str, Any]:
    return {
        "survey": str(plan.published.survey),
        "role": str(plan.role),
        "wave": str(plan.wave) if plan.wave else "none",
        "offered in": [
            *sorted(one.code for one in plan.districts),
            *sorted(f"{one.district.code}/{one.code}" for one in plan.schools),
        ]
        or "all of its owner's schools",
        "opens": said(plan.opens_at),
        "closes": said(plan.closes_at),
        "coordinators see who has finished": plan.coordinators_see_finished,
    }
