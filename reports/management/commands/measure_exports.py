"""Measure how fast responses are exported, compared with a plain COPY."""

from __future__ import annotations

import json
import os
import resource
import time
from typing import Any, TypedDict

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.utils import timezone

from accounts.models import Membership, User
from accounts.permissions import Places
from reports.answers.selection import Selection
from reports.models import Export
from reports.rates.rollup import AFTER_CLOSING
from reports.releases.rollup import roll_up_results
from survey.database.replica.reports import reports_database
from survey.fieldwork.administrations import AdministrationNotFound, get_administration
from survey.models import Administration, Job
from survey.simulation.load_survey import NotARehearsal, is_rehearsal, open_rehearsal
from survey.work import jobs
from survey.work.files import path_of
from survey.work.requested_files import delete_file

ITEMS_ON_A_PAGE = 5
# One person in ten stops halfway, and one answer in thirty is skipped. Rows are
# inserted in the order of a real day: first pages before second pages.
FILL = """
INSERT INTO survey_response
    (administration_id, respondent_id, item_id, state, value, revision, saved_at)
SELECT r.administration_id, r.id, i.item_id,
    CASE WHEN drawn.skipped THEN 's' ELSE 'a' END,
    CASE WHEN NOT drawn.skipped THEN drawn.value END,
    1700000000000000 + i.page, now() - interval '1 day' + i.page * interval '1 minute'
FROM unnest(%(items)s::bigint[], %(pages)s::int[]) i (item_id, page)
CROSS JOIN (
    SELECT * FROM survey_respondent
    WHERE administration_id = %(administration)s AND started_at IS NULL
) r
CROSS JOIN LATERAL (
    SELECT random() + 0 * (r.id + i.item_id) < 0.033 AS skipped,
        (1 + floor(random() * 5 + 0 * r.id))::int::text AS value
) drawn
WHERE r.id %% 10 <> 0 OR i.page <= %(last)s / 2
ORDER BY i.page, r.id, i.item_id
"""
STARTED = """
UPDATE survey_respondent SET started_at = now() - interval '1 day',
    completed_at = CASE WHEN id %% 10 <> 0 THEN now() END
WHERE administration_id = %s AND started_at IS NULL
"""
LIMIT = """
COPY (
    SELECT x.respondent_id, x.item_id, x.state, x.value FROM survey_response x
    JOIN survey_respondent r ON r.id = x.respondent_id
    WHERE x.administration_id = {administration} AND {people}
    ORDER BY x.respondent_id, x.item_id
) TO STDOUT
"""


class Command(BaseCommand):
    help = (
        "Invent people and their responses (in a test administration, never in a real"
        " one), export them, and print responses per second compared with COPY of the"
        " same rows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="export-rehearsal")
        parser.add_argument("--respondents", type=int, default=20_000)
        parser.add_argument("--items", type=int, default=60)
        parser.add_argument(
            "--format", choices=Export.Format.values, default=Export.Format.WIDE
        )
        parser.add_argument("--rounds", type=int, default=2)
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, **options: Any) -> None:
        if connection.vendor != "postgresql":
            raise CommandError("This command measures PostgreSQL only.")
        pages, rest = divmod(options["items"], ITEMS_ON_A_PAGE)
        if rest or not 1 <= pages <= 100:
            raise CommandError("--items is a multiple of 5, up to 500.")
        try:
            rehearsal = open_rehearsal(
                name=options["name"],
                respondents=options["respondents"],
                pages=pages,
                items=ITEMS_ON_A_PAGE,
            )
            administration = get_administration(options["name"])
        except (NotARehearsal, AdministrationNotFound) as error:
            raise CommandError(str(error)) from error
        assert is_rehearsal(administration)  # noqa: S101
        fill(rehearsal.administration)
        release(administration)
        memory_before = peak_memory()
        rounds = [
            measure(administration, options["format"]) for _ in range(options["rounds"])
        ]
        best = max(rounds, key=lambda figures: figures["export"])
        best["memory_before_mb"], best["memory_mb"] = memory_before, peak_memory()
        self.stdout.write(json.dumps(best) if options["json"] else summary(best))


