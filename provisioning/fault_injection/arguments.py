"""Define the options of `provisioning/faults`. Standard library only."""

from __future__ import annotations

import argparse

DESCRIPTION = """\
Breaks a whole stack on purpose while hundreds of simulated people answer a
survey on it, then proves from the database that nothing which was reported as
saved is lost, duplicated, mixed up or undone.

It starts a stack of its own, in a temporary folder and on ports of its own,
and removes it afterwards. The people answer as browsers do: they keep what is
not yet saved and try again, send some saves twice and some too late, change
their answers, and continue on another device. Each attempt is logged. Faults
follow one another in an order drawn from the seed; after each one, the run
waits until saving has recovered, and says how long that took. At the end
everything is read back and compared with the log. Then negative controls
remove the protections, one at a time: the same comparison has to object.
"""

FAULT_DESCRIPTIONS = {
    "worker-killed": "kill -9 of a gunicorn worker",
    "master-killed": "kill -9 of a gunicorn master",
    "pgbouncer-killed": "kill -9 of pgbouncer",
    "backend-killed": "kill -9 of one PostgreSQL backend: all of them restart",
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
    "log-disk-full": "no space for PostgreSQL's log, 2 to 5 s (root only)",
    "workers-restarted": "rolling restart of gunicorn: no save may fail",
    "nginx-reloaded": "reload of nginx: no save may fail",
}

EPILOG = """\
Counts, by page and respondent; all but recovered must be 0:
  lost         acknowledged, but missing at the end, or an older save is there
  regressions  lost pages of which an older save is there
  crossed      stored under another person
  corrupt      stored, but not what was sent
  unexpected   stored, but never sent
  duplicated   two rows for one answer, or two receipts for one save
  false_saved  shown as saved without a receipt of its own
  recovered    the reply was lost, and the page was found saved (allowed)

Saving has recovered in the first window (5 s; with --quick 2 s) in which 99.9 %
of the saves got the right answer, 95 % took at most twice as long as before
the fault (or 50 ms), and at least half as many were made. The window is
shorter than the 30 s by which operations are judged, so that sixty faults fit
into a quarter of an hour; later effects count against the next fault.

A connection that nginx closes under a request, in a reload, is no failed save
if the same request succeeds over another connection at once: browsers do that
by themselves. Those are counted as resent.

With --quick, a run that is too slow while all counts are 0 is repeated once,
since other programs may have been busy. Wrong answers are never excused.

The last line is one JSON object. Exit status: 0 if every requirement holds,
1 if one does not, 2 if the run proves nothing (no final read, a load process
that died, or fewer than 90 % of the planned faults could be injected).
"""


def arguments(command: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="provisioning/faults",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--quick",
        action="store_true",
        help="5,000 saves and the ten fastest faults, in less than three minutes",
    )
    add("--seed", type=int, help="repeat the draws of an earlier run", metavar="N")
    add(
        "--only",
        action="append",
        choices=list(FAULT_DESCRIPTIONS),
        metavar="NAME",
        help="inject this fault only; may be given several times",
    )
    add("--list", action="store_true", help="list the faults, and stop")
    add("--faults", type=int, metavar="K", help="number (60; with --quick 10)")
    add("--saves", type=int, metavar="N", help="at least (200,000; with --quick 5,000)")
    add(
        "--minutes",
        type=float,
        metavar="M",
        help="at most; then the run is void (30)",
    )
    add("--rate", type=float, metavar="R", help="saves a second to offer (350)")
    add(
        "--promise",
        choices=["A1", "A2", "none"],
        help="how the primary is lost for good at the end of a run: A2 with commits"
        " that wait for the replica, and then nothing may be lost; A1 without, and"
        " the loss is measured; or not at all. Without --quick and --only it is A2",
    )
    add(
        "--overload",
        action="store_true",
        help="instead of faults, offer 1, 2, 5 and 10 times the load that the stack"
        " can serve: 90 %% of the best goodput of saves have to remain, starts are"
        " shed before resumes and these before saves, everyone can finish, and a"
        " minute after the burst all is as before; void if other programs took part"
        " of the processor",
    )
    add("--controls-only", action="store_true", help="run the negative controls alone")
    add(
        "--home",
        metavar="FOLDER",
        help="break the stack in this folder, with its data, instead of a new one;"
        " refused while real people may answer there",
    )
    add(
        "--port",
        type=int,
        default=8480,
        help="port of the new stack's nginx (8480)",
    )
    add("--keep", action="store_true", help="keep the logs, and the stack running")
    return parser.parse_args(command)
