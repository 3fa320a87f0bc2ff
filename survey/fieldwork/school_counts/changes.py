"""Supply the numbers of families or students from which response rates are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import School, User
from accounts.permissions import Capability, Permissions
from survey.fieldwork.administrations.queries import schools_of
from survey.models import Administration, Denominator, SchoolCount

BATCH = 1000


class CountChanged(ValidationError):
    """Somebody else has changed a number since it was shown."""


@dataclass(frozen=True, slots=True)
class NewCount:
    """The number of a school; `seen` is the key of the row that it replaces."""

    school: int
    unit: str
    count: int
    seen: int | None


def schools_to_count(
    permissions: Permissions, administration: Administration
) -> QuerySet[School]:
    """Return the user's schools in which the administration is offered."""
    manageable = permissions.schools(Capability.MANAGE_ROSTERS)
    return schools_of(administration).filter(pk__in=manageable.values("pk"))


def current_counts(administration: Administration) -> dict[int, SchoolCount]:
    """Return the numbers that count, by school. 1 statement."""
    rows = SchoolCount.objects.current().filter(administration=administration)
    return {row.school_id: row for row in rows}


@transaction.atomic
def supply_count(
    *,
    administration: Administration,
    school: School,
    unit: str,
    count: int,
    seen: int | None,
    by: User | str,
    request: HttpRequest | None = None,
) -> bool:
    """Store the number of one school; return whether it changed.

    Raises PermissionDenied, CountChanged, and ValidationError for each field.
    """
    before = current_counts(administration).get(school.pk)
    new = NewCount(school.pk, unit, count, seen)
    if not _store(administration, [new], by):
        return False
    audit.record(
        "change count",
        by=by,
        request=request,
        subject=administration,
        school=school,
        before={"count": before.count, "of": before.unit} if before else None,
        after={"count": count, "of": unit},
    )
    return True


@transaction.atomic
def import_counts(
    *,
    administration: Administration,
    counts: Sequence[NewCount],
    by: User | str,
    request: HttpRequest | None = None,
) -> int:
    """Store the numbers of a file, all or none; return how many changed.

    Raises PermissionDenied, CountChanged and ValidationError.
    """
    changed = _store(administration, counts, by)
    if changed:
        audit.record(
            "import counts",
            by=by,
            request=request,
            subject=administration,
            district=administration.district,
            after={"schools": changed},
        )
    return changed


def _store(
    administration: Administration, counts: Sequence[NewCount], by: User | str
) -> int:
    # Starts and page saves read the row without this lock, and do not wait.
    locked = Administration.objects.select_for_update(no_key=True)
    current = locked.get(pk=administration.pk)
    if current.denominator != Denominator.COUNT:
        raise ValidationError(
            _("People of this survey round are on a roster, which is counted.")
        )
    allowed = schools_of(current)
    if isinstance(by, User):
        allowed = schools_to_count(Permissions(by), current)
    if not {new.school for new in counts} <= set(allowed.values_list("pk", flat=True)):
        raise PermissionDenied
    before = current_counts(current)
    changed = []
    for new in counts:
        row = before.get(new.school)
        if (row.pk if row else None) != new.seen:
            raise CountChanged(
                _(
                    "Somebody else has changed a count meanwhile. Load this page"
                    " again, and check it."
                )
            )
        if row is None or (row.unit, row.count) != (new.unit, new.count):
            changed.append(new)
    _write(current, changed, before, by)
    return len(changed)


def _write(
    administration: Administration,
    counts: Sequence[NewCount],
    before: Mapping[int, SchoolCount],
    by: User | str,
) -> None:
    now = timezone.now()
    rows = [
        SchoolCount(
            administration=administration,
            school_id=new.school,
            unit=new.unit,
            count=new.count,
            at=now,
            by=by.email if isinstance(by, User) else by,
        )
        for new in counts
    ]
    for row in rows:
        row.clean_fields()
    old = [before[new.school].pk for new in counts if new.school in before]
    for start in range(0, len(old), BATCH):
        replaced = SchoolCount.objects.filter(pk__in=old[start : start + BATCH])
        replaced.update(replaced_at=now)
    SchoolCount.objects.bulk_create(rows, batch_size=BATCH)
