"""The database that reports and exports read, outside of requests.

In the stack's workers it has a name of its own: the replica, through a pool
and a role that may only read, and whose statements and snapshots may last as
long as `longest_snapshot`. When the replica is down, reports fail and are
repeated later. Elsewhere (embedded, in tests, `manage.py` by hand) it is the
default database, with the transaction that is open there.

::

    with transaction.atomic(using=reports_database()):
        for row in Response.objects.using(reports_database())...iterator(): ...

Use it inside a transaction: `iterator()` is a server-side cursor, and behind
pgbouncer a server connection is reserved only for a transaction. The role
can't read identities or staff; exports with names read those from the primary.
"""

from __future__ import annotations

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

REPORTS = "reports"


def reports_database() -> str:
    """Return the alias for `using` and `connections[...]`."""
    return REPORTS if REPORTS in settings.DATABASES else DEFAULT_DB_ALIAS
