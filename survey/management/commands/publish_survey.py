from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import District
from survey.instrument.definitions.ownership import owner_with_code
from survey.instrument.definitions.publishing import NotPublishable
from survey.instrument.drafts.drafting import publish_draft
from survey.models import Survey


class Command(BaseCommand):
    help = "Publish a survey, which can't be changed afterwards; print its digest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the survey's form_id")
        parser.add_argument("--version", dest="survey_version")
        parser.add_argument(
            "--district", default="", help="the code of its owner (default: the state)"
        )

    # Replaces Django's own --version option with the survey's.
    def create_parser(
        self, prog_name: str, subcommand: str, **kwargs: Any
    ) -> CommandParser:
        kwargs["conflict_handler"] = "resolve"
        return super().create_parser(prog_name, subcommand, **kwargs)

    def handle(
        self, *, name: str, survey_version: str | None, district: str, **options: object
    ) -> None:
        try:
            owner = owner_with_code(district)
        except District.DoesNotExist:
            raise CommandError(f"No district has the code {district}.") from None
        rows = Survey.objects.filter(name=name, district=owner).order_by("created_at")
        if survey_version is not None:
            rows = rows.filter(version=survey_version)
        # The only draft, or else the only version.
        drafts = [survey for survey in rows if survey.published_at is None]
        candidates = drafts or list(rows)
        if not candidates:
            version = survey_version or ""
            raise CommandError(f"There is no survey {name} {version}".strip() + ".")
        if len(candidates) > 1:
            versions = ", ".join(survey.version for survey in candidates)
            raise CommandError(f"Choose a version with --version: {versions}.")
        try:
            published = publish_draft(survey=candidates[0])
        except NotPublishable as error:
            raise CommandError(str(error)) from error
        self.stdout.write(published.digest)
