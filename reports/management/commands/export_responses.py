from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS

from accounts import audit
from accounts.models import Membership, User
from reports.console.exports.forms import TEXT_FORMATS
from reports.exports.requests import request_export
from reports.models import Export
from survey.fieldwork.administrations import AdministrationNotFound, get_administration
from survey.models import Administration
from survey.people.rosters.private_files import private_file
from survey.work import jobs
from survey.work.files import local_copy
from survey.work.requested_files import QuotaExceeded, delete_file

# The command's name in the audit log.
BY = "export_responses"
FORMATS = {"csv": Export.Format.WIDE} | {
    str(kind.value): kind for kind in Export.Format if kind != Export.Format.WIDE
}


class Command(BaseCommand):
    help = (
        "Write the responses of an administration to a file, without names, as a state"
        " administrator gets them: of the people of its results. It is recorded as an"
        " export of that administrator, and in the audit log."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("administration", help="its short name")
        parser.add_argument("--format", choices=FORMATS, default="csv")
        parser.add_argument(
            "--labels",
            metavar="LANGUAGE",
            help="labels in this language, such as es; in CSV and Excel instead of"
            " codes",
        )
        parser.add_argument("--output", type=Path, required=True, help="a new file")
        parser.add_argument(
            "--documents",
            type=Path,
            help="a new ZIP file: DDI, a data package, and syntax for R, Python, SPSS"
            " and Stata",
        )
        parser.add_argument(
            "--by",
            metavar="EMAIL",
            help="the state administrator (default: the first one)",
        )
        parser.add_argument(
            "--force", action="store_true", help="replace files that exist"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            administration = get_administration(options["administration"])
        except AdministrationNotFound as error:
            raise CommandError(str(error)) from error
        language = language_of(administration, options["labels"])
        kind = FORMATS[options["format"]]
        try:
            export = request_export(
                administrations=[administration],
                by=state_administrator(options["by"]),
                command=BY,
                format=kind,
                places={"state": True, "districts": [], "schools": []},
                language=language,
                labels=bool(options["labels"]) and kind in TEXT_FORMATS,
            )
        except QuotaExceeded as error:
            raise CommandError(str(error)) from error
        wait_for(export)
        try:
            for field, path in (
                ("file_name", options["output"]),
                ("documents_name", options["documents"]),
            ):
                if path:
                    copy(export, field, path, replace=options["force"])
        finally:
            # The file is where it was asked for: here it would only take room.
            delete_file(export, by=BY)
        self.stdout.write(
            f"{export.rows:,} rows are in {options['output']} (SHA-256"
            f" {export.sha256})."
        )


def language_of(administration: Administration, code: str | None) -> str:
    """Return a language of the survey, the first one without a code."""
    codes = [language["code"] for language in administration.published.survey.languages]
    if code and code not in codes:
        raise CommandError(
            f"The survey has no labels in {code}. Choose one of {', '.join(codes)}."
        )
    return str(code or codes[0])


def state_administrator(email: str | None) -> User:
    current = Membership.objects.current().filter(
        role=Membership.Role.STATE, user__is_active=True
    )
    if email:
        current = current.filter(user__email__iexact=email)
    membership = current.select_related("user").order_by("pk").first()
    if membership is None:
        named = f" {email}" if email else ""
        raise CommandError(
            f"There is no active state administrator{named}: appoint makes one."
        )
    return membership.user


def wait_for(export: Export) -> None:
    """Make the file, unless a worker does so already. Raises CommandError."""
    assert export.job  # noqa: S101
    jobs.run(export.job.pk)
    while True:
        export.refresh_from_db(using=DEFAULT_DB_ALIAS)
        export.job.refresh_from_db(using=DEFAULT_DB_ALIAS)
        if export.file_name:
            return
        if export.job.is_over:
            raise CommandError(export.job.message)
        time.sleep(1)


def copy(export: Export, field: str, path: Path, *, replace: bool) -> None:
    """Record a download, and copy a file of the export, readable by its owner only."""
    audit.record(
        "download export" if field == "file_name" else "download codebook",
        by=BY,
        subject=export,
        **export.audit_place(),
        after=export.audit_facts(),
    )
    try:
        with (
            local_copy(getattr(export, field)) as stored,
            stored.open("rb") as source,
            private_file(path, replace=replace) as target,
        ):
            shutil.copyfileobj(source, target.buffer)  # type: ignore[attr-defined]
    except OSError as error:
        hint = "; --force replaces it" if isinstance(error, FileExistsError) else ""
        raise CommandError(f"{path}: {error.strerror}{hint}.") from error