@transaction.atomic
def fill(administration: Administration) -> None:
    """Insert responses of all people who have none yet."""
    items = json.loads(administration.published.definition)["items"].values()
    answered = [item for item in items if item["kind"] == "select_one"]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(
            FILL,
            {
                "administration": administration.pk,
                "items": [item["id"] for item in answered],
                "pages": [item["page"] for item in answered],
                "last": max(item["page"] for item in answered),
            },
        )
        cursor.execute(STARTED, [administration.pk])
    transaction.on_commit(vacuum)


def release(administration: Administration) -> None:
    """Close the administration and count its results: files are made of them."""
    administration.closes_at = timezone.now() - 2 * AFTER_CLOSING
    administration.save(update_fields=["closes_at"])
    roll_up_results(administration, all_schools=True, release=True)


def vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) survey_response")
        cursor.execute("VACUUM (ANALYZE) survey_respondent")


class Figures(TypedDict, total=False):
    """The JSON that the command prints; `export` and `copy` are per second."""

    format: str
    respondents: int
    responses: int
    size_mb: float
    export_seconds: float
    export: int
    copy_seconds: float
    copy: int
    ratio: float
    memory_before_mb: int
    memory_mb: int


def measure(administration: Administration, format: str) -> Figures:
    copy_seconds = time_copy(administration)
    export, seconds = time_export(administration, format)
    size = export.size
    delete_file(export, by="measure_exports")
    responses = export.responses or 0
    return {
        "format": format,
        "respondents": export.respondents or 0,
        "responses": responses,
        "size_mb": round((size or 0) / 2**20, 1),
        "export_seconds": round(seconds, 2),
        "export": round(responses / seconds),
        "copy_seconds": round(copy_seconds, 2),
        "copy": round(responses / copy_seconds),
        "ratio": round(copy_seconds / seconds, 2),
    }


class DiscardingFile:
    def write(self, line: bytes) -> None:
        pass


def time_copy(administration: Administration) -> float:
    """Return the seconds that a COPY of the same rows takes."""
    alias = reports_database()
    people = Selection([administration], Places(state=True))
    statement = LIMIT.format(
        administration=administration.pk, people=people.people(administration, alias)
    )
    start = time.perf_counter()
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.copy_expert(statement, DiscardingFile())
    return time.perf_counter() - start


def time_export(administration: Administration, format: str) -> tuple[Export, float]:
    """Make an export in this process, and return it with the seconds it took."""
    user, _ = User.objects.get_or_create(email="measure-exports@localhost")
    Membership.objects.get_or_create(user=user, role=Membership.Role.ANALYST)
    # Without `request_export`, which would start the job on a worker.
    export = Export.objects.create(
        by=user, format=format, places={"state": True}, language="en"
    )
    export.administrations.set([administration])
    job = Job.objects.create(kind="export.make", subject_id=export.pk, by=user)
    start = time.perf_counter()
    jobs.run(job.pk)
    seconds = time.perf_counter() - start
    export.refresh_from_db(using=DEFAULT_DB_ALIAS)
    if not export.file_name:
        raise CommandError(Job.objects.get(pk=job.pk).message)
    if path_of(export.file_name).stat().st_size != export.size:
        raise CommandError("The file does not have the recorded size.")
    return export, seconds


def peak_memory() -> int:
    """Return the highest memory use of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def summary(figures: Figures) -> str:
    return (
        f"{figures['responses']:,} responses of {figures['respondents']:,} people:"
        f" {figures['export']:,} a second ({figures['format']},"
        f" {figures['export_seconds']} s, {figures['size_mb']} MB); COPY"
        f" {figures['copy']:,} a second ({figures['copy_seconds']} s); ratio"
        f" {figures['ratio']}; memory {figures['memory_mb']} MB"
        f" ({figures['memory_before_mb']} before), {os.cpu_count()} processors"
    )
