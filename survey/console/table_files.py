"""Check that an uploaded file can hold a table, for the forms that take one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import BinaryIO, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.instrument.spreadsheets.file_kinds import reason_not_a_table

UPLOAD_TABLE = gettext_noop("Upload a CSV or Excel file.")


def check_table_file(
    file: UploadedFile, endings: Sequence[str], export: str = UPLOAD_TABLE
) -> BinaryIO:
    """Return the content of a file. Raises ValidationError with what to do instead."""
    content = cast(BinaryIO, file.file)
    reason = reason_not_a_table(content, export)
    content.seek(0)
    if reason:
        raise forms.ValidationError(reason)
    if PurePath(file.name or "").suffix.casefold() not in endings:
        raise forms.ValidationError(
            _(
                "Only CSV and Excel files (%(endings)s) can be uploaded. If a"
                " spreadsheet program opens this file, save it there as .xlsx; if"
                " not, export the data from your system as CSV or Excel."
            )
            % {"endings": ", ".join(endings)}
        )
    return content
