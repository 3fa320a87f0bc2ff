from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.audit import record
from accounts.models import School
from survey.access_codes import CodeKeyMissing
from survey.administrations import (
    AdministrationNotFound,
    get_administration,
    invited_people,
)
from survey.login_cards.card_sets import mark_sets_of_people_outdated
from survey.login_cards.code_list import write_access_codes
from survey.models import Respondent
from survey.rosters.private_files import private_file

# What the audit calls it.
COMMAND = "access_codes"


class Command(BaseCommand):
    help = "Write the access codes of an administration to a CSV file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--administration", required=True, help="its short name")
        parser.add_argument("--output", required=True, type=Path, help="a new CSV file")
        parser.add_argument("--district", help="only this one, by its code")
        parser.add_argument("--school", help="only this one, by its code or name")
        parser.add_argument(
            "--base-url", default="", help="adds links, such as https://survey.org"
        )
        parser.add_argument(
            "--force", action="store_true", help="replace the file if it is there"
        )
        again = parser.add_mutually_exclusive_group()
        again.add_argument(
            "--reissue", metavar="ID", help="give this person a new code; the old ends"
        )
        again.add_argument(
            "--reissue-all", action="store_true", help="give everybody a new code"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        base_url = _checked_url(options["base_url"])
        people = _people(options)
        path: Path = options["output"]
        try:
            with private_file(path, replace=options["force"]) as file:
                _written_down(people, options)
                written = write_access_codes(
                    people=people,
                    file=file,
                    base_url=base_url,
                    reissue=bool(options["reissue"] or options["reissue_all"]),
                )
        except CodeKeyMissing as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            hint = "; --force replaces it" if isinstance(error, FileExistsError) else ""
            raise CommandError(f"{path}: {error.strerror}{hint}.") from error
        self.stdout.write(f"{written:,} access codes are in {path}")


def _written_down(people: QuerySet[Respondent], options: dict[str, Any]) -> None:
    """Before the first name is read: a file that was broken off holds some."""
    reissues = bool(options["reissue"] or options["reissue_all"])
    asked = {name: options[name] for name in ("district", "school") if options[name]}
    schools = School.objects.filter(pk__in=people.values("school"))
    places = list(schools.select_related("district")[:2])
    with transaction.atomic():
        record(
            "reissue access codes" if reissues else "download cards",
            by=COMMAND,
            subject=get_administration(options["administration"]),
            # Of one school, its administrators may read it.
            school=places[0] if len(places) == 1 else None,
            after={**asked, "people": people.count()},
        )
        if reissues:
            mark_sets_of_people_outdated(people)


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise CommandError("--base-url is the survey's address: https://…")
    if parts.fragment or parts.query:
        raise CommandError("--base-url may have neither ? nor #.")
    return url


def _people(options: dict[str, Any]) -> QuerySet[Respondent]:
    try:
        people = invited_people(get_administration(options["administration"]))
    except AdministrationNotFound as error:
        raise CommandError(str(error)) from None
    if options["district"]:
        people = people.filter(school__district__code__iexact=options["district"])
    if options["school"]:
        people = people.filter(school=_school(people, options["school"]))
    if options["reissue"]:
        people = people.filter(identity__external_id=options["reissue"])
        _check_one(people.count(), f"person has the ID {options['reissue']}")
    return people


def _school(people: QuerySet[Respondent], wanted: str) -> School:
    named = Q(code__iexact=wanted) | Q(name__iexact=wanted)
    found = School.objects.filter(named, pk__in=people.values("school"))
    _check_one(len(found), f"school is called {wanted}")
    return found[0]


def _check_one(found: int, what: str) -> None:
    if not found:
        raise CommandError(f"No {what}.")
    # To guess would hand one district's codes to another.
    if found > 1:
        raise CommandError(f"More than one {what}: say which --district.")
