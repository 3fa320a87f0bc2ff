from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypedDict, Unpack

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.audit import record
from accounts.models import District, School
from survey.fieldwork.administrations import AdministrationNotFound, get_administration
from survey.models import Administration, RosterUpload
from survey.people.access_codes import CodeKeyMissing
from survey.people.rosters.apply import import_roster
from survey.people.rosters.columns import ALIASES, SUBGROUP
from survey.people.rosters.file_reader import (
    ColumnsUnclear,
    RosterUnreadable,
    open_roster_file,
    suggest_columns,
    with_columns,
)
from survey.people.rosters.file_summary import summarise_file
from survey.people.rosters.layouts import (
    KnownPlace,
    RosterLayout,
    Suggestion,
    missing_fields,
    questions_text,
)
from survey.people.rosters.missing_people import many_withdrawn, withdraws_many
from survey.people.rosters.presets import all_presets
from survey.people.rosters.private_files import private_file
from survey.people.rosters.report import RosterReport
from survey.people.rosters.roster_sheets import SheetsUnclear
from survey.people.rosters.scope import RosterRefused
from survey.people.rosters.table import RosterTable

# Rejections and new schools that are printed.
MOST_SHOWN = 20
# The name in the audit log, and the figures of its entry.
COMMAND = "import_roster"
COUNTS = ("added", "changed", "withdrawn", "unchanged", "rejected")


class Options(TypedDict):
    file: Path
    administration: str
    preset: str
    district: str
    school: str
    sheet: str
    column: list[str]
    dates: str
    partial: bool
    complete_for: str
    confirm_withdrawn: int | None
    rejects: Path | None
    json: bool


class Command(BaseCommand):
    help = "Import a roster (CSV or Excel) into an administration."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("file", type=Path, help="a CSV, .xlsx or .xls file")
        add("--administration", required=True, help="its short name")
        add(
            "--preset",
            choices=sorted(all_presets()),
            default="",
            help="the layout of the file; recognised by its headers where possible",
        )
        add("--district", default="", help="code of the district, if the file has none")
        add("--school", default="", help="code of the school, if the file has none")
        add(
            "--sheet",
            default="",
            help="the sheet of a workbook to read, * for all that have people; needed"
            " if several have",
        )
        add(
            "--column",
            action="append",
            default=[],
            metavar="FIELD=HEADER",
            help="say which column holds a field, such as external_id='Local ID';"
            " nothing after the sign leaves the field out",
        )
        add(
            "--dates",
            choices=("day-first", "month-first"),
            default="",
            help="say how dates such as 3/4/2015 are written",
        )
        add(
            "--partial",
            action="store_true",
            help="import the valid rows even if others are rejected",
        )
        add(
            "--complete-for",
            choices=RosterUpload.CompleteFor.values,
            default=RosterUpload.CompleteFor.CHANGES,
            help="withdraw people who are missing from the file: from the schools in"
            " it, from the districts in it, from the state, or nobody (changes, the"
            " default)",
        )
        add(
            "--confirm-withdrawn",
            type=int,
            metavar="NUMBER",
            help="the number of people who will be withdrawn, where these are more"
            " than a tenth of a school or district: without it nothing is imported",
        )
        add(
            "--rejects",
            type=Path,
            help="write all rejected rows to this new CSV file, to be corrected",
        )
        add("--json", action="store_true", help="print the report as JSON")

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
            if administration.module_of_id is not None:
                raise CommandError("Nobody is invited to the questions of a district.")
            with (
                path.open("rb") as file,
                private_file(rejects) if rejects else nullcontext() as rejects_file,
                self._open(file, administration, options) as table,
            ):
                report = import_roster(
                    administration=administration,
                    table=table,
                    partial=options["partial"],
                    complete_for=options["complete_for"],
                    rejects=rejects_file,
                    check_figures=partial(
                        refuse_many_withdrawn, options["confirm_withdrawn"]
                    ),
                )
        except ColumnsUnclear as error:
            advice = "Answer with --column FIELD=HEADER or --dates"
            if not options["preset"]:
                advice += ", or choose a --preset"
            if {"district", "school"} & {*error.suggestion.questions}:
                advice += ", or name the place of everyone with --district or --school"
            raise CommandError(f"{error} {advice}.") from error
        except SheetsUnclear as error:
            raise CommandError(f"{error} Answer with --sheet NAME.") from error
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

    @contextmanager
    def _open(
        self, file: BinaryIO, administration: Administration, options: Options
    ) -> Iterator[RosterTable]:
        known = known_place(options["district"], options["school"])
        role, preset = administration.role, options["preset"]
        with open_roster_file(file, known, sheet=options["sheet"]) as table:
            layout = None
            if options["column"] or options["dates"]:
                guess = suggest_columns(table, role=role, preset=preset)
                layout = with_answers(guess, options["column"], options["dates"], known)
            yield with_columns(table, layout, role=role, preset=preset)

    def _print_report(self, report: RosterReport, rejects: Path | None) -> None:
        lines = summarise_file(report)
        lines += [
            f"  {note} ({count:,})" if count > 1 else f"  {note}"
            for note, count in report.notes.items()
        ]
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
                lines.append(
                    f"{report.withdrawn:,} withdrawn, missing from the file or marked"
                    " as having left"
                )
        else:
            lines.append(
                f"Nothing was imported: {report.rejected:,} rows were rejected."
                " Correct them, or import the other rows with --partial."
            )
        self.stdout.write("\n".join(lines))


