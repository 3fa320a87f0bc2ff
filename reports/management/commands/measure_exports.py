"""How fast responses come out, beside what the database can do at most."""

from __future__ import annotations

import json
import os
import resource
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

from accounts.models import Membership, User
from reports.exports.requests import delete_file
from reports.exports.snapshot import Selection
from reports.models import Export
from survey import jobs
from survey.administrations import AdministrationNotFound, get_administration
from survey.database.replica.reports import reports_database
from survey.files import path_of
from survey.models import Administration, Job
from survey.simulation.load_survey import NotARehearsal, is_rehearsal, open_rehearsal

ITEMS_ON_A_PAGE = 5
# A person in ten stopped halfway, one answer in thirty was skipped, and pages
# came in as on a real day: everybody's first pages, then everybody's second.
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
        "Make up people and their responses (a rehearsal, never a real administration),"
        " export them, and say how many responses a second that was, beside COPY of"
        " the same rows."
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

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "postgresql":
            raise CommandError("It measures PostgreSQL; this database is another one.")
        administration = self._filled(options)
        before = peak()
        figures = [
            self._round(administration, options["format"])
            for _ in range(options["rounds"])
        ]
        best = max(figures, key=lambda one: one["export"])
        best["memory_before_mb"], best["memory_mb"] = before, peak()
        self.stdout.write(json.dumps(best) if options["json"] else told(best))

    def _filled(self, options: dict[str, Any]) -> Administration:
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
        return administration

    def _round(self, administration: Administration, format: str) -> dict[str, Any]:
        limit = copied(administration)
        export, seconds = exported(administration, format)
        size = export.size
        delete_file(export, by="measure_exports")
        responses = export.responses or 0
        return {
            "format": format,
            "respondents": export.respondents,
            "responses": responses,
            "size_mb": round((size or 0) / 2**20, 1),
            "export_seconds": round(seconds, 2),
            "export": round(responses / seconds),
            "copy_seconds": round(limit, 2),
            "copy": round(responses / limit),
            "ratio": round(limit / seconds, 2),
        }


@transaction.atomic
def fill(administration: Administration) -> None:
    """Answers of everybody who has none yet."""
    items = json.loads(administration.published.definition)["items"].values()
    asked = [one for one in items if one["kind"] == "select_one"]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(
            FILL,
            {
                "administration": administration.pk,
                "items": [one["id"] for one in asked],
                "pages": [one["page"] for one in asked],
                "last": max(one["page"] for one in asked),
            },
        )
        cursor.execute(STARTED, [administration.pk])
    transaction.on_commit(settle)


def settle() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) survey_response")
        cursor.execute("VACUUM (ANALYZE) survey_respondent")


class Sink:
    def write(self, line: bytes) -> None:
        """Nothing: the limit is what the database can say."""


def copied(administration: Administration) -> float:
    alias = reports_database()
    people = Selection([administration], Export(places={"state": True}).covered)
    text = LIMIT.format(
        administration=administration.pk, people=people.people(administration)
    )
    began = time.perf_counter()
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.copy_expert(text, Sink())
    return time.perf_counter() - began


def exported(administration: Administration, format: str) -> tuple[Export, float]:
    user = measurer()
    # Not by a message: nobody else's worker is to take it.
    export = Export.objects.create(
        by=user, format=format, places={"state": True}, language="en"
    )
    export.administrations.set([administration])
    job = Job.objects.create(kind="export.make", subject_id=export.pk, by=user)
    began = time.perf_counter()
    jobs.run(job.pk)
    seconds = time.perf_counter() - began
    export.refresh_from_db(using=DEFAULT_DB_ALIAS)
    if not export.file_name:
        raise CommandError(Job.objects.get(pk=job.pk).message)
    if path_of(export.file_name).stat().st_size != export.size:
        raise CommandError("The file is not what was said of it.")
    return export, seconds


def measurer() -> User:
    user, _ = User.objects.get_or_create(email="measure-exports@localhost")
    Membership.objects.get_or_create(user=user, role=Membership.Role.ANALYST)
    return user


def peak() -> int:
    """MB, of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def told(figures: dict[str, Any]) -> str:
    return (
        f"{figures['responses']:,} responses of {figures['respondents']:,} people:"
        f" {figures['export']:,} a second ({figures['format']},"
        f" {figures['export_seconds']} s, {figures['size_mb']} MB); COPY"
        f" {figures['copy']:,} a second ({figures['copy_seconds']} s); ratio"
        f" {figures['ratio']}; memory {figures['memory_mb']} MB"
        f" ({figures['memory_before_mb']} before), {os.cpu_count()} processors"
    )
