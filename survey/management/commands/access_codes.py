from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.audit import record
from accounts.models import School
from survey.fieldwork.administrations import (
    AdministrationNotFound,
    get_administration,
    invited_people,
)
from survey.fieldwork.login_cards.card_sets import mark_sets_of_people_outdated
from survey.fieldwork.login_cards.code_list import write_access_codes
from survey.models import Administration, Respondent
from survey.people.access_codes import CodeKeyMissing
from survey.people.rosters.private_files import private_file

# The command's name in the audit log.
BY = "access_codes"


class Command(BaseCommand):
    help = "Write the access codes of an administration to a CSV file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--administration", required=True, help="its short name")
        parser.add_argument("--output", required=True, type=Path, help="a new CSV file")
        parser.add_argument("--district", help="only this district, by its code")
        parser.add_argument("--school", help="only this school, by its code or name")
        parser.add_argument(
            "--base-url", default="", help="add links, such as https://survey.org"
        )
        parser.add_argument(
            "--force", action="store_true", help="replace the file if it exists"
        )
        reissue = parser.add_mutually_exclusive_group()
        reissue.add_argument(
            "--reissue", metavar="ID", help="replace the code of this person"
        )
        reissue.add_argument(
            "--reissue-all", action="store_true", help="replace the codes of all people"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        url = urlsplit(options["base_url"])
        if options["base_url"]:
            if url.scheme not in ("http", "https") or not url.hostname:
                raise CommandError("--base-url must be an address such as https://…")
            if url.fragment or url.query:
                raise CommandError("--base-url must contain neither ? nor #.")
        try:
            administration = get_administration(options["administration"])
        except AdministrationNotFound as error:
            raise CommandError(str(error)) from None
        people = _find_people(
            administration,
            district=options["district"],
            school=options["school"],
            external_id=options["reissue"],
        )
        reissue = bool(options["reissue"] or options["reissue_all"])
        filters = {
            name: options[name] for name in ("district", "school") if options[name]
        }
        path: Path = options["output"]
        try:
            with private_file(path, replace=options["force"]) as file:
                # Before the first name is written: a broken file has some too.
                _record(administration, people, filters, reissue=reissue)
                written = write_access_codes(
                    people=people,
                    file=file,
                    base_url=options["base_url"],
                    reissue=reissue,
                )
        except CodeKeyMissing as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            hint = "; --force replaces it" if isinstance(error, FileExistsError) else ""
            raise CommandError(f"{path}: {error.strerror}{hint}.") from error
        self.stdout.write(f"{written:,} access codes are in {path}")


def _find_people(
    administration: Administration,
    *,
    district: str | None,
    school: str | None,
    external_id: str | None,
) -> QuerySet[Respondent]:
    people = invited_people(administration)
    if district:
        people = people.filter(school__district__code__iexact=district)
    if school:
        schools = School.objects.filter(
            Q(code__iexact=school) | Q(name__iexact=school),
            pk__in=people.values("school"),
        )
        _check_single(len(schools), f"school is called {school}")
        people = people.filter(school=schools[0])
    if external_id:
        people = people.filter(identity__external_id=external_id)
        _check_single(people.count(), f"person has the ID {external_id}")
    return people


def _check_single(count: int, description: str) -> None:
    if not count:
        raise CommandError(f"No {description}.")
    # A wrong guess would give one district's codes to another.
    if count > 1:
        raise CommandError(f"More than one {description}. Choose one by --district.")


@transaction.atomic
def _record(
    administration: Administration,
    people: QuerySet[Respondent],
    filters: dict[str, str],
    *,
    reissue: bool,
) -> None:
    schools = School.objects.filter(pk__in=people.values("school"))
    first_two = list(schools.select_related("district")[:2])
    record(
        "reissue access codes" if reissue else "download cards",
        by=BY,
        subject=administration,
        # An entry about a single school is visible to its administrators.
        school=first_two[0] if len(first_two) == 1 else None,
        after={**filters, "people": people.count()},
    )
    if reissue:
        mark_sets_of_people_outdated(people)