def refuse_many_withdrawn(confirmed: int | None, report: RosterReport) -> None:
    """Raise CommandError unless a person has typed how many will be withdrawn."""
    if withdraws_many(report.schools) and confirmed != report.withdrawn:
        raise CommandError(
            f"{many_withdrawn(report.withdrawn)} Nothing was imported. If the file"
            " is complete, confirm the number with --confirm-withdrawn"
            f" {report.withdrawn}."
        )


def known_place(district: str, school: str) -> KnownPlace:
    """Return the place of these codes. Raises CommandError."""
    schools = School.objects.filter(code__iexact=school)
    if district:
        owner = District.objects.filter(code__iexact=district).first()
        if owner is None:
            raise CommandError(f"No district has the code {district}.")
        schools = schools.filter(district=owner)
        if not school:
            return KnownPlace.of(owner, None)
    elif not school:
        return KnownPlace()
    matching = list(schools.select_related("district")[:2])
    if len(matching) != 1:
        number = "Several schools have" if matching else "No school has"
        raise CommandError(f"{number} the code {school}. Name its --district, too.")
    return KnownPlace.of(None, matching[0])


def with_answers(
    suggestion: Suggestion, columns: Iterable[str], dates: str, known: KnownPlace
) -> RosterLayout:
    """Answer a suggestion's questions. Raises CommandError for those left open."""
    fields, answered = dict(suggestion.layout.fields), set()
    for text in columns:
        name, sign, header = text.partition("=")
        if not sign or not (name in ALIASES or name.startswith(SUBGROUP)):
            raise CommandError(
                f"--column {text}: expected FIELD=HEADER, where the field is one of"
                f" {', '.join(ALIASES)}."
            )
        if header and header not in suggestion.samples:
            raise CommandError(
                f"The file has no column '{header}'. It has:"
                f" {', '.join(suggestion.samples)}."
            )
        fields[name] = header
        # Where the question is the order of the dates, a column is no answer.
        if name != "birth_date" or suggestion.options.get(name):
            answered.add(name)
    if dates:
        answered.add("birth_date")
    fields = {name: header for name, header in fields.items() if header}
    left = [
        name
        for name in suggestion.questions
        if name not in answered or name in missing_fields(fields, known)
    ]
    if left:
        raise CommandError(questions_text(replace(suggestion, questions=left)))
    day_first = dates == "day-first" if dates else None
    return replace(suggestion.layout, fields=fields, day_first=day_first)
