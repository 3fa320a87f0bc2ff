from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import District
from survey.definitions.ownership import owner_with_code
from survey.definitions.publishing import NotPublishable, publish_survey
from survey.models import Survey


class Command(BaseCommand):
    help = "Freeze a survey under the digest of its content; prints the digest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the survey's form_id")
        parser.add_argument("--version", dest="survey_version")
        parser.add_argument(
            "--district", default="", help="the code of its owner (default: the state)"
        )

    # Django's own --version option would stand in the way of the survey's.
    def create_parser(
        self, prog_name: str, subcommand: str, **kwargs: Any
    ) -> CommandParser:
        kwargs["conflict_handler"] = "resolve"
        return super().create_parser(prog_name, subcommand, **kwargs)

    def handle(self, *args: Any, **options: Any) -> None:
        survey = _the_one(
            options["name"], options["survey_version"], options["district"]
        )
        try:
            published = publish_survey(survey=survey)
        except NotPublishable as error:
            raise CommandError(str(error)) from error
        self.stdout.write(published.digest)


def _the_one(name: str, version: str | None, owner: str) -> Survey:
    """The version that was named, or the only draft; else the only one."""
    try:
        district = owner_with_code(owner)
    except District.DoesNotExist:
        raise CommandError(f"No district has the code {owner}.") from None
    found = Survey.objects.filter(name=name, district=district).order_by("created_at")
    if version is not None:
        found = found.filter(version=version)
    drafts = [survey for survey in found if survey.published_at is None]
    for candidates in (drafts, list(found)):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            versions = ", ".join(survey.version for survey in candidates)
            raise CommandError(f"Say which with --version: {versions}.")
    raise CommandError(f"There is no survey {name} {version or ''}".strip() + ".")
