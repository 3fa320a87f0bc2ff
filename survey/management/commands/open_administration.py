from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts.models import District, School
from survey.fieldwork.administrations import open_administration, parse_subgroups
from survey.fieldwork.waves import get_or_create_wave
from survey.models import PublishedSurvey, Role, Wave

# The command's name in the audit log.
BY = "open_administration"


class Command(BaseCommand):
    help = "Open an administration: offer a published survey to one role for some time."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="a short name, such as students-2027")
        parser.add_argument("--survey", required=True, help="the survey's form_id")
        parser.add_argument("--version", dest="survey_version")
        parser.add_argument("--role", required=True, choices=Role.values)
        parser.add_argument("--opens", required=True, type=_moment)
        parser.add_argument("--closes", required=True, type=_moment)
        parser.add_argument("--wave", help="such as 'Spring 2027'")
        parser.add_argument(
            "--district", metavar="CODE", help="the owner; the state if left out"
        )
        parser.add_argument(
            "--for-district",
            action="append",
            default=[],
            metavar="CODE",
            help="offer it in this district; may be repeated",
        )
        parser.add_argument(
            "--for-school",
            action="append",
            default=[],
            metavar="DISTRICT/SCHOOL",
            help="offer it in this school, by both codes; may be repeated",
        )
        parser.add_argument(
            "--coordinators-see-finished",
            action="store_true",
            help="coordinators can see who has finished; not allowed for teachers",
        )
        parser.add_argument(
            "--replays-answers",
            action="store_true",
            help="a code shows earlier answers on every device",
        )
        parser.add_argument(
            "--allows-declining",
            action="store_true",
            help="people can say on the first page that they do not want to take part",
        )
        parser.add_argument(
            "--subgroup",
            action="append",
            metavar="COLUMN: VALUES",
            help="a column of the roster to store next to answers, such as"
            " 'lunch: free, reduced, paid'; may be repeated; the standard ones if"
            " left out",
        )

    # The survey's --version replaces Django's own option.
    def create_parser(
        self, prog_name: str, subcommand: str, **kwargs: Any
    ) -> CommandParser:
        kwargs["conflict_handler"] = "resolve"
        return super().create_parser(prog_name, subcommand, **kwargs)

    def handle(self, *args: Any, **options: Any) -> None:
        published = _newest_survey(options["survey"], options["survey_version"])
        district = _district(options["district"]) if options["district"] else None
        try:
            # A new wave is not kept if the administration is refused.
            with transaction.atomic():
                wave = None
                if name := options["wave"]:
                    # The state's wave, or the district's own.
                    wave = Wave.objects.filter(name__iexact=name, district=None).first()
                    wave = wave or get_or_create_wave(
                        name=name, district=district, by=BY
                    )
                administration = open_administration(
                    name=options["name"],
                    published=published,
                    role=options["role"],
                    opens_at=options["opens"],
                    closes_at=options["closes"],
                    wave=wave,
                    district=district,
                    districts=[_district(code) for code in options["for_district"]],
                    schools=[_school(codes) for codes in options["for_school"]],
                    coordinators_see_finished=options["coordinators_see_finished"],
                    replays_answers=options["replays_answers"],
                    allows_declining=options["allows_declining"],
                    subgroups=(
                        None
                        if options["subgroup"] is None
                        else parse_subgroups(options["subgroup"])
                    ),
                    by=BY,
                )
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error
        self.stdout.write(
            f"{administration}: {published.survey} for {administration.role}s,"
            f" {administration.opens_at:%Y-%m-%d %H:%M}"
            f" to {administration.closes_at:%Y-%m-%d %H:%M} (UTC)"
        )


def _district(code: str) -> District:
    try:
        return District.objects.get(code=code)
    except District.DoesNotExist:
        raise CommandError(f"No district has the code {code}.") from None


def _school(codes: str) -> School:
    district, _, school = codes.partition("/")
    try:
        return School.objects.get(district__code=district, code=school)
    except School.DoesNotExist:
        raise CommandError(
            f"No school has the codes {codes}. Write DISTRICT/SCHOOL."
        ) from None


def _moment(text: str) -> datetime:
    moment = parse_datetime(text) or parse_datetime(f"{text}T00:00")
    if moment is None:
        raise ValueError(text)
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)


def _newest_survey(name: str, version: str | None) -> PublishedSurvey:
    surveys = PublishedSurvey.objects.filter(survey__name=name).select_related("survey")
    if version:
        surveys = surveys.filter(survey__version=version)
    published = surveys.order_by("-published_at").first()
    if published is None:
        raise CommandError(f"No published survey is called {name} {version or ''}.")
    return published
