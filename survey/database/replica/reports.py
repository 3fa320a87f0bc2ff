"""Where reports and exports read: by name, outside of requests.

In the stack's workers this is a database of its own name: the replica, by a
pool and a role that may only read, and whose statements and snapshots may last
as long as `longest_snapshot`. When the replica is away, they fail with it and
are done later. Elsewhere (embedded, in tests, `manage.py` by hand) it is the
one database that there is, with the transaction that is open there.

::

    with transaction.atomic(using=reports_database()):
        for row in Response.objects.using(reports_database())...iterator(): ...

Inside a transaction only: `iterator()` is a cursor of the server there, and
behind pgbouncer a server is one's own for no longer. The role reads neither
identities nor staff; who may have names reads those from the primary.
"""

from __future__ import annotations

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

REPORTS = "reports"


def reports_database() -> str:
    """The alias, for `using` and for `connections[...]`."""
    return REPORTS if REPORTS in settings.DATABASES else DEFAULT_DB_ALIAS
