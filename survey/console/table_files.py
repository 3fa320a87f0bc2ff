"""Fields of forms for uploaded files, with their limits of kind and size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.instrument.spreadsheets.file_kinds import reason_not_a_table
from survey.instrument.spreadsheets.workbook_guard import MIB, ROSTER, unpacked_size

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

UPLOAD_TABLE = gettext_noop("Upload a CSV or Excel file.")
# Of files whose rows are read while the browser waits.
LARGEST_READ_AT_ONCE = 4 * MIB
LARGEST_UNPACKED = 32 * MIB
ENDINGS = (".csv", ".txt", ".tsv", ".xlsx", ".xls")


class UploadField(forms.FileField):
    """A file of at most `largest` bytes; the browser refuses larger ones too."""

    def __init__(
        self,
        *,
        endings: Sequence[str],
        largest: int,
        too_large: StrOrPromise,
        **options: Any,
    ) -> None:
        attrs = {
            "accept": ",".join(endings),
            "data-largest": largest,
            "data-words": too_large,
        }
        widget, validators = forms.FileInput(attrs=attrs), [self.check_file]
        super().__init__(widget=widget, validators=validators, **options)
        self.endings, self.largest, self.too_large = endings, largest, too_large

    def check_file(self, file: UploadedFile) -> None:
        """Check kind and size. Raises ValidationError with what to do instead."""
        if file.size is None or file.size > self.largest:
            raise forms.ValidationError(self.too_large)


class TableField(UploadField):
    """A CSV or Excel file.

    Without `largest`, it is small enough to be read while the browser waits. `export`
    says how to make such a file, where a file of another kind is sent.
    """

    def __init__(
        self,
        *,
        endings: Sequence[str] = ENDINGS,
        largest: int | None = None,
        export: str = UPLOAD_TABLE,
        **options: Any,
    ) -> None:
        super().__init__(
            endings=endings,
            largest=largest or LARGEST_READ_AT_ONCE,
            max_length=200,
            **options,
        )
        self.is_read_at_once, self.export = largest is None, export

    def check_file(self, file: UploadedFile) -> None:
        content = cast(BinaryIO, file.file)
        reason = reason_not_a_table(content, self.export)
        content.seek(0)
        if reason:
            raise forms.ValidationError(reason)
        if PurePath(file.name or "").suffix.casefold() not in self.endings:
            raise forms.ValidationError(
                _(
                    "Only CSV and Excel files (%(endings)s) can be uploaded. If a"
                    " spreadsheet program opens this file, save it there as .xlsx; if"
                    " not, export the data from your system as CSV or Excel."
                )
                % {"endings": ", ".join(self.endings)}
            )
        super().check_file(file)
        if self.is_read_at_once:
            if unpacked_size(content, ROSTER) > LARGEST_UNPACKED:
                raise forms.ValidationError(self.too_large)
            file.seek(0)
