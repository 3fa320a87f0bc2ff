from __future__ import annotations

import json
import resource
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.audit import record
from survey.access_codes import CodeKeyMissing
from survey.administrations import AdministrationNotFound, get_administration
from survey.models import Administration, RosterUpload
from survey.rosters.apply import import_roster
from survey.rosters.file_reader import RosterUnreadable, open_table
from survey.rosters.private_files import private_file
from survey.rosters.report import RosterReport

SHOWN = 20
# What the audit calls it, and what it says.
COMMAND = "import_roster"
COUNTED = ("added", "changed", "withdrawn", "unchanged", "rejected")


class Command(BaseCommand):
    help = "Bring the people of a CSV or XLSX file into an administration."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--administration", required=True, help="its short name")
        parser.add_argument(
            "--partial",
            action="store_true",
            help="import the good rows even if others are rejected",
        )
        parser.add_argument(
            "--complete-for",
            choices=RosterUpload.CompleteFor.values,
            default=RosterUpload.CompleteFor.CHANGES,
            help="withdraw whoever is missing: of the schools in the file, of its"
            " districts, of the state, or nobody (changes, the default)",
        )
        parser.add_argument(
            "--rejects",
            type=Path,
            help="write all rejected rows to this new CSV file, to be corrected",
        )
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            administration = get_administration(options["administration"])
        except AdministrationNotFound as error:
            raise CommandError(str(error)) from None
        start = time.perf_counter()
        report = _import(administration, options)
        seconds = time.perf_counter() - start
        if options["json"]:
            measured = {"seconds": round(seconds, 2), "peak_mb": _peak_megabytes()}
            self.stdout.write(
                json.dumps(report.as_dict() | measured, ensure_ascii=False)
            )
        else:
            self.stdout.write("\n".join(_lines(report, options["rejects"])))
            self.stdout.write(
                f"{seconds:.1f} s, {report.rows / seconds:,.0f} rows/s,"
                f" {_peak_megabytes()} MB at most"
            )
        if not report.imported:
            raise SystemExit(1)


def _import(administration: Administration, options: dict[str, Any]) -> RosterReport:
    path, rejects = options["file"], options["rejects"]
    try:
        with (
            path.open("rb") as file,
            private_file(rejects) if rejects else nullcontext() as rejects_file,
            open_table(file) as table,
        ):
            report = import_roster(
                administration=administration,
                table=table,
                partial=options["partial"],
                complete_for=options["complete_for"],
                rejects=rejects_file,
            )
    except (RosterUnreadable, CodeKeyMissing) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename or path}: {error.strerror}.") from error
    if report.imported:
        counts = {name: getattr(report, name) for name in COUNTED}
        record("import roster", by=COMMAND, subject=administration, after=counts)
    return report


def _lines(report: RosterReport, rejects: Path | None) -> list[str]:
    columns = report.columns
    lines = [f"{report.description}: {report.rows:,} rows"]
    lines += [
        f"  column '{text}' was read as {field.replace('_', ' ')}"
        for text, field in columns.guessed.items()
    ]
    if columns.attributes:
        lines.append(f"  subgroups: {', '.join(columns.attributes)}")
    lines += [
        f"  column '{text}' was ignored: {reason}"
        for text, reason in columns.ignored.items()
    ]
    lines += [f"  {note} ({count:,})" for note, count in report.notes.items()]
    lines += _created("district", report.districts_created)
    lines += _created("school", report.schools_created)
    lines += [
        f"  row {one.row}, {one.column or 'all columns'}: {one.text!r} {one.reason}"
        for one in report.rejections[:SHOWN]
    ]
    if report.rejected > SHOWN:
        where = f"all are in {rejects}" if rejects else "--rejects FILE writes all"
        lines.append(f"  … {report.rejected:,} rows were rejected; {where}")
    if report.imported:
        lines.append(
            f"{report.added:,} added, {report.changed:,} changed,"
            f" {report.unchanged:,} unchanged, {report.rejected:,} rejected"
        )
        if report.withdrawn:
            lines.append(f"{report.withdrawn:,} withdrawn, since they are missing")
    else:
        lines.append(
            f"Nothing was imported: {report.rejected:,} rows were rejected."
            " --partial imports the others."
        )
    return lines


def _created(kind: str, codes: list[str]) -> list[str]:
    if not codes:
        return []
    more = ", …" if len(codes) > SHOWN else ""
    return [f"  new {kind}s ({len(codes):,}): {', '.join(codes[:SHOWN])}{more}"]


def _peak_megabytes() -> int:
    # Kilobytes on Linux, where this runs.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
