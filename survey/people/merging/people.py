"""Move the people of a merged school or district; join records of one person.

Each batch is a short transaction with the people's rows locked, under the roster lock
of the administration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from django.db.models import Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.models import District, School
from survey.database.respondent_locks import lock_respondents
from survey.models import (
    Administration,
    CountedGroup,
    Identity,
    PlaceMerge,
    RecordJoin,
    Respondent,
    RosterUpload,
)
from survey.people.answered_people import answered_people
from survey.people.opt_outs.records import carry_over
from survey.people.rosters.batch_writes import write_batch
from survey.people.rosters.change_record import forget_changes, refuse_while_undoing
from survey.people.rosters.counted_groups import (
    keep_groups_of_returning,
    keep_groups_of_withdrawn,
)
from survey.people.rosters.staging import Staging, open_staging
from survey.work.jobs import JobRefused

Keep = PlaceMerge.Keep
# As many as a roster changes at once: their page saves wait for so long.
MOVED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Pair:
    """Two records of one person: in both districts, or in one under two IDs."""

    duplicate: Respondent
    target: Respondent
    # Which of them have been started.
    duplicate_started: bool
    kept_started: bool

    @property
    def have_both_started(self) -> bool:
        return self.duplicate_started and self.kept_started

    def survivor(self, keep: str) -> Respondent | None:
        """Return the record that stays; None if that has to be decided.

        Answers of two records are never mixed.
        """
        if self.have_both_started:
            return {Keep.KEPT: self.target, Keep.DUPLICATE: self.duplicate}.get(
                Keep(keep)
            )
        return self.duplicate if self.duplicate_started else self.target


@dataclass(frozen=True, slots=True)
class DistrictMerge:
    """Two districts, and what was decided about their schools and people."""

    duplicate: District
    target: District
    # Schools of the duplicate -> those that they are merged into. The others move.
    schools: Mapping[int, int]
    # Which of two records stays that have both been started: of single people of the
    # duplicate, and of all others.
    choices: Mapping[int, str]
    keep: str


@dataclass(slots=True)
class Batch:
    """Some people of the duplicate district, and their records in the other one."""

    alone: list[int] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)


@contextmanager
def roster_lock(administration: Administration) -> Iterator[None]:
    """Let no roster of an administration be applied or undone. Raises JobRefused."""
    with open_staging() as staging:
        staging.lock(administration.pk)
        if message := refuse_while_undoing(administration):
            raise JobRefused(message)
        yield


def people_in_batches(
    administration: Administration, district: District
) -> Iterator[list[tuple[int, str]]]:
    """Yield (respondent, ID) of a district's people, in the order of the key."""
    rows = Identity.objects.filter(administration=administration, district=district)
    after = 0
    while batch := list(
        rows.filter(pk__gt=after)
        .order_by("pk")
        .values_list("pk", "external_id")[:MOVED_AT_ONCE]
    ):
        yield batch
        after = batch[-1][0]


def read_batch(
    administration: Administration,
    people: list[tuple[int, str]],
    target: District,
    *,
    lock: bool,
) -> Batch:
    """Find who of these people has a record in the other district, and who has started.

    3 statements.
    """
    twins = dict(
        Identity.objects.filter(
            administration=administration,
            district=target,
            external_id__in=[external_id for _, external_id in people],
        ).values_list("external_id", "pk")
    )
    keys = [pk for pk, _ in people] + list(twins.values())
    rows, started = read_records(administration, keys, lock=lock)
    batch = Batch()
    for pk, external_id in people:
        twin = twins.get(external_id)
        if pk not in rows:
            continue
        if twin is None or twin not in rows:
            batch.alone.append(pk)
            continue
        batch.pairs.append(Pair(rows[pk], rows[twin], pk in started, twin in started))
    return batch


def read_records(
    administration: Administration, keys: Collection[int], *, lock: bool
) -> tuple[dict[int, Respondent], set[int]]:
    """Return records of people by key, and which of them have been started.

    2 statements. A login or a page save of people whose rows are locked is either
    seen here, or waits and is then refused.
    """
    people = Respondent.objects.filter(pk__in=keys)
    locked = lock_respondents(people) if lock else people.order_by("pk")
    rows = {row.pk: row for row in locked}
    started = {pk for pk, row in rows.items() if row.started_at}
    return rows, started | answered_people(administration.pk, keys)


def merge_people_of_districts(
    administration: Administration, merge: DistrictMerge
) -> int:
    """Move all people of a district; return how many are left for a decision."""
    return sum(
        write_batch(partial(_merge_batch, administration, people, merge))
        for people in people_in_batches(administration, merge.duplicate)
    )


