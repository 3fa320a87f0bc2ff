"""Merge two schools, or two districts with all their schools.

Everything is done in short transactions. A merge that was interrupted is run again,
and finds what is left: people, rows and schools that still belong to the duplicate.
"""

from __future__ import annotations

import time

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import District, DistrictAlias, School, SchoolAlias
from survey.models import (
    Administration,
    CountedGroup,
    FeedScan,
    Identity,
    OpenCode,
    Respondent,
)
from survey.people.merging.people import (
    DistrictMerge,
    forget_rosters_of,
    merge_people_of_districts,
    move_people_of_school,
    roster_lock,
)
from survey.people.merging.references import move_references
from survey.work.jobs import JobRefused

# A start with an open code reads the school in one statement, which the server ends
# after three seconds: then its person is seen, or it has used the school that stays.
STARTS_TAKE = 4.0
# Rosters of other administrations may add people in between.
MOST_TRIES = 5
BEING_SCANNED = gettext_noop(
    "A roster sync of the duplicate is being scanned. Start the merge again when"
    " that is finished."
)
STILL_USED = gettext_noop(
    "People are still being added to the duplicate. Start the merge again"
    " when no roster is being applied."
)


def merge_schools(duplicate: School, target: School) -> None:
    """Move everything from one school to another, and delete it.

    Raises JobRefused if people are added to it all the time.
    """
    forget_rosters_of([duplicate.pk, target.pk])
    for _try in range(MOST_TRIES):
        move_people_of_school(duplicate, target)
        with transaction.atomic():
            # The batches of rosters wait here, and find the school gone or there.
            _lock(School, duplicate.pk, target.pk)
            has_codes = OpenCode.objects.filter(school=duplicate).exists()
            move_references(duplicate, target)
            CountedGroup.objects.filter(school=duplicate).update(school=target)
        if has_codes and connection.vendor == "postgresql":
            time.sleep(STARTS_TAKE)
        with transaction.atomic():
            _lock(School, duplicate.pk, target.pk)
            if not Respondent.objects.filter(school=duplicate).exists():
                # Rosters with its code find the other one.
                aliases = SchoolAlias.objects.filter(
                    school__district=target.district_id
                )
                aliases.filter(code__iexact=duplicate.code).delete()
                SchoolAlias.objects.create(
                    school=target, code=duplicate.code, name=duplicate.name
                )
                duplicate.delete()
                return
    raise JobRefused(_(STILL_USED))


def merge_districts(merge: DistrictMerge) -> int:
    """Move everything from one district to another, and delete it.

    Returns how many people have started with both of their records and stay in the
    duplicate, which then stays too.
    """
    duplicate, target = merge.duplicate, merge.target
    scans = FeedScan.objects.filter(district=duplicate)
    if scans.filter(state__in=(FeedScan.State.WAITING, FeedScan.State.RUNNING)):
        raise JobRefused(_(BEING_SCANNED))
    listed = School.objects.filter(district__in=(duplicate, target))
    forget_rosters_of(list(listed.values_list("pk", flat=True)))
    left = 0
    for administration in administrations_of(duplicate):
        with roster_lock(administration):
            left += merge_people_of_districts(administration, merge)
    waiting = set(
        Respondent.objects.filter(identity__district=duplicate).values_list(
            "school", flat=True
        )
    )
    for school in School.objects.filter(district=duplicate).order_by("pk"):
        if school.pk in waiting:
            continue
        if school.pk in merge.schools:
            merge_schools(school, School.objects.get(pk=merge.schools[school.pk]))
        else:
            school.district = target
            school.save(update_fields=["district"])
    if left:
        return left
    with transaction.atomic():
        _lock(District, duplicate.pk, target.pk)
        move_references(duplicate, target)
        if (
            School.objects.filter(district=duplicate).exists()
            or administrations_of(duplicate).exists()
        ):
            raise JobRefused(_(STILL_USED))
        DistrictAlias.objects.filter(code__iexact=duplicate.code).delete()
        DistrictAlias.objects.create(
            district=target, code=duplicate.code, name=duplicate.name
        )
        duplicate.delete()
    return 0


def administrations_of(district: District) -> QuerySet[Administration]:
    """Return the administrations with people who are listed under this district."""
    listed = Identity.objects.filter(district=district).order_by()
    return Administration.objects.filter(
        pk__in=listed.values("administration").distinct()
    ).order_by("pk")


def _lock(model: type[School] | type[District], *keys: int) -> None:
    """Lock rows in the order of their keys, so that two merges never deadlock."""
    list(model._default_manager.filter(pk__in=keys).select_for_update().order_by("pk"))
