"""Add, scan, check and remove the feeds of `provisioning/run feeds`, in its stack."""

from __future__ import annotations

import csv
import io
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Count, F, QuerySet, Sum
from django.db.models.fields.reverse_related import ManyToOneRel
from django.utils import timezone

from accounts.models import District, Membership, User
from provisioning.commands import wait_until
from survey.models import (
    Administration,
    FeedScan,
    FeedStage,
    Identity,
    Job,
    Respondent,
    RosterFeed,
    RosterUpload,
)
from survey.people.rosters.feeds.feeds import create_feed
from survey.people.rosters.feeds.scans import start_scan
from survey.people.rosters.feeds.schedule import KINDS
from survey.people.rosters.retention import delete_files
from survey.simulation.load_survey import NotARehearsal, find_or_open, is_rehearsal
from survey.work.files import path_of
from survey.work.jobs import DEAD_AFTER

# The generator's roles, and the administration's role that takes them in.
TAKEN_IN_AS = {"student": "student", "teacher": "teacher", "administrator": "teacher"}


class Person(NamedTuple):
    name: str
    email: str
    is_withdrawn: bool = False


def people_of(archive: Path) -> dict[tuple[str, str], Person]:
    """Return the students and teachers of a file, by role and ID.

    Reads the generator's file without the product's reader.
    """
    people = {}
    with zipfile.ZipFile(archive) as zipped, zipped.open("users.csv") as binary:
        for row in csv.DictReader(io.TextIOWrapper(binary, "utf-8", newline="")):
            if role := TAKEN_IN_AS.get(row["role"]):
                name = f"{row['givenName']} {row['familyName']}"
                people[role, row["sourcedId"]] = Person(name, row["email"])
    return people


def compare_people(
    truth: Mapping[tuple[str, str], Person],
    stored: Sequence[tuple[tuple[str, str], Person]],
) -> Counter[str]:
    """Count the differences of one district; all have to be zero.

    A person who was added under another ID exists twice by name.
    """
    counts: Counter[str] = Counter()
    invited = [(key, person) for key, person in stored if not person.is_withdrawn]
    names = Counter((key[0], person.name) for key, person in invited)
    names -= Counter((key[0], person.name) for key, person in truth.items())
    counts["duplicates"] = names.total()
    known, active = {key for key, _ in stored}, dict(invited)
    for key, person in truth.items():
        if key not in active:
            counts["wrong_withdrawals" if key in known else "missing"] += 1
        elif active[key].email != person.email:
            counts["outdated"] += 1
    return counts


CODE = "rehearsal-feeds-"
ROLES = ("student", "teacher")
LONGEST_JOB_S = 10 * 60
OWNER = "rehearsal-feeds@groundswell.example"


def code_of(number: int) -> str:
    return f"{CODE}{number:05}"


def feeds(numbers: Iterable[int]) -> QuerySet[RosterFeed]:
    codes = [code_of(number) for number in numbers]
    return RosterFeed.objects.filter(district__code__in=codes)


def scans() -> QuerySet[FeedScan]:
    return FeedScan.objects.filter(district__code__startswith=CODE)


# Actions


def prepare(*, numbers: list[int], address: str) -> dict[str, Any]:
    """Add districts, administrations and feeds of ZIPs below this address."""
    if not settings.FEED_NETWORKS:
        raise SystemExit("Feeds may not connect to 127.0.0.0/8: see feed_networks.")
    owner, _ = User.objects.get_or_create(email=OWNER)
    Membership.objects.get_or_create(user=owner, role=Membership.Role.STATE)
    administrations = [
        find_or_open(f"{CODE}{role}s", 1, 1, role=role) for role in ROLES
    ]
    if not all(map(is_rehearsal, administrations)):
        raise NotARehearsal("The administrations of this benchmark are real ones.")
    for number in numbers:
        create_feed(
            district=District.objects.create(
                code=code_of(number), name=f"Rehearsal of feeds {number}"
            ),
            kind=RosterFeed.Kind.ZIP,
            name="Rehearsal",
            address=f"{address}/{number}/roster.zip",
            administrations=administrations,
            by=owner,
        )
    return {}


def scan(
    *, numbers: list[int], night: int, window_s: float, wait_s: float
) -> dict[str, Any]:
    """Scan these feeds as one window does, and wait until the last scan is over.

    All are due at once, which is harder than the schedule, which spreads them over
    half of the window.
    """
    began = timezone.now()
    for feed in feeds(numbers):
        start_scan(
            feed,
            reason=FeedScan.Reason.NIGHT,
            by=None,
            night=date(2000, 1, 1) + timedelta(days=night),
            begins_before=began + timedelta(seconds=window_s),
        )
    started = scans().filter(created_at__gte=began)
    unfinished = started.filter(state__in=FeedScan.UNFINISHED)
    is_over = wait_until(lambda: not unfinished.exists(), seconds=wait_s, pause=0.2)
    ended = started.aggregate(ended=models.Max("ended_at"))["ended"]
    failed = started.filter(state=FeedScan.State.FAILED).values_list(
        "district__code", "message"
    )
    held = started.filter(state=FeedScan.State.HELD).values_list("message", flat=True)
    return {
        "is_over": is_over,
        "window_s": (ended - began).total_seconds() if ended else wait_s,
        "states": dict(Counter(started.values_list("state", flat=True))),
        "failed": {int(code.removeprefix(CODE)): message for code, message in failed},
        "held": list(held),
        "stages": stages_of(started),
        "applied_twice": applied_twice(started),
    }


