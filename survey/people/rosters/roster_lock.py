"""Make a change to the people of an administration while no roster is applied."""

from __future__ import annotations

from django.db import OperationalError, connection
from django.utils.translation import gettext as _

from survey.database import advisory_locks
from survey.models import Administration, RosterUpload

State = RosterUpload.State
LOCK_NOT_AVAILABLE = "55P03"


class RosterIsRunning(Exception):
    """Nothing was changed; the message says so."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "A roster of this survey round is being applied or undone, so"
                " nothing was changed. Try again when that is finished."
            )
        )


def hold_off_rosters(administration: Administration) -> None:
    """Let rosters of an administration wait until the transaction ends.

    A roster was compared with the people of before, and could add the same person,
    or not see what the transaction changes. Raises RosterIsRunning.
    """
    running = administration.rosters.filter(state__in=(State.APPLYING, State.UNDOING))
    if running.exists():
        raise RosterIsRunning
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '1s'")
    try:
        # Rosters take this lock in `rosters.staging`.
        advisory_locks.lock(advisory_locks.ROSTER, administration.pk)
    except OperationalError as error:
        if getattr(error.__cause__, "pgcode", None) == LOCK_NOT_AVAILABLE:
            raise RosterIsRunning from error
        raise
