from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import District
from survey.instrument.definitions.ownership import owner_with_code
from survey.instrument.drafts.drafting import definition_to_show, exported_workbook
from survey.models import Survey


class Command(BaseCommand):
    help = "Write a survey to a file: an XLSForm workbook, or its definition as JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the survey's form_id")
        parser.add_argument(
            "--version", dest="survey_version", help="default: the newest version"
        )
        parser.add_argument(
            "--district", default="", help="the code of its owner (default: the state)"
        )
        parser.add_argument("--format", choices=("xlsx", "json"), default="xlsx")
        parser.add_argument("--output", type=Path, required=True)

    # Replaces Django's own --version option with the survey's.
    def create_parser(
        self, prog_name: str, subcommand: str, **kwargs: Any
    ) -> CommandParser:
        kwargs["conflict_handler"] = "resolve"
        return super().create_parser(prog_name, subcommand, **kwargs)

    def handle(
        self,
        *,
        name: str,
        survey_version: str | None,
        district: str,
        format: str,
        output: Path,
        **options: object,
    ) -> None:
        try:
            owner = owner_with_code(district)
        except District.DoesNotExist:
            raise CommandError(f"No district has the code {district}.") from None
        rows = Survey.objects.filter(name=name, district=owner).defer("source")
        if survey_version is not None:
            rows = rows.filter(version=survey_version)
        survey = rows.order_by("created_at").last()
        if survey is None:
            version = survey_version or ""
            raise CommandError(f"There is no survey {name} {version}".strip() + ".")
        if format == "json":
            definition = definition_to_show(survey)
            if definition is None:
                raise CommandError("The draft has no question that could be shown.")
            text = json.dumps(definition, ensure_ascii=False, indent=1)
            content = f"{text}\n".encode()
        else:
            content = exported_workbook(survey)
        try:
            output.write_bytes(content)
        except OSError as error:
            raise CommandError(
                f"{output} cannot be written: {error.strerror}"
            ) from error
        self.stdout.write(f"{survey.name} {survey.version} was written to {output}.")
