"""What `provisioning/faults` can be told. Standard library only."""

from __future__ import annotations

import argparse

DESCRIPTION = """\
Breaks a whole stack on purpose while hundreds of people answer a survey on it,
and then proves from the database that nothing which was reported as saved is
lost, doubled, mixed up or undone.

It starts a stack of its own in a temporary folder and on ports of its own,
and removes it afterwards. Made-up people answer as browsers do: they keep what
is not yet saved and try again, send some saves twice and some too late, change
their answers, and go on at another device. Each attempt is written to a log.
Faults follow one another in an order drawn from the seed; after each one it
waits until saving is well again and says how long that took. At the end
everything is read back and compared with the log. Then negative controls take
the protections away, one at a time: the same comparison has to object.
"""

KNOWN = {
    "worker-killed": "kill -9 of a gunicorn worker",
    "master-killed": "kill -9 of a gunicorn master",
    "pgbouncer-killed": "kill -9 of pgbouncer",
    "backend-killed": "kill -9 of one PostgreSQL backend: all of them start anew",
    "postgresql-killed": "kill -9 of the primary, postmaster and children at once",
    "pgbouncer-hung": "pgbouncer is silent for 2 to 5 s (SIGSTOP)",
    "replica-hung": "the replica is silent for 2 to 5 s",
    "redis-hung": "Redis is silent for 2 to 5 s",
    "memcached-hung": "Memcached is silent for 2 to 5 s",
    "redis-wiped": "kill -9 of Redis, which keeps nothing",
    "memcached-wiped": "kill -9 of Memcached, which keeps nothing",
    "rabbitmq-killed": "kill -9 of RabbitMQ",
    "redis-down": "Redis is down for 6 to 8 s; saves go on as fast as before",
    "memcached-down": "Memcached is down for 6 to 8 s; saves go on as fast",
    "replica-down": "the replica is down for 6 to 8 s; saves go on as fast",
    "rabbitmq-down": "RabbitMQ is down for 6 to 8 s; saves go on as fast",
    "replies-lost": "replies are cut off after their requests passed, 2 to 5 s",
    "log-disk-full": "no space under pg_wal for 2 to 5 s: PostgreSQL ends (root only)",
    "workers-restarted": "rolling restart of gunicorn: not one save may fail",
    "nginx-reloaded": "reload of nginx: not one save may fail",
}

EPILOG = """\
What is counted, a page of one person at a time; all but recovered must be 0:
  lost         acknowledged, but missing at the end, or an older save is there
  regressions  the lost ones of which an older save is there
  crossed      stored under another person
  corrupt      stored, but not what was sent
  unexpected   stored, but never sent
  duplicated   two rows for one answer, or two receipts for one save
  false_saved  shown as saved without a receipt of its own
  recovered    the reply was lost, and the page was found saved (fine)

Recovered means: the first window (5 s; with --quick 2 s) in which 99.9 % of
the saves got the right answer, 95 % took at most twice as long as before the
fault (or 50 ms), and at least half as many were made. The window is shorter
than the 30 s by which operations are judged, so that sixty faults fit into a
quarter of an hour; what a fault still does after it, counts against the next.

A connection that nginx closes under a request, in a reload, is no failed save
if the same request goes through over another one at once: browsers do that by
themselves. Those are counted as resent.

The last line is one JSON object. Exit status: 0 if every requirement holds,
1 if one does not, 2 if the run proves nothing (no final read, a dead driver,
or fewer than 90 % of the planned faults could be brought about).
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/faults",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="5,000 saves and the ten fastest faults, in less than three minutes",
    )
    parser.add_argument(
        "--seed", type=int, help="repeats the draws of an earlier run", metavar="N"
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=list(KNOWN),
        metavar="NAME",
        help="this fault only; may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="name the faults, and stop")
    parser.add_argument(
        "--faults", type=int, metavar="K", help="how many (60; with --quick 10)"
    )
    parser.add_argument(
        "--saves", type=int, metavar="N", help="at least (200,000; with --quick 5,000)"
    )
    parser.add_argument(
        "--minutes", type=float, metavar="M", help="at most, then the run is void (30)"
    )
    parser.add_argument(
        "--rate", type=float, metavar="R", help="saves a second to offer (350)"
    )
    parser.add_argument(
        "--promise",
        choices=["A1", "A2", "none"],
        help="how the primary is lost for good at the end of a run: A2 with commits"
        " that wait for the replica, and then nothing may be lost; A1 without, and"
        " the loss is measured; or not at all. Without --quick and --only it is A2",
    )
    parser.add_argument(
        "--overload",
        action="store_true",
        help="instead of faults, 1, 2, 5 and 10 times the people it can serve, who"
        " come again as their browsers do: 90 %% of the best goodput of saves have"
        " to stay, starts are shed before resumes and these before saves, everybody"
        " can finish, and a minute after the burst all is as before; void if other"
        " programs took part of the processor",
    )
    parser.add_argument(
        "--controls-only", action="store_true", help="the negative controls alone"
    )
    parser.add_argument(
        "--home",
        metavar="FOLDER",
        help="break the stack of this home, with its data, instead of a new one;"
        " refused while real people may answer there",
    )
    parser.add_argument(
        "--port", type=int, default=8480, help="of the stack's nginx (8480)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave logs and stack there"
    )
    return parser.parse_args()
