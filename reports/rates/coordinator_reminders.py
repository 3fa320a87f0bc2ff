"""Ask the coordinators of schools below their threshold for more answers, by e-mail."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, timedelta

from django.urls import reverse
from django.utils import timezone

from accounts import audit
from accounts.email_outbox import Facts, queue_emails, writes
from accounts.http import StaffRequest
from accounts.models import AuditEntry, District, Membership, QueuedEmail, School
from accounts.permissions import Capability, Permissions
from accounts.staff import members_for
from accounts.time_zones import zone_of
from reports.rates import visible_rates
from survey.models import Administration

KIND = "schools below threshold"
ACTION = "remind coordinators"
# Nobody is reminded twice on one day of school.
PAUSE = timedelta(hours=12)


@dataclass(slots=True)
class Reminder:
    """Who would get an e-mail: schools by the address of their coordinator."""

    schools_by_email: dict[str, list[School]] = field(default_factory=dict)
    without_coordinator: list[School] = field(default_factory=list)
    reminded: list[School] = field(default_factory=list)

    @property
    def schools(self) -> list[School]:
        schools = {s.pk: s for row in self.schools_by_email.values() for s in row}
        return [*schools.values()]

    @property
    def below(self) -> int:
        """Return the number of schools below their threshold."""
        return len((*self.schools, *self.without_coordinator, *self.reminded))


def reminder_for(
    permissions: Permissions,
    administration: Administration,
    district: District | None = None,
) -> Reminder:
    """Find the schools below their threshold and their coordinators. 4 statements.

    Of schools where the user sees rates and manages staff; only schools of which
    everybody with a role there may know that they are below.
    """
    rates = visible_rates.rates_for(permissions, administration)
    rates = visible_rates.in_state(rates, "below").select_related("school__district")
    if district is not None:
        rates = rates.filter(district=district)
    places = permissions.places(Capability.MANAGE_STAFF)
    schools = [
        rate.school
        for rate in rates.order_by("school__name", "school_id")
        if places.has_school(rate.school)
    ]
    reminder = Reminder()
    recent = recently_reminded(administration)
    by_email: dict[str, list[School]] = defaultdict(list)
    coordinators = defaultdict(list)
    members_there = members_for(permissions).filter(
        role=Membership.Role.COORDINATOR, school__in=schools
    )
    for membership in members_there.select_related("user"):
        coordinators[membership.school_id].append(membership.user)
    for school in schools:
        members = coordinators[school.pk]
        if None in recent or school.district_id in recent:
            reminder.reminded.append(school)
        elif not members:
            reminder.without_coordinator.append(school)
        for user in members if school not in reminder.reminded else ():
            by_email[user.email].append(school)
    reminder.schools_by_email = dict(by_email)
    return reminder


def recently_reminded(administration: Administration) -> set[int | None]:
    """Return the districts whose coordinators were reminded; None is all of them."""
    entries = AuditEntry.objects.filter(
        kind=administration._meta.label_lower,
        subject_id=administration.pk,
        action=ACTION,
        at__gt=timezone.now() - PAUSE,
    )
    return set(entries.values_list("district_id", flat=True))


def send_reminder(
    request: StaffRequest,
    administration: Administration,
    district: District | None,
    reminder: Reminder,
) -> None:
    """Queue one e-mail for each coordinator, and record it. 2 statements."""
    if not reminder.schools_by_email:
        return
    closes_at = administration.closes_at
    queue_emails(
        KIND,
        {
            email: {
                "title": administration.title,
                # By the clocks of the coordinator.
                "closes_on": closes_at.astimezone(zone_of(schools[0].district))
                .date()
                .isoformat(),
                "schools": [school.name for school in schools],
                "address": reverse("rates_school", args=[schools[0].pk])
                + f"?administration={administration.pk}",
            }
            for email, schools in reminder.schools_by_email.items()
        },
    )
    # Administrators of a district see what was sent to their schools.
    districts: list[District | None] = [district]
    if district is None and not request.permissions.places(Capability.SEE_RATES).state:
        by_key = {row.district_id: row.district for row in reminder.schools}
        districts = [*by_key.values()]
    for place in districts:
        audit.record(
            ACTION,
            by=request.user,
            request=request,
            subject=administration,
            district=place,
            after={"schools": len(reminder.schools)},
        )


@writes(KIND)
def closing_day(email: QueuedEmail) -> Facts:
    return {"closes_on": date.fromisoformat(email.facts["closes_on"])}