def stages_of(scanned: QuerySet[FeedScan]) -> dict[str, dict[str, Any]]:
    stages = FeedStage.objects.filter(scan__in=scanned, ended_at__isnull=False)
    rows = stages.values("stage").annotate(
        seconds=Sum(F("ended_at") - F("started_at")),
        rows=Sum("rows"),
        bytes=Sum("bytes"),
        repeated=Sum("attempts") - Count("pk"),
    )
    return {
        row["stage"]: {**row, "seconds": row["seconds"].total_seconds()}
        for row in rows.order_by("stage")
    }


def applied_twice(scanned: QuerySet[FeedScan]) -> int:
    """Count scans that have more applied uploads than the feed has administrations."""
    applied = RosterUpload.objects.filter(
        scan__in=scanned, state=RosterUpload.State.APPLIED
    )
    uploads = applied.values("scan", "administration").annotate(number=Count("pk"))
    return uploads.filter(number__gt=1).count()


def verify(*, offered: Mapping[str, str]) -> dict[str, Any]:
    """Compare the people of each district with the file that it was given last."""
    total: Counter[str] = Counter()
    exact = 0
    roles = dict(administrations().values_list("pk", "role"))
    for number, path in offered.items():
        stored = Identity.objects.filter(
            administration__in=roles, district__code=code_of(int(number))
        ).values_list(
            "administration_id",
            "external_id",
            "given_name",
            "family_name",
            "email",
            "respondent__withdrawn_at",
        )
        people = [
            (
                (roles[pk], key),
                Person(f"{given} {family}", email, withdrawn is not None),
            )
            for pk, key, given, family, email, withdrawn in stored
        ]
        differences = compare_people(people_of(Path(path)), people)
        exact += not differences.total()
        total += differences
    names = ("duplicates", "wrong_withdrawals", "missing", "outdated")
    return {"exact": exact, **{name: total[name] for name in names}}


def remove() -> dict[str, Any]:
    jobs = Job.objects.filter(kind__in=KINDS, subject_id__in=scans().values("pk"))
    stop_scans(jobs)
    uploads = RosterUpload.objects.filter(scan__in=scans())
    for names in uploads.values_list("file", "rejected_file"):
        delete_files(*names)
    stores = RosterFeed.objects.filter(scans__in=scans()).exclude(store="")
    delete_files(*stores.distinct().values_list("store", flat=True))
    for folder in scans().exclude(folder="").values_list("folder", flat=True):
        shutil.rmtree(path_of(folder), ignore_errors=True)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        jobs.delete()
        districts = District.objects.filter(code__startswith=CODE)
        partitions = [
            f"survey_response_{administration.pk}"
            for administration in administrations()
        ]
        uploads = RosterUpload.objects.filter(administration__in=administrations())
        people = Respondent.objects.filter(administration__in=administrations())
        # The largest tables first, by the shortest ways.
        for rows in (uploads, people, districts, administrations()):
            delete_with_related(rows)
        for partition in partitions:
            cursor.execute(f"DROP TABLE IF EXISTS {partition}")
        delete_with_related(User.objects.filter(email=OWNER))
    return {}


def stop_scans(jobs: QuerySet[Job]) -> None:
    """Cancel the scans of an interrupted run, and wait until no worker writes."""
    now = timezone.now()
    scans().filter(state__in=FeedScan.UNFINISHED).update(
        state=FeedScan.State.CANCELLED, ended_at=now
    )
    jobs.filter(state=Job.State.WAITING).update(state=Job.State.CANCELLED, ended_at=now)
    running = jobs.filter(state=Job.State.RUNNING)

    def is_idle() -> bool:
        return not running.filter(heartbeat_at__gt=timezone.now() - DEAD_AFTER).exists()

    if not wait_until(is_idle, seconds=LONGEST_JOB_S, pause=0.5):
        raise SystemExit(
            "Scans are still being applied. Run this again to remove them."
        )


def administrations() -> QuerySet[Administration]:
    names = [f"{CODE}{role}s" for role in ROLES]
    named = Administration.objects.filter(name__in=names)
    return named.filter(wave__name="Rehearsals")


def delete_with_related(rows: QuerySet[Any], chain: tuple[type, ...] = ()) -> None:
    """Delete rows and all that refer to them, without reading any."""
    chain = (*chain, rows.model)
    for relation in rows.model._meta.get_fields(include_hidden=True):
        if not isinstance(relation, ManyToOneRel) or relation.related_model in chain:
            continue
        if relation.on_delete is not models.SET_NULL:
            related = relation.related_model._base_manager
            referring = related.filter(**{f"{relation.field.name}__in": rows})
            delete_with_related(referring, chain)
    rows._raw_delete(rows.db)
