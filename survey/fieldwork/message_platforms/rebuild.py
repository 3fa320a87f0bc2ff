"""Write the hashes of everybody, and check them every night.

Both go through people by primary key in batches, so memory stays flat, and remember
in Redis how far they came: a job that is interrupted goes on there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.fieldwork.message_platforms.directory import (
    current_administrations,
    write_platforms,
    write_windows,
)
from survey.fieldwork.message_platforms.hashes import (
    BATCH,
    HashedRespondent,
    commands_for,
    fields_of,
    lock_hashes,
    people_of_platforms,
    read_people,
    write_people,
)
from survey.fieldwork.message_platforms.store import (
    BUILT,
    Command,
    Field,
    Store,
    key_of_person,
    message_store,
)
from survey.models import Job, MessagePlatform, Respondent
from survey.work.jobs import JobRefused, Progress, job, start

POSITION = "rebuild_position"
LAST_CHECK = "last_check"
NO_REDIS = gettext_lazy(
    "There is no Redis for message platforms here: each request reads the database."
)
DOWN = gettext_lazy(
    "Redis does not answer. Start it again later: it goes on where it stopped."
)
# Between finding a difference and looking again, so that a change on its way to
# Redis is not taken for one.
SETTLE_SECONDS = 1.0

Advance = Callable[[int], None]


@dataclass(slots=True)
class Check:
    checked: int = 0
    drift: int = 0


@contextmanager
def _store_of_job() -> Iterator[Store]:
    """Yield the store. Raises JobRefused without one, and while it is down."""
    store = message_store()
    if store is None:
        raise JobRefused(str(NO_REDIS))
    try:
        yield store
    except ConnectionError:
        raise JobRefused(str(DOWN)) from None


@job("messages.rebuild", long=True)
def rebuild_job(job: Job, progress: Progress) -> None:
    """Write all people again, or those of the administration that is the subject."""
    with _store_of_job() as store:
        progress.begin_step(_("Writing what message platforms read"))
        count = rebuild(store, job.subject_id, advance=progress.advance)
    progress.message = _("%(count)s people were written.") % {"count": f"{count:,}"}


@job("messages.check", long=True)
def check_job(job: Job, progress: Progress) -> None:
    """Compare all hashes with the database, and repair those that differ."""
    with _store_of_job() as store:
        progress.begin_step(_("Checking what message platforms read"))
        check = check_all(store, advance=progress.advance)
    progress.message = _("%(checked)s people were checked, %(drift)s differed.") % {
        "checked": f"{check.checked:,}",
        "drift": f"{check.drift:,}",
    }


def rebuild(
    store: Store,
    administration_id: int | None = None,
    *,
    restart: bool = False,
    advance: Advance = lambda count: None,
) -> int:
    """Write people's hashes in batches; return their number. Raises ConnectionError.

    An interrupted rebuild goes on where it stopped, unless `restart`.
    """
    # First, so that whoever finishes from now on is noted.
    refresh_directory(store)
    people = people_of_platforms()
    if people is None:
        store.command("SET", BUILT, 1)
        return 0
    position = f"{POSITION}:{administration_id or 'all'}"
    if restart:
        store.command("DEL", position)
    stored = store.command("GET", position)
    after = json.loads(stored) if stored else (0, 0)
    count = 0
    for administration, ids in _batches(people, administration_id, after):
        written = write_people(store, ids, people)
        store.command("SET", position, json.dumps([administration, ids[-1]]))
        count += written
        advance(written)
    store.command("DEL", position)
    if administration_id is None:
        store.command("SET", BUILT, 1)
    return count


def check_all(store: Store, *, advance: Advance = lambda count: None) -> Check:
    """Compare and repair all hashes; store the result for the metrics.

    Raises ConnectionError.
    """
    refresh_directory(store)
    check, people = Check(), people_of_platforms()
    if people is not None:
        for _, ids in _batches(people, None, (0, 0)):
            suspects = _differing(store, people, ids)
            if suspects:
                time.sleep(SETTLE_SECONDS)
                check.drift += _repair(store, people, suspects)
            check.checked += len(ids)
            advance(len(ids))
    result = {"at": timezone.now().timestamp(), **asdict(check)}
    store.command("SET", LAST_CHECK, json.dumps(result))
    return check


def refresh_directory(store: Store) -> None:
    """Write platforms and windows again, should a change have been missed."""
    write_platforms(store)
    write_windows(store)


def keep_up() -> None:
    """Run by the schedule every minute; after a restart of Redis, start a rebuild."""
    store = message_store()
    if store is None:
        return
    try:
        refresh_directory(store)
        is_built = store.command("EXISTS", BUILT)
    except ConnectionError:
        return
    is_running = Job.objects.filter(kind=rebuild_job.name, ended_at=None).exists()
    if not is_built and not is_running:
        start_rebuild()


def start_rebuild(administration_id: int | None = None) -> None:
    """Start a rebuild of everybody, or of one administration's people.

    Not if one is waiting; one that runs may have passed the people concerned.
    """
    if (
        message_store() is None
        or not MessagePlatform.objects.filter(revoked_at=None).exists()
    ):
        return
    waiting = Job.objects.filter(
        kind=rebuild_job.name, subject_id=administration_id, state=Job.State.WAITING
    )
    if not waiting.exists():
        start(rebuild_job, subject_id=administration_id)


def start_check() -> None:
    """Run by the schedule every night."""
    if message_store() is None:
        return
    if not Job.objects.filter(kind=check_job.name, ended_at=None).exists():
        start(check_job)


def _batches(
    people: QuerySet[Respondent], administration_id: int | None, after: tuple[int, int]
) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield the ids of people after a position, each time with the administration."""
    rows = current_administrations().filter(pk__gte=after[0]).order_by("pk")
    if administration_id is not None:
        rows = rows.filter(pk=administration_id)
    for pk in list(rows.values_list("pk", flat=True)):
        last = after[1] if pk == after[0] else 0
        while True:
            page = people.filter(administration=pk, pk__gt=last).order_by("pk")
            ids = list(page.values_list("pk", flat=True)[:BATCH])
            if not ids:
                break
            yield pk, ids
            last = ids[-1]


def _differing(
    store: Store, people: QuerySet[Respondent], ids: Collection[int]
) -> list[int]:
    # Redis before the database: whoever finishes in between is no difference.
    replies = store.pipeline([("HGETALL", key_of_person(pk)) for pk in ids])
    stored = {
        pk: dict(zip(flat[::2], flat[1::2], strict=True))
        for pk, flat in zip(ids, replies, strict=True)
    }
    expected = fields_of(read_people(people, ids))
    return [pk for pk, fields in expected.items() if stored[pk] != fields]


def _repair(store: Store, people: QuerySet[Respondent], ids: Collection[int]) -> int:
    """Write those that still differ; return their number."""
    with transaction.atomic():
        lock_hashes()
        differing = set(_differing(store, people, ids))
        rows: list[HashedRespondent] = [
            row for row in read_people(people, ids) if row.pk in differing
        ]
        commands: list[Command] = [
            # Only here: Redis was wrong before and after the database was read.
            ("HDEL", key_of_person(row.pk), Field.FINISHED)
            for row in rows
            if row.completed_at is None
        ]
        commands += commands_for(rows)
        if commands:
            store.pipeline(commands)
    return len(rows)
