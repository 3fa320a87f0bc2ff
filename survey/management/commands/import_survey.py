from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TypedDict

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import District
from survey.instrument.definitions.ownership import owner_with_code
from survey.instrument.foreign.converted import ReportLine
from survey.instrument.foreign.recognise import program_of
from survey.instrument.foreign.settling import read_questionnaire
from survey.instrument.spreadsheets.workbook_guard import SURVEY
from survey.instrument.xlsform import (
    Problem,
    Reading,
    SurveyIsPublished,
    import_survey,
    read_xlsform,
)
from survey.instrument.xlsform.draft import Draft
from survey.models import Survey


class Command(BaseCommand):
    help = (
        "Read a survey from an XLSForm workbook, or from a questionnaire of LimeSurvey,"
        " Qualtrics, REDCap or SurveyJS, and store it as a draft."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=Path, help="an .xlsx, .xls, .lss, .qsf, .csv or .json file"
        )
        parser.add_argument(
            "--json", action="store_true", help="print the result as JSON"
        )
        parser.add_argument(
            "--district", default="", help="the code of its owner (default: the state)"
        )

    def handle(
        self, *, file: Path, json: bool, district: str, **options: object
    ) -> None:
        try:
            owner = owner_with_code(district)
        except District.DoesNotExist:
            raise CommandError(f"No district has the code {district}.") from None
        try:
            reading, report = read_file(file)
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from error
        survey, problems = None, list(reading.problems)
        if reading.draft is not None:
            try:
                survey = import_survey(
                    draft=reading.draft,
                    source_name=f"{file.stem}.xlsx" if report else file.name,
                    source=reading.source,
                    district=owner,
                )
            except SurveyIsPublished as error:
                problems.append(Problem("settings", None, "version", str(error)))
        if json:
            self.write_json(reading, survey, problems, report)
        else:
            self.write_report(report)
            self.write_text(reading, survey, problems)
        if problems:
            # The list is the message: a CommandError would add a second one.
            raise SystemExit(1)

    def write_report(self, report: list[ReportLine]) -> None:
        for line in report:
            if line.outcome != "taken":
                words = (line.outcome, line.part, line.place, line.text, line.reason)
                self.stdout.write("  ".join(filter(None, words)))

    def write_json(
        self,
        reading: Reading,
        survey: Survey | None,
        problems: list[Problem],
        report: list[ReportLine],
    ) -> None:
        result: dict[str, object] = {
            "imported": survey is not None,
            "problems": [asdict(problem) for problem in problems],
            "warnings": [asdict(warning) for warning in reading.warnings],
        }
        if report:
            result["report"] = [asdict(line) for line in report]
        if survey and reading.draft:
            result |= {"name": survey.name, "version": survey.version}
            result |= counts_of(reading.draft)
        self.stdout.write(json.dumps(result, ensure_ascii=False, indent=1))

    def write_text(
        self, reading: Reading, survey: Survey | None, problems: list[Problem]
    ) -> None:
        if reading.warnings:
            self.stdout.write(self.style.WARNING("Warnings"))
            self.stdout.write(table(reading.warnings))
        if problems:
            self.stderr.write(self.style.ERROR("Problems"))
            self.stderr.write(table(problems))
            noun = "problem" if len(problems) == 1 else "problems"
            self.stderr.write(f"{len(problems)} {noun}; nothing was imported.")
        if survey and reading.draft:
            counts = counts_of(reading.draft)
            self.stdout.write(
                f"Imported {survey.name}, version {survey.version}, as a draft:"
                f" {counts['pages']} pages, {counts['items']} items,"
                f" languages {', '.join(counts['languages'])},"
                f" {len(reading.warnings)} warnings."
            )


def read_file(file: Path) -> tuple[Reading, list[ReportLine]]:
    """Read a workbook, or convert a questionnaire of another program."""
    with file.open("rb") as opened:
        content = opened.read(SURVEY.file + 1)
    if program_of(content):
        return read_questionnaire(content, file.stem)
    return read_xlsform(content, name=file.stem), []


class Counts(TypedDict):
    """Contents of an imported survey; `items` are those that can be answered."""

    pages: int
    items: int
    languages: list[str]


def counts_of(draft: Draft) -> Counts:
    return {
        "pages": len(draft.pages),
        "items": sum(item.is_answerable for item in draft.items()),
        "languages": [language["code"] for language in draft.languages],
    }


def table(problems: list[Problem]) -> str:
    """Write problems in columns: place, reason and the cell's text."""
    width = min(44, max(len(problem.place) for problem in problems))
    lines = []
    for problem in problems:
        quote = f"  [{problem.text}]" if problem.text else ""
        lines.append(f"  {problem.place:<{width}}  {problem.reason}{quote}")
    return "\n".join(lines)