def _merge_batch(
    administration: Administration,
    people: list[tuple[int, str]],
    merge: DistrictMerge,
    writer: Staging,
) -> tuple[int, list[int]]:
    """Return the number of people who wait for a decision, and those changed."""
    batch = read_batch(administration, people, merge.target, lock=True)
    moving, left = list(batch.alone), 0
    changed: list[int] = []
    for pair in batch.pairs:
        survivor = pair.survivor(merge.choices.get(pair.duplicate.pk, merge.keep))
        if survivor is None:
            left += 1
            continue
        withdrawn = pair.target if survivor is pair.duplicate else pair.duplicate
        changed += withdraw_duplicate(writer, withdrawn, survivor)
        if survivor is pair.duplicate:
            moving.append(survivor.pk)
    Identity.objects.filter(pk__in=moving).update(district=merge.target)
    in_schools = Respondent.objects.filter(
        pk__in=moving, school__in=list(merge.schools)
    )
    by_school: dict[int, list[int]] = {}
    for pk, school in in_schools.values_list("pk", "school_id"):
        by_school.setdefault(school, []).append(pk)
    for school, pks in by_school.items():
        _move_to_school(pks, school, merge.schools[school])
    return left, changed + moving


def withdraw_duplicate(
    writer: Staging, duplicate: Respondent, survivor: Respondent
) -> list[int]:
    """Withdraw one record of a person; the other one can be used from then on.

    If either has opted out, nobody can use the other one either.

    The record keeps its answers, if it has any, and its code is refused as withdrawn.
    Its name and ID are deleted, because an ID belongs to one person in a district.
    Returns the keys of both.
    """
    now = timezone.now()
    if duplicate.withdrawn_at is None:
        keep_groups_of_withdrawn(writer, [duplicate.pk])
        Respondent.objects.filter(pk=duplicate.pk).update(withdrawn_at=now)
        if survivor.withdrawn_at is not None and survivor.opted_out_at is None:
            keep_groups_of_returning(writer, [survivor.pk])
            Respondent.objects.filter(pk=survivor.pk).update(withdrawn_at=None)
    if duplicate.opted_out_at or survivor.opted_out_at:
        carry_over(writer, duplicate, survivor)
    if duplicate.declined_at:
        # A decision not to take part counts for both records, unless the person has
        # finished with the other one.
        Respondent.objects.filter(pk=survivor.pk, completed_at=None).update(
            started_at=Coalesce("started_at", Value(duplicate.started_at)),
            completed_at=duplicate.completed_at,
            declined_at=duplicate.declined_at,
        )
    Identity.objects.filter(pk=duplicate.pk).delete()
    # IDs of earlier joins lead to the record that is there.
    joined = RecordJoin.objects.filter(kept=duplicate, state=RecordJoin.State.JOINED)
    joined.update(kept=survivor)
    return [duplicate.pk, survivor.pk]


def _move_to_school(people: list[int], duplicate: int, target: int) -> None:
    """Move people of one school together with the groups in which they count."""
    Respondent.objects.filter(pk__in=people).update(school=target)
    CountedGroup.objects.filter(respondent__in=people, school=duplicate).update(
        school=target
    )


def move_people_of_school(duplicate: School, target: School) -> None:
    """Move all people of a school but those who wait for a decision.

    These are still listed under the ID of another district than the school kept.
    """
    of_school = Respondent.objects.filter(school=duplicate)
    administrations = Administration.objects.filter(
        pk__in=of_school.order_by().values("administration").distinct()
    )
    for administration in administrations.order_by("pk"):
        with roster_lock(administration):
            rows = of_school.filter(administration=administration)
            if duplicate.district_id != target.district_id:
                rows = rows.exclude(identity__district=duplicate.district_id)
            while pks := list(
                rows.order_by("pk").values_list("pk", flat=True)[:MOVED_AT_ONCE]
            ):
                write_batch(partial(_move_batch, pks, duplicate.pk, target.pk))


def _move_batch(
    people: list[int], duplicate: int, target: int, writer: Staging
) -> tuple[None, list[int]]:
    lock_respondents(Respondent.objects.filter(pk__in=people).values_list("pk"))
    _move_to_school(people, duplicate, target)
    # People who have left may still count in the school, and are no longer in it.
    return None, people


def forget_rosters_of(schools: list[int]) -> None:
    """Let no earlier roster of these schools be undone: its people have moved."""
    for upload in RosterUpload.objects.filter(
        undo__isnull=False, undo__ended_at=None
    ).select_related("undo"):
        if not set(schools).isdisjoint(upload.undo.schools):
            forget_changes(RosterUpload.objects.filter(pk=upload.pk))
