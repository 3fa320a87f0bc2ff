"""Run the scans of a feed that a server on loopback offers."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta

from django.db import connection, connections, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from settings.tests.patience import patience
from survey.models import FeedScan, Identity, Job
from survey.people.rosters.feeds import scans
from survey.tests.rosters.oneroster.archives import archive
from survey.work import jobs
from survey.work.job_turns import next_job

ORGS = """\
sourcedId,status,dateLastModified,name,type,identifier,parentSourcedId
o-district,,,Riverside,district,riverside,
o-lincoln,,,Lincoln,school,lincoln,o-district
o-washington,,,Washington,school,washington,o-district
"""
USER_COLUMNS = (
    "sourcedId,status,dateLastModified,enabledUser,orgSourcedIds,role,username,userIds,"
    "givenName,familyName,middleName,identifier,email,sms,phone,agentSourcedIds,grades,"
    "password"
)


class Killed(BaseException):
    """Stands for SIGKILL: no handler of the job sees it, and nothing is cleaned up."""


def user(
    number,
    school="lincoln",
    status="",
    grade="07",
    given_name="Ali",
    prefix="u",
    identifier="",
):
    return (
        f"{prefix}{number:04},{status},,true,o-{school},student,n{number},,{given_name},"
        f"Diaz,,{identifier},,,,,{grade},"
    )


def users(*rows):
    return "\n".join([USER_COLUMNS, *rows]) + "\n"


def students(count=30, *, school="lincoln", first=0, **fields):
    return [user(n, school, **fields) for n in range(first, first + count)]


def zip_of(*rows, mode="bulk", orgs=ORGS):
    files = {"orgs": orgs, "users": users(*rows)}
    modes = {"orgs": "bulk", "users": mode}
    return archive(files, modes=modes).getvalue()


def orgs_named(*names):
    """Return orgs.csv with a school s0, s1 and so on for each name."""
    district = "\n".join(ORGS.splitlines()[:2])
    schools = (
        f"o-s{n},,,{name},school,s{n},o-district" for n, name in enumerate(names)
    )
    return "\n".join([district, *schools]) + "\n"


def offer(server, content, **headers):
    server.give("/roster.zip", 200, content, **headers)


def run_jobs(*queues):
    """Run the jobs that wait, as workers of all pools or of those of some queues."""
    queues = queues or [pool[0] for pool in jobs.POOLS]
    while pks := [pk for queue in queues if (pk := next_job(queue)) is not None]:
        for pk in pks:
            jobs.run(pk)


def run_until_killed():
    with suppress(Killed):
        run_jobs()
        raise AssertionError("no worker was killed")
    connections["default"].close_if_unusable_or_obsolete()
    forget_heartbeats()


def forget_heartbeats():
    """Let the heartbeats of dead workers get old."""
    Job.objects.filter(state=Job.State.RUNNING).update(
        heartbeat_at=timezone.now() - timedelta(hours=1)
    )


def scan(feed, reason="now", by=None):
    """Scan a feed to the end of the scan."""
    started = scans.start_scan(feed, reason=reason, by=by or feed.by)
    run_jobs()
    started.refresh_from_db()
    feed.refresh_from_db()
    return started


def confirm(held, by, typed=None):
    withdrawn = sum(upload.withdrawn for upload in held.uploads.all())
    scans.confirm_scan(
        held,
        by=by,
        seen=str(withdrawn),
        typed=str(withdrawn) if typed is None else typed,
    )


def invited():
    """Return the IDs of the people who are not withdrawn."""
    identities = Identity.objects.filter(respondent__withdrawn_at=None)
    return sorted(identities.values_list("external_id", flat=True))


def world():
    """Return people, codes and audit entries, without times and primary keys."""
    people = Identity.objects.order_by("external_id").values_list(
        "external_id",
        "given_name",
        "respondent__school__code",
        "respondent__grade",
        "respondent__issue",
        "respondent__withdrawn_at",
    )
    entries = AuditEntry.objects.exclude(action="scan feed").order_by("action", "pk")
    return {
        "people": [(*person, withdrawn_at is None) for *person, withdrawn_at in people],
        "entries": list(entries.values_list("action", "by", "after")),
        "scans": list(FeedScan.objects.order_by("pk").values_list("state", "message")),
    }


def in_a_thread(act):
    """Start `act` on a connection of its own; return a function that waits for it.

    That function returns what `act` returned or raised.
    """
    outcome = []

    def run():
        try:
            outcome.append(act())
        except Exception as error:
            outcome.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    # Long enough to reach a lock, and shorter than it may be waited for.
    thread.join(0.3)

    def wait():
        thread.join(patience(10))
        return outcome[0]

    return wait


def while_open(first, second):
    """Return the outcome of `second`, which begins before `first` has committed."""
    with transaction.atomic():
        first()
        wait = in_a_thread(second)
    return wait()
