from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TypedDict, Unpack

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.audit import record
from survey.people.rosters.file_reader import RosterUnreadable, open_list
from survey.people.rosters.private_files import private_file
from survey.people.schools.columns import SCHOOL_HEADER
from survey.people.schools.importing import SchoolReport, import_schools

# Rejections that are printed.
MOST_SHOWN = 20
# The name in the audit log, and the figures of its entry.
COMMAND = "import_schools"
COUNTS = ("created", "changed", "unchanged", "rejected")


class Options(TypedDict):
    file: Path
    create: bool
    partial: bool
    dry_run: bool
    rejects: Path | None
    json: bool


class Command(BaseCommand):
    help = (
        "Import addresses and coordinates of schools (CSV or Excel) with the columns"
        " of NCES EDGE: NCESSCH, NAME, STREET, CITY, STATE, ZIP, LAT, LON."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a CSV, .xlsx or .xls file")
        parser.add_argument(
            "--create",
            action="store_true",
            help="create schools whose code is not known, in the district LEAID",
        )
        parser.add_argument(
            "--partial",
            action="store_true",
            help="import the valid rows even if others are rejected",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only say what would change",
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
        report = self._import(options)
        if options["json"]:
            self.stdout.write(json.dumps(report.as_dict(), ensure_ascii=False))
        else:
            self._print_report(report, options)
        if report.rejected and not options["partial"]:
            raise SystemExit(1)

    def _import(self, options: Options) -> SchoolReport:
        path, rejects = options["file"], options["rejects"]
        try:
            with (
                path.open("rb") as file,
                private_file(rejects) if rejects else nullcontext() as rejects_file,
                open_list(file, SCHOOL_HEADER) as table,
            ):
                report = import_schools(
                    table,
                    create=options["create"],
                    partial=options["partial"],
                    dry_run=options["dry_run"],
                    rejects=rejects_file,
                )
        except RosterUnreadable as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(
                f"{error.filename or path}: {error.strerror}."
            ) from error
        if report.imported:
            counts = {name: getattr(report, name) for name in COUNTS}
            record("import schools", by=COMMAND, after=counts)
        return report

    def _print_report(self, report: SchoolReport, options: Options) -> None:
        lines = [f"{report.description}: {report.rows:,} rows"]
        lines += [
            f"  row {cell.row}, {cell.column}: {cell.text!r} {cell.reason}"
            for cell in report.rejections[:MOST_SHOWN]
        ]
        if len(report.rejections) > MOST_SHOWN:
            rejects = options["rejects"]
            where = f"all are in {rejects}" if rejects else "--rejects FILE writes all"
            lines.append(f"  … {report.rejected:,} rows were rejected; {where}")
        counts = (
            f"{report.created:,} created, {report.changed:,} changed,"
            f" {report.unchanged:,} unchanged, {report.rejected:,} rejected"
        )
        if report.imported:
            lines.append(counts)
        elif options["dry_run"]:
            lines.append(f"Nothing was imported (--dry-run): {counts}")
        else:
            lines.append(
                f"Nothing was imported: {report.rejected:,} rows were rejected."
                " Correct them, or import the other rows with --partial."
            )
        self.stdout.write("\n".join(lines))
