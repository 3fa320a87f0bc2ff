from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts.models import District, School
from survey.administrations import open_administration
from survey.models import PublishedSurvey, Role, Wave
from survey.waves import get_or_create_wave

# What the audit calls it.
BY = "open_administration"


class Command(BaseCommand):
    help = "Offer a published survey to one role, from one moment to another."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="a short name, such as students-2027")
        parser.add_argument("--survey", required=True, help="the survey's form_id")
        parser.add_argument("--version", dest="survey_version")
        parser.add_argument("--role", required=True, choices=Role.values)
        parser.add_argument("--opens", required=True, type=_moment)
        parser.add_argument("--closes", required=True, type=_moment)
        parser.add_argument("--wave", help="such as 'Spring 2027'")
        parser.add_argument(
            "--district", metavar="CODE", help="whose it is; without, the state's"
        )
        parser.add_argument(
            "--for-district",
            action="append",
            default=[],
            metavar="CODE",
            help="offered there; may be repeated",
        )
        parser.add_argument(
            "--for-school",
            action="append",
            default=[],
            metavar="DISTRICT/SCHOOL",
            help="offered there, by both codes; may be repeated",
        )
        parser.add_argument(
            "--coordinators-see-finished",
            action="store_true",
            help="coordinators may see who has finished; never for teachers",
        )

    # Django's own --version option would stand in the way of the survey's.
    def create_parser(
        self, prog_name: str, subcommand: str, **kwargs: Any
    ) -> CommandParser:
        kwargs["conflict_handler"] = "resolve"
        return super().create_parser(prog_name, subcommand, **kwargs)

    def handle(self, *args: Any, **options: Any) -> None:
        published = _newest(options["survey"], options["survey_version"])
        district = _district(options["district"]) if options["district"] else None
        try:
            with transaction.atomic():
                administration = open_administration(
                    name=options["name"],
                    published=published,
                    role=options["role"],
                    opens_at=options["opens"],
                    closes_at=options["closes"],
                    wave=_wave(options["wave"], district),
                    district=district,
                    districts=[_district(code) for code in options["for_district"]],
                    schools=[_school(codes) for codes in options["for_school"]],
                    coordinators_see_finished=options["coordinators_see_finished"],
                    by=BY,
                )
        except ValidationError as error:
            raise CommandError("\n".join(error.messages)) from error
        self.stdout.write(
            f"{administration}: {published.survey} for {administration.role}s,"
            f" {administration.opens_at:%Y-%m-%d %H:%M}"
            f" to {administration.closes_at:%Y-%m-%d %H:%M} (UTC)"
        )


def _wave(name: str | None, district: District | None) -> Wave | None:
    """The district's own, or the state's; made where there is none."""
    if not name:
        return None
    shared = Wave.objects.filter(name__iexact=name, district=None).first()
    return shared or get_or_create_wave(name=name, district=district, by=BY)


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


def _newest(name: str, version: str | None) -> PublishedSurvey:
    found = PublishedSurvey.objects.filter(survey__name=name).select_related("survey")
    if version:
        found = found.filter(survey__version=version)
    published = found.order_by("-published_at").first()
    if published is None:
        raise CommandError(f"No published survey is called {name} {version or ''}.")
    return published
