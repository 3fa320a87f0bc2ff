"""Make the archive of a district: data, dictionaries, questionnaires and a README.

What is not encrypted lies in the folder of the job alone, which is deleted at its end,
however it ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path

from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from reports.exports import codebook, codebook_table
from reports.exports.documents.archive import documents_of
from reports.exports.job import CODEBOOK_FILE, TABLE_FILE, DataFile, write_data
from reports.exports.reading import Reading, plan_of, read_snapshot, too_many_rows
from reports.exports.return_of_data.encryption import (
    PasswordLost,
    unseal_password,
    write_for_key,
    write_for_password,
)
from reports.exports.row_builder import RowBuilder
from reports.exports.xlsx_file import MOST_ROWS
from reports.models.exports import Export
from survey.console.surveys.questionnaire import pages_of
from survey.work.jobs import JobRefused, Progress
from survey.work.requested_files import keep_files

README = "README.txt"
Format = Export.Format
# Folders of the archive; CSV is always there.
FOLDERS = {
    Format.WIDE.value: "csv",
    Format.XLSX.value: "excel",
    Format.SAV.value: "spss",
    Format.DTA.value: "stata",
    Format.PARQUET.value: "parquet",
}
Members = dict[str, Path]


def make_district_archive(export: Export, folder: Path, progress: Progress) -> None:
    """Raises JobRefused if a sheet would be too large, or the password is lost."""
    password = "" if export.recipient else _password_of(export)
    reading = read_snapshot(export, folder, progress)
    has_sheet = Format.XLSX in export.further_formats
    if has_sheet and reading.respondents + 1 > MOST_ROWS:
        raise JobRefused(too_many_rows(reading.respondents))
    progress.begin_step(_("Writing the files."), total=reading.respondents)
    files = [
        _data_file(export, chosen_format, folder, reading)
        for chosen_format in (Format.WIDE.value, *export.further_formats)
    ]
    built = write_data(files, reading, progress)
    members = _documents(files, built, folder)
    members |= _questionnaires(reading, folder)
    # In English, as the codebook.
    with translation.override(settings.LANGUAGE_CODE):
        text = render_to_string(
            "reports/return_readme.txt", _readme(export, reading, built[0], members)
        )
    (folder / README).write_text(text)
    progress.begin_step(_("Encrypting the archive."))
    archive, members = folder / "archive", {README: folder / README, **members}
    if export.recipient:
        write_for_key(archive, members, export.recipient)
    else:
        write_for_password(archive, members, password)
    keep_files(
        export,
        {"file_name": (archive, export.suffix)},
        progress,
        after={**export.audit_facts(), "respondents": reading.respondents},
        # Shown when it was ordered, and stored no longer.
        sealed_password="",
        rows=built[0].rows,
        respondents=reading.respondents,
        responses=reading.responses,
    )
    progress.message = _("Ready: %(rows)s rows.") % {"rows": f"{built[0].rows:,}"}


def _password_of(export: Export) -> str:
    try:
        return unseal_password(export.sealed_password)
    except PasswordLost:
        raise JobRefused(
            _(
                "The password can't be read any more, because the server's secret key"
                " has changed. Request the archive again, with a new password."
            )
        ) from None


def _data_file(
    export: Export, chosen_format: str, folder: Path, reading: Reading
) -> DataFile:
    """Plan the data in one format, as an export of this format would be."""
    place = folder / FOLDERS[chosen_format]
    place.mkdir()
    as_export = copy(export)
    as_export.format = chosen_format
    path = place / (as_export.stem + as_export.suffix)
    return DataFile(as_export, plan_of(as_export, reading), path)


def _documents(files: list[DataFile], built: list[RowBuilder], folder: Path) -> Members:
    """Write what explains the data; return it with them, by names in the archive."""
    members: Members = {}
    for file, rows in zip(files, built, strict=True):
        place = file.path.parent
        members[f"{place.name}/{file.path.name}"] = file.path
        documents = documents_of(file.export, rows, file.path)
        for name, content in documents.items():
            members[f"{place.name}/{name}"] = place / name
            (place / name).write_bytes(content)
    for name, document in ((CODEBOOK_FILE, codebook), (TABLE_FILE, codebook_table)):
        members[name] = folder / name
        document.write(folder / name, export=files[0].export, rows=built[0])
    return members


def _questionnaires(reading: Reading, folder: Path) -> Members:
    """Write each version of the survey in each language, as a page to read."""
    members: Members = {}
    for number, version in enumerate(reading.versions.values(), start=1):
        for language in version.definition["languages"]:
            name = f"questionnaire-{number}-{language['code']}.html"
            with translation.override(settings.LANGUAGE_CODE):
                page = render_to_string(
                    "reports/return_questionnaire.html",
                    {
                        "title": version.in_language(
                            version.definition["title"], language["code"]
                        ),
                        "version": version.name,
                        "language": language,
                        "console_language": settings.LANGUAGE_CODE,
                        "pages": pages_of(version.definition, language["code"]),
                    },
                )
            members[name] = folder / name
            members[name].write_text(page)
    return members


def _readme(
    export: Export, reading: Reading, rows: RowBuilder, members: Members
) -> Mapping[str, object]:
    return {
        "export": export,
        "administrations": reading.administrations,
        "rows": rows,
        "now": timezone.now(),
        "software": f"Groundswell {settings.VERSION}",
        "files": list(_digests(members)),
    }


def _digests(members: Members) -> Iterator[tuple[str, str]]:
    for name, path in members.items():
        with path.open("rb") as file:
            yield hashlib.file_digest(file, "sha256").hexdigest(), name
