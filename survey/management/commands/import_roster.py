from __future__ import annotations

import json
import resource
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TypedDict, Unpack

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.audit import record
from survey.access_codes import CodeKeyMissing
from survey.administrations import AdministrationNotFound, get_administration
from survey.models import RosterUpload
from survey.rosters.apply import import_roster
from survey.rosters.file_reader import RosterUnreadable, open_table
from survey.rosters.private_files import private_file
from survey.rosters.report import RosterReport
from survey.rosters.scope import RosterRefused

# Rejections and new schools that are printed.
MOST_SHOWN = 20
# The name in the audit log, and the figures of its entry.
COMMAND = "import_roster"
COUNTS = ("added", "changed", "withdrawn", "unchanged", "rejected")


class Options(TypedDict):
    file: Path
    administration: str
    partial: bool
    complete_for: str
    rejects: Path | None
    json: bool


class Command(BaseCommand):
    help = "Import a roster (CSV or Excel) into an administration."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a CSV, .xlsx or .xls file")
        parser.add_argument("--administration", required=True, help="its short name")
        parser.add_argument(
            "--partial",
            action="store_true",
            help="import the valid rows even if others are rejected",
        )
        parser.add_argument(
            "--complete-for",
            choices=RosterUpload.CompleteFor.values,
            default=RosterUpload.CompleteFor.CHANGES,
            help="withdraw people who are missing from the file: from the schools in"
            " it, from the districts in it, from the state, or nobody (changes, the"
            " default)",
        )
        parser.add_argument(
            "--rejects",
            type=Path,
            help="write all rejected rows to this new CSV file, to be corrected",
        )
        parser.add_argument(
            "--json", action="store_true", help="print the report as JSON"
        )

    def handle(self, *args: object, **options: Unpack[Options]) -> None:
        start = time.perf_counter()
        report = self._import(options)
        seconds = time.perf_counter() - start
        # ru_maxrss is in kilobytes on Linux.
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        if options["json"]:
            measured = {"seconds": round(seconds, 2), "peak_mb": megabytes}
            self.stdout.write(
                json.dumps(report.as_dict() | measured, ensure_ascii=False)
            )
        else:
            self._print_report(report, options["rejects"])
            self.stdout.write(
                f"{seconds:.1f} s, {report.rows / seconds:,.0f} rows/s,"
                f" {megabytes} MB at most"
            )
        if not report.imported:
            raise SystemExit(1)

    def _import(self, options: Options) -> RosterReport:
        path, rejects = options["file"], options["rejects"]
        try:
            administration = get_administration(options["administration"])
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
        except (
            AdministrationNotFound,
            RosterRefused,
            RosterUnreadable,
            CodeKeyMissing,
        ) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(
                f"{error.filename or path}: {error.strerror}."
            ) from error
        if report.imported:
            counts = {name: getattr(report, name) for name in COUNTS}
            record("import roster", by=COMMAND, subject=administration, after=counts)
        return report

    def _print_report(self, report: RosterReport, rejects: Path | None) -> None:
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
        created = {
            "districts": report.districts_created,
            "schools": report.schools_created,
        }
        for kind, codes in created.items():
            if codes:
                more = ", …" if len(codes) > MOST_SHOWN else ""
                shown = ", ".join(codes[:MOST_SHOWN])
                lines.append(f"  new {kind} ({len(codes):,}): {shown}{more}")
        lines += [
            f"  row {cell.row}, {cell.column or 'all columns'}:"
            f" {cell.text!r} {cell.reason}"
            for cell in report.rejections[:MOST_SHOWN]
        ]
        if report.rejected > MOST_SHOWN:
            where = f"all are in {rejects}" if rejects else "--rejects FILE writes all"
            lines.append(f"  … {report.rejected:,} rows were rejected; {where}")
        if report.imported:
            lines.append(
                f"{report.added:,} added, {report.changed:,} changed,"
                f" {report.unchanged:,} unchanged, {report.rejected:,} rejected"
            )
            if report.withdrawn:
                lines.append(f"{report.withdrawn:,} withdrawn, missing from the file")
        else:
            lines.append(
                f"Nothing was imported: {report.rejected:,} rows were rejected."
                " Correct them, or import the other rows with --partial."
            )
        self.stdout.write("\n".join(lines))
