from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import District
from survey.definitions.ownership import owner_with_code
from survey.models import Survey
from survey.xlsform import (
    Problem,
    Reading,
    SurveyIsPublished,
    import_survey,
    read_xlsform,
)
from survey.xlsform.draft import Draft


class Command(BaseCommand):
    help = "Read a survey from an XLSForm workbook and store it as a draft."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="an .xlsx file")
        parser.add_argument(
            "--json", action="store_true", help="answer in JSON, for programs"
        )
        parser.add_argument(
            "--district", default="", help="the code of its owner (default: the state)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            reading = read_xlsform(path, name=path.stem)
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}") from error
        survey, refusal = _stored(reading, path.name, _owner(options["district"]))
        problems = reading.problems + ([refusal] if refusal else [])
        if options["json"]:
            self.stdout.write(_as_json(reading, survey, problems))
        else:
            self._tell(reading, survey, problems)
        if problems:
            # The list is the message: a CommandError would add a second one.
            raise SystemExit(1)

    def _tell(
        self, reading: Reading, survey: Survey | None, problems: list[Problem]
    ) -> None:
        if reading.warnings:
            self.stdout.write(self.style.WARNING("Warnings"))
            self.stdout.write(_table(reading.warnings))
        if problems:
            self.stderr.write(self.style.ERROR("Refused"))
            self.stderr.write(_table(problems))
            several = "problem" if len(problems) == 1 else "problems"
            self.stderr.write(f"{len(problems)} {several}; nothing was imported.")
        if survey and reading.draft:
            counts = summary(reading.draft)
            self.stdout.write(
                f"Imported {survey.name}, version {survey.version}, as a draft:"
                f" {counts['pages']} pages, {counts['items']} items,"
                f" languages {', '.join(counts['languages'])},"
                f" {len(reading.warnings)} warnings."
            )


def _owner(code: str) -> District | None:
    try:
        return owner_with_code(code)
    except District.DoesNotExist:
        raise CommandError(f"No district has the code {code}.") from None


def _stored(
    reading: Reading, name: str, district: District | None
) -> tuple[Survey | None, Problem | None]:
    if reading.draft is None:
        return None, None
    try:
        survey = import_survey(
            draft=reading.draft,
            source_name=name,
            source=reading.source,
            district=district,
        )
    except SurveyIsPublished as error:
        return None, Problem("settings", None, "version", str(error))
    return survey, None


def summary(draft: Draft) -> dict[str, Any]:
    """Items are what a respondent can answer."""
    return {
        "pages": len(draft.pages),
        "items": sum(item.is_answerable for item in draft.items()),
        "languages": [language["code"] for language in draft.languages],
    }


def _as_json(reading: Reading, survey: Survey | None, problems: list[Problem]) -> str:
    told: dict[str, Any] = {
        "imported": survey is not None,
        "problems": [_problem_as_json(problem) for problem in problems],
        "warnings": [_problem_as_json(problem) for problem in reading.warnings],
    }
    if survey and reading.draft:
        told |= {"name": survey.name, "version": survey.version}
        told |= summary(reading.draft)
    return json.dumps(told, ensure_ascii=False, indent=1)


def _problem_as_json(problem: Problem) -> dict[str, Any]:
    return {
        "sheet": problem.sheet,
        "row": problem.row,
        "column": problem.column,
        "reason": problem.reason,
        "text": problem.text,
    }


def _table(problems: list[Problem]) -> str:
    """Where, why and what, the first two in columns."""
    width = min(44, max(len(problem.place) for problem in problems))
    lines = []
    for problem in problems:
        quote = f"  [{problem.text}]" if problem.text else ""
        lines.append(f"  {problem.place:<{width}}  {problem.reason}{quote}")
    return "\n".join(lines)
