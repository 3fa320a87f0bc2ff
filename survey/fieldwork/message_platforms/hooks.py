"""Tell Redis what has changed about people, after it was committed.

Nothing here fails: what Redis did not get, the scheduled checks write.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress

from django.db import DatabaseError, transaction
from django.utils import timezone

from survey.fieldwork.message_platforms.directory import (
    KEPT,
    forget_directory,
    write_platforms,
    write_windows,
)
from survey.fieldwork.message_platforms.hashes import write_people
from survey.fieldwork.message_platforms.store import (
    Command,
    Store,
    key_of_administration,
    key_of_person,
    message_store,
)
from survey.models import Administration, Identity, Respondent

log = logging.getLogger(__name__)

# Only where messages may be asked for, so that it costs no memory elsewhere.
FINISH = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'f', '1')
if redis.call('TTL', KEYS[2]) < 0 then redis.call('EXPIREAT', KEYS[2], ARGV[1]) end
return 1
"""
# People who finished while Redis was down, of this process: sent with the next one.
_unsent: deque[Command] = deque(maxlen=10_000)


def person_finished(respondent_id: int, administration_id: int) -> None:
    """Note that a person has finished. 1 command, after the commit."""
    store = message_store()
    if store is None:
        return
    expires_at = int((timezone.now() + 2 * KEPT).timestamp())
    keys = (key_of_administration(administration_id), key_of_person(respondent_id))
    _unsent.append(("EVAL", FINISH, 2, *keys, expires_at))
    transaction.on_commit(send_finished)


def send_finished() -> None:
    """Send what Redis did not get yet. No command if there is nothing."""
    store = message_store()
    while store is not None and (batch := _take_unsent(500)):
        try:
            store.pipeline(batch)
        except ConnectionError:
            _unsent.extend(batch)
            return


def _take_unsent(most: int) -> list[Command]:
    batch: list[Command] = []
    # Other threads take from it too, so asking for its length first is no use.
    with suppress(IndexError):
        while len(batch) < most:
            batch.append(_unsent.popleft())
    return batch


def people_changed(ids: Collection[int]) -> None:
    """Write these people's hashes again, after the commit."""
    people = list(ids)
    _write_after_commit(lambda store: write_people(store, people))


def people_removed(ids: Collection[int]) -> None:
    """Delete the hashes of people who are no longer there, after the commit."""
    if keys := list(map(key_of_person, ids)):
        _write_after_commit(lambda store: store.command("DEL", *keys))


def address_suppressed(respondent: Respondent) -> None:
    """Write the hashes of all people with this person's e-mail address."""
    identity = Identity.objects.filter(respondent=respondent).first()
    if identity is None or not identity.email:
        return
    # Finds them by an index, `people_by_email`.
    current = Administration.objects.filter(closes_at__gt=timezone.now() - KEPT)
    same = Identity.objects.filter(
        administration__in=list(current.values_list("pk", flat=True)),
        email__iexact=identity.email,
    )
    people_changed(list(same.values_list("pk", flat=True)))


def administration_changed(administration: Administration) -> None:
    """Write an administration's window, after the commit."""
    key = administration.pk
    _write_after_commit(lambda store: write_windows(store, [key]))


def administration_removed(administration_id: int) -> None:
    """Delete an administration's window, after the commit."""
    key = key_of_administration(administration_id)
    _write_after_commit(lambda store: store.command("DEL", key))


def platforms_changed() -> None:
    transaction.on_commit(forget_directory)
    _write_after_commit(write_platforms)


def _write_after_commit(write: Callable[[Store], object]) -> None:
    def attempt() -> None:
        store = message_store()
        if store is None:
            return
        try:
            write(store)
        except (ConnectionError, DatabaseError):
            log.warning("What message platforms read was not written.", exc_info=True)

    transaction.on_commit(attempt)
